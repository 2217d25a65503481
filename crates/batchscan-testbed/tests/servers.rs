//! The servers are real, can be killed and frozen, and end with the process that started them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use batchscan_testbed::{HaProxy, PgBouncer, Postgres, Process, Settings, ports};

/// Ends a test that hangs. No test depends on the speed of the machine.
const HANG_LIMIT: Duration = Duration::from_secs(300);
/// Longer than a running server usually takes to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(300);
/// Set for the starter of `a_server_whose_starter_was_killed_is_gone`.
const IS_STARTER: &str = "TESTBED_IS_STARTER";

fn start() -> Postgres {
    Postgres::start(&Settings::default()).unwrap()
}

fn add_note(postgres: &Postgres, note: &str) {
    let statement =
        format!("create table if not exists notes (note text); insert into notes values ('{note}')");
    postgres.sql("postgres", &statement).unwrap();
}

fn notes(postgres: &Postgres) -> Vec<String> {
    let rows = postgres.sql("postgres", "select note from notes order by note").unwrap();
    rows.lines().map(str::to_owned).collect()
}

/// Processes with the folder as working folder or in their arguments. Zombies have neither.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.to_str().unwrap();
    let is_in = |process: &PathBuf| {
        let working_folder = fs::read_link(process.join("cwd")).unwrap_or_default();
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        working_folder.to_string_lossy().starts_with(folder)
            || String::from_utf8_lossy(&arguments).contains(folder)
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(is_in).collect()
}

#[track_caller]
fn assert_gone(folder: &Path) {
    wait_until(|| !folder.exists() && processes_in(folder).is_empty());
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    assert!(batchscan_testbed::wait_until(HANG_LIMIT, condition), "not within {HANG_LIMIT:?}");
}

/// A client that is running a statement.
fn client(postgres: &Postgres, statement: &str) -> Process {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-d", &postgres.url("postgres"), "-c", statement]);
    let client = Process::start(psql.stdout(Stdio::null()).stderr(Stdio::null())).unwrap();
    let active = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    wait_until(|| postgres.sql("postgres", active).unwrap() == "1");
    client
}

/// Asks a PostgreSQL server whether it supports TLS; the response is a letter.
fn responds(port: u16, timeout: Duration) -> bool {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(timeout)).unwrap();
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
fn settings_are_used_and_wrong_ones_are_reported_with_the_log() {
    let settings = Settings::default().with("max_connections", "17");
    let postgres = Postgres::start(&settings).unwrap();
    assert_eq!(postgres.sql("postgres", "show max_connections").unwrap(), "17");
    let error = format!("{:#}", Postgres::start(&settings.with("no_such_setting", "1")).unwrap_err());
    assert!(error.contains("unrecognized configuration parameter \"no_such_setting\""), "{error}");
    let error =
        format!("{:#}", HaProxy::start("listen x\n  bind 127.0.0.1:1\n  no_such_word\n").unwrap_err());
    assert!(error.contains("no_such_word"), "{error}");
}

#[test]
fn a_killed_server_is_gone_at_once_and_keeps_what_was_committed() {
    let postgres = start();
    add_note(&postgres, "committed");
    for _ in 0..3 {
        let _client = client(&postgres, "insert into notes values ('open'); select pg_sleep(60)");
        postgres.kill().unwrap();
        assert!(!postgres.is_running());
        assert!(!ports::is_listening(postgres.port()));
        assert_eq!(processes_in(&postgres.folder().join("data")), Vec::<PathBuf>::new());
        assert!(postgres.folder().join("data/postmaster.pid").exists(), "it was shut down, not killed");
        postgres.start_again().unwrap();
        assert_eq!(notes(&postgres), ["committed"]);
    }
    assert!(postgres.start_again().is_err(), "it is running");
    postgres.stop().unwrap();
    assert!(!postgres.is_running());
    let earlier = postgres.log().matches("was not properly shut down").count();
    postgres.start_again().unwrap();
    assert_eq!(postgres.log().matches("was not properly shut down").count(), earlier, "{}", postgres.log());
}

#[test]
fn a_frozen_server_does_not_respond_until_it_thaws_and_can_be_dropped() {
    let postgres = start();
    assert!(responds(postgres.port(), HANG_LIMIT));
    let (folder, data) = (postgres.folder().to_owned(), postgres.folder().join("data"));
    let _client = client(&postgres, "select pg_sleep(3600)");
    postgres.freeze().unwrap();
    assert!(postgres.is_running());
    assert!(!responds(postgres.port(), RESPONSE_TIMEOUT));
    // One that has just ended is not stopped.
    let stopped =
        |process: &PathBuf| fs::read_to_string(process.join("stat")).is_ok_and(|stat| stat.contains(") T "));
    assert!(processes_in(&data).iter().all(stopped), "a process continued");
    postgres.thaw();
    assert!(responds(postgres.port(), HANG_LIMIT));
    assert!(!processes_in(&data).iter().any(stopped));
    postgres.freeze().unwrap();
    drop(postgres);
    assert_gone(&folder);
}

#[test]
fn a_dropped_server_leaves_no_process_folder_or_shared_memory() {
    let postgres = start();
    let folder = postgres.folder().to_owned();
    let lock = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let segment_exists = || {
        let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments.lines().any(|line| line.split_whitespace().nth(1) == Some(&segment))
    };
    assert!(segment_exists() && processes_in(&folder).len() > 3);
    drop(postgres);
    assert!(!folder.exists());
    assert_gone(&folder);
    assert!(!segment_exists());
}

/// Runs itself as the starter: then it prints the server's folder and waits.
#[test]
fn a_server_whose_starter_was_killed_is_gone() {
    if std::env::var_os(IS_STARTER).is_some() {
        let postgres = start();
        println!("\nfolder {}", postgres.folder().display());
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_server_whose_starter_was_killed_is_gone", "--nocapture"]);
    command.env(IS_STARTER, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut starter = Process::start(&mut command).unwrap();
    let (_stdin, stdout, _) = starter.take_streams();
    let mut lines = BufReader::new(stdout.unwrap()).lines().map(Result::unwrap);
    let folder = lines.find_map(|line| line.strip_prefix("folder ").map(PathBuf::from)).unwrap();
    assert!(processes_in(&folder).len() > 3);
    // Only to the starter, not to its descendants.
    starter.signal("KILL").unwrap();
    assert_gone(&folder);
}

#[test]
fn a_dropped_process_ends_its_descendants() {
    let folder = std::env::temp_dir().join(format!("testbed-descendants-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & (sleep 600 &) ; sleep 600"]).current_dir(&folder);
    let process = Process::start(&mut command).unwrap();
    wait_until(|| processes_in(&folder).len() == 4);
    drop(process);
    wait_until(|| processes_in(&folder).is_empty());
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn pgbouncer_and_haproxy_forward_sql_and_start_again() {
    let postgres = start();
    let bouncer = PgBouncer::start(postgres.port(), "default_pool_size = 2").unwrap();
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
    assert!(responds(port, HANG_LIMIT));
}
