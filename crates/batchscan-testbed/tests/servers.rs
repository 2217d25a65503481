//! The servers are real, suffer what is done to them, and go with whoever started them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do the parts it is made of")]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use batchscan_testbed::{
    Cluster, HaProxy, PgBouncer, PoolMode, Postgres, Process, Replication, Settings, Signal, ports,
};

/// How long a server may outlive a starter that was killed.
const ORPHAN_LIMIT: Duration = Duration::from_secs(5);
/// Long enough for a server that answers at all.
const SILENCE: Duration = Duration::from_millis(300);
/// A client of its own is a process that has to start.
const CLIENT_LIMIT: Duration = Duration::from_secs(10);
/// What the kernel still holds of a killed server goes within milliseconds.
const GONE_LIMIT: Duration = Duration::from_secs(2);

fn start() -> Postgres {
    Postgres::start(&Settings::default()).unwrap()
}

/// Commits a row that tells whether a server kept what it had.
fn remember(postgres: &Postgres, note: &str) {
    let statement =
        format!("create table if not exists notes (note text); insert into notes values ('{note}')");
    postgres.sql("postgres", &statement).unwrap();
}

fn notes(postgres: &Postgres) -> Vec<String> {
    let rows = postgres.sql("postgres", "select note from notes order by note").unwrap();
    rows.lines().map(str::to_owned).collect()
}

/// Processes that are at home in a folder: by their working folder or their arguments. Zombies have neither.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.to_str().unwrap();
    let is_in = |process: &PathBuf| {
        let place = fs::read_link(process.join("cwd")).unwrap_or_default();
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        place.to_string_lossy().starts_with(folder) || String::from_utf8_lossy(&arguments).contains(folder)
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(is_in).collect()
}

#[track_caller]
fn assert_gone(folder: &Path, limit: Duration) {
    wait_until(limit, || !folder.exists() && processes_in(folder).is_empty());
}

#[track_caller]
fn wait_until(limit: Duration, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {limit:?}");
        sleep(Duration::from_millis(20));
    }
}

/// A client with a statement under way.
fn client(postgres: &Postgres, statement: &str) -> Process {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-d", &postgres.url("postgres"), "-c", statement]);
    let client = Process::start(psql.stdout(Stdio::null()).stderr(Stdio::null())).unwrap();
    let active = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    wait_until(CLIENT_LIMIT, || postgres.sql("postgres", active).unwrap() == "1");
    client
}

/// Asks a PostgreSQL server whether it speaks TLS; the answer is a letter.
fn answers(port: u16) -> bool {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    match stream.read(&mut [0]) {
        Ok(count) => count == 1,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    }
}

#[test]
fn a_server_answers_sql_and_two_run_beside_each_other() {
    let (first, second) = (start(), start());
    assert_eq!(
        first.sql("postgres", "select 1, null, 'ä' union all select 2, 3, 'b'").unwrap(),
        "1||ä\n2|3|b"
    );
    remember(&first, "mine");
    assert!(second.sql("postgres", "select * from notes").is_err());
    assert_ne!(first.port(), second.port());
}

#[test]
fn settings_of_the_caller_hold_and_wrong_ones_are_told_with_the_log() {
    let settings =
        Settings::default().with("max_connections", "17").with("synchronous_commit", "remote_apply");
    let postgres = Postgres::start(&settings).unwrap();
    assert_eq!(postgres.sql("postgres", "show max_connections").unwrap(), "17");
    let error = Postgres::start(&settings.with("no_such_setting", "1")).unwrap_err();
    assert!(
        format!("{error:#}").contains("unrecognized configuration parameter \"no_such_setting\""),
        "{error:#}"
    );
}

#[test]
fn fresh_databases_are_empty_and_apart() {
    let postgres = start();
    let (one, other) = (postgres.fresh_database().unwrap(), postgres.fresh_database().unwrap());
    assert_ne!(one, other);
    postgres.sql(&one, "create table t ()").unwrap();
    assert_eq!(postgres.sql(&other, "select count(*) from pg_class where relname = 't'").unwrap(), "0");
    assert!(postgres.url(&one).ends_with(&format!(":{}/{one}", postgres.port())));
}

#[test]
fn a_killed_server_is_gone_at_once_and_comes_back_with_what_was_committed() {
    let postgres = start();
    remember(&postgres, "committed");
    for _ in 0..3 {
        let _client = client(&postgres, "insert into notes values ('open'); select pg_sleep(60)");
        postgres.kill().unwrap();
        assert!(!postgres.is_running());
        assert!(!ports::is_listening(postgres.port()));
        assert_eq!(processes_in(&postgres.folder().join("data")), Vec::<PathBuf>::new());
        assert!(postgres.folder().join("data/postmaster.pid").exists(), "it had time to tidy up");
        postgres.start_again().unwrap();
        assert_eq!(notes(&postgres), ["committed"]);
    }
    assert!(postgres.start_again().is_err(), "it runs");
}

#[test]
fn a_stopped_server_has_nothing_to_recover() {
    let postgres = start();
    postgres.stop().unwrap();
    assert!(!postgres.is_running());
    postgres.start_again().unwrap();
    assert!(!postgres.log().contains("was not properly shut down"), "{}", postgres.log());
}

#[test]
fn a_frozen_server_answers_nobody_until_it_thaws() {
    let postgres = start();
    assert!(answers(postgres.port()));
    let mut client = client(&postgres, "select pg_sleep(0.2)");
    postgres.freeze().unwrap();
    assert!(postgres.is_running());
    assert!(!answers(postgres.port()));
    assert!(client.wait(SILENCE).is_err(), "a session went on");
    postgres.thaw();
    assert!(answers(postgres.port()));
    assert!(client.wait(CLIENT_LIMIT).unwrap().success());
}

#[test]
fn a_frozen_server_can_be_dropped() {
    let postgres = start();
    postgres.freeze().unwrap();
    let folder = postgres.folder().to_owned();
    drop(postgres);
    assert_gone(&folder, GONE_LIMIT);
}

#[test]
fn a_cluster_fails_over_without_loss_and_the_old_primary_rejoins() {
    let cluster = Cluster::start(&Settings::default(), Replication::Synchronous).unwrap();
    remember(cluster.primary(), "1 to db1");
    assert!(cluster.fail_over().is_err(), "the primary lives");
    cluster.primary().kill().unwrap();
    cluster.fail_over().unwrap();
    assert_ne!(cluster.primary().name(), "db1");
    remember(cluster.primary(), "2 to its successor");
    cluster.rejoin_dead().unwrap();
    assert_eq!(cluster.standbys().len(), 2);
    for standby in cluster.standbys() {
        standby.wait_to_catch_up_with(cluster.primary()).unwrap();
        assert!(standby.is_in_recovery().unwrap());
        assert_eq!(notes(standby), ["1 to db1", "2 to its successor"]);
    }
    assert_eq!(cluster.url("x").matches("127.0.0.1:").count(), 3);
}

#[test]
fn a_dropped_server_leaves_no_process_no_folder_and_no_shared_memory() {
    let segments = || fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let postgres = start();
    let folder = postgres.folder().to_owned();
    let lock = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let is_held = || segments().lines().any(|line| line.split_whitespace().nth(1) == Some(&segment));
    assert!(is_held() && processes_in(&folder).len() > 3);
    drop(postgres);
    assert!(!folder.exists());
    assert_gone(&folder, GONE_LIMIT);
    assert!(!is_held());
}

#[test]
fn a_server_whose_starter_was_killed_is_gone_within_seconds() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchscan-testbed"));
    let mut starter = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped())).unwrap();
    let (_stdin, stdout, _) = starter.take_streams();
    let lines: Vec<String> = BufReader::new(stdout.unwrap()).lines().take(2).map(Result::unwrap).collect();
    let folder = PathBuf::from(lines[1].strip_prefix("folder ").unwrap());
    assert!(processes_in(&folder).len() > 3);
    // To the starter alone: killing its descendants is not what is tested.
    starter.signal(Signal::KILL).unwrap();
    assert_gone(&folder, ORPHAN_LIMIT);
}

#[test]
fn a_dropped_process_takes_its_children_along() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & (sleep 600 &) ; sleep 600"]).current_dir(&folder);
    let process = Process::start(&mut command).unwrap();
    wait_until(CLIENT_LIMIT, || processes_in(folder.path()).len() == 4);
    drop(process);
    wait_until(GONE_LIMIT, || processes_in(folder.path()).is_empty());
}

#[test]
fn pgbouncer_passes_sql_through_and_haproxy_passes_it_on() {
    let postgres = start();
    let bouncer = PgBouncer::start(postgres.port(), PoolMode::Transaction, "default_pool_size = 2").unwrap();
    let port = ports::free().unwrap();
    let configuration = format!(
        "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 10s\n  timeout server 10s\n\
         listen database\n  bind 127.0.0.1:{port}\n  server bouncer 127.0.0.1:{}\n",
        bouncer.port()
    );
    let haproxy = HaProxy::start(&configuration).unwrap();
    for url in [bouncer.url("postgres"), format!("postgres://postgres@127.0.0.1:{port}/postgres")] {
        let output =
            Command::new("psql").args(["-X", "-A", "-t", "-d", &url, "-c", "show port"]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), postgres.port().to_string());
    }
    haproxy.kill().unwrap();
    bouncer.kill().unwrap();
    assert!(!ports::is_listening(port) && !ports::is_listening(bouncer.port()));
    bouncer.start_again().unwrap();
    haproxy.start_again().unwrap();
    assert!(answers(port));
}

#[test]
fn an_haproxy_that_cannot_start_says_why() {
    let error = HaProxy::start("listen x\n  bind 127.0.0.1:1\n  no_such_word\n").unwrap_err();
    assert!(format!("{error:#}").contains("no_such_word"), "{error:#}");
}
