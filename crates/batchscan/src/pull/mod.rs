//! Downloads pages of a service into a file that is complete, or not there.
//!
//! | module | owns |
//! |---|---|
//! | [`options`] | the output format and the checks of the options |
//! | [`download`] | fetches pages, converts them to rows and writes them, in parallel |
//! | [`output`] | the output file or standard output, and the conversion to binary formats |
//! | [`last_pull`] | `FILE.pulled.json`, the state for `--if-changed` |

pub(crate) mod download;
pub(crate) mod last_pull;
pub(crate) mod options;
pub(crate) mod output;
