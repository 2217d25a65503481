//! The contenders: which there are, how each is started on its data, and what it is asked for each work.
//!
//! | module | what it owns |
//! |---|---|
//! | [`interface`] | questions to all who speak the interface: batchscan, FastAPI, the plain Rust service |
//! | [`tables`] | questions to those who show a table: Datasette, ROAPI |
//! | [`files`] | nginx: the bytes of batchscan's answers as files, and questions for them |
//! | [`commands`] | the command that starts each |
//! | [`server`] | a contender that runs |

use std::ops::Range;

use clap::ValueEnum;

use super::exchange::Request;
use super::works::Work;

mod commands;
pub(crate) mod files;
pub(crate) mod interface;
pub(crate) mod server;
mod tables;

/// A contender, by the name that `--only` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Contender {
    Batchscan,
    BatchscanPostgres,
    #[value(name = "fastapi")]
    FastApi,
    #[value(name = "fastapi-tuned")]
    FastApiTuned,
    Datasette,
    Roapi,
    PlainRust,
    Nginx,
}

/// What is asked, and what is to be answered.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) asked: Vec<Asked>,
    pub(crate) answer: Form,
}

/// One request of those that are sent in turn.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// The batches that the answer holds, as lines of the sample.
    pub(crate) rows: Range<usize>,
}

/// What kind of answer is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 200 with batches.
    Batches,
    /// 304 without a body.
    NotModified,
    /// 200 with a token that works.
    Token,
}

impl Contender {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The name in tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Batchscan => "batchscan, SQLite",
            Self::BatchscanPostgres => "batchscan, PostgreSQL",
            Self::FastApi => "FastAPI",
            Self::FastApiTuned => "FastAPI, tuned",
            Self::Datasette => "Datasette",
            Self::Roapi => "ROAPI",
            Self::PlainRust => "plain Rust",
            Self::Nginx => "nginx, static files",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Batchscan | Self::BatchscanPostgres)
    }

    /// Whether it serves data that `bench/peers/load.py` makes.
    pub(crate) fn is_peer_with_data(self) -> bool {
        !self.is_ours() && self != Self::Nginx
    }

    pub(crate) fn uses_postgres(self) -> bool {
        matches!(self, Self::BatchscanPostgres | Self::FastApi | Self::FastApiTuned)
    }

    /// Whether it has tokens, cursors and the paths of the interface.
    pub(crate) fn speaks_interface(self) -> bool {
        self.is_ours() || matches!(self, Self::FastApi | Self::FastApiTuned | Self::PlainRust)
    }

    /// Whether it can do a work that wrk drives. Peers keep no pages, so their page is the same whoever asked before: it is
    /// timed once, as the uncached one.
    pub(crate) fn can(self, work: Work) -> bool {
        match (self, work) {
            (Self::Batchscan, _) => true,
            // Where a page was made makes no difference to how it is compressed or kept.
            (Self::BatchscanPostgres, work) => !matches!(
                work,
                Work::PageFirst | Work::Zstd | Work::GzipAnywhere | Work::GzipCached | Work::ZstdCached
            ),
            (Self::FastApi | Self::FastApiTuned | Self::PlainRust, work) => {
                matches!(
                    work,
                    Work::PageUncached
                        | Work::PageDeep
                        | Work::Gzip
                        | Work::GzipAnywhere
                        | Work::Window
                        | Work::Auth
                )
            }
            (Self::Datasette | Self::Roapi, work) => {
                matches!(work, Work::PageUncached | Work::PageDeep | Work::Window)
            }
            (Self::Nginx, work) => matches!(work, Work::PageCached | Work::Conditional | Work::GzipCached),
        }
    }
}

impl Question {
    /// One request, sent again and again.
    pub(crate) fn one(request: Request, rows: Range<usize>) -> Self {
        Self { asked: vec![Asked { request, rows }], answer: Form::Batches }
    }

    /// The requests alone.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.asked.iter().map(|asked| asked.request.clone()).collect()
    }
}

impl Asked {
    pub(crate) fn new(request: Request, rows: Range<usize>) -> Self {
        Self { request, rows }
    }
}
