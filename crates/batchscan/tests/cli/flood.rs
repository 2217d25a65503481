//! Requests without a valid credential, many and hostile: no one else is disturbed, and nothing is counted as broken.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use batchscan_testbed::{Random, http};

use crate::import_kills::StopOnDrop;
use crate::operator;
use crate::program::assert_no_panic;
use crate::scans;
use crate::site::{Credential, Site, postgres};

const CLIENTS: usize = 60;
/// Each group of routes is flooded for this time.
const FLOOD: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(2);
/// A request may be refused only if the machine itself stood still for this time, less than the service's timeouts …
const STALL: Duration = Duration::from_millis(500);
/// … and only this long before or after it: twice the longest timeout.
const AFTERMATH: Duration = Duration::from_secs(10);
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// Method and path, a header, and a form. `~` is replaced with hostile text, `%` with the same percent-encoded.
type Route = (&'static str, &'static str, &'static str);

/// Groups of routes that need no credential, or reject a wrong one.
const FLOODS: [(&str, &[Route]); 4] = [
    (
        "auth",
        &[
            ("POST /v1/auth", FORM, "grant_type=client_credentials&client_id=%&client_secret=%"),
            ("POST /v2/auth", "Authorization: Basic ~", "grant_type=client_credentials"),
            ("POST /v2/auth", FORM, "%=%&grant_type=%"),
        ],
    ),
    (
        "session",
        &[
            ("POST /session", FORM, "link=%.%"),
            ("POST /session", FORM, "grant_type=client_credentials&client_id=%&client_secret=%&keep=%"),
            ("POST /session/token", "Cookie: batchscan_session=~.~", ""),
            ("DELETE /session", "Cookie: batchscan_session=~.~", ""),
            ("POST /session/seen", "Authorization: Bearer ~", "%"),
        ],
    ),
    (
        "api",
        &[
            ("GET /v2/batches?next_token=%&start_date=%", "Authorization: Bearer ~", ""),
            ("GET /v1/batches?start_date=%", "Authorization: Bearer ~.~.~", ""),
            ("GET /v2/batches/%", "Authorization: Bearer ~", ""),
            ("GET /v2/changes?since=%&wait=%", "Authorization: Bearer ~", ""),
            ("GET /v2/export.csv?start_date=%", "Authorization: Basic ~", ""),
        ],
    ),
    (
        "pages",
        &[
            ("GET /%", "Accept-Language: ~", ""),
            ("GET /?%", "Accept: ~", ""),
            ("GET /readyz?%", "X-Request-Id: ~", ""),
            ("GET /openapi.json", "If-None-Match: ~", ""),
            ("GET /metrics", "Accept: ~", ""),
        ],
    ),
];
const OPERATOR_FLOOD: (&str, &[Route]) = (
    "operator",
    &[
        ("GET /operator/v1/organisations", "Authorization: Bearer ~.~", ""),
        ("POST /operator/v1/organisations/%/imports?file=%", "Authorization: Bearer op_~.~", "x=%"),
        ("PUT /operator/v1/organisations/%/batches/%", "Authorization: Bearer ~", "%"),
    ],
);

#[test]
fn requests_without_a_credential_disturb_no_one_on_sqlite() {
    let site = Site::alone();
    flood_all(&site, BTreeSet::new);
}

#[test]
fn requests_without_a_credential_disturb_no_one_on_postgres() {
    let site = Site::alone_on_postgres();
    let database = site.database.rsplit_once('/').unwrap().1.to_owned();
    flood_all(&site, || {
        let sql = "SELECT pid FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name = 'batchscan'";
        let pids: BTreeSet<_> = postgres().sql(&database, sql).unwrap().lines().map(str::to_owned).collect();
        assert!(!pids.is_empty());
        pids
    });
}

/// `connections` are those of the database's pool: none may be lost.
fn flood_all(site: &Site, connections: impl Fn() -> BTreeSet<String>) {
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_000, "x")));
    let credential = site.credential();
    let (running, urls) = operator::serve(site, &[], "off");
    let [public, operator] = urls.map(|url| url.split_once("://").unwrap().1.to_owned());
    let problems = Problems::default();
    let normal = Normal { address: public.clone(), credential, problems: &problems };
    let has_ended = AtomicBool::new(false);
    let (stalls, kept) = std::thread::scope(|scope| {
        let stalls = scope.spawn(|| stalls(&site.path("stall"), &has_ended));
        // Also if a request fails.
        let end = StopOnDrop(&has_ended);
        let idle = normal.run_for(IDLE);
        let before = connections();
        let floods = FLOODS.iter().map(|flood| (flood, &public)).chain([(&OPERATOR_FLOOD, &operator)]);
        for ((name, routes), address) in floods {
            let (is_done, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
            let busy = std::thread::scope(|scope| {
                for client in 0..CLIENTS {
                    let hostile = Hostile { address, routes, is_done: &is_done, problems: &problems };
                    let sent = &sent;
                    scope.spawn(move || sent.fetch_add(hostile.run(client), Ordering::Relaxed));
                }
                let _end = StopOnDrop(&is_done);
                normal.run_for(FLOOD)
            });
            println!("{name}: {} hostile requests; {busy}; idle: {idle}", sent.into_inner());
        }
        let kept = connections().is_superset(&before);
        drop(end);
        (stalls.join().unwrap(), kept)
    });
    let metrics = http::request(&operator, "GET /metrics HTTP/1.1", "").unwrap();
    let errors = |kind| format!("batchscan_store_errors_total{{kind=\"{kind}\"}} 0\n");
    assert!(metrics.text().contains(&errors("broken")), "{}", metrics.text());
    let was_reached = metrics.text().contains(&errors("unreachable"));
    assert!(kept && was_reached || !stalls.is_empty(), "kept: {kept}, {}", metrics.text());
    let mut problems = problems.0.into_inner().unwrap();
    println!("the machine stood still {} times; {} problems", stalls.len(), problems.len());
    problems.retain(|(time, _)| {
        let distance =
            |stall: &Instant| time.saturating_duration_since(*stall) + stall.saturating_duration_since(*time);
        stalls.iter().all(|stall| distance(stall) > AFTERMATH)
    });
    assert!(problems.is_empty(), "{problems:#?}");
    drop(running);
    assert_no_panic(&std::fs::read_to_string(site.path("serve.log")).unwrap());
}

/// What a machine that stands still may cause, and nothing else.
#[derive(Default)]
struct Problems(Mutex<Vec<(Instant, String)>>);

impl Problems {
    fn add(&self, problem: String) {
        self.0.lock().unwrap().push((Instant::now(), problem));
    }
}

/// When a short pause and a write to the disk had taken too long.
fn stalls(file: &Path, has_ended: &AtomicBool) -> Vec<Instant> {
    let mut stalls = Vec::new();
    while !has_ended.load(Ordering::Relaxed) {
        let start = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        File::create(file).unwrap().sync_all().unwrap();
        if start.elapsed() >= STALL {
            stalls.push(Instant::now());
        }
    }
    stalls
}

/// A client that does what clients do.
struct Normal<'a> {
    address: String,
    credential: Credential,
    problems: &'a Problems,
}

impl Normal<'_> {
    /// Sends one request after another. Returns their latencies as text.
    fn run_for(&self, time: Duration) -> String {
        let Credential { id, secret } = &self.credential;
        let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
        let token = (0..100).find_map(|_| {
            let reply = http::request_token(&self.address, id, secret);
            let token = reply.as_ref().ok().and_then(http::Reply::token);
            if token.is_none() {
                self.refused("token", &reply);
                std::thread::sleep(Duration::from_millis(100));
            }
            token
        });
        let token = token.unwrap();
        let requests = [
            (http::get_head("/v2/batches", &token), String::new()),
            (format!("POST /v2/auth HTTP/1.1\r\n{FORM}"), form.clone()),
            (format!("POST /session HTTP/1.1\r\n{FORM}"), form),
            (http::get_head("/v2/changes", &token), String::new()),
            ("GET /readyz HTTP/1.1".to_owned(), String::new()),
        ];
        let (start, mut latencies) = (Instant::now(), Vec::new());
        while start.elapsed() < time {
            for (head, body) in &requests {
                let start = Instant::now();
                match http::request(&self.address, head, body) {
                    Ok(reply) if reply.status == 200 => latencies.push(start.elapsed()),
                    reply => self.refused(head, &reply),
                }
            }
        }
        latencies.sort();
        let percentile = |percent: usize| latencies.get(latencies.len().saturating_sub(1) * percent / 100);
        format!("normal client p50 {:?}, p99 {:?}", percentile(50), percentile(99))
    }

    fn refused(&self, request: &str, reply: &std::io::Result<http::Reply>) {
        let status = reply.as_ref().map_or(503, |reply| reply.status);
        assert_eq!(status, 503, "{request}: {reply:?}");
        self.problems.add(format!("{request}: {reply:?}"));
    }
}

/// A client that wants to break something.
struct Hostile<'a> {
    address: &'a str,
    routes: &'a [Route],
    is_done: &'a AtomicBool,
    problems: &'a Problems,
}

impl Hostile<'_> {
    /// Sends requests until the end, and returns their number. The service may reject them, but not fail.
    fn run(&self, client: usize) -> usize {
        let (mut random, mut sent) = (Random(client as u64), 0);
        while !self.is_done.load(Ordering::Relaxed) {
            let (target, header, form) = self.routes[below(&mut random, self.routes.len())];
            let [target, header, form] = [target, header, form].map(|text| fill(text, &mut random));
            // A connection may be closed before its response, for example after a head that is too large.
            if let Ok(mut body) = http::send(self.address, &format!("{target} HTTP/1.1\r\n{header}"), &form) {
                // Also if the connection is closed before its end.
                let rest = body.rest();
                let problem = || format!("{target} {header}: {} {rest:?}", body.status);
                match body.status {
                    503 => self.problems.add(problem()),
                    status => assert!(status < 500, "{}", problem()),
                }
                sent += 1;
            }
        }
        sent
    }
}

/// With hostile text in its gaps.
fn fill(text: &str, random: &mut Random) -> String {
    let mut filled = String::new();
    for c in text.chars() {
        match c {
            '%' => filled.push_str(&encode(hostile(random))),
            '~' => filled.push_str(&header_text(hostile(random))),
            _ => filled.push(c),
        }
    }
    filled
}

fn below(random: &mut Random, end: usize) -> usize {
    random.below(end as u64) as usize
}

fn hostile(random: &mut Random) -> Vec<u8> {
    const TEXTS: [&[u8]; 14] = [
        b"\0",
        b"a\0b",
        b"\xff\xfe",
        b"'; DROP TABLE batch; --",
        b"../../etc/passwd",
        "\u{202e}\u{200b}".as_bytes(),
        b"{\"a\":",
        b"",
        b".",
        b"*",
        b"-1",
        b"99999999999999999999",
        b"2026-01-01T00:00:00Z",
        b"%00",
    ];
    match below(random, 4) {
        0 => (0..below(random, 40)).map(|_| below(random, 256) as u8).collect(),
        1 => vec![b'A'; below(random, 9_000)],
        2 => (0..43).map(|_| b"ABCDwxyz0189_-"[below(random, 14)]).collect(),
        _ => TEXTS[below(random, TEXTS.len())].to_vec(),
    }
}

fn encode(bytes: Vec<u8>) -> String {
    bytes.into_iter().map(|byte| format!("%{byte:02X}")).collect()
}

/// What a header may contain.
fn header_text(bytes: Vec<u8>) -> String {
    bytes.into_iter().filter(|byte| (0x20..0x7f).contains(byte)).map(char::from).collect()
}
