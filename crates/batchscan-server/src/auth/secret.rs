//! Generates client ids and secrets: random bytes in an alphabet that needs no escaping (decision 004).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{ClientId, ClientSecret};
use ring::rand::{SecureRandom, SystemRandom};

/// A new credential, before it is stored.
#[derive(Debug)]
pub struct Issued {
    /// The client id.
    pub client: ClientId,
    /// The secret, shown only once.
    pub secret: ClientSecret,
}

const ID_PREFIX: &str = "bs_";
const TOKEN_ID_PREFIX: &str = "op_";
/// Twelve bytes as base64.
const ID_CHARS: usize = ID_PREFIX.len() + 16;

/// Whether a text has the form of our client ids and operator tokens' ids, which no secret has.
pub fn is_issued_id(text: &str) -> bool {
    text.len() == ID_CHARS && (text.starts_with(ID_PREFIX) || text.starts_with(TOKEN_ID_PREFIX))
}

/// The longest label of a credential or token.
const LABEL_CHARS_MAX: usize = 100;

/// Whether a text can be a label.
pub fn is_label(text: &str) -> bool {
    text.chars().count() <= LABEL_CHARS_MAX && !text.chars().any(char::is_control)
}

pub(super) fn new_token_id() -> Option<String> {
    Some(format!("{TOKEN_ID_PREFIX}{}", random_text::<12>()?))
}

/// A new id and secret; `None` if the random number generator failed.
pub fn issue() -> Option<Issued> {
    // 96 bits make ids unique without a lookup; the prefix shows what the text is.
    let id = format!("{ID_PREFIX}{}", random_text::<12>()?);
    Some(Issued { client: ClientId::new(id)?, secret: new_secret()? })
}

/// A new secret of 256 random bits.
pub fn new_secret() -> Option<ClientSecret> {
    random_text::<32>().map(ClientSecret::new)
}

pub(super) fn random_text<const BYTES: usize>() -> Option<String> {
    let mut bytes = [0u8; BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 004.
    #[test]
    fn issued_ids_and_secrets_need_no_escaping() {
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        for _ in 0..100 {
            let issued = issue().unwrap();
            assert!(is_plain(issued.client.as_str()) && is_plain(issued.secret.reveal()));
            assert_eq!(issued.secret.reveal().len(), 43, "256 bits");
        }
    }
}
