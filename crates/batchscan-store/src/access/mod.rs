//! The rules of everything that proves who sends a request: credentials of clients and operators, browser sessions and
//! sign-in links. Here secrets are made, hashed and compared, end or are replaced, and guesses are limited. Knows nothing
//! about storage and HTTP.

mod credential;
mod guesses;
mod secret;
mod session;

pub use credential::{Credential, CredentialStatus, NewCredential, OperatorRole, Rejected, Rotation, Secret};
pub use guesses::{Rate, RateLimit, WrongSecrets};
pub use secret::{IdAndSecret, SecretHash, SecretKey, is_issued_id, is_label, new_secret};
pub use session::{ActiveSession, Session, SessionResult, SessionUse};
pub(crate) use session::{SessionChange, SessionRow, use_session};
