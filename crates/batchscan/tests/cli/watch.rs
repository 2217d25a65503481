//! `batchscan watch`: files of a folder are imported once, into the database or through the operator API.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use batchscan_testbed::scripted_server::{Request, Response};
use batchscan_testbed::{ScriptedServer, ports};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snapbox::file;
use tempfile::NamedTempFile;

use crate::http::{get, token};
use crate::program::{Outcome, Running, assert_no_panic, wait, wait_until};
use crate::scans;
use crate::service::Service;
use crate::site::{ORG, Site};

/// For what takes some polls of the folder. Only a defect takes longer, also on a very slow machine.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// Where a watcher imports into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum To {
    Database,
    Service,
}

/// A site with a folder to watch.
pub(crate) struct Inbox {
    pub(crate) site: Site,
    pub(crate) to: To,
    port: u16,
    operator_token: String,
    mapping: Option<String>,
}

impl Inbox {
    pub(crate) fn new(to: To) -> Self {
        let site = Site::new();
        let issue = ["operator", "token", "issue", "--role", "ingest", "--org", ORG, "--json"];
        let issued: Value = serde_json::from_str(&site.run(&issue).succeeds()).unwrap();
        let operator_token = issued["token"].as_str().unwrap().to_owned();
        std::fs::create_dir(site.path("inbox")).unwrap();
        Self { site, to, port: ports::free().unwrap(), operator_token, mapping: None }
    }

    /// Starts the service, always with the same operator address.
    pub(crate) fn serve(&self) -> Service {
        self.site.serve(&["--operator-listen", &format!("127.0.0.1:{}", self.port)])
    }

    pub(crate) fn watch(&self) -> Watcher {
        self.watch_with(&self.operator_token, "2s")
    }

    /// Imports files as soon as they are found.
    fn watch_hastily(&self) -> Watcher {
        self.watch_with(&self.operator_token, "0s")
    }

    fn watch_with(&self, operator_token: &str, stable: &str) -> Watcher {
        let mut command = self.site.command(&["watch", "inbox", "--org", ORG, "--stable", stable]);
        command.args(self.mapping.iter().flat_map(|mapping| ["--mapping", mapping]));
        if self.to == To::Service {
            command.args(["--url", &format!("http://127.0.0.1:{}", self.port)]);
            command.env("BATCHSCAN_OPERATOR_TOKEN", operator_token);
            command.env("BATCHSCAN_DATABASE", "sqlite:/nonexistent/scans.db");
        }
        let log = NamedTempFile::new().unwrap();
        command.stdout(Stdio::piped()).stderr(log.reopen().unwrap());
        let mut running = Running(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log_text = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(line, format!("watching inbox for \"{ORG}\"\n"), "{log_text}");
        Watcher { running, log }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.site.path("inbox").join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Writes files, each a second newer than the one before.
    fn write_in_order(&self, names: &[&str]) {
        let start = SystemTime::now() - Duration::from_secs(names.len() as u64);
        for (number, name) in (0..).zip(names) {
            self.write(name, scans::array(number..number + 1, name));
            let file = OpenOptions::new().write(true).open(self.path(name)).unwrap();
            file.set_modified(start + Duration::from_secs(number)).unwrap();
        }
    }

    /// The names of the files in a part of the folder, sorted; not the status file.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let names = files.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.contains(".status")).collect();
        names.sort();
        names
    }

    /// Empty before there is one.
    pub(crate) fn status(&self) -> String {
        let entries = std::fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().path());
        let path = entries.into_iter().find(|path| path.extension().is_some_and(|end| end == "status"));
        path.map_or_else(String::new, |path| std::fs::read_to_string(path).unwrap())
    }

    #[track_caller]
    pub(crate) fn wait_for_files(&self, folder: &str, names: &[&str]) {
        let is_there = || self.files(folder) == names;
        assert!(holds_within(SOON, is_there), "{folder}: {:?}, not {names:?}", self.files(folder));
    }

    #[track_caller]
    fn wait_for_status(&self, expected: &str) {
        let shows = || self.status().contains(expected);
        assert!(holds_within(SOON, shows), "{}", self.status());
    }
}

pub(crate) fn holds_within(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !condition() {
        if started.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A running `batchscan watch`. Dropping it kills it.
pub(crate) struct Watcher {
    running: Running,
    log: NamedTempFile,
}

impl Watcher {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Sends SIGTERM and waits until it exits with 0.
    #[track_caller]
    pub(crate) fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.running.0), Signal::TERM).unwrap();
        assert_eq!(wait(&mut self.running.0, SOON), Some(0), "{}", self.log());
        self.log()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_no_panic(&self.log());
        }
    }
}

/// The comments of all batches by id.
pub(crate) fn comments(service: &Service, token: &str) -> BTreeMap<String, String> {
    let batches = get(service, "/v1/batches", token).json();
    let text = |batch: &Value, field: &str| batch[field].as_str().unwrap().to_owned();
    let batches = batches.as_array().unwrap().iter();
    batches.map(|batch| (text(batch, "batch_id"), text(batch, "comment"))).collect()
}

fn files_are_imported_or_fail_with_their_errors(to: To) {
    let inbox = Inbox::new(to);
    let service = inbox.serve();
    let token = token(&service, &inbox.site.credential());
    let wrong = scans::csv(0..3, "x").replace(";12;", ";a dozen;");
    inbox.write("a.ndjson", scans::ndjson(0..2, "a"));
    inbox.write("b.CSV", scans::csv(2..4, "b"));
    inbox.write("c.parquet", scans::parquet(4..6, "c"));
    inbox.write("wrong.csv", &wrong);
    inbox.write("cut.json", &scans::array(6..8, "x")[..900]);
    inbox.write("not a workbook.xlsx", "x");
    inbox.write("old.xls", "x");
    inbox.write("notes.md", "not batches");
    std::fs::create_dir(inbox.path("sub.csv")).unwrap();
    let watcher = inbox.watch();
    inbox.wait_for_status(" ok: 3 imported, 4 rejected, 0 waiting, 1 left alone");
    inbox.wait_for_files("", &["notes.md"]);
    inbox.wait_for_files("done", &["a.ndjson", "b.CSV", "c.parquet"]);
    let reasons = ["cut.json", "not a workbook.xlsx", "old.xls", "wrong.csv"]
        .map(|name| [name.to_owned(), name.to_owned() + ".txt"]);
    assert_eq!(inbox.files("failed"), reasons.concat());
    let old = std::fs::read_to_string(inbox.path("failed/old.xls.txt")).unwrap();
    assert!(old.contains("it is another spreadsheet: save it as .xlsx and import that"), "{old}");
    // The same errors as those of an import.
    inbox.site.write("wrong.csv", &wrong);
    let imported = inbox.site.run(&["import", "--org", ORG, "wrong.csv"]).err.replace("error: ", "");
    let reason = std::fs::read_to_string(inbox.path("failed/wrong.csv.txt")).unwrap();
    assert!(reason.contains("or the mapping (`batchscan org mapping 'Green Valley'`)"), "{reason}");
    assert_eq!(reason.split("; fix").next(), imported.split("; fix").next());
    let found: Vec<String> = comments(&service, &token).into_values().collect();
    assert_eq!(found, ["a", "a", "b", "b", "c", "c"]);
    std::fs::remove_file(inbox.path("failed/wrong.csv")).unwrap();
    inbox.write("wrong.csv", scans::csv(8..9, "d").replace(";92.5;", ";192.5;"));
    inbox.wait_for_files("failed", &reasons.concat()[..6].iter().map(String::as_str).collect::<Vec<_>>());
    let log = watcher.stop();
    assert_eq!(
        (log.matches(": imported file=").count(), log.matches(": rejected file=").count()),
        (4, 4),
        "{log}"
    );
    for (text, count) in [
        (" WARN ", 6),
        (": rejected file=", 4),
        (": imported with a warning file=\"wrong.csv\" warning=\"line 2: ", 1),
        (": leaving alone: its name has no ending of a file to import file=notes.md", 1),
    ] {
        assert_eq!(log.matches(text).count(), count, "{text}: {log}");
    }
    assert!(!log.contains(&inbox.operator_token), "{log}");
}

#[test]
fn files_are_imported_into_the_database_or_fail_with_their_errors() {
    files_are_imported_or_fail_with_their_errors(To::Database);
}

#[test]
fn files_are_imported_into_a_service_or_fail_with_their_errors() {
    files_are_imported_or_fail_with_their_errors(To::Service);
}

#[test]
fn each_folder_may_have_its_own_mapping() {
    for to in [To::Database, To::Service] {
        let mut inbox = Inbox::new(to);
        let stored = inbox.site.write("stored.toml", "[columns]\n\"Name\" = \"crop_type\"\n");
        inbox.site.run(&["org", "mapping", ORG, "--set", &stored]).succeeds();
        let mapping = "rates = \"fraction\"\n[columns]\n\"Keimquote & mehr\" = \"avg_germination_rate\"\n";
        inbox.mapping = Some(inbox.site.write("folder.toml", mapping));
        let _service = inbox.serve();
        let watcher = inbox.watch_hastily();
        let csv = "batch_id,name,scanned,images,warnings,Keimquote & mehr\nb-1,Roma,2026-01-31T08:00:00Z,1,no,0.925\n";
        inbox.write("scans.csv", csv);
        inbox.wait_for_files("done", &["scans.csv"]);
        let batch = inbox.site.run(&["batch", "show", "--org", ORG, "b-1"]).succeeds();
        assert!(batch.contains("\"batch_name\":\"Roma\"") && batch.contains("\"92.50\""), "{to:?}: {batch}");
        // A changed mapping counts from the next file on.
        inbox.site.write("folder.toml", mapping.replace("fraction", "percent"));
        inbox.write("more.csv", csv.replace("b-1", "b-2"));
        inbox.wait_for_files("done", &["more.csv", "scans.csv"]);
        let batch = inbox.site.run(&["batch", "show", "--org", ORG, "b-2"]).succeeds();
        assert!(batch.contains("\"0.93\""), "{to:?}: {batch}");
        // An empty one stands for none, not for the stored one.
        inbox.site.write("folder.toml", "");
        inbox.write("plain.csv", csv.replace("b-1", "b-3").replace(" & mehr", "").replace("0.925", "91.5"));
        inbox.wait_for_files("done", &["more.csv", "plain.csv", "scans.csv"]);
        let batch = inbox.site.run(&["batch", "show", "--org", ORG, "b-3"]).succeeds();
        assert!(batch.contains("\"batch_name\":\"Roma\""), "{to:?}: {batch}");
        watcher.stop();
    }
}

fn an_old_file_does_not_undo_a_correction(to: To) {
    let inbox = Inbox::new(to);
    let service = inbox.serve();
    let token = token(&service, &inbox.site.credential());
    let watcher = inbox.watch();
    let old = scans::ndjson(0..3, "old");
    inbox.write("a.ndjson", &old);
    inbox.wait_for_files("done", &["a.ndjson"]);
    inbox.write("b.ndjson", scans::ndjson(1..2, "corrected"));
    inbox.wait_for_files("done", &["a.ndjson", "b.ndjson"]);
    // A copy, and the same name again.
    inbox.write("copy of a.ndjson", &old);
    inbox.write("a.ndjson", &old);
    assert!(holds_within(SOON, || inbox.files("done").len() == 4), "{:?}", inbox.files("done"));
    let found: Vec<String> = comments(&service, &token).into_values().collect();
    assert_eq!(found, ["old", "corrected", "old"]);
    let log = watcher.stop();
    let counts = [": imported file=", ": imported before, so nothing was changed file="]
        .map(|text| log.matches(text).count());
    assert_eq!(counts, [2, 2], "{log}");
}

#[test]
fn an_old_file_does_not_undo_a_correction_in_the_database() {
    an_old_file_does_not_undo_a_correction(To::Database);
}

#[test]
fn an_old_file_does_not_undo_a_correction_on_a_service() {
    an_old_file_does_not_undo_a_correction(To::Service);
}

/// A dead watcher is noticed although nothing else shows it.
fn status_shows_watchers(to: To) {
    let inbox = Inbox::new(to);
    let service = inbox.serve();
    let watcher = inbox.watch();
    let status = || inbox.site.run(&["status"]).out;
    wait_until("the first report", || status().contains("/inbox"));
    assert!(status().contains(" running "), "{}", status());
    inbox.site.sql().execute("UPDATE watcher SET seen_at = 0", []).unwrap();
    let silent = "/inbox on ";
    assert!(status().lines().nth(1).is_some_and(|line| line.contains(silent)), "{}", status());
    assert!(status().contains(" has not reported since 1970-01-01") && status().contains(" silent "));
    assert!(inbox.site.run(&["status", "--json"]).out.contains("\"state\":\"silent\""));
    watcher.stop();
    assert!(status().contains(" was stopped at ") && status().contains(" stopped "), "{}", status());
    inbox.site.run(&["org", "forget-watchers", ORG]).succeeds();
    assert!(!status().contains("/inbox"), "{}", status());
    drop(service);
}

#[test]
fn status_shows_watchers_of_a_database() {
    status_shows_watchers(To::Database);
}

#[test]
fn status_shows_watchers_of_a_service() {
    status_shows_watchers(To::Service);
}

#[test]
fn files_wait_while_the_service_is_unreachable() {
    let inbox = Inbox::new(To::Service);
    let watcher = inbox.watch();
    for number in 0..3 {
        inbox.write(&format!("{number}.json"), scans::array(number..number + 1, "x"));
    }
    inbox.wait_for_status(": connection refused: 0 imported, 0 rejected, 3 waiting");
    assert!(inbox.status().contains(&format!("Z waiting for http://127.0.0.1:{}: ", inbox.port)));
    // Some retries.
    std::thread::sleep(Duration::from_secs(3));
    let service = inbox.serve();
    inbox.wait_for_status("Z ok: 3 imported, 0 rejected, 0 waiting");
    assert_eq!(comments(&service, &token(&service, &inbox.site.credential())).len(), 3);
    let log = watcher.stop();
    assert_eq!((log.matches(" WARN ").count(), log.matches("importing again").count()), (1, 1), "{log}");
}

#[test]
fn an_older_file_that_is_being_written_does_not_end_the_problem() {
    let inbox = Inbox::new(To::Service);
    let service = inbox.serve();
    let watcher = inbox.watch();
    inbox.write("0.json", scans::array(0..1, "x"));
    inbox.wait_for_files("done", &["0.json"]);
    drop(service);
    inbox.write("new.json", scans::array(1..2, "x"));
    inbox.wait_for_status("waiting to import \"new.json\"");
    inbox.write("old.json", scans::array(2..3, "x"));
    let old = OpenOptions::new().write(true).open(inbox.path("old.json")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(1_000)).unwrap();
    inbox.wait_for_status("waiting to import \"old.json\"");
    let log = watcher.stop();
    assert!(!log.contains("importing again"), "{log}");
}

#[test]
fn a_wrong_token_is_reported_before_there_are_files() {
    let inbox = Inbox::new(To::Service);
    let _service = inbox.serve();
    let wrong = format!("{}canary", inbox.operator_token);
    let watcher = inbox.watch_with(&wrong, "2s");
    inbox.wait_for_status(": it responded with 401 Unauthorized (The operator token is ");
    inbox.write("a.json", scans::array(0..1, "x"));
    inbox.wait_for_status("0 imported, 0 rejected, 1 waiting");
    let log = watcher.stop() + &inbox.status();
    assert!(!log.contains(&inbox.operator_token) && !log.contains("canary"), "{log}");
}

fn a_key_that_was_used_for_another_file_rejects_only_this_file(to: To) {
    let inbox = Inbox::new(to);
    let _service = inbox.serve();
    let _watcher = inbox.watch();
    inbox.write("a.json", scans::array(0..1, "x"));
    inbox.wait_for_files("done", &["a.json"]);
    inbox.site.sql().execute("UPDATE import SET hash = zeroblob(32)", []).unwrap();
    inbox.write("a.json", scans::array(0..1, "x"));
    inbox.write("b.json", scans::array(1..2, "x"));
    inbox.wait_for_files("failed", &["a.json", "a.json.txt"]);
    inbox.wait_for_files("done", &["a.json", "b.json"]);
    let reason = std::fs::read_to_string(inbox.path("failed/a.json.txt")).unwrap();
    assert!(reason.contains("already used for another"), "{reason}");
}

#[test]
fn a_key_in_the_database_that_was_used_for_another_file_rejects_only_this_file() {
    a_key_that_was_used_for_another_file_rejects_only_this_file(To::Database);
}

#[test]
fn a_key_on_a_service_that_was_used_for_another_file_rejects_only_this_file() {
    a_key_that_was_used_for_another_file_rejects_only_this_file(To::Service);
}

#[test]
fn a_new_token_in_the_file_is_used_without_a_restart() {
    let inbox = Inbox::new(To::Service);
    let _service = inbox.serve();
    inbox.site.write("token", format!("{}x", inbox.operator_token));
    inbox.write("a.json", scans::array(0..1, "x"));
    let url = format!("http://127.0.0.1:{}", inbox.port);
    let arguments = ["watch", "inbox", "--org", ORG, "--url", &url, "--token-file", "token"];
    let mut command = inbox.site.command(&arguments);
    let _watcher = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    inbox.wait_for_status(": it responded with 401 Unauthorized (");
    inbox.site.write("token", format!("{}\n", inbox.operator_token));
    inbox.wait_for_files("done", &["a.json"]);
}

#[test]
fn the_status_shows_an_import_that_takes_long() {
    let inbox = Inbox::new(To::Service);
    let (_end, until_the_end) = std::sync::mpsc::channel::<()>();
    let _service = ScriptedService::start(&inbox, move |_| {
        let _ = until_the_end.recv();
        ""
    });
    inbox.write("a.json", scans::array(0..1, "x"));
    let _watcher = inbox.watch();
    inbox.wait_for_status(" importing \"a.json\" for 1");
}

/// An operator API whose responses are scripted, except the first, which accepts the settings, and those to reports.
struct ScriptedService(ScriptedServer);

impl ScriptedService {
    /// `script` returns the status for a file; an empty one closes the connection.
    fn start(inbox: &Inbox, script: impl FnMut(&str) -> &'static str + Send + 'static) -> Self {
        let script = Mutex::new((true, script));
        Self(ScriptedServer::at(([127, 0, 0, 1], inbox.port).into(), move |request| {
            if is_report(request) {
                return Response::new(204, "");
            }
            let (is_first, script) = &mut *script.lock().unwrap();
            let status = if std::mem::take(is_first) { ACCEPTED } else { script(file(request)) };
            respond(request, status)
        }))
    }

    /// The requests after the first, without reports of the watcher.
    fn requests(&self) -> Vec<Request> {
        self.0.requests().into_iter().filter(|request| !is_report(request)).skip(1).collect()
    }

    fn files(&self) -> Vec<String> {
        self.requests().iter().map(|request| file(request).to_owned()).collect()
    }
}

fn is_report(request: &Request) -> bool {
    request.method == "PUT"
}

/// The file that was sent; `check` for a dry run.
fn file(request: &Request) -> &str {
    request.query.iter().find(|(name, _)| name == "file").map_or("check", |(_, file)| file)
}

const ACCEPTED: &str = "200 OK";
const REFUSED: [&str; 5] = [
    "400 Bad Request",
    "413 Payload Too Large",
    "414 URI Too Long",
    "415 Unsupported Media Type",
    "422 Unprocessable Entity",
];

/// Refuses as a proxy would, or with the head of the request as the reason.
fn respond(request: &Request, status: &str) -> Response {
    let code = |status: &str| status[..3].parse().unwrap();
    match status {
        "" => Response::none(),
        ACCEPTED => Response::new(200, r#"{"import_id":1,"new":1,"corrected":0,"unchanged":0,"warnings":0}"#),
        _ if REFUSED.contains(&status) => Response::new(code(status), "<h1>No</h1>"),
        _ => Response::error(code(status), &request.head),
    }
}

/// Imports two files to a service that fails for the first one, with these statuses. It should get these requests.
fn import_after(failures: &'static [&str], requests: &[&str]) {
    let inbox = Inbox::new(To::Service);
    let mut failures = failures.iter();
    let service = ScriptedService::start(&inbox, move |file| match file {
        "2-correction.json" => ACCEPTED,
        _ => failures.next().unwrap_or(&ACCEPTED),
    });
    inbox.write_in_order(&["1-day.json", "2-correction.json"]);
    let watcher = inbox.watch_hastily();
    inbox.wait_for_files("done", &["1-day.json", "2-correction.json"]);
    let log = watcher.stop() + &inbox.status();
    assert_eq!(service.files(), requests, "{log}");
    assert!(!log.contains(&inbox.operator_token), "{log}");
    assert!(log.contains(" WARN ") && log.contains("waiting to import \"1-day.json\" into http://"), "{log}");
    assert_eq!(inbox.files("failed"), [""; 0]);
}

#[test]
fn newer_files_wait_for_a_file_that_may_be_imported_later() {
    let temporary: [&[&str]; 6] = [
        &["500 Internal Server Error", "507 Insufficient Storage"],
        &["503 Service Unavailable", "502 Bad Gateway"],
        &["429 Too Many Requests", "408 Request Timeout"],
        // The connection is lost; not an operator API.
        &["", "204 No Content"],
        // Wrong settings.
        &["401 Unauthorized", "403 Forbidden"],
        &["404 Not Found", "302 Found"],
    ];
    let requests = ["1-day.json", "1-day.json", "1-day.json", "2-correction.json"];
    std::thread::scope(|scope| {
        for failures in temporary {
            scope.spawn(move || import_after(failures, &requests));
        }
    });
}

/// For example, if TLS is required since a change of the proxy.
#[test]
fn files_wait_while_everything_is_refused() {
    let failures = &["400 Bad Request", "400 Bad Request"];
    import_after(failures, &["1-day.json", "check", "1-day.json", "2-correction.json"]);
}

#[test]
fn a_file_that_is_refused_fails_with_the_reason() {
    let inbox = Inbox::new(To::Service);
    let status = |file: &str| REFUSED.into_iter().find(|status| file.starts_with(&status[..3]));
    let service = ScriptedService::start(&inbox, move |file| status(file).unwrap_or(ACCEPTED));
    let refused = REFUSED.map(|status| format!("{}.json", &status[..3]));
    let files: Vec<&str> = refused.iter().map(String::as_str).chain(["good.json"]).collect();
    inbox.write_in_order(&files);
    let watcher = inbox.watch_hastily();
    inbox.wait_for_files("done", &["good.json"]);
    let log = watcher.stop();
    let sent: Vec<String> = service.files().into_iter().filter(|file| file != "check").collect();
    assert_eq!(sent, files);
    assert_eq!(log.matches(": rejected file=").count(), REFUSED.len(), "{log}");
    for (file, status) in refused.iter().zip(REFUSED) {
        assert!(inbox.path("failed").join(file).is_file());
        let reason = std::fs::read_to_string(inbox.path("failed").join(format!("{file}.txt"))).unwrap();
        let address = format!("http://127.0.0.1:{}", inbox.port);
        let expected = format!(
            "cannot import {file} into {address}: it responded with {status}. Nothing was imported; "
        );
        assert!(reason.starts_with(&expected), "{reason}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_imported_is_imported_again_before_newer_ones() {
    let inbox = Inbox::new(To::Service);
    let importing = inbox.path("importing");
    let mut is_first = true;
    let service = ScriptedService::start(&inbox, move |_| {
        if std::mem::take(&mut is_first) {
            let path = std::fs::read_dir(&importing).unwrap().next().unwrap().unwrap().path();
            writeln!(OpenOptions::new().append(true).open(path).unwrap()).unwrap();
        }
        ACCEPTED
    });
    inbox.write_in_order(&["1-day.json", "2-correction.json"]);
    let watcher = inbox.watch_hastily();
    inbox.wait_for_files("done", &["1-day.json", "2-correction.json"]);
    watcher.stop();
    assert_eq!(service.files(), ["1-day.json", "1-day.json", "2-correction.json"]);
    let requests = service.requests();
    let keys = [&requests[0], &requests[1]].map(|request| request.header("idempotency-key").unwrap());
    assert_ne!(keys[0], keys[1], "another content has another key");
}

/// As if a watcher had been killed when it had sent its file, and another one continues.
#[test]
fn an_import_that_outlives_its_client_does_not_undo_a_correction() {
    let inbox = Inbox::new(To::Service);
    let service = inbox.serve();
    let token = token(&service, &inbox.site.credential());
    inbox.write("1-day.json", scans::array(0..1, "wrong"));
    let hash = batchscan_store::hash_file(&mut File::open(inbox.path("1-day.json")).unwrap()).unwrap();
    let key: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let lock = inbox.site.sql();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = std::fs::read_to_string(inbox.path("1-day.json")).unwrap();
    let request = format!(
        "POST /operator/v1/organisations/Green%20Valley/imports HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer {}\r\nIdempotency-Key: sha256:{key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        inbox.operator_token,
        body.len()
    );
    TcpStream::connect(("127.0.0.1", inbox.port)).unwrap().write_all(request.as_bytes()).unwrap();
    let _watcher = inbox.watch();
    inbox.write("2-correction.json", scans::array(0..1, "corrected"));
    lock.execute_batch("ROLLBACK").unwrap();
    inbox.wait_for_files("done", &["1-day.json", "2-correction.json"]);
    // The check, and three imports.
    assert!(holds_within(SOON, || service.log().matches("/imports").count() >= 4), "{}", service.log());
    assert_eq!(comments(&service, &token).into_values().collect::<Vec<_>>(), ["corrected"]);
}

#[test]
fn two_watchers_share_a_folder() {
    let inbox = Inbox::new(To::Database);
    let watchers = [inbox.watch(), inbox.watch()];
    for number in 0..40 {
        inbox.write(&format!("{number}.json"), scans::array(number..number + 1, "x"));
        inbox.write(&format!("{number} wrong.json"), format!("wrong {number}"));
    }
    assert!(holds_within(SOON, || inbox.files("").is_empty() && inbox.files("importing").is_empty()));
    let logs = watchers.map(Watcher::stop).concat();
    assert_eq!((inbox.files("done").len(), logs.matches(": imported file=").count()), (40, 40), "{logs}");
    assert_eq!((inbox.files("failed").len(), logs.matches(": rejected file=").count()), (80, 40), "{logs}");
    assert_eq!(logs.matches(" WARN ").count(), 40, "{logs}");
}

#[test]
fn wrong_settings_are_reported_at_the_start() {
    let inbox = Inbox::new(To::Service);
    inbox.site.write("empty", "\n");
    std::fs::create_dir(inbox.site.path("occupied")).unwrap();
    inbox.site.write("occupied/done", "x");
    std::fs::create_dir(inbox.site.path("linked")).unwrap();
    symlink("../occupied", inbox.site.path("linked/failed")).unwrap();
    inbox.site.transcript(
        &[
            "watch nowhere --org 'Green Valley'",
            "watch inbox --org Unknown",
            "watch inbox --org 'Green Valley' --url http://127.0.0.1:1",
            "watch inbox --org 'Green Valley' --url http://127.0.0.1:1 --token-file empty",
            "watch inbox --org 'Green Valley' --url http://127.0.0.1:1 --token-file nowhere",
            "watch inbox --org 'Green Valley' --url http://ann:hush@127.0.0.1:1 --token-file empty",
            "watch inbox --org 'Green Valley' --poll 0s",
            "watch occupied --org 'Green Valley'",
            "watch linked --org 'Green Valley'",
        ],
        file!["snapshots/wrong_settings_are_reported_at_the_start.txt"],
    );
    let mut command = inbox.site.command(&["watch", "inbox", "--log-format", "json"]);
    let error = Outcome::run(&mut command);
    assert!(error.code == Some(2) && error.err.starts_with("{\"level\":\"ERROR\""), "{error:?}");
}
