//! `batchscan mirror`: a copy equals the service, whatever happens to either (decision 052).

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use batchscan_model::UtcInstant;
use batchscan_testbed::ScriptedServer;
use batchscan_testbed::scripted_server::Response;
use rusqlite::Connection;
use rusqlite::types::Value as SqlValue;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use snapbox::{file, str};

use crate::http::{get, token};
use crate::import_kills::StopOnDrop;
use crate::program::{HANG_LIMIT, Outcome, Running, wait, wait_until};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, ORG, Site, postgres};
use crate::snapshot::assert_snapshot;
use crate::user::User;

const UP_TO_DATE: &str = "0 new or changed, 0 removed; up to date\n";

/// The batches by id.
pub(crate) type Batches = BTreeMap<String, Value>;

/// Where a mirror writes to.
pub(crate) enum Target {
    File,
    /// The name of a PostgreSQL database.
    Database(String),
    Lines(Lines),
}

/// What a reader of the lines has.
#[derive(Default)]
pub(crate) struct Lines {
    since: Option<String>,
    batches: Batches,
}

impl Lines {
    /// Applies the lines up to the last position. Later ones come again.
    fn apply(&mut self, text: &str) {
        let mut changes = Vec::new();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let mut line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line.as_object().unwrap().len(), 1);
            let Some(since) = line.get_mut("since") else {
                changes.push(line);
                continue;
            };
            self.since = Some(since.as_str().unwrap().to_owned());
            for mut change in changes.drain(..) {
                match change.get_mut("batch") {
                    Some(batch) => drop(self.batches.insert(id_of(batch), batch.take())),
                    None => drop(self.batches.remove(change["removed"].as_str().unwrap())),
                }
            }
        }
    }
}

impl Target {
    pub(crate) fn database() -> Self {
        Target::Database(postgres().fresh_database().unwrap())
    }

    pub(crate) fn all() -> [Self; 3] {
        [Target::File, Target::database(), Target::Lines(Lines::default())]
    }

    /// The command, with standard output in the file `lines`.
    pub(crate) fn command(&self, user: &User<'_>, flags: &[&str]) -> Command {
        let output = match self {
            Target::File => "copy.db".to_owned(),
            Target::Database(name) => postgres().url(name),
            Target::Lines(_) => "-".to_owned(),
        };
        let mut command = user.command(&["mirror", "--output", &output]);
        if let Target::Lines(Lines { since: Some(since), .. }) = self {
            command.args(["--since", since]);
        }
        command.args(flags).stdout(File::create(user.path("lines")).unwrap()).stderr(Stdio::null());
        command
    }

    /// Uses what the command has written to standard output.
    pub(crate) fn read_lines(&mut self, user: &User<'_>) {
        if let Target::Lines(lines) = self {
            lines.apply(&String::from_utf8(user.read("lines")).unwrap());
        }
    }

    /// Runs it until it is up to date. Returns the summary.
    #[track_caller]
    pub(crate) fn update(&mut self, user: &User<'_>) -> String {
        let mut command = self.command(user, &[]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{err}");
        self.read_lines(user);
        match self {
            Target::Lines(_) => err,
            _ => err + &String::from_utf8(user.read("lines")).unwrap(),
        }
    }

    pub(crate) fn batches(&self, user: &User<'_>) -> Batches {
        match self {
            Target::File => file_batches(&open(user)),
            Target::Database(name) => {
                let query = "select coalesce(json_agg(row_to_json(b)), '[]') from batches b";
                let rows = postgres().sql(name, query).unwrap();
                let mut rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
                for row in &mut rows {
                    let created = &mut row["batch_creation_date"];
                    *created =
                        json!(UtcInstant::parse_any_offset(created.as_str().unwrap()).unwrap().to_string());
                }
                by_id(rows)
            }
            Target::Lines(lines) => lines.batches.clone(),
        }
    }
}

/// Starts a mirror with `--follow` that writes its errors to a file, and waits until it is up to date.
fn follow(target: &Target, user: &User<'_>) -> Running {
    let mut command = target.command(user, &["--follow"]);
    let following = Running(command.stderr(File::create(user.path("errors")).unwrap()).spawn().unwrap());
    wait_until("up to date", || !user.read("lines").is_empty());
    following
}

fn errors(user: &User<'_>) -> String {
    String::from_utf8(user.read("errors")).unwrap()
}

fn open(user: &User<'_>) -> Connection {
    Connection::open(user.path("copy.db")).unwrap()
}

fn file_batches(connection: &Connection) -> Batches {
    let mut select = connection.prepare("SELECT * FROM batches").unwrap();
    let names: Vec<String> = select.column_names().map(str::to_owned).collect();
    let row = |row: &rusqlite::Row<'_>| {
        let value = |name: &String| match row.get(name.as_str()).unwrap() {
            SqlValue::Integer(flag) if name == "warnings" => json!(flag == 1),
            SqlValue::Integer(number) => json!(number),
            SqlValue::Real(number) => json!(number),
            SqlValue::Text(text) => json!(text),
            other => {
                assert_eq!(other, SqlValue::Null);
                Value::Null
            }
        };
        Ok(names.iter().map(|name| (name.clone(), value(name))).collect::<Value>())
    };
    by_id(select.query_map([], row).unwrap().map(Result::unwrap).collect())
}

fn id_of(batch: &Value) -> String {
    batch["batch_id"].as_str().unwrap().to_owned()
}

/// Batches by id, with averages as in the API.
fn by_id(rows: Vec<Value>) -> Batches {
    let normal = |mut row: Value| {
        for (name, value) in row.as_object_mut().unwrap() {
            if let Some(number) = value.as_f64().filter(|_| name.starts_with("avg_")) {
                *value = json!(format!("{number:.2}"));
            }
        }
        (id_of(&row), row)
    };
    rows.into_iter().map(normal).collect()
}

/// What the service has.
pub(crate) fn served(service: &Service, token: &str) -> Batches {
    let batches = get(service, "/v1/batches", token).json();
    batches.as_array().unwrap().iter().map(|batch| (id_of(batch), batch.clone())).collect()
}

/// A batch with another date.
pub(crate) fn moved(number: u64, to: u64, comment: &str) -> String {
    scans::line(number, comment).replace(&scans::created(number), &scans::created(to)) + "\n"
}

#[track_caller]
fn remove(site: &Site, ids: &[&str]) {
    let words = [&["batch", "remove", "--yes", "--org", ORG][..], ids].concat();
    site.run(&words).succeeds();
}

#[test]
fn a_mirror_equals_the_service_after_every_change() {
    let site = Site::new();
    let service = site.serve(&["--page-size", "7"]);
    let user = User::of(&site, &service);
    let token = token(&service, &user.credential);
    let mut targets = Target::all();
    let mut check = |summary: &str| {
        for target in &mut targets {
            assert_eq!(target.update(&user), summary);
            assert_eq!(target.batches(&user), served(&service, &token));
            assert_eq!(target.update(&user), UP_TO_DATE);
        }
    };
    check(UP_TO_DATE);
    site.import(&site.write("a.ndjson", scans::ndjson(0..30, "as scanned")));
    check("30 new or changed, 0 removed; up to date\n");
    site.import(&site.write("b.ndjson", scans::ndjson(5..15, "corrected")));
    site.import(&site.write("c.ndjson", moved(3, 40, "moved") + &moved(29, 0, "moved")));
    let required = r#"{"batch_id":"é","batch_name":"'","batch_creation_date":"2026-01-31T08:00:00.5Z",
        "number_of_images":0,"warnings":true}"#;
    site.import(&site.write("d.json", format!("[{required}]")));
    remove(&site, &["scan-0000001", "scan-0000003", "scan-0000007"]);
    site.import(&site.write("e.ndjson", moved(7, 50, "again")));
    check("12 new or changed, 2 removed; up to date\n");
    let types =
        "SELECT typeof(avg_germination_rate), typeof(number_of_images), typeof(warnings) FROM batches";
    let types =
        open(&user).query_row(types, [], |row| Ok([row.get::<_, String>(0)?, row.get(1)?, row.get(2)?]));
    assert_eq!(types.unwrap(), ["real", "integer", "integer"].map(str::to_owned));
    let Target::Database(name) = &targets[1] else { panic!("not a database") };
    let types = "SELECT DISTINCT data_type, numeric_precision, numeric_scale FROM information_schema.columns
                 WHERE table_name = 'batches' AND column_name LIKE 'avg%'";
    assert_eq!(
        postgres().sql(name, types).unwrap(),
        "numeric|14|2",
        "as in the view of a service's database"
    );
}

#[test]
fn a_mirror_follows_until_it_is_stopped() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    let token = token(&service, &user.credential);
    for mut target in Target::all() {
        let mut following = follow(&target, &user);
        for number in 0..3 {
            site.import(&site.write("a.ndjson", scans::ndjson(number..number + 2, &new_comment())));
            wait_until("the copy follows", || {
                target.read_lines(&user);
                target.batches(&user) == served(&service, &token)
            });
        }
        kill_process(Pid::from_child(&following.0), Signal::TERM).unwrap();
        assert_eq!(wait(&mut following.0, HANG_LIMIT), Some(0));
        assert_eq!(target.update(&user), UP_TO_DATE);
    }
}

/// A comment that no batch has.
fn new_comment() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("change {}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Starts a service at the address of one that was stopped.
pub(crate) fn serve_again(site: &Site, address: &str, database: &str, flags: &[&str]) -> Service {
    let mut command = site.command(&["serve", "--listen", address]);
    Service::start(command.args(flags).env("BATCHSCAN_DATABASE", site.url(database)))
}

#[test]
fn an_interruption_is_reported_when_it_begins_and_when_it_is_over() {
    let site = Site::new();
    let mut service = site.serve(&[]);
    let user = User::of(&site, &service);
    let _following = follow(&Target::File, &user);
    let address = service.address().to_owned();
    service.stop();
    // The cause depends on when the connection ends: "unreachable", "connection lost" or "busy".
    wait_until("the loss is reported", || errors(&user).ends_with("; trying again\n"));
    let _service = serve_again(&site, &address, "scans.db", &[]);
    site.import(&site.write("a.ndjson", scans::ndjson(0..1, "as scanned")));
    wait_until("the end is reported", || {
        errors(&user).ends_with("trying again\nnote: the service responds again\n")
    });
}

/// Decision 043. Other commands would end, because they retry for two minutes only.
#[test]
fn a_mirror_that_follows_retries_until_it_is_stopped() {
    let server = ScriptedServer::start(|request| match request.method.as_str() {
        "POST" => Response::new(200, r#"{"access_token":"a","expires_in":3600}"#),
        _ if request.target.contains("wait=") => Response::new(503, "{}").with("Retry-After", "3600"),
        _ => Response::new(200, r#"{"data":[],"removed":[],"since":"p","more":false}"#),
    });
    let site = Site::new();
    let user = User::with(&site, &server.url(), site.credential());
    let mut following = follow(&Target::File, &user);
    wait_until("a retry", || errors(&user) == "note: the service is busy (503); trying again\n");
    kill_process(Pid::from_child(&following.0), Signal::TERM).unwrap();
    assert_eq!(wait(&mut following.0, HANG_LIMIT), Some(0));
}

/// After a restored backup, everything is read again. Readers see no moment without the batches that stay. Kills do not
/// matter here either.
#[test]
fn after_a_restored_backup_everything_is_read_again() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..60, "as scanned")));
    let credential = site.credential();
    let mut service = site.serve(&[]);
    let user = User::with(&site, &service.url, credential);
    site.run(&["backup", &site.name("backup.db")]).succeeds();
    site.import(&site.write("b.ndjson", scans::ndjson(50..90, "lost")));
    let mut targets = Target::all();
    targets.iter_mut().for_each(|target| drop(target.update(&user)));
    let address = service.address().to_owned();
    service.stop();
    let service = serve_again(&site, &address, "backup.db", &["--page-size", "3"]);
    let restored = site.url("backup.db");
    let file = site.write("c.ndjson", scans::ndjson(100..103, "new"));
    site.run(&["import", "--database", &restored, "--org", ORG, &file]).succeeds();
    let token = token(&service, &user.credential);
    let [file, database, lines] = &mut targets;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let connection = open(&user);
            while !stop.load(Ordering::Relaxed) {
                let batches = file_batches(&connection);
                assert!((0..60).all(|number| batches.contains_key(&format!("scan-{number:07}"))));
            }
        });
        let _stops = StopOnDrop(&stop);
        for target in [file, database] {
            for millis in [20, 40, 60, 80, 100, 120, 140] {
                let killed = Running(target.command(&user, &[]).spawn().unwrap());
                std::thread::sleep(Duration::from_millis(millis));
                drop(killed);
            }
            target.update(&user);
            assert_eq!(target.batches(&user), served(&service, &token));
            assert_eq!(target.batches(&user).len(), 63);
            assert_eq!(target.update(&user), UP_TO_DATE);
        }
        assert!(!reader.is_finished(), "the reader failed");
    });
    let outcome = Outcome::run(&mut lines.command(&user, &[]));
    outcome.fails(str![[r#"
error: the service cannot continue from this position: run it without --since, and delete the batches that are not in the new lines

"#]]);
}

/// A mirror that has not seen a removal before it was forgotten reads everything again.
#[test]
fn forgotten_removals_are_not_missed() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    site.import(&site.write("a.ndjson", scans::ndjson(0..5, "as scanned")));
    let mut target = Target::File;
    target.update(&user);
    remove(&site, &["scan-0000001"]);
    site.sql().execute("UPDATE data_version SET created_at = created_at - 172800000000", []).unwrap();
    remove(&site, &["scan-0000002", "--keep-removals", "1"]);
    assert_snapshot(
        &target.update(&user),
        str![[r#"
note: the service cannot continue from the last position; reading everything again
3 new or changed, 2 removed; up to date

"#]],
    );
    assert_eq!(target.batches(&user), served(&service, &token(&service, &user.credential)));
}

#[test]
fn a_target_that_is_not_a_mirror_of_this_organisation_is_not_changed() {
    let site = Site::new();
    let service = site.serve(&[]);
    let other_service = site.serve(&[]);
    let user = User::of(&site, &service);
    site.import(&site.write("a.ndjson", scans::ndjson(0..5, "as scanned")));
    Target::File.update(&user);
    std::fs::write(user.path("notes.db"), "these are my own notes").unwrap();
    let own = Connection::open(user.path("own.db")).unwrap();
    own.execute_batch("CREATE TABLE batches (id)").unwrap();
    drop(own);
    std::fs::copy(site.path("scans.db"), user.path("scans.db")).unwrap();
    let files = ["copy.db", "notes.db", "own.db", "scans.db"];
    let before = files.map(|file| user.read(file));
    let name = postgres().fresh_database().unwrap();
    postgres().sql(&name, "create table batches (id int)").unwrap();
    let database = format!("mirror --output {}", postgres().url(&name));
    let mut errors = vec![
        "mirror --output notes.db",
        "mirror --output own.db",
        "mirror --output scans.db",
        "mirror --output missing/copy.db",
        "mirror --output batches.csv",
        "mirror --output postgres://ann:pw@127.0.0.1:1/nursery",
        "mirror --output copy.db --since abc",
        "mirror --output mysql://ann:pw@host/db",
        "mirror --output postgres://ann:pw@host",
        "mirror --output - --since abc",
    ];
    errors.push(&database);
    let not_mirrors = crate::snapshot::transcript(&errors, |words| user.command(words));
    site.run(&["org", "add", "Other"]).succeeds();
    let issued = site.run(&["credential", "issue", "--org", "Other", "--json"]).succeeds();
    let stranger = User::with(&site, &service.url, Credential::from_json(&issued));
    let others =
        [user.at(&other_service.url), stranger].map(|user| user.run(&["mirror", "-o", "copy.db"]).err);
    assert_snapshot(
        &(not_mirrors + &others.concat()),
        file!["snapshots/a_target_that_is_not_a_mirror_of_this_organisation_is_not_changed.txt"],
    );
    assert_eq!(files.map(|file| user.read(file)), before);
    // New credentials of the same organisation continue.
    assert_eq!(Target::File.update(&User::of(&site, &service)), UP_TO_DATE);
}

#[test]
fn a_deleted_file_is_detected() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    let mut following = follow(&Target::File, &user);
    std::fs::remove_file(user.path("copy.db")).unwrap();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1, "as scanned")));
    assert_eq!(wait(&mut following.0, HANG_LIMIT), Some(1));
    assert_eq!(errors(&user), "error: cannot use copy.db: the file was deleted or replaced; run it again\n");
}

#[test]
fn names_that_sqlite_treats_specially_are_files() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    for name in [":memory:", "file:copy.db?mode=memory"] {
        user.run(&["mirror", "--output", name]).succeeds();
        assert!(user.path(name).exists());
    }
}

#[test]
fn a_second_process_that_writes_is_detected() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    for target in [Target::File, Target::database()] {
        let mut following = follow(&target, &user);
        let conflict = "UPDATE mirror_position SET since = 'other'";
        match &target {
            Target::Database(name) => drop(postgres().sql(name, conflict).unwrap()),
            _ => drop(Connection::open(user.path("copy.db")).unwrap().execute(conflict, []).unwrap()),
        }
        site.import(&site.write("a.ndjson", scans::ndjson(0..1, &new_comment())));
        assert_eq!(wait(&mut following.0, HANG_LIMIT), Some(1));
        let error = errors(&user);
        assert!(error.starts_with("error: another process writes to "), "{error}");
    }
}

/// PostgreSQL has no NUL in text.
#[test]
fn a_nul_is_replaced_on_postgresql_only() {
    let site = Site::new();
    let service = site.serve(&[]);
    let user = User::of(&site, &service);
    site.import(&site.write("a.ndjson", scans::line(0, r"a\u0000b")));
    for (mut target, comment) in [(Target::File, "a\0b"), (Target::database(), "a\u{FFFD}b")] {
        target.update(&user);
        assert_eq!(target.batches(&user)["scan-0000000"]["comment"], comment);
    }
}
