//! `batchscan demo`: its instructions work, and it removes its data.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::http::{get, token};
use crate::program::{HANG_LIMIT, Outcome, Running, batchscan, clean, wait, wait_until};
use crate::service::Service;
use crate::site::{Credential, Site};

/// Starts a demo with its data in a folder of the test.
pub(crate) fn start(site: &Site, flags: &[&str]) -> (Service, PathBuf) {
    let folder = site.path("temporary");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let mut command = batchscan(&["demo", "--listen", "127.0.0.1:0"]);
    (Service::start(command.args(flags).env("TMPDIR", &folder)), folder)
}

pub(crate) fn credential(demo: &Service) -> Credential {
    let labelled = |label: &str| {
        let line = demo.welcome.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap();
        line.trim().to_owned()
    };
    Credential { id: labelled("client id "), secret: labelled("client secret ") }
}

/// The lines to paste.
fn pasted(demo: &Service) -> Vec<&str> {
    let lines = demo.welcome.lines().skip_while(|line| *line != "Commands to paste in another terminal:");
    lines.skip(2).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn the_instructions_are_complete() {
    let site = Site::without_org();
    let (demo, _) = start(&site, &[]);
    let Credential { id, secret } = credential(&demo);
    let (url, lines) = (&demo.url, demo.welcome.lines().collect::<Vec<_>>());
    assert!(lines[0].starts_with("Green Valley Nursery: 3,000 batches, one year up to 20"), "{}", lines[0]);
    assert!(lines[0].ends_with("T00:00:00Z"), "{}", lines[0]);
    assert!(lines.contains(&format!("  URL            {url}").as_str()));
    let signs_in = format!("  {url}/#sign-in={id}:{secret}");
    assert!(lines.contains(&signs_in.as_str()), "{lines:#?}");
    assert!(id.starts_with("bs_") && secret.len() == 43, "{id} {secret}");
    assert_eq!(
        lines[lines.len() - 2..],
        ["Ctrl-C stops it and removes the data.", &format!("listening on {url}")]
    );
    assert_eq!(pasted(&demo).len(), 5);
    assert_eq!(demo.log(), "", "no log");
}

#[test]
fn the_commands_to_paste_work_in_a_shell() {
    let site = Site::without_org();
    let (demo, _) = start(&site, &["--batches", "2500"]);
    let lines = pasted(&demo);
    let mut bash = clean("bash");
    bash.args(["-e", "-s"]).current_dir(site.path(""));
    let out = Outcome::with_input(&mut bash, lines.join("\necho\n").into_bytes()).succeeds();
    let mut summary = out.trim_start().lines().filter(|line| !line.is_empty());
    let pulled = summary.find(|line| line.starts_with("pulled ")).unwrap();
    assert!(pulled.starts_with("pulled 2,500 batches, all dates, into batches.xlsx: "), "{pulled}");
    let page: serde_json::Value = serde_json::from_str(summary.next().unwrap()).unwrap();
    assert!(!page["data"].as_array().unwrap().is_empty(), "the last month has batches");
    let all = std::fs::read(site.path("batches.json")).unwrap();
    assert_eq!(summary.next().unwrap(), format!("{} batches.json", all.len()));
    let all: serde_json::Value = serde_json::from_slice(&all).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 2_500);
    assert!(std::fs::read(site.path("batches.xlsx")).unwrap().starts_with(b"PK"));
}

#[test]
fn the_seed_determines_the_batches() {
    let site = Site::without_org();
    let batches = |seed: &str| {
        let (demo, _) = start(&site, &["--batches", "400", "--seed", seed]);
        let text =
            String::from_utf8(get(&demo, "/v1/batches", &token(&demo, &credential(&demo))).ok()).unwrap();
        // The links contain the port, which differs.
        text.replace(&demo.url, "URL")
    };
    let first = batches("7");
    assert_eq!(batches("7"), first);
    assert_ne!(batches("8"), first);
}

#[test]
fn a_demo_removes_its_folder_on_either_signal() {
    let site = Site::without_org();
    for signal in [Signal::INT, Signal::TERM] {
        let (mut demo, folder) = start(&site, &["--batches", "100"]);
        let entries =
            || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let [made] = entries().try_into().unwrap();
        assert!(made.join("demo.db").exists());
        demo.signal(signal);
        demo.wait_for_success();
        assert_eq!(entries().len(), 0, "{signal:?}");
    }
}

#[test]
fn a_demo_that_is_stopped_early_removes_its_folder() {
    // When its folder exists, and while it generates batches.
    for later in [Duration::ZERO, Duration::from_millis(200)] {
        let site = Site::without_org();
        let mut command = batchscan(&["demo", "--listen", "127.0.0.1:0", "--batches", "10000000"]);
        command.env("TMPDIR", site.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut demo = Running(command.spawn().unwrap());
        let entries = || std::fs::read_dir(site.path("")).unwrap().count();
        wait_until("its folder exists", || entries() > 0);
        std::thread::sleep(later);
        kill_process(Pid::from_child(&demo.0), Signal::INT).unwrap();
        assert_eq!(wait(&mut demo.0, HANG_LIMIT), Some(0), "{later:?}");
        assert_eq!(entries(), 0, "{later:?}");
    }
}
