//! What is done to a site while clients use it: the acts of a round, each counted by itself, and rolling restarts.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::report::{Act, Row, WriteGap};
use super::tally::Tally;
use super::writers::Acknowledged;
use crate::cluster::Site;

/// Right answers after a loss that show that reading goes on: many from every client, for about a second.
const READS_SHOWN: u64 = 300;
/// They come in a second; a busy machine takes longer.
const READS_LIMIT: Duration = Duration::from_secs(30);
/// A command waits 15 s for a primary, and is run again when it failed.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// Who does it, and what it is done to.
pub(crate) struct Director<'a> {
    pub(crate) site: &'a mut Site,
    pub(crate) tally: &'a Tally,
    pub(crate) acknowledged: &'a Acknowledged,
    pub(crate) rows: Vec<Row>,
}

impl Director<'_> {
    /// Lets the load run undisturbed for a moment, so that every later act has something to compare with.
    pub(crate) fn warm_up(&mut self) -> Result<()> {
        self.act(0, Act::Undisturbed, |director| {
            director.reads_go_on()?;
            director.acknowledged.wait_for_import_after(Instant::now(), WRITE_LIMIT)?;
            Ok(None)
        })
    }

    /// Kills the primary, a standby and a node, one after the other; all is well again before the next.
    pub(crate) fn round(&mut self, round: usize) -> Result<()> {
        self.act(round, Act::PrimaryKilled, Self::lose_primary)?;
        self.act(round, Act::StandbyKilled, |director| director.lose_standby(round))?;
        self.act(round, Act::NodeKilled, |director| director.lose_node(round))
    }

    /// Restarts every node, one after the other.
    pub(crate) fn roll(&mut self, round: usize) -> Result<()> {
        self.act(round, Act::RollingRestart, |director| {
            for index in 0..director.site.nodes.len() {
                director.site.nodes[index].stop()?;
                director.reads_go_on()?;
                director.site.nodes[index].start_again()?;
                // As an operator does: the next one only when the balancer takes this one for up.
                director.site.balancer.wait_until_all_are_up()?;
            }
            Ok(None)
        })
    }

    fn lose_primary(&mut self) -> Result<Option<WriteGap>> {
        let databases = &self.site.databases;
        databases.primary().kill()?;
        let killed_at = Instant::now();
        self.reads_go_on()?;
        let promoted_at = Instant::now();
        databases.fail_over()?;
        let written_at = self.acknowledged.wait_for_import_after(promoted_at, WRITE_LIMIT)?;
        databases.rejoin_dead()?;
        Ok(Some(WriteGap {
            from_kill: written_at - killed_at,
            from_promotion: written_at.saturating_duration_since(promoted_at),
        }))
    }

    fn lose_standby(&self, round: usize) -> Result<Option<WriteGap>> {
        let databases = &self.site.databases;
        let standbys = databases.standbys();
        let standby = standbys[round % standbys.len()];
        standby.kill()?;
        self.reads_go_on()?;
        standby.start_again()?;
        databases.primary().wait_for_standbys(&[standby.name()])?;
        Ok(None)
    }

    fn lose_node(&mut self, round: usize) -> Result<Option<WriteGap>> {
        let index = round % self.site.nodes.len();
        let node = &mut self.site.nodes[index];
        self.tally.node_is_killed(&node.mark);
        node.kill()?;
        self.reads_go_on()?;
        self.site.nodes[index].start_again()?;
        Ok(None)
    }

    /// Does something, waits until all is well again, and counts what happened meanwhile.
    fn act(
        &mut self,
        round: usize,
        act: Act,
        what: impl FnOnce(&mut Self) -> Result<Option<WriteGap>>,
    ) -> Result<()> {
        let (begun, retries) = (Instant::now(), self.retries());
        let gap = what(self).with_context(|| format!("round {round}, {act}"))?;
        self.site.wait_until_healthy().with_context(|| format!("after round {round}, {act}"))?;
        // What a client began in this act, it ends in this act.
        self.reads_go_on()?;
        let retries = self.retries().saturating_sub(retries);
        let row = Row { round, act, counts: self.tally.take(), retries, gap, took: begun.elapsed() };
        println!("{}", row.line());
        row.counts.told.iter().for_each(|failure| println!("    {failure}"));
        self.rows.push(row);
        Ok(())
    }

    fn reads_go_on(&self) -> Result<()> {
        self.tally.wait_for_right(READS_SHOWN, READS_LIMIT).context("reading does not go on")
    }

    fn retries(&self) -> u64 {
        self.site.nodes.iter().map(crate::cluster::nodes::Node::retries).sum()
    }
}
