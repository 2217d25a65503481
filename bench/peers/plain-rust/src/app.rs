//! The state that all requests share.

use crate::database::Database;
use crate::tokens::Tokens;

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) database: Database,
    pub(crate) tokens: Tokens,
}
