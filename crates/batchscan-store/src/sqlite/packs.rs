//! Packs: runs of neighbouring batches, compressed once when they are written (decision 049). Owns how they are made and
//! dropped; pages are put together from them in [`super::pages`].
//!
//! A pack claims that between its first batch and the place it reaches until there are its batches and no others. So
//! whoever changes a batch first drops the pack that claims the batch's place, and packs what is loose when all is changed.

use std::num::NonZero;

use batchscan_model::OrgId;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::deflate::{Deflated, Piece};
use crate::{AdminError, Examination};

/// How many batches a pack has: a page of a thousand is twenty of them, and what is compressed anew at its edges is fifty
/// batches on average. Twice as many would save a twenty-fifth of the bytes, and cost a page from anywhere half as much again.
const PACK_BATCHES: usize = 50;
/// A pack ends here at the latest, however few its batches are.
const PACK_TEXT_BYTES_MAX: usize = 256 * 1024;
/// So much text is compressed at once, on every core: enough for a thread to be worth its start, and little memory.
const TEXT_BYTES_AT_ONCE: usize = 1024 * 1024;

/// A place in the order of batches. Ids are compared as bytes, here as in SQLite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) created: i64,
    pub(super) id: String,
}

impl Place {
    /// Before all batches.
    pub(super) const START: Place = Place { created: i64::MIN, id: String::new() };

    pub(super) fn new(created: i64, id: &str) -> Self {
        Self { created, id: id.to_owned() }
    }

    /// The place right after this one: no id has a control character, so none is between.
    pub(super) fn after(mut self) -> Self {
        self.id.push('\0');
        self
    }

    /// Becomes another place, in the same memory.
    fn set(&mut self, created: i64, id: &str) {
        self.created = created;
        self.id.clear();
        self.id.push_str(id);
    }

    fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Self> {
        Ok(Self { created: row.get(column)?, id: row.get(column + 1)? })
    }
}

/// Keeps the packs of one organisation true while its batches change.
#[derive(Debug)]
pub(super) struct Upkeep {
    org: OrgId,
    /// From here until there no pack claims anything, as a look at them has shown.
    free: Option<(Place, Option<Place>)>,
    /// The first and the last place that changed.
    changed: Option<(Place, Place)>,
}

impl Upkeep {
    /// Packs that are of another version are dropped: somebody changed batches who knew of none.
    pub(super) fn new(connection: &Connection, org: OrgId) -> rusqlite::Result<Self> {
        let stale = "DELETE FROM pack WHERE org_id = ?1
                     AND NOT EXISTS (SELECT 1 FROM organisation WHERE id = ?1 AND packed_version = version)";
        connection.execute(stale, [org.0])?;
        Ok(Self { org, free: None, changed: None })
    }

    /// To be called for each place whose batch came, changed or went.
    pub(super) fn changed(
        &mut self,
        connection: &Connection,
        created: i64,
        id: &str,
    ) -> rusqlite::Result<()> {
        let is_before = |place: &Place| (place.created, place.id.as_str()) <= (created, id);
        match &mut self.changed {
            None => self.changed = Some((Place::new(created, id), Place::new(created, id))),
            Some((first, _)) if !is_before(first) => *first = Place::new(created, id),
            Some((_, last)) if is_before(last) => last.set(created, id),
            Some(_) => {}
        }
        let is_free = |(from, until): &(Place, Option<Place>)| {
            is_before(from) && until.as_ref().is_none_or(|until| !is_before(until))
        };
        if self.free.as_ref().is_some_and(is_free) {
            return Ok(());
        }
        self.drop_claim(connection, &Place::new(created, id))
    }

    /// Drops the pack that claims the place, and notes how far there is none.
    fn drop_claim(&mut self, connection: &Connection, place: &Place) -> rusqlite::Result<()> {
        let (from, claim) = match pack_at(connection, self.org, place)? {
            Some(pack) if *place < pack.until => (pack.first.clone(), Some(pack)),
            Some(pack) => (pack.until, None),
            // What comes before all packs joins the first one: it may come batch by batch, the newest first.
            None => (Place::START, pack_after(connection, self.org, place)?),
        };
        if let Some(pack) = claim {
            let mut drop = connection.prepare_cached("DELETE FROM pack WHERE id = ?1")?;
            drop.execute([pack.id])?;
        }
        let next = pack_after(connection, self.org, &from)?;
        self.free = Some((from, next.map(|pack| pack.first)));
        Ok(())
    }

    /// Packs what is loose, once the organisation has its new version.
    pub(super) fn finish(self, connection: &Connection) -> rusqlite::Result<()> {
        let org = self.org;
        self.pack(connection)?;
        note_packed(connection, org)
    }

    /// Packs what is loose around what changed. An organisation without packs is packed whole.
    fn pack(self, connection: &Connection) -> rusqlite::Result<()> {
        let Some((first, last)) = self.changed else { return Ok(()) };
        let mut before = pack_at(connection, self.org, &first)?;
        loop {
            let from = before.as_ref().map_or(Place::START, Standing::end);
            let next = pack_after(connection, self.org, &from)?;
            let until = next.as_ref().map(|pack| &pack.first);
            if before.as_ref().map(|pack| &pack.until) != until || before.is_none() {
                Gap { org: self.org, before: before.as_ref(), from, until }.fill(connection)?;
            }
            match next {
                Some(pack) if pack.first <= last => before = Some(pack),
                _ => return Ok(()),
            }
        }
    }
}

/// Packs a whole organisation that has no packs.
pub(super) fn pack_all(connection: &Connection, org: OrgId) -> rusqlite::Result<()> {
    Gap { org, before: None, from: Place::START, until: None }.fill(connection)?;
    note_packed(connection, org)
}

/// The packs are of the version that the organisation has now.
fn note_packed(connection: &Connection, org: OrgId) -> rusqlite::Result<()> {
    connection.execute("UPDATE organisation SET packed_version = version WHERE id = ?1", [org.0]).map(|_| ())
}

/// Drops all packs of an organisation.
pub(super) fn drop_all(connection: &Connection, org: OrgId) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM pack WHERE org_id = ?1", [org.0]).map(|_| ())
}

/// Proves that every pack that is used has the text of the batches it claims.
pub(super) fn examine(snapshot: &Connection, report: &mut Examination) -> Result<(), AdminError> {
    let mut all = snapshot.prepare(
        "SELECT p.id, p.first_created_at, p.first_id, p.until_created_at, p.until_id, p.org_id,
                p.batches, p.text_bytes, p.text_sum, p.deflated, p.last_created_at, p.last_id,
                coalesce(o.name, 'organisation ' || p.org_id)
         FROM pack p LEFT JOIN organisation o ON o.id = p.org_id
         WHERE o.id IS NULL OR o.packed_version = o.version ORDER BY p.id",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        if is_true(snapshot, row)? {
            continue;
        }
        let (id, org, name): (i64, i64, String) = (row.get(0)?, row.get(5)?, row.get(12)?);
        report.findings.push(format!(
            "a compressed copy of batches of \"{name}\" is not what they are: remove it with the SQL statements \
             DELETE FROM pack WHERE id = {id}; UPDATE organisation SET version = version + 1 WHERE id = {org}"
        ));
        if report.findings.len() >= Examination::FINDINGS_MAX {
            report.findings.push("and perhaps more: the examination stopped here".into());
            break;
        }
    }
    Ok(())
}

fn is_true(snapshot: &Connection, pack: &Row<'_>) -> rusqlite::Result<bool> {
    let mut claimed = snapshot.prepare_cached(
        "SELECT created_at, batch_id, json FROM batch WHERE org_id = ?1 AND (created_at, batch_id) >= (?2, ?3)
         AND (created_at, batch_id) < (?4, ?5) ORDER BY created_at, batch_id",
    )?;
    let (first, until) = (Place::read(pack, 1)?, Place::read(pack, 3)?);
    let place = params![pack.get::<_, i64>(5)?, first.created, first.id, until.created, until.id];
    let mut run = Run::default();
    let mut rows = claimed.query(place)?;
    while let Some(row) = rows.next()? {
        run.push(row.get(0)?, row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_bytes()?);
    }
    let is_same_text = piece(pack, 7)?.text().is_ok_and(|text| text == run.text);
    let is_same_end = run.last == Some(Place::read(pack, 10)?) && run.first == Some(first);
    Ok(is_same_text && is_same_end && pack.get::<_, i64>(6)? == i64::try_from(run.batches).unwrap_or(-1))
}

/// A pack's text as it is kept, in three columns from that one on: its length, its checksum, its blocks.
pub(super) fn piece<'a>(pack: &'a Row<'_>, column: usize) -> rusqlite::Result<Piece<'a>> {
    let text_bytes = pack.get::<_, i64>(column)?.cast_unsigned();
    Ok(Piece { text_bytes, sum: pack.get(column + 1)?, bytes: pack.get_ref(column + 2)?.as_blob()? })
}

/// Where a pack stands.
struct Standing {
    id: i64,
    first: Place,
    last: Place,
    until: Place,
}

impl Standing {
    /// The place after its last batch; after its first at least, so that a damaged one cannot hold anybody up.
    fn end(&self) -> Place {
        self.last.clone().max(self.first.clone()).after()
    }
}

/// The pack that begins at a place or is the next one before it.
fn pack_at(connection: &Connection, org: OrgId, place: &Place) -> rusqlite::Result<Option<Standing>> {
    let mut find = connection.prepare_cached(
        "SELECT id, first_created_at, first_id, last_created_at, last_id, until_created_at, until_id FROM pack
         WHERE org_id = ?1 AND (first_created_at, first_id) <= (?2, ?3)
         ORDER BY first_created_at DESC, first_id DESC LIMIT 1",
    )?;
    find.query_row(params![org.0, place.created, place.id], standing).optional()
}

/// The pack that begins at a place or is the next one after it.
fn pack_after(connection: &Connection, org: OrgId, place: &Place) -> rusqlite::Result<Option<Standing>> {
    let mut find = connection.prepare_cached(
        "SELECT id, first_created_at, first_id, last_created_at, last_id, until_created_at, until_id FROM pack
         WHERE org_id = ?1 AND (first_created_at, first_id) >= (?2, ?3)
         ORDER BY first_created_at, first_id LIMIT 1",
    )?;
    find.query_row(params![org.0, place.created, place.id], standing).optional()
}

fn standing(row: &Row<'_>) -> rusqlite::Result<Standing> {
    let (first, last, until) = (Place::read(row, 1)?, Place::read(row, 3)?, Place::read(row, 5)?);
    Ok(Standing { id: row.get(0)?, first, last, until })
}

/// A stretch without packs.
struct Gap<'a> {
    org: OrgId,
    /// The pack before it.
    before: Option<&'a Standing>,
    from: Place,
    /// Where the next pack begins, if one follows.
    until: Option<&'a Place>,
}

impl Gap<'_> {
    /// Packs the batches in it. Between packs nothing stays loose; at the end of all, what does not fill a pack does: the
    /// next import goes on there.
    fn fill(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut all = connection.prepare_cached(
            "SELECT created_at, batch_id, json FROM batch
             WHERE org_id = ?1 AND (created_at, batch_id) >= (?2, ?3) ORDER BY created_at, batch_id",
        )?;
        let mut rows = all.query(params![self.org.0, self.from.created, self.from.id])?;
        let mut writing = Writing { connection, org: self.org, runs: Vec::new() };
        let mut runs = [Run::default(), Run::default()];
        let mut reached = false;
        while let Some(row) = rows.next()? {
            let (created, id) = (row.get(0)?, row.get_ref(1)?.as_str()?);
            if self.until.is_some_and(|until| (until.created, until.id.as_str()) <= (created, id)) {
                break;
            }
            if !reached {
                reached = true;
                self.extend_before(connection, &Place::new(created, id))?;
            }
            let [run, ahead] = &mut runs;
            if !run.is_full() {
                run.push(created, id, row.get_ref(2)?.as_bytes()?);
                continue;
            }
            ahead.push(created, id, row.get_ref(2)?.as_bytes()?);
            if ahead.is_full() {
                writing.run(run)?;
                runs.swap(0, 1);
            }
        }
        if !reached && let Some(until) = self.until {
            self.extend_before(connection, until)?;
        }
        self.finish(writing, runs)
    }

    /// The last two runs: one full pack and what is left.
    fn finish(&self, mut writing: Writing<'_>, [mut run, mut ahead]: [Run; 2]) -> rusqlite::Result<()> {
        let is_end = self.until.is_none();
        if run.is_full() && (is_end || ahead.batches > PACK_BATCHES / 2) {
            writing.run(&mut run)?;
            std::mem::swap(&mut run, &mut ahead);
        }
        // A remnant between packs joins the run before it, so that late batches do not crumble what they fall into.
        run.append(ahead);
        if is_end && !run.is_full() {
            return writing.finish(run.first.as_ref());
        }
        writing.run(&mut run)?;
        writing.finish(self.until)
    }

    /// The pack before the gap reaches until the first batch after it.
    fn extend_before(&self, connection: &Connection, until: &Place) -> rusqlite::Result<()> {
        let Some(before) = self.before.filter(|before| before.until != *until) else { return Ok(()) };
        let mut extend = connection
            .prepare_cached("UPDATE pack SET until_created_at = ?2, until_id = ?3 WHERE id = ?1")?;
        extend.execute(params![before.id, until.created, until.id]).map(|_| ())
    }
}

/// Batches that will be a pack.
#[derive(Default)]
struct Run {
    batches: usize,
    first: Option<Place>,
    last: Option<Place>,
    text: Vec<u8>,
}

impl Run {
    fn is_full(&self) -> bool {
        self.batches >= PACK_BATCHES || self.text.len() >= PACK_TEXT_BYTES_MAX
    }

    fn push(&mut self, created: i64, id: &str, json: &[u8]) {
        if self.batches > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(json);
        self.batches += 1;
        self.first.get_or_insert_with(|| Place::new(created, id));
        self.last.get_or_insert(Place::START).set(created, id);
    }

    fn append(&mut self, other: Run) {
        if self.batches > 0 && other.batches > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(&other.text);
        self.batches += other.batches;
        self.first = self.first.take().or(other.first);
        self.last = other.last.or(self.last.take());
    }
}

/// Writes packs in order, each when it is known what follows it.
struct Writing<'a> {
    connection: &'a Connection,
    org: OrgId,
    /// What is to be compressed next.
    runs: Vec<Run>,
}

impl Writing<'_> {
    /// Takes a run, and leaves it empty.
    fn run(&mut self, run: &mut Run) -> rusqlite::Result<()> {
        if run.batches == 0 {
            return Ok(());
        }
        let waiting: usize = self.runs.iter().map(|run| run.text.len()).sum();
        if waiting >= TEXT_BYTES_AT_ONCE {
            self.write(run.first.as_ref())?;
        }
        self.runs.push(std::mem::take(run));
        Ok(())
    }

    fn finish(mut self, until: Option<&Place>) -> rusqlite::Result<()> {
        self.write(until)
    }

    /// Compresses what there is, and writes it.
    fn write(&mut self, until: Option<&Place>) -> rusqlite::Result<()> {
        let runs = std::mem::take(&mut self.runs);
        let mut runs = runs.iter().zip(deflate_all(&runs)).peekable();
        while let Some((run, deflated)) = runs.next() {
            let next = runs.peek().and_then(|(next, _)| next.first.as_ref());
            self.insert(run, &deflated, next.or(until))?;
        }
        Ok(())
    }

    fn insert(&self, run: &Run, deflated: &Deflated, until: Option<&Place>) -> rusqlite::Result<()> {
        let (Some(first), Some(last)) = (&run.first, &run.last) else { return Ok(()) };
        let until = until.cloned().unwrap_or_else(|| last.clone().after());
        let piece = deflated.as_piece();
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO pack (org_id, first_created_at, first_id, last_created_at, last_id, until_created_at, until_id,
                               batches, text_bytes, text_sum, deflated)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        insert.execute(params![
            self.org.0,
            first.created,
            first.id,
            last.created,
            last.id,
            until.created,
            until.id,
            i64::try_from(run.batches).unwrap_or(i64::MAX),
            piece.text_bytes.cast_signed(),
            piece.sum,
            piece.bytes
        ])?;
        Ok(())
    }
}

/// Compresses runs on every core.
fn deflate_all(runs: &[Run]) -> Vec<Deflated> {
    let deflate = |runs: &[Run]| runs.iter().map(|run| Deflated::of(&run.text)).collect::<Vec<_>>();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut shares = runs.chunks(runs.len().div_ceil(cores).max(1));
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let start =
            |share| (share, std::thread::Builder::new().spawn_scoped(scope, move || deflate(share)).ok());
        let others: Vec<_> = shares.map(start).collect();
        let mut deflated = deflate(own);
        for (share, other) in others {
            // Where no thread can be had, this one does its work.
            let done = other.and_then(|thread| thread.join().ok());
            deflated.extend(done.unwrap_or_else(|| deflate(share)));
        }
        deflated
    })
}
