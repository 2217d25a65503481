//! The operator API (decision 055): who may do what, and what imports and changes do to the store.

use std::collections::BTreeSet;

use batchscan_model::ClientId;
use batchscan_store::OperatorRole;
use futures_util::future::join_all;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::contract::OPERATOR_DOCUMENT;
use super::*;

const CSV: &str = "text/csv";
const JSON: &str = "application/json";
const IMPORTS: &str = "/organisations/Nursery/imports";
const BATCH: &str = "/organisations/Nursery/batches/b1";

/// A CSV file with these ids.
fn csv(ids: &[&str]) -> String {
    let line = |id: &&str| format!("{id},Tray,2026-01-31T08:00:00Z,1,false\n");
    let lines: String = ids.iter().map(line).collect();
    format!("batch_id,batch_name,batch_creation_date,number_of_images,warnings\n{lines}")
}

fn batch_json(id: &str, name: &str) -> Value {
    json!({
        "batch_id": id, "batch_name": name, "batch_creation_date": "2026-01-31T08:00:00Z", "number_of_images": 1,
        "warnings": false,
    })
}

fn with_body(request: RequestBuilder, media_type: &str, body: impl Into<String>) -> RequestBuilder {
    request.header("content-type", media_type).body(body.into())
}

/// A service with the organisation "Nursery", and a token of an administrator.
async fn start() -> (TestApp, String) {
    let app = TestApp::with_operator().await;
    app.org("Nursery").await;
    let admin = app.operator_token(OperatorRole::Admin, None, None).await;
    (app, admin)
}

async fn send(app: &TestApp, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    Reply::to(with_body(app.operator(method, path, token), JSON, body.to_string())).await
}

async fn get(app: &TestApp, token: &str, path: &str) -> Value {
    let reply = Reply::to(app.operator("GET", path, token)).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

async fn import(app: &TestApp, token: &str, body: &str, key: Option<&str>) -> Reply {
    let request = with_body(app.operator("POST", IMPORTS, token), CSV, body);
    Reply::to(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await
}

async fn batch_count(app: &TestApp) -> u64 {
    app.store.org("Nursery").await.unwrap().batches
}

fn id_of(token: &str) -> ClientId {
    ClientId::new(token.split('.').next().unwrap()).unwrap()
}

/// What a role may do: 401 without a valid token.
const ALL: [u16; 4] = [200, 200, 200, 200];
const IMPORT: [u16; 4] = [200, 403, 200, 200];
const fn admin(status: u16) -> [u16; 4] {
    [403, 403, 403, status]
}

const WATCHER: &str = r#"{"host":"pc","folder":"/srv/scans","state":"running","detail":"3 imported"}"#;

/// Every request, in an order in which an administrator's succeeds, and its status with a token for ingest into this
/// organisation, into another one, into all, and with an administrator's token.
const TABLE: [(&str, &str, &str, [u16; 4]); 15] = [
    ("GET", "/openapi.json", "", ALL),
    ("POST", "/organisations/Nursery/imports", "[]", IMPORT),
    ("GET", "/organisations/Nursery/imports", "", admin(200)),
    ("PUT", "/organisations/Nursery/batches/b1", "BATCH", IMPORT),
    ("PUT", "/organisations/Nursery/watchers", WATCHER, [204, 403, 204, 204]),
    ("DELETE", "/organisations/Nursery/batches/b1", "", admin(204)),
    ("GET", "/organisations", "", admin(200)),
    ("POST", "/organisations", r#"{"name":"New"}"#, admin(201)),
    ("PATCH", "/organisations/New", r#"{"name":"Renamed"}"#, admin(200)),
    ("GET", "/organisations/Nursery/credentials", "", admin(200)),
    ("POST", "/organisations/Nursery/credentials", "{}", admin(201)),
    ("POST", "/organisations/Nursery/credentials/CLIENT/rotate", "{}", admin(200)),
    ("DELETE", "/organisations/Nursery/credentials/CLIENT", "", admin(204)),
    ("GET", "/audit", "", admin(200)),
    ("DELETE", "/organisations/Nursery", "", admin(204)),
];

/// Ingest may import batches, and nothing else.
#[tokio::test]
async fn each_role_may_do_only_its_part() {
    let (app, admin) = start().await;
    app.org("Other").await;
    let client = app.credential("Nursery", None).await.id;
    let ingest = OperatorRole::Ingest;
    let soon = Some(app.now().plus_secs(1));
    let expired = app.operator_token(OperatorRole::Admin, None, soon).await;
    let revoked = app.operator_token(OperatorRole::Admin, None, None).await;
    app.store.revoke_operator_token(&id_of(&revoked), app.now()).await.unwrap();
    let wrong = format!("{}.{}", id_of(&admin), "x".repeat(43));
    let bearer = app.token(&app.credential("Nursery", None).await).await;
    app.advance_secs(2);
    let invalid = ["", &wrong, &expired, &revoked, &bearer, "op_unknown.x", "é"];
    let valid = [
        app.operator_token(ingest, Some("Nursery"), None).await,
        app.operator_token(ingest, Some("Other"), None).await,
        app.operator_token(ingest, None, None).await,
        admin,
    ];
    for (method, path, body, statuses) in TABLE {
        let path = path.replace("CLIENT", &client);
        let body = body.replace("BATCH", &batch_json("b1", "Tray").to_string());
        let send = async |method: &str, token: &str| {
            Reply::to(with_body(app.operator(method, &path, token), JSON, &*body)).await.status
        };
        for token in invalid {
            let expected = if path == "/openapi.json" { 200 } else { 401 };
            assert_eq!(send(method, token).await, expected, "{method} {path} with {token:?}");
        }
        for (token, expected) in valid.iter().zip(statuses) {
            assert_eq!(send(method, token).await, expected, "{method} {path} with {token}");
            if method == "GET" {
                assert_eq!(send("HEAD", token).await, expected, "HEAD {path} with {token}");
            }
        }
    }
}

#[test]
fn the_table_has_every_operation_of_the_document() {
    let templates =
        [("/Nursery", "/{name}"), ("/New", "/{name}"), ("/CLIENT", "/{client_id}"), ("/b1", "/{batch_id}")];
    let in_table = TABLE.map(|(method, path, ..)| {
        let path = templates.iter().fold(path.to_owned(), |path, (name, text)| path.replace(name, text));
        format!("{method} /operator/v1{path}")
    });
    let paths = OPERATOR_DOCUMENT["paths"].as_object().unwrap();
    let methods = |(path, item): (&String, &Value)| {
        let methods: Vec<String> = item.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        methods.into_iter().map(|method| format!("{method} {path}")).collect::<Vec<_>>()
    };
    assert_eq!(BTreeSet::from(in_table), paths.iter().flat_map(methods).collect());
}

/// What the service exports can be imported, with its own media type.
#[tokio::test]
async fn a_file_of_every_format_is_imported() {
    let (app, admin) = start().await;
    let token = app.token(&app.credential("Nursery", None).await).await;
    app.import("Nursery", &many(300)).await;
    let exports = ["csv", "ndjson", "parquet", "xlsx"].map(|format| format!("/v2/export.{format}"));
    for path in exports.into_iter().chain(["/v1/batches".to_owned()]) {
        let file = app.get(&path, &token).await;
        let (media_type, name) = (file.header("content-type").unwrap(), path.replace(['/', '.'], "-"));
        app.org(&name).await;
        let target = format!("/organisations/{name}/imports");
        let request = || app.operator("POST", &target, &admin).header("content-type", &media_type);
        let reply = Reply::to(request().body(file.body.clone())).await;
        let expected = json!({ "import_id": 1, "new": 300, "corrected": 0, "unchanged": 0, "warnings": 0, "messages": [] });
        assert_eq!((reply.status, reply.json()), (200, expected), "{path}");
        assert_eq!(Reply::to(request().body(file.body)).await.json()["unchanged"], 300, "{path}");
    }
}

#[tokio::test]
async fn a_dry_run_counts_and_changes_nothing() {
    let (app, admin) = start().await;
    let reply = Reply::to(with_body(
        app.operator("POST", &format!("{IMPORTS}?dry_run=true"), &admin),
        CSV,
        csv(&["a", "b"]),
    ));
    let expected =
        json!({ "import_id": null, "new": 2, "corrected": 0, "unchanged": 0, "warnings": 0, "messages": [] });
    assert_eq!(reply.await.json(), expected);
    assert_eq!(batch_count(&app).await, 0);
    assert_eq!(get(&app, &admin, IMPORTS).await, json!({ "data": [], "more": false }));
}

#[tokio::test]
async fn a_repeated_import_returns_the_first_result_and_changes_nothing() {
    let (app, admin) = start().await;
    let first = import(&app, &admin, &csv(&["b1", "b2"]), Some("monday")).await;
    assert_eq!((first.status, &first.json()["new"]), (200, &json!(2)));
    let corrected = send(&app, &admin, "PUT", BATCH, &batch_json("b1", "Corrected")).await;
    assert_eq!(corrected.json()["corrected"], 1);
    let again = import(&app, &admin, &csv(&["b1", "b2"]), Some("monday")).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    assert_eq!(
        [&first, &again].map(|reply| reply.header("idempotent-replayed")),
        [None, Some("true".to_owned())]
    );
    assert_eq!(get(&app, &admin, IMPORTS).await["data"].as_array().unwrap().len(), 2);
    assert_eq!(
        send(&app, &admin, "PUT", BATCH, &batch_json("b1", "Corrected")).await.json()["unchanged"],
        1,
        "the old file did not undo the correction"
    );
    let reused = import(&app, &admin, &csv(&["b3"]), Some("monday")).await;
    reused.is_detail(422, "The Idempotency-Key was already used for another body");
    // Keys of another organisation are others.
    app.org("Other").await;
    let other = with_body(app.operator("POST", "/organisations/Other/imports", &admin), CSV, csv(&["b3"]));
    assert_eq!(Reply::to(other.header("idempotency-key", "monday")).await.json()["new"], 1);
}

#[tokio::test]
async fn an_invalid_file_is_rejected_with_lines_and_fields() {
    let (app, admin) = start().await;
    let body = csv(&["a", "b"]).replace("b,Tray,2026-01-31T08:00:00Z,1", "b,Tray,yesterday,n/a");
    let reply = import(&app, &admin, &body, Some("k")).await;
    let error = |field: &str, found: &str, expected: &str| json!({ "line": 3, "field": field, "found": found, "expected": expected });
    let date = "a date such as 2026-11-16T08:00:00Z, 2026-11-16 08:00 or 16.11.2026 08:00, or another form stated in a \
                mapping, such as date_format = \"%d.%m.%y %H:%M\"";
    let count = "a whole number from 0 to 9007199254740991";
    reply.is_error(
        422,
        &json!({ "detail": [
            error("batch_creation_date", "\"yesterday\"", date),
            error("number_of_images", "\"n/a\"", count),
        ] }),
    );
    assert_eq!(batch_count(&app).await, 0);
    // The key of a failed import can be used again.
    assert_eq!(import(&app, &admin, &csv(&["a"]), Some("k")).await.status, 200);
}

#[tokio::test]
async fn parallel_imports_of_one_organisation_are_all_applied() {
    const COUNT: i64 = 50;
    let (app, _) = start().await;
    let token = app.operator_token(OperatorRole::Ingest, Some("Nursery"), None).await;
    let imports = (0..COUNT).map(async |number| {
        let (id, key) = (format!("b{number}"), format!("k{number}"));
        import(&app, &token, &csv(&[&id, "shared"]), Some(&key)).await
    });
    let replies = join_all(imports).await;
    let failed: Vec<_> = replies.iter().filter(|reply| reply.status != 200).map(Reply::text).collect();
    assert_eq!(failed, [""; 0]);
    let ids: BTreeSet<i64> =
        replies.iter().map(|reply| reply.json()["import_id"].as_i64().unwrap()).collect();
    assert_eq!(ids, (1..=COUNT).collect());
    assert_eq!(batch_count(&app).await, 51);
}

#[tokio::test]
async fn one_batch_is_put_and_removed() {
    let (app, admin) = start().await;
    let client = app.credential("Nursery", None).await;
    let token = app.token(&client).await;
    let ids = async || app.v1_ids("", &token).await;
    let counts = async |name: &str| {
        let reply = send(&app, &admin, "PUT", BATCH, &batch_json("b1", name)).await.json();
        ["new", "corrected", "unchanged"].map(|count| reply[count].as_u64().unwrap())
    };
    assert_eq!(counts("Tray").await, [1, 0, 0]);
    assert_eq!((counts("Tray").await, counts("Tray 2").await), ([0, 0, 1], [0, 1, 0]));
    let other = send(&app, &admin, "PUT", BATCH, &batch_json("b2", "Tray")).await;
    let error =
        json!({ "line": null, "field": "batch_id", "found": "\"b2\"", "expected": "the id in the path" });
    other.is_error(422, &json!({ "detail": [error] }));
    let one = batch_json("b1", "Tray").to_string();
    for body in [String::new(), format!("{one},{one}"), format!("[{one}]"), "7".into(), "{".into()] {
        let reply = Reply::to(with_body(app.operator("PUT", BATCH, &admin), JSON, &*body)).await;
        assert_eq!(reply.status, 422, "{body}");
        assert!(!reply.text().contains("array"), "{body}: {}", reply.text());
    }
    assert_eq!(ids().await, ["b1"]);
    assert_eq!(send(&app, &admin, "DELETE", BATCH, &json!({})).await.status, 204);
    send(&app, &admin, "DELETE", BATCH, &json!({})).await.is_detail(404, "There is no batch with this id");
    assert_eq!(ids().await, [""; 0]);
}

#[tokio::test]
async fn a_report_of_a_watcher_is_checked() {
    let (app, admin) = start().await;
    let report: Value = serde_json::from_str(WATCHER).unwrap();
    for (field, value) in [
        ("host", Value::Null),
        ("host", "".into()),
        ("folder", "a\0b".into()),
        ("state", "asleep".into()),
        ("folder", "€".repeat(700).into()),
        ("detail", "x".repeat(4_001).into()),
        ("more", 1.into()),
    ] {
        let mut wrong = report.clone();
        wrong[field] = value;
        let reply = send(&app, &admin, "PUT", "/organisations/Nursery/watchers", &wrong).await;
        assert!(reply.status == 422 && reply.text().contains(field), "{reply:?}");
    }
    assert_eq!(send(&app, &admin, "PUT", "/organisations/Unknown/watchers", &report).await.status, 404);
}

#[tokio::test]
async fn imports_are_listed_in_pages() {
    let (app, admin) = start().await;
    for number in 1..=3 {
        let path = format!("{IMPORTS}?file=scans%20{number}.csv");
        let request = with_body(app.operator("POST", &path, &admin), CSV, csv(&["a"]));
        assert_eq!(Reply::to(request.header("idempotency-key", format!("k{number}"))).await.status, 200);
    }
    let first = get(&app, &admin, &format!("{IMPORTS}?limit=2")).await;
    assert_eq!((first["data"].as_array().unwrap().len(), &first["more"]), (2, &json!(true)));
    let rest = get(&app, &admin, &format!("{IMPORTS}?limit=2&after=2")).await;
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["more"]), (1, &json!(false)));
    let last = &rest["data"][0];
    let actor = format!("{} (scanner)", id_of(&admin));
    for (name, expected) in [
        ("import_id", json!(3)),
        ("actor", json!(actor)),
        ("source", json!("127.0.0.1")),
        ("file", json!("scans 3.csv")),
        ("idempotency_key", json!("k3")),
        ("unchanged", json!(1)),
    ] {
        assert_eq!(last[name], expected, "{name} of {last}");
    }
    assert_eq!(last["sha256"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn every_change_has_an_audit_entry_with_token_and_address() {
    let (mut app, admin) = start().await;
    let before = get(&app, &admin, "/audit").await["data"].as_array().unwrap().last().unwrap()["id"].clone();
    let body = json!({ "name": "New" });
    send(&app, &admin, "POST", "/organisations", &body).await;
    send(&app, &admin, "PATCH", "/organisations/New", &json!({ "name": "Newer" })).await;
    let credentials = "/organisations/Newer/credentials";
    let issued = send(&app, &admin, "POST", credentials, &json!({ "label": "ERP" })).await.json();
    let one = format!("{credentials}/{}", issued["client_id"].as_str().unwrap());
    send(&app, &admin, "POST", &format!("{one}/rotate"), &json!({ "retire_after_seconds": 60 })).await;
    send(&app, &admin, "DELETE", &one, &json!({})).await;
    import(&app, &admin, &csv(&["a"]), Some("k")).await;
    send(&app, &admin, "PUT", BATCH, &batch_json("b1", "Tray")).await;
    send(&app, &admin, "DELETE", BATCH, &json!({})).await;
    send(&app, &admin, "DELETE", "/organisations/Newer", &json!({})).await;
    let entries = get(&app, &admin, &format!("/audit?after={before}")).await;
    let entries = entries["data"].as_array().unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    let expected = [
        "org add",
        "org rename",
        "credential issue",
        "credential rotate",
        "credential revoke",
        "import",
        "import",
        "batch remove",
        "org remove",
    ];
    assert_eq!(actions, expected);
    for entry in entries {
        assert_eq!(entry["actor"], format!("{} (scanner)", id_of(&admin)), "{entry}");
        assert_eq!(entry["source"], "127.0.0.1", "{entry}");
    }
    assert_eq!(get(&app, &admin, "/audit?since=2999-01-01T00:00:00Z").await["data"], json!([]));
    app.stop().await.unwrap();
    let token = app.store.operator_token(&id_of(&admin)).await.unwrap().unwrap();
    assert_eq!(token.credential.last_used_at, Some(app.now()));
}

/// The secrets work, until they are replaced or revoked.
#[tokio::test]
async fn issued_and_rotated_credentials_work() {
    let (app, admin) = start().await;
    let path = "/organisations/Nursery/credentials";
    let client = |reply: &Value| {
        let text = |name: &str| reply[name].as_str().unwrap().to_owned();
        Client { id: text("client_id"), secret: text("client_secret") }
    };
    let works = async |client: &Client| app.post_form("/v2/auth", client.form()).await.status == 200;
    let issued = send(&app, &admin, "POST", path, &json!({ "expires_at": "2026-03-01T00:00:00Z" })).await;
    let first = client(&issued.json());
    assert!(works(&first).await);
    let one = format!("{path}/{}", first.id);
    let rotated = send(&app, &admin, "POST", &format!("{one}/rotate"), &json!({})).await.json();
    assert_eq!(rotated["old_secret_until"], "2026-02-08T00:00:00Z");
    assert!(works(&first).await && works(&client(&rotated)).await);
    let now = json!({ "retire_after_seconds": 0 });
    let last = client(&send(&app, &admin, "POST", &format!("{one}/rotate"), &now).await.json());
    assert!(!works(&first).await && works(&last).await);
    // Not under the name of another organisation.
    app.org("Other").await;
    let other = one.replace("Nursery", "Other");
    assert_eq!(send(&app, &admin, "DELETE", &other, &json!({})).await.status, 404);
    assert_eq!(send(&app, &admin, "DELETE", &one, &json!({})).await.status, 204);
    assert!(!works(&last).await);
    let listed = get(&app, &admin, path).await;
    let states: BTreeSet<&str> =
        listed["data"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, BTreeSet::from(["active", "revoked"]));
}

#[tokio::test]
async fn names_may_have_any_visible_characters_but_a_slash() {
    let (app, admin) = start().await;
    for (name, encoded) in [
        ("Green Valley", "Green%20Valley"),
        ("50 % \\ half", "50%20%25%20%5C%20half"),
        ("Gärtnerei Süd ✓", "G%C3%A4rtnerei%20S%C3%BCd%20%E2%9C%93"),
        ("a?b#c+d", "a%3Fb%23c+d"),
        ("{name}", "%7Bname%7D"),
    ] {
        assert_eq!(send(&app, &admin, "POST", "/organisations", &json!({ "name": name })).await.status, 201);
        let path = format!("/organisations/{encoded}");
        let batch = format!("{path}/batches/b1");
        let put = send(&app, &admin, "PUT", &batch, &batch_json("b1", "Tray")).await;
        assert_eq!(put.status, 200, "{name}");
        let renamed = send(&app, &admin, "PATCH", &path, &json!({ "name": format!("{name} 2") })).await;
        let expected = (200, json!(format!("{name} 2")), json!(1));
        let reply = renamed.json();
        assert_eq!((renamed.status, reply["name"].clone(), reply["batches"].clone()), expected);
    }
    // A client would resolve `..` in a URL.
    let long = "x".repeat(101);
    for name in [
        "",
        " a",
        "a ",
        "a\u{0}b",
        "a\nb",
        "a\u{85}b",
        "a\u{202e}b",
        "a\u{200b}b",
        "\u{feff}",
        "a/b",
        ".",
        "..",
        &long,
    ] {
        let reply = send(&app, &admin, "POST", "/organisations", &json!({ "name": name })).await;
        assert_eq!(
            (reply.status, &reply.json()["detail"][0]["loc"]),
            (422, &json!(["body", "name"])),
            "{name:?}"
        );
    }
    for encoded in ["%FF", "a%C3", "%00", "a%00b", "unknown", &long] {
        for (method, path) in
            [("GET", "/credentials"), ("POST", "/imports"), ("DELETE", "/batches/b"), ("DELETE", "")]
        {
            let path = format!("/organisations/{encoded}{path}");
            let reply = Reply::to(with_body(app.operator(method, &path, &admin), CSV, csv(&["a"]))).await;
            assert_eq!(reply.status, 404, "{method} {path}");
        }
    }
    for id in ["%00", "%FF", "x%0Ay"] {
        for path in [
            format!("/organisations/Nursery/batches/{id}"),
            format!("/organisations/Nursery/credentials/{id}"),
        ] {
            assert_eq!(send(&app, &admin, "DELETE", &path, &json!({})).await.status, 404, "{path}");
        }
    }
}
