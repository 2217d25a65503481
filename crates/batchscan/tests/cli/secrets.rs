//! Secrets, tokens and database passwords never appear in logs, errors, metrics, the database or a backup.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::http::{Reply, auth, get, request, token};
use crate::operator;
use crate::program::{Outcome, clean, wait_until};
use crate::scans;
use crate::service::Service;
use crate::site::{Credential, ORG, Site, postgres};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
/// As long as a real secret.
const WRONG: &str = "canaryWrongSecret-0123456789_abcdefghijklmn";
/// The password of a database.
const PASSWORD: &str = "canaryDatabasePassword";

/// Texts that must not appear.
#[derive(Clone, Default)]
pub(crate) struct Canaries(pub(crate) Vec<String>);

impl Canaries {
    /// Fails if one of them is in the bytes.
    #[track_caller]
    pub(crate) fn are_absent_from(&self, place: &str, bytes: &[u8]) {
        for canary in &self.0 {
            let found = bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
            assert!(!found, "{place} contains {canary}");
        }
    }

    #[track_caller]
    fn are_absent_from_response(&self, response: &Reply) {
        self.are_absent_from("a response head", response.head.as_bytes());
        self.are_absent_from("a response", &response.body);
    }
}

/// A credential with two secrets, and a token and a cursor.
struct Bait {
    first: Credential,
    second: Credential,
    token: String,
    cursor: String,
    basic: String,
}

impl Bait {
    fn create(site: &Site, service: &Service) -> Self {
        let first = site.credential();
        let rotate = ["credential", "rotate", &first.id, "--json"];
        let second = Credential::from_json(&site.run(&rotate).succeeds());
        let token = token(service, &first);
        let page = get(service, "/v2/batches", &token).json();
        let basic = STANDARD.encode(format!("{}:{}", first.id, first.secret));
        Self { token, cursor: page["next_token"].as_str().unwrap().to_owned(), basic, first, second }
    }

    fn canaries(&self) -> Canaries {
        let all = [&self.first.secret, &self.second.secret, &self.token, &self.cursor, &self.basic];
        // Not even half a token or cursor.
        let halves = [&self.token, &self.cursor, &self.basic].map(|text| text[text.len() / 2..].to_owned());
        Canaries(all.into_iter().cloned().chain(halves).chain([WRONG.to_owned()]).collect())
    }
}

/// Invalid token requests: headers and form.
fn wrong_auths(bait: &Bait) -> Vec<(String, String)> {
    let Bait { first: Credential { id, secret }, token, basic, .. } = bait;
    let form = |fields: String| (FORM.to_owned(), fields);
    let wrong_basic = STANDARD.encode(format!("{id}:{WRONG}"));
    vec![
        form(format!("grant_type=client_credentials&client_id={id}&client_secret={WRONG}")),
        form(format!("grant_type=client_credentials&client_id=bs_nobody&client_secret={secret}")),
        form(format!("grant_type=client_credentials&client_id={secret}&client_secret={id}")),
        form(format!("grant_type={secret}&client_id={id}&client_secret={secret}")),
        form(format!(
            "grant_type=client_credentials&client_id={id}&client_secret={secret}&client_secret={secret}"
        )),
        form(format!("grant_type=client_credentials&client_id={id}&client_secret={secret}%00")),
        form(format!("{secret}={token}")),
        (format!("{FORM}\r\nAuthorization: Basic {wrong_basic}"), "grant_type=client_credentials".into()),
        (format!("{FORM}\r\nAuthorization: Basic {secret}"), "grant_type=client_credentials".into()),
        (format!("{FORM}\r\nAuthorization: Bearer {token}"), "grant_type=client_credentials".into()),
        (format!("{FORM}\r\nAuthorization: {secret}"), "grant_type=client_credentials".into()),
        (
            format!("{FORM}\r\nAuthorization: Basic {basic}"),
            format!("grant_type=client_credentials&client_secret={WRONG}"),
        ),
        (
            "Content-Type: application/json".into(),
            format!("{{\"client_id\":\"{id}\",\"client_secret\":\"{secret}\"}}"),
        ),
        (FORM.into(), format!("client_secret={secret}&padding={}", "x".repeat(20_000))),
    ]
}

/// Invalid batch requests: the head.
fn wrong_gets(bait: &Bait) -> Vec<String> {
    let Bait { first: Credential { secret, .. }, token, cursor, basic, .. } = bait;
    let authorised = |target: &str| format!("GET {target} HTTP/1.1\r\nAuthorization: Bearer {token}");
    let (start, end) = token.split_at(token.len() - 8);
    let forged =
        format!("{}{}{end}", &start[..start.len() - 1], if start.ends_with('A') { 'B' } else { 'A' });
    let torn = &cursor[..cursor.len() - 3];
    vec![
        format!("GET /v1/batches?access_token={token} HTTP/1.1"),
        format!("GET /v2/batches?client_secret={secret} HTTP/1.1"),
        format!("GET /v1/batches HTTP/1.1\r\nAuthorization: Bearer {forged}"),
        format!("GET /v1/batches HTTP/1.1\r\nAuthorization: Bearer {secret}"),
        format!("GET /v1/batches HTTP/1.1\r\nAuthorization: Bearer {token} {token}"),
        format!("GET /v1/batches HTTP/1.1\r\nAuthorization: {token}"),
        format!("GET /v1/batches HTTP/1.1\r\nAuthorization: Basic {basic}"),
        format!("GET /v1/batches HTTP/1.1\r\nCookie: token={token}\r\nReferer: https://x/?t={secret}"),
        // A misconfigured client may send its secret in a field that is logged.
        format!("GET /v1/batches HTTP/1.1\r\nX-Request-Id: {secret}"),
        format!("{secret} /v1/batches HTTP/1.1"),
        format!("GET /v1/batches HTTP/1.1\r\nX-Request-Id: {token}"),
        format!("GET /v1/batches HTTP/1.1\r\nX-Request-Id: Bearer {secret}"),
        authorised(&format!("/v2/batches?next_token={torn}")),
        authorised(&format!("/v2/batches?next_token={token}")),
        authorised(&format!("/v2/batches?next_token={cursor}&next_token={cursor}")),
        authorised(&format!("/v2/batches?cursor={cursor}")),
        authorised(&format!("/v2/batches?next_token={cursor}&start_date=2026-01-01T00:00:00Z")),
        authorised(&format!("/v1/batches?start_date={secret}&end_date={token}")),
        authorised(&format!("/v1/{token}/batches")),
        authorised(&format!("/{secret}?{secret}={token}")),
        authorised(&format!("/v1/batches?x={}{token}", "x".repeat(9_000))),
        format!("DELETE /v1/batches?access_token={token} HTTP/1.1\r\nAuthorization: Bearer {token}"),
        format!(
            "GET /v1/batches HTTP/1.1\r\nX-Padding: {}\r\nAuthorization: Bearer {token}",
            "x".repeat(40_000)
        ),
    ]
}

/// Invalid HTTP.
fn send_garbage(service: &Service, bait: &Bait) -> Vec<u8> {
    let Bait { first: Credential { secret, .. }, token, .. } = bait;
    let mut received = Vec::new();
    for garbage in [
        format!("GET /v1/batches HTTP/1.1\r\n{secret} {token}\r\n\r\n"),
        format!("GET /{secret} {token} HTTP/9.9\r\n\r\n"),
        format!("{token}\r\n\r\n"),
        format!("GET /v1/batches HTTP/1.1\r\nContent-Length: {secret}\r\n\r\n"),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{secret}{token}"),
    ] {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        stream.write_all(garbage.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut received);
    }
    received
}

/// The same over HTTP/2, with curl.
fn send_http_2(service: &Service, bait: &Bait) {
    let Bait { first: Credential { id, secret }, token, cursor, .. } = bait;
    let curl = |words: &[&str]| {
        let mut curl = clean("curl");
        Outcome::run(
            curl.args(["-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w", "%{http_code}"])
                .args(words),
        )
        .succeeds()
    };
    let (auth, batches) = (format!("{}/v2/auth", service.url), format!("{}/v2/batches", service.url));
    let (bearer, form) = (format!("Authorization: Bearer {token}"), "grant_type=client_credentials");
    assert_eq!(curl(&["-u", &format!("{id}:{secret}"), "-d", form, &auth]), "200");
    assert_eq!(curl(&["-u", &format!("{id}:{WRONG}"), "-d", form, &auth]), "401");
    assert_eq!(curl(&["-H", &bearer, &format!("{batches}?next_token={cursor}")]), "200");
    assert_eq!(curl(&["-H", &bearer, &format!("{batches}?next_token={token}")]), "422");
    assert_eq!(curl(&[&format!("{batches}?access_token={token}")]), "401");
}

/// Sends all requests to a service and checks the responses.
fn send_all(site: &Site, service: &Service) -> Canaries {
    let bait = Bait::create(site, service);
    let canaries = bait.canaries();
    for (head, form) in wrong_auths(&bait) {
        for path in ["/v1/auth", &format!("/v2/auth?client_secret={}", bait.first.secret)] {
            let response = request(service, &format!("POST {path} HTTP/1.1\r\n{head}"), &form);
            assert!(matches!(response.status, 401 | 413 | 422), "{}", response.head);
            canaries.are_absent_from_response(&response);
        }
    }
    for head in wrong_gets(&bait) {
        let response = request(service, &head, "");
        assert!((400..500).contains(&response.status), "{head}: {}", response.head);
        canaries.are_absent_from_response(&response);
    }
    canaries.are_absent_from("the response to invalid HTTP", &send_garbage(service, &bait));
    send_http_2(service, &bait);
    let right_basic = format!("POST /v2/auth HTTP/1.1\r\n{FORM}\r\nAuthorization: Basic {}", bait.basic);
    assert_eq!(request(service, &right_basic, "grant_type=client_credentials").status, 200);
    assert_eq!(auth(service, &bait.second).status, 200);
    let next = format!("/v2/batches?next_token={}", bait.cursor);
    assert_eq!(get(service, &next, &bait.token).status, 200);
    canaries.are_absent_from("the metrics", &get(service, "/metrics", &bait.token).ok());
    site.run(&["credential", "revoke", &bait.first.id]).succeeds();
    canaries.are_absent_from_response(&get(service, "/v1/batches", &bait.token));
    canaries.are_absent_from_response(&auth(service, &bait.second));
    canaries
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn no_secret_or_token_appears_anywhere() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1_500, "x")));
    let mut all = Canaries::default();
    let mut services = Vec::new();
    for form in ["text", "json"] {
        let mut command =
            site.command(&["serve", "--listen", "127.0.0.1:0", "--public-metrics", "--log-format", form]);
        let service = Service::start(command.env("BATCHSCAN_LOG", "trace"));
        all.0.extend(send_all(&site, &service).0);
        services.push(service);
    }
    site.run(&["backup", &site.name("copy.db")]).succeeds();
    for name in ["scans.db", "scans.db-wal", "scans.db-shm", "copy.db"] {
        all.are_absent_from(name, &read(&site.path(name)));
    }
    for service in &mut services {
        service.stop();
        let log = service.log();
        assert!(log.lines().count() > 60, "at least one line per request: {log}");
        all.are_absent_from("the log", log.as_bytes());
    }
    all.are_absent_from("scans.db", &read(&site.path("scans.db")));
    for words in [
        &["credential", "list", "--org", ORG, "--json"][..],
        &["credential", "list", "--org", ORG],
        &["audit"],
        &["audit", "--json"],
        &["doctor"],
    ] {
        all.are_absent_from("a list", site.run(words).succeeds().as_bytes());
    }
}

/// In the right place and in wrong ones.
#[test]
fn no_operator_token_appears_anywhere() {
    let site = Site::new();
    let (id, token) = operator::issue(&site, &["--role", "admin", "--label", "robot"]);
    let (_, bound) = operator::issue(&site, &["--role", "ingest", "--org", ORG]);
    let secrets = [&token, &bound].map(|token| token.split_once('.').unwrap().1.to_owned());
    let all = Canaries(secrets.iter().chain([&WRONG.to_owned()]).cloned().collect());
    let file = site.write("a.ndjson", scans::ndjson(0..20, "x"));
    let (service, [_, address]) =
        operator::serve(&site, &["--log-format", "json", "--public-metrics"], "trace");
    let api = format!("{address}/operator/v1");
    let imports = format!("{api}/organisations/Green%20Valley/imports");
    let (data, secret) = (format!("@{file}"), &secrets[0]);
    let ndjson = ["-H", "Content-Type: application/x-ndjson", "--data-binary", &data];
    let request_id = format!("X-Request-Id: {secret}");
    let name = format!("{{\"name\":\"{}\"}}", "x".repeat(200));
    for (url, token, flags, status) in [
        (imports.clone(), &*token, &ndjson[..], "200"),
        (imports.clone(), &bound, &ndjson, "200"),
        (imports.clone(), &bound, &[], "403"),
        (imports.clone(), &format!("{id}.{WRONG}"), &ndjson, "401"),
        (imports.clone(), secret, &ndjson, "401"),
        (imports, &format!("{secret}.{id}"), &ndjson, "401"),
        (format!("{api}/audit?token={token}&limit={secret}"), &token, &[], "422"),
        (format!("{api}/audit?access_token={token}"), "", &[], "401"),
        (format!("{api}/audit"), &token, &["-H", &request_id], "200"),
        (format!("{api}/{token}"), &token, &[], "404"),
        (format!("{api}/organisations/{secret}/credentials"), &token, &[], "404"),
        (format!("{api}/organisations"), &token, &["-d", &name], "422"),
    ] {
        let sent = operator::curl(&url, token, &[flags, &["-D", "-"]].concat());
        assert!(sent.ends_with(status), "{url}: {sent}");
        all.are_absent_from("a response", sent.as_bytes());
    }
    all.are_absent_from("the metrics", operator::curl(&format!("{address}/metrics"), "", &[]).as_bytes());
    site.run(&["operator", "token", "revoke", &id]).succeeds();
    site.run(&["backup", &site.name("copy.db")]).succeeds();
    drop(service);
    let log = read(&site.path("serve.log"));
    assert!(log.windows(id.len()).any(|window| window == id.as_bytes()), "the id is logged");
    all.are_absent_from("the log", &log);
    for name in ["scans.db", "scans.db-wal", "copy.db"] {
        all.are_absent_from(name, &read(&site.path(name)));
    }
    for words in
        [&["operator", "token", "list"][..], &["operator", "token", "list", "--json"], &["audit", "--json"]]
    {
        all.are_absent_from("a list", site.run(words).succeeds().as_bytes());
    }
}

/// A database with a password.
fn guarded_site() -> Site {
    let (server, mut site) = (postgres(), Site::empty_on_postgres());
    let (_, name) = site.database.rsplit_once('/').unwrap();
    let role = format!("role_of_{name}");
    let make = format!(
        "create role {role} login password '{PASSWORD}' in role guarded; alter database {name} owner to {role}"
    );
    server.sql("postgres", &make).unwrap();
    site.database = format!("postgres://{role}:{PASSWORD}@127.0.0.1:{}/{name}", server.port());
    site
}

/// Runs a command and checks that its output has no password. Returns the exit status.
#[track_caller]
fn prints_no_password(site: &Site, words: &[&str]) -> Option<i32> {
    let canaries = Canaries(vec![PASSWORD.to_owned()]);
    let mut command = site.command(words);
    command
        .env("BATCHSCAN_LOG", "trace")
        .env("BATCHSCAN_FROM", &site.database)
        .env("BATCHSCAN_TO", &site.database);
    let outcome = Outcome::run(&mut command);
    canaries.are_absent_from(words[0], outcome.out.as_bytes());
    canaries.are_absent_from(words[0], outcome.err.as_bytes());
    outcome.code
}

#[test]
fn no_command_prints_the_password_of_its_database() {
    let site = guarded_site();
    let (file, copy, again) = (
        site.write("a.ndjson", scans::ndjson(0..20, "x")),
        format!("sqlite:{}", site.name("copy.db")),
        site.name("backup.db"),
    );
    let url = site.database.clone();
    for words in [
        &["org", "add", ORG][..],
        &["org", "list"],
        &["import", "--org", ORG, &file],
        &["credential", "issue", "--org", ORG],
        &["key", "rotate"],
        &["key", "list", "--json"],
        &["audit", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["backup", &again],
        &["copy", "--from", &url, "--to", &copy],
        &["copy", "--from", &url, "--to", &copy, "--json"],
        &["copy", "--to", &url, "--from", &copy],
        &["org", "list", "--database", &url],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["--help"],
        &["serve", "--help"],
        &["copy", "--help"],
        &["copy", "-h"],
        &["--version"],
    ] {
        assert_eq!(prints_no_password(&site, words), Some(0), "{words:?}");
    }
    for words in [
        &["org", "list", "--database", &format!("{url}_missing")][..],
        &["org", "list", "--database", &url.replace(PASSWORD, &format!("{PASSWORD}x"))],
        &["copy", "--from", &url, "--to", &url],
        &["copy", "--from", "sqlite:missing.db", "--to", &url],
        &["copy", "--from", &format!("{url}_missing"), "--to", &url],
        &["import", "--org", "Nobody", &file],
        &["backup", &again],
    ] {
        assert_eq!(prints_no_password(&site, words), Some(1), "{words:?}");
    }
    for name in ["copy.db", "backup.db"] {
        Canaries(vec![PASSWORD.to_owned()]).are_absent_from(name, &read(&site.path(name)));
    }
}

#[test]
fn the_log_has_no_password_when_the_database_is_lost() {
    let site = guarded_site();
    let canaries = Canaries(vec![PASSWORD.to_owned()]);
    site.run(&["org", "add", ORG]).succeeds();
    let credential = site.credential();
    let (_, name) = site.database.rsplit_once('/').unwrap();
    for form in ["text", "json"] {
        let mut command =
            site.command(&["serve", "--listen", "127.0.0.1:0", "--public-metrics", "--log-format", form]);
        let mut service = Service::start(command.env("BATCHSCAN_LOG", "trace"));
        let token = token(&service, &credential);
        let (shut, open) = (
            format!("alter database {name} allow_connections false"),
            format!("alter database {name} allow_connections true"),
        );
        postgres().sql("postgres", &shut).unwrap();
        let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
        postgres().sql("postgres", &end).unwrap();
        wait_until("the loss is logged", || service.log().contains("down"));
        canaries.are_absent_from_response(&get(&service, "/v1/batches", &token));
        canaries.are_absent_from_response(&request(&service, "GET /readyz HTTP/1.1", ""));
        postgres().sql("postgres", &open).unwrap();
        wait_until("it is back", || get(&service, "/v1/batches", &token).status == 200);
        canaries.are_absent_from("the metrics", &get(&service, "/metrics", &token).ok());
        service.stop();
        assert!(service.log().contains("postgres://role_of_"), "the URL is not logged: {}", service.log());
        canaries.are_absent_from("the log", service.log().as_bytes());
    }
}
