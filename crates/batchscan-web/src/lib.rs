//! Embedded files: the dashboard and the API docs. Knows nothing about HTTP.
//!
//! The files are stored compressed. A build without Node has [`DASHBOARD_MISSING`] and a page that explains how to get
//! the dashboard.

use std::io::Read;

use flate2::read::GzDecoder;

/// The path of the dashboard's page, which is the same for every view.
pub const DASHBOARD_PAGE: &str = "/index.html";

/// The page of the API docs. `{here}` stands for the folder of its files, and `{home}` for the dashboard, relative to the
/// URL of the page.
pub const DOCS_PAGE: &str = include_str!("../docs/index.html");

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// An embedded file.
#[derive(Debug)]
pub struct File {
    /// `/assets/index-B4x.js` in the dashboard, `swagger-ui.css` in the API docs.
    pub path: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// A hash of the content, in hexadecimal digits.
    pub hash: &'static str,
    /// The content, compressed with gzip.
    pub gzip: &'static [u8],
}

impl File {
    /// The uncompressed content.
    pub fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        // Cannot fail: compressed by the build script.
        let _ = GzDecoder::new(self.gzip).read_to_end(&mut plain);
        plain
    }

    /// Whether the path contains a hash of the content, so that browsers may cache the file for ever.
    pub fn is_immutable(&self) -> bool {
        DASHBOARD_MISSING.is_none() && self.path.starts_with("/assets/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compressed size of the dashboard.
    const DASHBOARD_BYTES_MAX: usize = 150_000;
    /// The compressed size of the API docs.
    const DOCS_BYTES_MAX: usize = 500_000;

    fn text(files: &[File], path: &str) -> String {
        let file = files.iter().find(|file| file.path == path);
        String::from_utf8(file.unwrap_or_else(|| panic!("{path} is not embedded")).plain()).unwrap()
    }

    fn bytes(files: &[File]) -> usize {
        files.iter().map(|file| file.gzip.len()).sum()
    }

    /// Decision 048.
    #[test]
    fn the_dashboard_is_included() {
        assert_eq!(
            DASHBOARD_MISSING, None,
            "install Node 20.19 or newer and npm, then `cargo clean --package batchscan-web`"
        );
        assert!(DASHBOARD.iter().any(|file| file.path.starts_with("/assets/") && file.path.ends_with(".js")));
        assert!(bytes(DASHBOARD) < DASHBOARD_BYTES_MAX, "{} bytes", bytes(DASHBOARD));
    }

    #[test]
    fn the_dashboard_refers_only_to_embedded_files() {
        let page = text(DASHBOARD, DASHBOARD_PAGE);
        let paths: Vec<&str> =
            page.split(['"', '\'']).filter(|text| text.starts_with('/') || text.contains("://")).collect();
        assert!(!paths.is_empty(), "{page}");
        for path in paths {
            text(DASHBOARD, path);
        }
    }

    #[test]
    fn immutable_files_have_a_hash_in_their_name() {
        for file in DASHBOARD.iter().filter(|file| file.is_immutable()) {
            let stem = file.path.rsplit_once('.').unwrap().0;
            // The hash may have hyphens, too.
            assert!(stem[..stem.len() - 8].ends_with('-'), "{}", file.path);
        }
    }

    /// Decision 047.
    #[test]
    fn the_docs_refer_only_to_embedded_files_and_have_no_inline_script_or_style() {
        let paths: Vec<&str> = DOCS_PAGE.split('"').filter_map(|text| text.strip_prefix("{here}")).collect();
        assert_eq!(paths, ["swagger-ui.css", "swagger-ui-bundle.js", "initializer.js"]);
        for path in paths {
            text(DOCS, path);
        }
        assert!(!DOCS_PAGE.contains("//"), "no other origins");
        assert_eq!(DOCS_PAGE.matches("<script").count(), DOCS_PAGE.matches("<script src=\"{here}").count());
        assert!(!DOCS_PAGE.contains("<style") && !DOCS_PAGE.contains("style="));
    }

    /// Decision 047: the validator badge would send every document to another server.
    #[test]
    fn the_docs_use_no_validator_and_include_the_licence() {
        assert!(text(DOCS, "initializer.js").contains("validatorUrl: null"));
        assert!(text(DOCS, "swagger-ui-bundle.js").contains("SwaggerUIBundle"));
        assert!(text(DOCS, "swagger-ui-license.txt").contains("Apache License"));
        assert!(bytes(DOCS) < DOCS_BYTES_MAX, "{} bytes", bytes(DOCS));
    }
}
