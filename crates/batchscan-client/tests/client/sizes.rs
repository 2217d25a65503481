//! Answers without end, and compressed ones.

use batchscan_client::{Error, Version};

use crate::script::{Answer, Framing, Script, client_of};
use crate::{ALL, bounded, ids, numbered, paged, texts};

fn endless(status: u16, piece: &str) -> Answer {
    Answer::new(status, piece.repeat(4_096)).framed(Framing::Endless)
}

#[tokio::test]
async fn an_endless_token_is_refused() {
    let script = Script::of([endless(200, "               ")]).await;
    let error = bounded(script.client().build().unwrap().sign_in()).await.unwrap_err();
    let expected = format!(
        "{}/v2/auth does not answer like a batch scan service: an answer of more than 256 KiB; check the address",
        script.url()
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn an_endless_error_is_an_error_all_the_same() {
    let script = Script::signed_in([endless(503, "busy "), Answer::page(0..1, None)]).await;
    assert_eq!(ids(script.client().build().unwrap().batches(ALL)).await.unwrap(), numbered(0..1));
    let script = Script::signed_in([endless(500, "oh no ")]).await;
    let error = ids(script.client().build().unwrap().batches(ALL)).await.unwrap_err();
    assert_eq!(error.to_string(), "the service refused the request with 500 Internal Server Error");
    let script = Script::of([endless(401, "who? ")]).await;
    let error = bounded(script.client().build().unwrap().sign_in()).await.unwrap_err();
    assert_eq!(error, Error::CredentialsRefused { detail: None });
}

#[tokio::test]
async fn an_endless_array_without_a_batch_is_refused() {
    let script = Script::signed_in([endless(200, "               ")]).await;
    let error = ids(script.client().version(Version::V1).build().unwrap().batches(ALL)).await.unwrap_err();
    assert!(error.to_string().contains("a batch that does not end"), "{error}");
}

/// Compressing for a network that is none costs more than it saves.
#[tokio::test]
async fn compression_is_asked_for_from_afar_alone() {
    let script = Script::signed_in([Answer::page(0..1, None), Answer::page(0..1, None)]).await;
    let near = script.client().build().unwrap();
    // On this machine the unspecified address leads to loopback, and is not known for it.
    let far = client_of(&format!("http://0.0.0.0:{}", script.address.port())).build().unwrap();
    for client in [near, far] {
        assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..1));
    }
    let accepted: Vec<_> = script
        .heard()
        .iter()
        .filter(|request| request.method == "GET")
        .map(|request| request.header("accept-encoding").unwrap_or("nothing").to_owned())
        .collect();
    assert_eq!(accepted[0], "nothing");
    assert!(accepted[1].contains("gzip") && accepted[1].contains("zstd"), "{}", accepted[1]);
}

/// Decision 032.
#[tokio::test]
async fn a_compressed_answer_is_the_same_answer() {
    let service = paged(500, 200).await;
    let port = service.url().rsplit(':').next().unwrap();
    for version in [Version::V1, Version::V2] {
        let far = crate::Client::builder(format!("http://0.0.0.0:{port}"));
        let far =
            far.credentials(service.client_id(), service.client_secret()).version(version).build().unwrap();
        let near = crate::to(&service).version(version).build().unwrap();
        assert_eq!(texts(far.pages(ALL)).await.unwrap(), texts(near.pages(ALL)).await.unwrap());
    }
}
