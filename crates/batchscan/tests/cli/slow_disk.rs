//! A disk whose reads take seconds (`strace`): what needs none is answered meanwhile.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use batchscan_testbed::http as testbed;

use crate::http::{get, get_head, request, token};
use crate::program::{Running, clean, wait_until};
use crate::scans;
use crate::site::Site;

const BATCHES: u64 = 20_000;
/// As many as there are readers, and some that wait for one.
const SLOW_REQUESTS: usize = 8;

#[test]
fn cached_and_unchanged_pages_do_not_wait_for_a_slow_disk() {
    let site = Site::new();
    site.import(&site.write("scans.ndjson", scans::ndjson(0..BATCHES, "a")));
    let service = site.serve(&["--operator-listen", "127.0.0.1:0"]);
    let (credential, sql) = (site.credential(), site.sql());
    let token = token(&service, &credential);
    // A commit would have to be read by the next request.
    let is_recorded = "SELECT count(*) FROM credential WHERE last_used_at IS NOT NULL";
    wait_until("the use is recorded", || {
        sql.query_row(is_recorded, [], |row| row.get::<_, i64>(0)).unwrap() == 1
    });
    // The cache keeps what is requested twice.
    get(&service, "/v2/batches", &token);
    let page = get(&service, "/v2/batches", &token);
    let condition =
        format!("{}\r\nIf-None-Match: {}", get_head("/v2/batches", &token), page.header("etag").unwrap());
    let _strace = slow_down(service.id());
    let (address, answered) = (service.address(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for day in 1..=SLOW_REQUESTS {
            let (token, answered) = (&token, &answered);
            scope.spawn(move || {
                let path = format!("/v2/batches?start_date=2026-01-{day:02}T00:00:00Z");
                testbed::get(address, &path, token).unwrap();
                answered.fetch_add(1, Ordering::SeqCst);
            });
        }
        let statuses: Vec<u16> = (0..10)
            .flat_map(|_| {
                [get(&service, "/v2/batches", &token).status, request(&service, &condition, "").status]
            })
            .collect();
        assert!(answered.load(Ordering::SeqCst) < SLOW_REQUESTS, "no read was slow");
        // Under strace on a busy machine, one may find the lock taken.
        let answered = statuses.iter().filter(|status| matches!(status, 200 | 304)).count();
        assert!(answered >= 15, "{statuses:?}");
    });
}

/// Each read of a file takes three seconds from now on.
fn slow_down(process: u32) -> Running {
    let mut strace = clean("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "--trace=pread64", "--inject=pread64:delay_enter=3000000"]);
    strace.args(["-p", &process.to_string()]).stdin(Stdio::null());
    let running = Running(strace.spawn().unwrap());
    wait_until("strace is attached", || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        !status.contains("TracerPid:\t0\n")
    });
    running
}
