//! nginx: the bytes of batchscan's answers as files, and the questions for them. The practical limit of any answer.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::interface::{FIRST_PAGE, PAGE_BATCHES, etag_of};
use super::server::{Place, Server};
use super::{Asked, Contender, Form, Question};
use crate::bench::check::piped;
use crate::bench::exchange::Request;
use crate::bench::stock::Stock;
use crate::bench::works::{Data, Work};
use crate::process;

/// The first page of v2.
const PAGE: &str = "/v2/page.json";
/// The same, compressed beforehand.
const PAGE_GZIP: &str = "/gzip/v2/page.json";
/// Everything of v1.
pub(crate) const EVERYTHING: &str = "/v1/all.json";
/// The configuration, relative to the root.
const CONFIGURATION: &str = "bench/peers/nginx/nginx.conf.in";

/// Where nginx finds the files for some data.
pub(crate) fn home(stock: &Stock, data: Data) -> PathBuf {
    stock.folder.join(format!("nginx-{}", data.batches()))
}

/// Asks batchscan once and writes its answers down, as whoever exports static files does.
pub(crate) fn write(stock: &Stock, data: Data) -> Result<()> {
    let files = home(stock, data).join("files");
    fs::create_dir_all(files.join("v1"))?;
    fs::create_dir_all(files.join("v2"))?;
    let server = Server::start(stock, Contender::Batchscan, data, Place::BothCores)?;
    let save = |path: &str, file: &str| -> Result<()> {
        let mut target = File::create(files.join(file))?;
        let request = Request::get(path).with_token(&server.token);
        let arrival = server.connect()?.pour(&request, &mut target)?;
        ensure!(arrival.head.status == 200, "{path} is answered with {}", arrival.head.status);
        Ok(target.flush()?)
    };
    save(FIRST_PAGE, "v2/page.json")?;
    save("/v1/batches", "v1/all.json")?;
    server.end()?;
    let page = fs::read(files.join("v2/page.json"))?;
    Ok(fs::write(files.join("v2/page.json.gz"), piped(Command::new("gzip").arg("-9c"), &page)?)?)
}

/// Writes the configuration for one worker on a port, and gives its path.
pub(super) fn configure(stock: &Stock, home: &Path, port: u16) -> Result<PathBuf> {
    let user = process::stdout_of(Command::new("id").arg("-un"))?;
    let text = fs::read_to_string(stock.root.join(CONFIGURATION))?;
    let text =
        text.replace("@USER@", user.trim()).replace("@WORKERS@", "1").replace("@PORT@", &port.to_string());
    let path = home.join("nginx.conf");
    fs::write(&path, text)?;
    Ok(path)
}

/// What is asked for a work.
pub(super) fn question(server: &Server, work: Work) -> Result<Question> {
    Ok(match work {
        Work::PageCached => Question::one(Request::get(PAGE), 0..PAGE_BATCHES),
        Work::GzipCached => {
            Question::one(Request::get(PAGE_GZIP).with("accept-encoding", "gzip"), 0..PAGE_BATCHES)
        }
        Work::Conditional => {
            let etag = etag_of(&mut server.connect()?, &Request::get(PAGE))?;
            let asked = vec![Asked::new(Request::get(PAGE).with("if-none-match", etag), 0..0)];
            Question { asked, answer: Form::NotModified }
        }
        _ => bail!("static files have no {}", work.name()),
    })
}
