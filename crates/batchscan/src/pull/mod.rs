//! Downloads pages of a service into a file that is complete, or not there.
//!
//! | module | owns |
//! |---|---|
//! | [`options`] | the output format and the checks of the options |
//! | [`download`] | fetches pages, converts them to rows and writes them, in parallel |
//! | [`partial_file`] | `FILE.part`, the incomplete file |
//! | [`journal`] | `FILE.part.json`, from which an interrupted pull resumes |
//! | [`finalize`] | turns the partial file into the output file |
//! | [`target`] | the output file's name: whether it is free, and the rename |
//! | [`last_pull`] | `FILE.pulled.json`, the state for `--if-changed` |
//!
//! Text formats are written directly to the partial file. Parquet and XLSX are converted from an NDJSON partial file
//! when it is complete, so that they can be resumed as well.

pub(crate) mod download;
pub(crate) mod finalize;
pub(crate) mod journal;
pub(crate) mod last_pull;
pub(crate) mod options;
pub(crate) mod partial_file;
pub(crate) mod target;
