//! Swagger UI's files and the page around them, carried inside the executable. Knows nothing of HTTP.
//!
//! `build.rs` takes them out of the archive that the crate `utoipa-swagger-ui-vendored` is. They are kept compressed
//! alone: browsers take them so, and 1.7 MB are 440 KB.

/// The page. `{here}` stands for the folder of the files, as seen from the page's own address.
pub const PAGE: &str = include_str!("../page/page.html");

/// A file of the page, ready to be sent.
#[derive(Debug)]
pub struct File {
    /// What a browser asks for, such as `swagger-ui.css`.
    pub name: &'static str,
    /// Its media type.
    pub content_type: &'static str,
    /// A mark of its content, in hexadecimal digits.
    pub mark: &'static str,
    /// Compressed as far as gzip can.
    pub gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file of that name.
pub fn file(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What all files may add to the executable.
    const BYTES_MAX: usize = 500_000;

    fn plain(name: &str) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(file(name).unwrap().gzip).read_to_string(&mut text).unwrap();
        text
    }

    /// Decision 047.
    #[test]
    fn the_page_refers_only_to_files_that_are_carried() {
        let referred: Vec<&str> = PAGE.split('"').filter_map(|text| text.strip_prefix("{here}")).collect();
        assert_eq!(referred, ["swagger-ui.css", "swagger-ui-bundle.js", "initializer.js"]);
        assert!(referred.iter().all(|name| file(name).is_some()));
        assert!(!PAGE.contains("//"), "nothing is fetched from elsewhere");
    }

    /// Decision 047: a page that runs no script but files can be fenced in.
    #[test]
    fn the_page_has_no_script_and_no_style_of_its_own() {
        assert_eq!(PAGE.matches("<script").count(), PAGE.matches("<script src=\"{here}").count());
        assert!(!PAGE.contains("<style") && !PAGE.contains("style="), "{PAGE}");
    }

    /// Decision 047: the badge of a validator would tell a stranger of every document that is looked at.
    #[test]
    fn no_validator_is_asked() {
        assert!(plain("initializer.js").contains("validatorUrl: null"));
    }

    /// Decision 047.
    #[test]
    fn swagger_ui_comes_with_its_licence_and_adds_little() {
        assert!(plain("swagger-ui-license.txt").contains("Apache License"));
        assert!(plain("swagger-ui-bundle.js").contains("SwaggerUIBundle"));
        assert!(FILES.iter().map(|file| file.gzip.len()).sum::<usize>() < BYTES_MAX);
    }
}
