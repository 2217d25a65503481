//! Questions to whoever speaks the interface: the same paths, tokens and cursors for all.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::server::Server;
use super::{Asked, Form, Question};
use crate::bench::data::Sample;
use crate::bench::exchange::{Connection, Request};
use crate::bench::load::filled;
use crate::bench::works::Work;

/// Batches on a page of v2.
pub(crate) const PAGE_BATCHES: usize = 1_000;
/// Windows that are asked in turn. A prime, so that none meets the same fraction of a second twice in a run.
pub(crate) const WINDOWS: usize = 4_093;
/// The first page, and the same question again and again.
pub(crate) const FIRST_PAGE: &str = "/v2/batches";
/// The first page; the end of the range counts up, far beyond the data.
pub(crate) const FIRST_PAGE_COUNTING: &str = "/v2/batches?end_date={date}";
/// Cursors that are asked in turn, of contenders that keep no pages or were told to keep none.
const CURSORS: usize = 8;
/// Places that are asked for in turn. A prime, so that they fall anywhere between the runs of batches that are kept compressed.
const PLACES: usize = 97;

/// What is asked for a work.
pub(super) fn question(server: &Server, work: Work, sample: &Sample) -> Result<Question> {
    let get = |path: &str| Request::get(path).with_token(&server.token);
    let first = 0..PAGE_BATCHES;
    Ok(match work {
        Work::PageUncached | Work::Scale => Question::one(get(FIRST_PAGE_COUNTING), first),
        Work::PageCached => Question::one(get(FIRST_PAGE), first),
        Work::PageFirst => first_pages(server),
        Work::PageDeep => deep_pages(server, sample)?,
        Work::Conditional => conditional(server)?,
        Work::Gzip | Work::Zstd => Question::one(
            get(FIRST_PAGE_COUNTING).with("accept-encoding", work.coding().unwrap_or_default()),
            first,
        ),
        Work::GzipAnywhere => gzip_pages(server, sample),
        Work::GzipCached | Work::ZstdCached => {
            Question::one(get(FIRST_PAGE).with("accept-encoding", work.coding().unwrap_or_default()), first)
        }
        Work::Window => windows(server, sample)?,
        Work::Auth => auth(server),
        _ => bail!("{} is no request", work.name()),
    })
}

/// The request for a token.
pub(crate) fn token_request(client_id: &str, client_secret: &str) -> Request {
    // Neither holds a character that a form would encode.
    let body = format!("grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}");
    let form = "application/x-www-form-urlencoded";
    Request { method: "POST", path: "/v2/auth".to_owned(), body, ..Request::default() }
        .with("content-type", form)
}

/// The token in an answer.
pub(crate) fn token_in(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Token {
        access_token: String,
    }
    serde_json::from_slice::<Token>(body).ok().map(|token| token.access_token)
}

/// The entity tag of a path's answer.
pub(crate) fn etag_of(connection: &mut Connection, request: &Request) -> Result<String> {
    let answer = connection.ask(request)?;
    answer.head.header("etag").map(str::to_owned).with_context(|| format!("{} has no ETag", request.path))
}

fn first_pages(server: &Server) -> Question {
    let request = |n| filled(&Request::get(FIRST_PAGE_COUNTING).with_token(&server.token), server.span + n);
    let asked = (0..CURSORS as u64).map(|n| Asked::new(request(n), 0..PAGE_BATCHES));
    Question { asked: asked.collect(), answer: Form::Batches }
}

/// Cursors that stand at nine tenths of the data. Each comes from a walk with another end, so no two are the same.
fn deep_pages(server: &Server, sample: &Sample) -> Result<Question> {
    #[derive(Deserialize)]
    struct Page {
        next_token: Option<String>,
    }
    let before = sample.findable(server.batches / 10 * 9 - PAGE_BATCHES);
    let rows = before + PAGE_BATCHES..before + 2 * PAGE_BATCHES;
    let path = format!("/v2/batches?start_date={}&end_date={{date}}", sample.date(before).0);
    let walk = Request::get(path).with_token(&server.token);
    let mut connection = server.connect()?;
    let mut asked = Vec::new();
    for n in 0..CURSORS as u64 {
        let answer = connection.ask(&filled(&walk, server.span + n))?;
        let page: Page = serde_json::from_slice(&answer.body).context("a page of another form")?;
        let cursor = page.next_token.context("the page at nine tenths has no cursor")?;
        let request = Request::get(format!("/v2/batches?next_token={cursor}")).with_token(&server.token);
        asked.push(Asked::new(request, rows.clone()));
    }
    Ok(Question { asked, answer: Form::Batches })
}

/// Pages from dates all over the data. Few of them begin or end where a run of batches does that is kept compressed.
fn gzip_pages(server: &Server, sample: &Sample) -> Question {
    let room = server.batches.saturating_sub(2 * PAGE_BATCHES);
    let asked = (0..PLACES).map(|place| {
        let first = sample.findable(room / PLACES * place);
        let path = format!("/v2/batches?start_date={}&end_date={{date}}", sample.date(first).0);
        let request = Request::get(path).with_token(&server.token).with("accept-encoding", "gzip");
        Asked::new(request, first..first + PAGE_BATCHES)
    });
    Question { asked: asked.collect(), answer: Form::Batches }
}

fn conditional(server: &Server) -> Result<Question> {
    let request = Request::get(FIRST_PAGE).with_token(&server.token);
    let etag = etag_of(&mut server.connect()?, &request)?;
    let asked = vec![Asked::new(request.with("if-none-match", etag), 0..0)];
    Ok(Question { asked, answer: Form::NotModified })
}

fn windows(server: &Server, sample: &Sample) -> Result<Question> {
    let asked = sample.windows(WINDOWS)?.into_iter().map(|window| {
        let path =
            format!("/v2/batches?start_date={}&end_date={}.{{fraction}}Z", window.start, window.end_second);
        Asked::new(Request::get(path).with_token(&server.token), window.rows)
    });
    Ok(Question { asked: asked.collect(), answer: Form::Batches })
}

fn auth(server: &Server) -> Question {
    let request = token_request(&server.credential.client_id, &server.credential.client_secret);
    Question { asked: vec![Asked::new(request, 0..0)], answer: Form::Token }
}
