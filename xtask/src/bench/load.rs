//! Drives a server with wrk: what is sent, how, and what came back.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::exchange::Request;
use crate::process;

/// The slowest contender under the most connections makes a client wait for seconds; that is slow, not wrong.
const ANSWER_LIMIT: &str = "60s";
/// More requests than a run can make, so that two runs never count over the same ground. No round number: where hundreds
/// of questions are asked in turn, a run begins half-way from where the one before began, with those that no cache holds.
const RUN_SPAN: u64 = 10_000_250;
/// Where counting begins, as `bench/load/load.lua` has it: the year 2199, far beyond all data.
const FAR_MICROS: u64 = 7_226_582_400_000_000;
/// What marks the script's own line in wrk's output.
const RESULT: &str = "result ";
/// Compressed pages of one question differ a little in size.
const BYTES_SHARE: f64 = 0.9;
/// What an answer without a body has in its head at most, on average.
const BYTES_MOST_OF_NONE: f64 = 1_024.0;

/// wrk and its script.
#[derive(Debug)]
pub(crate) struct Wrk {
    script: PathBuf,
    requests: PathBuf,
    next: AtomicU64,
}

/// How hard and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    pub(crate) connections: u32,
    pub(crate) secs: u32,
}

/// What wrk counted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) duration_us: u64,
    bytes: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
}

impl Wrk {
    /// `folder` is for the file of requests.
    pub(crate) fn new(script: PathBuf, folder: &std::path::Path) -> Self {
        Self { script, requests: folder.join("requests.txt"), next: AtomicU64::new(0) }
    }

    /// Sends the requests in turn for a while. Any answer that is not a success, and any broken connection, is an error;
    /// so are answers that are shorter than `least_bytes`.
    pub(crate) fn run(
        &self,
        port: u16,
        requests: &[Request],
        pressure: Pressure,
        least_bytes: usize,
    ) -> Result<Outcome> {
        let lines: Vec<String> = requests.iter().map(line).collect();
        fs::write(&self.requests, lines.join("\n") + "\n")?;
        let first = self.next.fetch_add(RUN_SPAN, Ordering::Relaxed);
        let mut wrk = Command::new("wrk");
        wrk.args(["--threads", "1", "--connections", &pressure.connections.to_string()]);
        wrk.args(["--duration", &format!("{}s", pressure.secs), "--latency", "--timeout", ANSWER_LIMIT]);
        wrk.arg("--script").arg(&self.script).arg(format!("http://127.0.0.1:{port}")).arg("--");
        let printed = process::stdout_of(wrk.arg(&self.requests).arg(first.to_string()))?;
        let outcome = Outcome::read(&printed)?;
        outcome.require_success(least_bytes)?;
        Ok(outcome)
    }

    /// Where a run of requests that are not wrk's may count without meeting another.
    pub(crate) fn span(&self) -> u64 {
        self.next.fetch_add(RUN_SPAN, Ordering::Relaxed)
    }
}

impl Outcome {
    fn read(printed: &str) -> Result<Self> {
        let line = printed.lines().find_map(|line| line.strip_prefix(RESULT));
        let line = line.with_context(|| format!("wrk printed no result:\n{printed}"))?;
        serde_json::from_str(line).with_context(|| format!("wrk's result is odd: {line}"))
    }

    pub(crate) fn rate(&self) -> f64 {
        self.requests as f64 / (self.duration_us as f64 / 1e6)
    }

    fn require_success(&self, least_bytes: usize) -> Result<()> {
        let Self { requests, bytes, connect, read, write, status, timeout, .. } = self;
        if connect + read + write + status + timeout > 0 {
            bail!(
                "of {requests} requests failed: {status} by status, {connect} to connect, {read} to read, \
                 {write} to write, {timeout} by time"
            );
        }
        if *requests == 0 {
            bail!("not one request was answered");
        }
        if least_bytes == 0 && *bytes > *requests as f64 * BYTES_MOST_OF_NONE {
            bail!("{requests} answers have {bytes} bytes together; none was to have a body to speak of");
        }
        if *bytes < *requests as f64 * least_bytes as f64 * BYTES_SHARE {
            bail!("{requests} answers have {bytes} bytes together; {least_bytes} were expected of each");
        }
        Ok(())
    }
}

/// The request with its placeholder filled in, as the script does it.
pub(crate) fn filled(request: &Request, n: u64) -> Request {
    let date = || {
        let far = i64::try_from(FAR_MICROS + n).unwrap_or(i64::MAX);
        format!("{}.{:06}Z", super::instants::second_of(far), n % 1_000_000)
    };
    let mut path = request.path.clone();
    if path.contains("{date}") {
        path = path.replace("{date}", &date());
    }
    path = path.replace("{number}", &(FAR_MICROS + n).to_string());
    path = path.replace("{fraction}", &format!("{:06}", n % 1_000_000));
    Request { path, ..request.clone() }
}

/// A line of the script's file.
fn line(request: &Request) -> String {
    let Request { method, path, headers, body } = request;
    let headers = headers.iter().map(|(name, value)| format!("\t{name}: {value}")).collect::<String>();
    format!("{method}\t{path}\t{body}{headers}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"result {"requests":40,"duration_us":2000000,"bytes":4000,"p50_us":7,"p99_us":9,"max_us":9,"connect":0,"read":0,"write":0,"status":0,"timeout":0}"#;

    #[test]
    fn a_result_is_found_among_what_wrk_prints() {
        let outcome = Outcome::read(&format!("Running 2s test\n  Latency 1ms\n{LINE}\n")).unwrap();
        assert_eq!((outcome.requests, outcome.p50_us, outcome.p99_us), (40, 7, 9));
        assert_eq!(outcome.rate(), 20.0);
        assert!(Outcome::read("Running 2s test\n").is_err());
    }

    #[test]
    fn a_failed_request_fails_the_run() {
        let outcome = Outcome::read(LINE).unwrap();
        assert!(outcome.require_success(100).is_ok());
        assert!(outcome.require_success(120).is_err());
        for failed in [
            Outcome { status: 1, ..outcome },
            Outcome { read: 1, ..outcome },
            Outcome { timeout: 1, ..outcome },
            Outcome { requests: 0, ..outcome },
            Outcome { bytes: outcome.requests as f64 * 2_000.0, ..outcome },
        ] {
            assert!(failed.require_success(0).is_err(), "{failed:?}");
        }
    }

    #[test]
    fn a_request_is_filled_as_the_script_fills_it() {
        let path = |template: &str| filled(&Request::get(template), 86_400_000_012).path;
        assert_eq!(path("/a?end_date={date}"), "/a?end_date=2199-01-02T00:00:00.000012Z");
        assert_eq!(path("/a?n={number}"), "/a?n=7226668800000012");
        assert_eq!(
            path("/a?end_date=2026-01-01T00:00:00.{fraction}Z"),
            "/a?end_date=2026-01-01T00:00:00.000012Z"
        );
        assert_eq!(path("/a"), "/a");
    }

    #[test]
    fn a_request_is_one_line_of_the_file() {
        let request = Request::get("/a").with("x", "1").with_token("t");
        assert_eq!(line(&request), "GET\t/a\t\tx: 1\tauthorization: Bearer t");
    }
}
