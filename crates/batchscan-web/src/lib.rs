//! The dashboard's files, carried inside the executable. Knows nothing of HTTP.
//!
//! `build.rs` makes them from `web/` with npm. A machine without Node has [`WHY_NOT_BUILT`] and a page that says
//! how to get the dashboard instead.

/// The path of the one page, which draws every view of the dashboard.
pub const PAGE: &str = "/index.html";

/// A file of the dashboard, ready to be sent.
#[derive(Debug)]
pub struct File {
    /// Where a browser finds it, such as `/assets/index-B4x.js`.
    pub path: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// A mark of its content, in hexadecimal digits.
    pub mark: &'static str,
    /// As it is.
    pub plain: &'static [u8],
    /// Compressed as far as gzip can, where that makes it smaller.
    pub gzip: Option<&'static [u8]>,
    /// Compressed as far as zstd can, where that makes it smaller.
    pub zstd: Option<&'static [u8]>,
}

impl File {
    /// Whether the path names the content, so that a browser never has to ask for it again.
    pub fn is_named_by_content(&self) -> bool {
        WHY_NOT_BUILT.is_none() && self.path.starts_with("/assets/")
    }
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file at a path.
pub fn file(path: &str) -> Option<&'static File> {
    FILES.binary_search_by(|file| file.path.cmp(path)).ok().map(|index| &FILES[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a first visit may cost, compressed.
    const FIRST_LOAD_BYTES_MAX: usize = 250_000;

    /// Decision 048.
    #[test]
    fn the_dashboard_is_built_in() {
        assert_eq!(
            WHY_NOT_BUILT, None,
            "install Node 20.19 or newer and npm, then `cargo clean --package batchscan-web`"
        );
        assert!(file("/favicon.svg").is_some());
        assert!(FILES.iter().any(|file| file.path.starts_with("/assets/") && file.path.ends_with(".js")));
    }

    #[test]
    fn the_page_refers_only_to_files_that_are_carried() {
        let page = std::str::from_utf8(file(PAGE).unwrap().plain).unwrap();
        let referred: Vec<&str> =
            page.split(['"', '\'']).filter(|text| text.starts_with('/') || text.contains("://")).collect();
        assert!(!referred.is_empty(), "{page}");
        for path in referred {
            assert!(file(path).is_some(), "{path}");
        }
    }

    #[test]
    fn a_first_visit_is_small() {
        let sizes = || FILES.iter().map(|file| file.gzip.unwrap_or(file.plain).len());
        assert!(sizes().sum::<usize>() < FIRST_LOAD_BYTES_MAX, "{:?}", sizes().collect::<Vec<_>>());
    }

    #[test]
    fn only_what_is_named_by_content_may_be_kept_for_ever() {
        for file in FILES.iter().filter(|file| file.is_named_by_content()) {
            let stem = file.path.rsplit_once('.').unwrap().0;
            let (_, mark) = stem.rsplit_once('-').expect("a name with a mark");
            assert_eq!(mark.len(), 8, "{}", file.path);
        }
    }
}
