//! Tokens: one for all, renewed in time, and never asked for without end.

use std::time::Duration;

use batchscan_client::{Error, TryStreamExt, UtcInstant};
use batchscan_server::config::Config;

use crate::script::{Answer, Script, TOKEN};
use crate::{ALL, Client, Service, Waits, ids, numbered, paged, texts, to};

#[tokio::test]
async fn credentials_go_out_as_a_form_and_the_token_as_a_bearer_token() {
    let script = Script::signed_in([Answer::page(0..1, None)]).await;
    let client = Client::builder(script.url()).credentials("ann & co", "hush=7d+20 ü%").build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..1));
    let [sign_in, page] = &script.heard()[..] else { panic!("{:?}", script.heard()) };
    assert_eq!(sign_in.header("content-type"), Some("application/x-www-form-urlencoded"));
    let form =
        [("grant_type", "client_credentials"), ("client_id", "ann & co"), ("client_secret", "hush=7d+20 ü%")];
    assert_eq!(sign_in.pairs(), form.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(sign_in.header("authorization"), None);
    assert_eq!(page.header("authorization"), Some(format!("Bearer {TOKEN}1").as_str()));
    assert!(page.header("user-agent").unwrap().starts_with("batchscan-client/"));
}

#[tokio::test]
async fn one_token_serves_every_page_of_every_walk_of_every_clone() {
    // The token takes its time, so that all the walks want it before it is there.
    let script = Script::at("127.0.0.1:0".parse().unwrap(), |request| match request.pairs().first() {
        _ if request.method == "POST" => Answer::token(1).after(Duration::from_millis(50)),
        None => Answer::page(0..2, Some("c1")),
        Some(_) => Answer::page(2..4, None),
    })
    .await;
    let client = script.client().build().unwrap();
    let walks = (0..8).map(|_| tokio::spawn(ids(client.clone().batches(ALL)))).collect::<Vec<_>>();
    for walk in walks {
        assert_eq!(walk.await.unwrap().unwrap(), numbered(0..4));
    }
    client.sign_in().await.unwrap();
    assert_eq!(script.counts(), (1, 16));
}

/// Decision 008: no leeway after the end.
#[tokio::test]
async fn a_token_is_renewed_before_its_end() {
    let config = Config { token_ttl_secs: 3, page_rows: 1, ..Config::default() };
    let service = Service::configured(config, None).await;
    service.import(0..9).await;
    let client = to(&service).build().unwrap();
    let mut pages = client.pages(ALL);
    let mut count = 0;
    while pages.try_next().await.unwrap().is_some() {
        count += 1;
        tokio::time::sleep(Duration::from_millis(450)).await;
    }
    assert_eq!(count, 9);
    let metrics = metrics(&service).await;
    assert!(metrics.contains(r#"status="200""#), "{metrics}");
    assert!(!metrics.contains(r#"status="401""#), "{metrics}");
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_the_page_asked_for_again() {
    let answers = [Answer::page(0..2, Some("c")), Answer::error(401, "expired"), Answer::page(2..3, None)];
    let script = Script::signed_in(answers).await;
    let waits = Waits::default();
    let client = script.client().on_retry(waits.listener()).build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
    let tokens: Vec<_> = script
        .heard()
        .iter()
        .filter_map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(tokens, ["1", "1", "2"].map(|number| format!("Bearer {TOKEN}{number}")));
    assert_eq!(waits.heard(), [], "a new token needs no wait");
}

/// Decision 043.
#[tokio::test]
async fn a_second_refusal_is_an_error_and_not_a_loop() {
    let script = Script::with_tokens(|_| Answer::error(401, "who are you?")).await;
    let error = ids(script.client().build().unwrap().batches(ALL)).await.unwrap_err();
    assert_eq!(error, Error::TokenRefused { detail: Some("who are you?".into()) });
    assert_eq!(error.to_string(), "the service refuses the token that it issued (who are you?)");
    assert!(!error.can_retry());
    assert_eq!(script.counts(), (2, 2));
}

#[tokio::test]
async fn walks_side_by_side_renew_a_refused_token_once_among_them() {
    let script = Script::with_tokens(|request| {
        let is_first = request.header("authorization") == Some(&format!("Bearer {TOKEN}1"));
        if is_first { Answer::error(401, "expired") } else { Answer::page(0..1, None) }
    })
    .await;
    let client = script.client().build().unwrap();
    client.sign_in().await.unwrap();
    let walks = (0..8).map(|_| tokio::spawn(ids(client.batches(ALL)))).collect::<Vec<_>>();
    for walk in walks {
        assert_eq!(walk.await.unwrap().unwrap(), numbered(0..1));
    }
    assert_eq!(script.counts().0, 2);
}

#[tokio::test]
async fn wrong_credentials_are_told_at_once() {
    let service = paged(1, 1).await;
    for (id, secret) in [(service.client_id(), "bs_made_up"), ("nobody", service.client_secret())] {
        let client = Client::builder(service.url()).credentials(id, secret).build().unwrap();
        for error in [client.sign_in().await.unwrap_err(), ids(client.batches(ALL)).await.unwrap_err()] {
            assert!(matches!(error, Error::CredentialsRefused { .. }) && !error.can_retry(), "{error:?}");
            let told = error.to_string();
            assert!(told.starts_with("the service refused the credentials ("), "{told}");
            assert!(told.ends_with("); check client id and secret"), "{told}");
        }
    }
    let script = Script::of([Answer::error(401, "no"), Answer::token(1)]).await;
    assert!(script.client().build().unwrap().sign_in().await.is_err());
    assert_eq!(script.heard().len(), 1);
}

/// Interface section 4: other fields of the token response are not shown.
#[tokio::test]
async fn a_token_answer_may_hold_the_token_alone_or_anything_beside_it() {
    for body in [
        r#"{"access_token":"abc"}"#,
        r#"{"access_token":"abc","expires_in":null,"refresh_token":7,"scope":["x"]}"#,
        r#"{"expires_in":"3600","token_type":"Bearer","access_token":"abc"}"#,
        "\n{\n  \"access_token\": \"abc\",\n  \"expires_in\": 9e99\n}\n",
    ] {
        let answers = [Answer::new(200, body), Answer::page(0..1, Some("c")), Answer::page(1..2, None)];
        let script = Script::of(answers).await;
        assert_eq!(
            ids(script.client().build().unwrap().batches(ALL)).await.unwrap(),
            numbered(0..2),
            "{body}"
        );
        assert_eq!(script.heard()[2].header("authorization"), Some("Bearer abc"));
    }
}

#[tokio::test]
async fn a_token_that_no_header_can_hold_is_an_error() {
    let script = Script::of((0..9).map(|_| Answer::new(200, r#"{"access_token":"a\nb"}"#))).await;
    let error = script.client().build().unwrap().sign_in().await.unwrap_err();
    assert_eq!(error.to_string(), "the service refuses the token that it issued (no header can hold it)");
    assert!(script.heard().len() <= 2);
}

/// Decision 010: no new token at once, and the tokens that are out die within 5 s.
#[tokio::test]
async fn a_credential_revoked_in_mid_walk_ends_it_with_an_error() {
    let service = paged(400, 1).await;
    let mut pages = to(&service).build().unwrap().pages(ALL);
    pages.try_next().await.unwrap();
    let id = batchscan_model::ClientId::new(service.client_id()).unwrap();
    service.store.revoke_credential(&id, UtcInstant::EPOCH).await.unwrap();
    let error = loop {
        match pages.try_next().await {
            Ok(Some(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            Ok(None) => panic!("the walk went on to its end"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::CredentialsRefused { .. }), "{error:?}");
    assert!(pages.try_next().await.unwrap().is_none(), "after an error a stream is over");
}

#[tokio::test]
async fn signing_in_beforehand_is_not_needed_and_not_lost() {
    let service = paged(3, 1).await;
    let client = to(&service).build().unwrap();
    client.sign_in().await.unwrap();
    assert_eq!(texts(client.pages(ALL)).await.unwrap().len(), 3);
}

/// What the service counts of itself.
async fn metrics(service: &Service) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = service.url().strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}
