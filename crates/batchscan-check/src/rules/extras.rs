//! What HTTP offers beside the interface: HEAD, OPTIONS, conditional requests, compression.

use super::{Rule, decided, rule};
use crate::answer::Answer;
use crate::ask::{Ask, Version};
use crate::batches::Window;
use crate::probe::Probe;
use crate::verdict::{Checked, Verdict};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(decided(30), "head-is-get-without-body", "HEAD on batches answers with the status and Content-Type of GET.", head),
    rule(decided(30), "head-needs-a-token", "HEAD on batches without a token is a 401.", head_without_token),
    rule(decided(30), "options-answers-with-allow", "OPTIONS answers with an Allow that names the endpoint's method.", options),
    rule(decided(30), "cors-only-for-named-origins", "An origin that no operator can have named is not let in by Access-Control-Allow-Origin.", cors),
    rule(decided(31), "batches-have-an-etag", "Answers with batches carry an ETag, the same for the same question.", etag),
    rule(decided(31), "etag-match-is-304", "If-None-Match with that ETag is a 304 without a body.", not_modified),
    rule(decided(31), "etag-mismatch-is-200", "If-None-Match with another ETag is a 200.", modified),
    rule(decided(31), "etag-needs-a-token", "If-None-Match opens nothing: without a token it is a 401.", etag_without_token),
    rule(decided(31), "batches-cache-control", "Answers with batches carry Cache-Control: private, no-cache.", cache_control),
    rule(decided(31), "batches-vary", "Answers with batches carry Vary: Authorization, Accept-Encoding.", vary),
    rule(decided(32), "gzip-on-demand", "Accept-Encoding: gzip gets the same batches, compressed with gzip.", |p| compressed(p, "gzip")),
    rule(decided(32), "zstd-on-demand", "Accept-Encoding: zstd gets the same batches, compressed with zstd.", |p| compressed(p, "zstd")),
    rule(decided(32), "plain-without-accept-encoding", "Without Accept-Encoding the answer comes plain.", plain),
];

/// A body below this may go plain whatever the client accepts: there is nothing to gain.
const WORTH_COMPRESSING_BYTES: usize = 4096;

/// An origin in a domain that cannot exist.
const STRANGER: &str = "https://nobody.invalid";

fn head(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let got = probe.ask(&ask)?;
        let head = probe.ask(&Ask { method: "HEAD", ..ask })?;
        head.must(head.status == got.status, format!("status {}", got.status))?;
        if head.header("Content-Type") != got.header("Content-Type") {
            return Err(head.fail_header("Content-Type", "the Content-Type of GET"));
        }
    }
    Ok(())
}

fn head_without_token(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        probe.ask(&Ask::new("HEAD", version.batches()))?.must_be(401)?;
    }
    Ok(())
}

fn options(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        for (path, method) in [(version.batches(), "GET"), (version.auth(), "POST")] {
            let answer = probe.ask(&Ask::new("OPTIONS", path))?;
            answer.must((200..300).contains(&answer.status), "a status from 200 to 299")?;
            if !answer.header_lists("Allow", method) {
                return Err(answer.fail_header("Allow", format!("an Allow that names {method}")));
            }
        }
    }
    Ok(())
}

fn cors(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?.header("Origin", STRANGER);
        let answer = probe.ask(&ask)?;
        let allowed = answer.header("Access-Control-Allow-Origin").unwrap_or_default();
        if allowed == "*" || allowed == STRANGER {
            return Err(answer.fail_header(
                "Access-Control-Allow-Origin",
                "an answer that does not open itself to that origin",
            ));
        }
    }
    Ok(())
}

fn etag(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let answer = probe.ask(&ask)?;
        let first = etag_of(&answer)?;
        let again = probe.send(&ask)?;
        if etag_of(&again)? != first {
            return Err(again.fail_header("ETag", format!("the ETag of a moment ago, {first}")));
        }
    }
    Ok(())
}

fn not_modified(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let etag = known_etag(probe, &ask)?;
        let answer = probe.ask(&ask.header("If-None-Match", &etag))?;
        answer.must_be(304)?;
        answer.must(answer.body.is_empty(), "no body")?;
    }
    Ok(())
}

fn modified(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?.header("If-None-Match", "\"conformance-run-invented-this\"");
        probe.ask(&ask)?.must_be(200)?;
    }
    Ok(())
}

fn etag_without_token(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let etag = known_etag(probe, &ask)?;
        let bare = Ask { headers: Vec::new(), ..ask }.header("If-None-Match", &etag);
        probe.ask(&bare)?.must_be(401)?;
    }
    Ok(())
}

fn cache_control(probe: &mut Probe) -> Checked {
    lists(probe, "Cache-Control", &["private", "no-cache"])
}

fn vary(probe: &mut Probe) -> Checked {
    lists(probe, "Vary", &["Authorization", "Accept-Encoding"])
}

fn lists(probe: &mut Probe, header: &str, words: &[&str]) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let answer = probe.ask(&ask)?;
        if !words.iter().all(|word| answer.header_lists(header, word)) {
            return Err(answer.fail_header(header, format!("{header}: {}", words.join(", "))));
        }
    }
    Ok(())
}

fn compressed(probe: &mut Probe, coding: &str) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let plain = probe.ask(&ask)?;
        if plain.body.len() < WORTH_COMPRESSING_BYTES {
            return Err(Verdict::CannotTell("no answer is large enough to be worth compressing".to_owned()));
        }
        let answer = probe.ask(&ask.header("Accept-Encoding", coding))?;
        if !answer.header_lists("Content-Encoding", coding) {
            return Err(answer.fail_header("Content-Encoding", format!("Content-Encoding: {coding}")));
        }
        // Cursors may differ from one answer to the next, batches may not.
        let same = batches_in(&answer)? == batches_in(&plain)?;
        answer.must(same, "the batches of the plain answer")?;
    }
    Ok(())
}

fn plain(probe: &mut Probe) -> Checked {
    for version in Version::BOTH {
        let ask = question(probe, version)?;
        let answer = probe.ask(&ask)?;
        if answer.header("Content-Encoding").is_some_and(|coding| coding != "identity") {
            return Err(answer.fail_header("Content-Encoding", "no Content-Encoding"));
        }
    }
    Ok(())
}

/// A right question for batches: a small window where there is data, else one before all data.
fn question(probe: &mut Probe, version: Version) -> Checked<Ask> {
    let window = probe
        .small_window()
        .unwrap_or_else(|_| Window::between("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"));
    let token = probe.token(version)?;
    Ok(Ask::get(version.batches()).query(&window.query()).bearer(&token))
}

/// The ETag of an answer, where having one is not the point.
fn known_etag(probe: &mut Probe, ask: &Ask) -> Checked<String> {
    let answer = probe.ask(ask)?;
    etag_of(&answer).map_err(|verdict| verdict.as_doubt())
}

fn etag_of(answer: &Answer) -> Checked<String> {
    let etag = answer.header("ETag").unwrap_or_default();
    let opaque = etag.strip_prefix("W/").unwrap_or(&etag);
    if opaque.len() >= 2 && opaque.starts_with('"') && opaque.ends_with('"') {
        return Ok(etag);
    }
    Err(answer.fail_header("ETag", "an ETag in double quotes, with or without W/"))
}

fn batches_in(answer: &Answer) -> Checked<&serde_json::Value> {
    let body = answer.json()?;
    Ok(body.get("data").unwrap_or(body))
}
