//! Walls between the modules of the server: who may speak of HTTP, who of SQL, who of whom.
//!
//! A wall forbids mentions of paths in code. Comments and texts may speak of anything.

use super::Fault;
use super::mentions::{Mention, mentions};
use super::tree::Tree;

const SOURCES: &str = "crates/batchscan-server/src/";

/// The walls. Modules are named from the crate's root, and stand for all that is inside them.
const WALLS: &[Wall] = &[
    Wall {
        of: Modules::AllBut(&["http", "edge"]),
        never: &["axum", "hyper", "hyper_util", "StatusCode"],
        remedy: "only http/ and edge/ know HTTP: return a type of your own and map it there",
    },
    Wall {
        of: Modules::AllBut(&["store"]),
        never: &["rusqlite", "refinery", "tokio_postgres", "deadpool_postgres", "postgres", "sqlx"],
        remedy: "only store/ knows SQL and its drivers: give the store a method",
    },
    Wall {
        of: Modules::Only(&["store"]),
        never: &[
            "crate::http",
            "crate::edge",
            "crate::auth",
            "crate::cursor",
            "crate::import",
            "crate::config",
        ],
        remedy: "the store knows the model alone: let the caller pass what is needed",
    },
    Wall {
        of: Modules::Only(&["auth", "cursor", "import"]),
        never: &["crate::http", "crate::edge"],
        remedy: "http/ calls this module, not the other way round",
    },
];

struct Wall {
    of: Modules,
    /// Paths that must not occur, whole or as part of longer ones: `axum`, `crate::http`.
    never: &'static [&'static str],
    remedy: &'static str,
}

enum Modules {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

impl Modules {
    fn include(&self, module: &[&str]) -> bool {
        let is_inside =
            |name: &&str| module.join("::") == **name || module.join("::").starts_with(&format!("{name}::"));
        match self {
            Self::Only(names) => names.iter().any(is_inside),
            Self::AllBut(names) => !names.iter().any(is_inside),
        }
    }
}

/// Holds every source file of the server against the walls of its module.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let Some(module) = path.strip_prefix(SOURCES).map(module_of) else { continue };
        let walls: Vec<&Wall> = WALLS.iter().filter(|wall| wall.of.include(&module)).collect();
        for mention in mentions(text, &module) {
            faults.extend(walls.iter().filter_map(|wall| fault(wall, path, &mention)));
        }
    }
    faults
}

fn fault(wall: &Wall, path: &str, mention: &Mention) -> Option<Fault> {
    wall.never.iter().find(|forbidden| mention.contains(forbidden))?;
    Some(Fault::new(path, mention.line, format!("mentions `{}`", mention.path), wall.remedy))
}

/// `store/mod.rs` and `store.rs` are `store`; `lib.rs` is the root.
fn module_of(file: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn faults(file: &str, text: &str) -> Vec<String> {
        printed(&check(&Tree::of(&[(&format!("{SOURCES}{file}"), text)])))
    }

    #[test]
    fn http_is_known_to_http_and_edge_alone() {
        let text = "//! Doc.\nuse axum::{Router, http::StatusCode};\n";
        for allowed in ["http.rs", "http/mod.rs", "http/error.rs", "edge/tls.rs"] {
            assert_eq!(faults(allowed, text), [""; 0], "{allowed}");
        }
        let expected = "crates/batchscan-server/src/import.rs:2: mentions `axum::Router`; \
                        only http/ and edge/ know HTTP: return a type of your own and map it there";
        assert_eq!(faults("import.rs", text)[0], expected);
        assert_eq!(faults("lib.rs", "fn f(status: StatusCode) {}").len(), 1);
        assert_eq!(faults("https.rs", "use hyper::Request;").len(), 1);
    }

    #[test]
    fn sql_is_known_to_the_store_alone() {
        let text = "fn f(row: &rusqlite::Row<'_>) {}";
        assert_eq!(faults("store/sqlite.rs", text), [""; 0]);
        assert_eq!(faults("http/mod.rs", text).len(), 1);
        assert_eq!(faults("lib.rs", "use tokio_postgres as driver;").len(), 1);
    }

    #[test]
    fn the_store_knows_nobody_above_it_however_it_is_spelt() {
        for text in
            ["use crate::http::x;", "use crate::{cursor::C, store::S};", "fn f() { crate::auth::g() }"]
        {
            assert_eq!(faults("store/mod.rs", text).len(), 1, "{text}");
        }
        assert_eq!(faults("store/mod.rs", "use super::http::x;").len(), 1);
        assert_eq!(faults("store/sqlite.rs", "use super::super::{http, store};").len(), 1);
        assert_eq!(faults("store/sqlite.rs", "use super::http_free;\nuse crate::store::Store;"), [""; 0]);
    }

    #[test]
    fn comments_and_texts_may_speak_of_anything() {
        let text = "//! Unlike axum.\n/* rusqlite */ const A: &str = \"hyper\"; // StatusCode\n";
        assert_eq!(faults("config.rs", text), [""; 0]);
    }

    #[test]
    fn other_crates_have_other_walls() {
        assert_eq!(
            printed(&check(&Tree::of(&[("crates/batchscan-client/src/lib.rs", "use hyper::X;")]))),
            [""; 0]
        );
    }
}
