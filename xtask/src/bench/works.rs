//! What is measured: the works by their names, and the data they run on.

use clap::ValueEnum;

/// A kind of work, by the name that `--work` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Work {
    /// The first page of v2; no two requests ask the same question
    PageUncached,
    /// The first page of v2; always the same question
    PageCached,
    /// The first page of v2; a few questions in turn and no cache, as for the deep page
    PageFirst,
    /// The page at nine tenths of the data, by cursors; a few of them in turn and no cache
    PageDeep,
    /// The first page of v2, which the client has already: 304
    Conditional,
    /// The first page of v2 with gzip; no two requests ask the same question
    Gzip,
    /// Pages from dates all over the data with gzip; no two requests ask the same question
    GzipAnywhere,
    /// The first page of v2 with gzip; always the same question
    GzipCached,
    /// The first page of v2 with zstd; no two requests ask the same question
    Zstd,
    /// The first page of v2 with zstd; always the same question
    ZstdCached,
    /// A window that holds twenty batches; another one each time
    Window,
    /// A token for credentials
    Auth,
    /// The uncached page by the number of batches and of organisations
    Scale,
    /// Pages by the number of connections
    Connections,
    /// Everything in one answer of v1
    V1,
    /// Many organisations and kinds of request, with and without an import beside them
    Mixed,
    /// Importing NDJSON
    Import,
    /// Pulling everything into CSV
    Pull,
}

/// How much data, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Data {
    /// One organisation with 10,000 batches.
    Small,
    /// One organisation with 100,000 batches.
    Usual,
    /// One organisation with 1,000,000 batches.
    Large,
    /// The same, asked for pages from all over them.
    Anywhere,
    /// Many organisations with 1,000 batches each.
    Many,
}

/// The works that wrk drives on every contender that can do them, in this order.
pub(crate) const REQUESTS: [Work; 12] = [
    Work::PageUncached,
    Work::PageCached,
    Work::PageFirst,
    Work::PageDeep,
    Work::Conditional,
    Work::Gzip,
    Work::GzipAnywhere,
    Work::GzipCached,
    Work::Zstd,
    Work::ZstdCached,
    Work::Window,
    Work::Auth,
];

impl Work {
    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What it is, in a sentence without its end.
    pub(crate) fn told(self) -> String {
        self.to_possible_value()
            .and_then(|value| value.get_help().map(ToString::to_string))
            .unwrap_or_default()
    }

    /// Whether a page cache must not have helped.
    pub(crate) fn is_uncached(self) -> bool {
        matches!(
            self,
            Self::PageUncached
                | Self::PageFirst
                | Self::PageDeep
                | Self::Gzip
                | Self::GzipAnywhere
                | Self::Zstd
                | Self::Window
                | Self::Scale
        )
    }

    /// Whether a few questions are asked again and again, without a cache.
    pub(crate) fn is_in_turn(self) -> bool {
        matches!(self, Self::PageFirst | Self::PageDeep)
    }

    /// The coding that the answer has to have.
    pub(crate) fn coding(self) -> Option<&'static str> {
        match self {
            Self::Gzip | Self::GzipAnywhere | Self::GzipCached => Some("gzip"),
            Self::Zstd | Self::ZstdCached => Some("zstd"),
            _ => None,
        }
    }
}

impl Data {
    /// Batches of one organisation.
    pub(crate) fn batches(self) -> usize {
        match self {
            Self::Many => 1_000,
            Self::Small => 10_000,
            Self::Usual => 100_000,
            Self::Large | Self::Anywhere => 1_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_has_a_name_and_a_sentence() {
        assert_eq!(Work::PageUncached.name(), "page-uncached");
        assert_eq!(Work::V1.name(), "v1");
        assert_eq!(Work::Auth.told(), "A token for credentials");
    }

    #[test]
    fn every_request_work_says_whether_a_cache_may_help() {
        let uncached: Vec<String> =
            REQUESTS.into_iter().filter(|work| work.is_uncached()).map(Work::name).collect();
        assert_eq!(
            uncached,
            ["page-uncached", "page-first", "page-deep", "gzip", "gzip-anywhere", "zstd", "window"]
        );
    }
}
