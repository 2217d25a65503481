//! Requests without a valid credential, many and hostile: no one else is disturbed, and nothing is counted as broken.

use std::collections::BTreeSet;
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
    let normal = Normal { address: public.clone(), credential };
    let idle = normal.run_for(IDLE);
    let before = connections();
    let floods = FLOODS.iter().map(|flood| (flood, &public)).chain([(&OPERATOR_FLOOD, &operator)]);
    for ((name, routes), address) in floods {
        let (is_done, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
        let busy = std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (is_done, sent) = (&is_done, &sent);
                scope.spawn(move || send_hostile(address, routes, client, is_done, sent));
            }
            // Also if a request of the normal client fails.
            let _end = StopOnDrop(&is_done);
            normal.run_for(FLOOD)
        });
        println!("{name}: {} hostile requests; {busy}; idle: {idle}", sent.into_inner());
    }
    let metrics = http::request(&operator, "GET /metrics HTTP/1.1", "").unwrap();
    let metrics = metrics.text();
    for kind in ["broken", "unreachable"] {
        assert!(
            metrics.contains(&format!("batchscan_store_errors_total{{kind=\"{kind}\"}} 0\n")),
            "{metrics}"
        );
    }
    assert!(connections().is_superset(&before), "a pooled connection was dropped");
    drop(running);
    assert_no_panic(&std::fs::read_to_string(site.path("serve.log")).unwrap());
}

/// A client that does what clients do.
struct Normal {
    address: String,
    credential: Credential,
}

impl Normal {
    /// Sends one request after another. All succeed. Returns their latencies as text.
    fn run_for(&self, time: Duration) -> String {
        let Credential { id, secret } = &self.credential;
        let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
        let token = http::request_token(&self.address, id, secret).unwrap().token().unwrap();
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
                http::request(&self.address, head, body).unwrap().ok();
                latencies.push(start.elapsed());
            }
        }
        latencies.sort();
        let percentile = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
        format!("normal client p50 {:?}, p99 {:?}", percentile(50), percentile(99))
    }
}

/// Sends hostile requests until the end. The service may reject them, but not fail.
fn send_hostile(address: &str, routes: &[Route], client: usize, is_done: &AtomicBool, sent: &AtomicUsize) {
    let mut random = Random(client as u64);
    while !is_done.load(Ordering::Relaxed) {
        let (target, header, form) = routes[below(&mut random, routes.len())];
        let fill = |text: &str, random: &mut Random| {
            let mut filled = String::new();
            for c in text.chars() {
                match c {
                    '%' => filled.push_str(&encode(hostile(random))),
                    '~' => filled.push_str(&header_text(hostile(random))),
                    _ => filled.push(c),
                }
            }
            filled
        };
        let (target, header, form) =
            (fill(target, &mut random), fill(header, &mut random), fill(form, &mut random));
        // A connection may be closed before its response, for example after a head that is too large.
        if let Ok(mut body) = http::send(address, &format!("{target} HTTP/1.1\r\n{header}"), &form) {
            // Also if the connection is closed before its end.
            let rest = body.rest();
            assert!(body.status < 500, "{target} {header}: {} {rest:?}", body.status);
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }
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
