//! Times the same page on little data and on much, for one organisation and for many, closely in turn: their ratio is a
//! target, so that what disturbs one must disturb the others.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Plan;
use super::contenders::interface::{FIRST_PAGE_COUNTING, PAGE_BATCHES, token_in, token_request};
use super::contenders::server::{Place, Server};
use super::contenders::{Asked, Contender, Form, Question};
use super::exchange::Request;
use super::figures::{Figures, Key};
use super::rounds::{CONNECTIONS, in_turn, tell, timed};
use super::stock::Stock;
use super::works::{Data, Work};

/// Times the uncached page on every size of data. All servers run from the beginning; those not asked are idle.
pub(crate) fn run(stock: &Stock, plan: &Plan, figures: &mut Figures) -> Result<()> {
    let sizes: &[Data] = if plan.pace.is_quick {
        &[Data::Small, Data::Usual, Data::Many]
    } else {
        &[Data::Small, Data::Usual, Data::Large, Data::Anywhere, Data::Many]
    };
    let mut asked = Vec::new();
    for data in sizes {
        let server = Server::start(stock, Contender::Batchscan, *data, Place::OneCore)?;
        let question = question(stock, &server, *data)?;
        asked.push((*data, server, question));
    }
    let order: Vec<usize> = (0..asked.len()).collect();
    for round in 0..plan.pace.scale_rounds {
        for index in in_turn(&order, round) {
            let (data, server, question) = &asked[index];
            let key =
                Key { work: Work::Scale, data: *data, connections: CONNECTIONS, contender: server.contender };
            let figure = timed(stock, plan, server, key, question)?;
            figures.add(key, round, figure);
            tell(round, key, &figure);
        }
    }
    asked.into_iter().try_for_each(|(_, server, _)| server.end())
}

fn question(stock: &Stock, server: &Server, data: Data) -> Result<Question> {
    match data {
        Data::Many => first_pages_of_all(stock, server),
        Data::Anywhere => pages_from_anywhere(stock, server),
        _ => server.question(Work::Scale, &stock.sample),
    }
}

/// The first page of each organisation in turn.
fn first_pages_of_all(stock: &Stock, server: &Server) -> Result<Question> {
    let tokens = tokens(stock, server)?;
    let asked = tokens.iter().enumerate().map(|(index, token)| {
        let rows = index * PAGE_BATCHES..(index + 1) * PAGE_BATCHES;
        Asked::new(Request::get(FIRST_PAGE_COUNTING).with_token(token), rows)
    });
    Ok(Question { asked: asked.collect(), answer: Form::Batches })
}

/// A token for each organisation.
pub(crate) fn tokens(stock: &Stock, server: &Server) -> Result<Vec<String>> {
    let mut connection = server.connect()?;
    let credentials = &stock.database(Contender::Batchscan, Data::Many)?.credentials;
    credentials
        .iter()
        .map(|known| {
            let answer = connection.ask(&token_request(&known.client_id, &known.client_secret))?;
            token_in(&answer.body).context("an organisation gets no token")
        })
        .collect()
}

/// Pages of one organisation that together are all its data, as the first pages of many organisations are.
fn pages_from_anywhere(stock: &Stock, server: &Server) -> Result<Question> {
    #[derive(Deserialize)]
    struct Created {
        batch_creation_date: String,
    }
    let mut asked = Vec::new();
    for (page, line) in stock.source.lines(Data::Large)?.step_by(PAGE_BATCHES).enumerate() {
        let date = serde_json::from_str::<Created>(&line?)?.batch_creation_date;
        let path = format!("/v2/batches?start_date={date}&end_date={{date}}");
        // The page begins with the first batch of its instant, which the last pages have fewer than a page left of.
        let first = stock.sample.first_of_instant(page * PAGE_BATCHES);
        asked.push(Asked::new(Request::get(path).with_token(&server.token), first..first + PAGE_BATCHES));
    }
    Ok(Question { asked, answer: Form::Batches })
}
