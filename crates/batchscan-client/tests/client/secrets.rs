//! Neither a secret nor a token is ever shown.

use std::sync::{Arc, Mutex};

use batchscan_client::{Error, TryStreamExt};

use crate::script::{Answer, Request, SECRET, Script, TOKEN, client_of};
use crate::{ALL, ids};

fn assert_hidden(shown: &str) {
    for hidden in [SECRET, TOKEN] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

#[tokio::test]
async fn debug_shows_neither_secret_nor_token() {
    let script =
        Script::signed_in([Answer::page(0..1, Some("c")), Answer::nothing(), Answer::error(400, "no")]).await;
    let retries = Arc::new(Mutex::new(String::new()));
    let shown = retries.clone();
    let builder =
        script.client().on_retry(move |retry| shown.lock().unwrap().push_str(&format!("{retry:?}")));
    let client = builder.clone().build().unwrap();
    let mut pages = client.pages(ALL);
    let page = pages.try_next().await.unwrap().unwrap();
    let received = page.batches().next().unwrap().unwrap();
    let error = pages.try_next().await.unwrap_err();
    assert_hidden(&format!(
        "{builder:?} {builder:#?} {client:?} {client:#?} {page:?} {received:?} {error:?} {error}"
    ));
    assert!(format!("{client:?}").contains("nursery"), "the client's id is no secret");
    let retries = retries.lock().unwrap();
    assert!(retries.contains("Retry {"), "{retries}");
    assert_hidden(&retries);
}

#[tokio::test]
async fn a_password_in_the_address_is_not_kept() {
    let builder = client_of(&format!("https://ann:{SECRET}@scans.example.org"));
    assert_hidden(&format!("{builder:?}"));
    assert_hidden(&format!("{:?}", builder.build().unwrap_err()));
}

/// Everything that was sent, in every place where a service has words of its own.
fn echo(request: &Request, status: u16, in_list: bool) -> Answer {
    let sent = format!("you sent {} and {:?}", request.body, request.header("authorization"));
    if in_list {
        let entry =
            serde_json::json!({"type": "value_error", "loc": ["body", &sent], "msg": &sent, "input": &sent});
        return Answer::new(status, serde_json::json!({"detail": [entry]}).to_string());
    }
    Answer::error(status, &sent)
}

#[tokio::test]
async fn a_service_that_repeats_what_it_was_sent_is_not_repeated() {
    for status in [400, 401, 403, 422, 500, 503] {
        for in_list in [false, true] {
            let at_auth = move |request: &Request| echo(request, status, in_list);
            let script = Script::at("127.0.0.1:0".parse().unwrap(), at_auth).await;
            let later = Script::with_tokens(at_auth).await;
            for script in [script, later] {
                let client = script.client().retry_for(std::time::Duration::ZERO).build().unwrap();
                let error = ids(client.batches(ALL)).await.unwrap_err();
                assert_hidden(&format!("{error} {error:?}"));
                let is_told = !matches!(error, Error::NotBatchscan { .. });
                assert!(is_told && error.to_string().contains("[redacted]"), "{error}");
            }
        }
    }
}
