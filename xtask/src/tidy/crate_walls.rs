//! Walls between crates: which of ours a crate may depend on, and which of others it must not.
//!
//! Normal dependencies only: a test may reach across.

use super::Fault;
use super::tree::Tree;
use crate::workspace::{Package, Workspace};

/// The walls. A new crate wants a row here.
const WALLS: &[Wall] = &[
    Wall {
        name: "batchscan",
        ours: &["batchscan-server", "batchscan-client", "batchscan-check", "batchscan-model"],
        never: &[],
        why: "the executable stands on top of all",
    },
    Wall {
        name: "batchscan-server",
        ours: &["batchscan-model", "batchscan-swagger-ui", "batchscan-web"],
        never: &[],
        why: "the service stands alone",
    },
    Wall {
        name: "batchscan-client",
        ours: &["batchscan-model"],
        never: &["axum", "refinery", "rusqlite", "tokio-postgres"],
        why: "the SDK has no database and no server code",
    },
    Wall {
        name: "batchscan-check",
        ours: &[],
        never: &["axum", "rusqlite", "tokio-postgres"],
        why: "conformance knows raw HTTP and JSON only, so that a shared mistake cannot hide",
    },
    Wall {
        name: "batchscan-model",
        ours: &[],
        never: &[
            "axum",
            "deadpool-postgres",
            "futures",
            "hyper",
            "hyper-util",
            "refinery",
            "reqwest",
            "rusqlite",
            "tokio",
            "tokio-postgres",
            "tower",
            "ureq",
        ],
        why: "the vocabulary does no I/O and nothing async",
    },
    Wall {
        name: "batchscan-swagger-ui",
        ours: &[],
        never: &["axum", "hyper", "tokio"],
        why: "the files of /docs are only carried there; the service sends them",
    },
    Wall {
        name: "batchscan-testbed",
        ours: &[],
        never: &["tokio", "tokio-postgres"],
        why: "servers for the tests of every crate, and for xtask, which must build in seconds",
    },
    Wall {
        name: "batchscan-web",
        ours: &[],
        never: &["axum", "hyper", "tokio"],
        why: "the dashboard's files are only carried there; the service sends them",
    },
    Wall {
        name: "plain-rust",
        ours: &[],
        never: &[],
        why: "a peer that the benchmark holds beside ours must owe it nothing",
    },
    Wall {
        name: "xtask",
        ours: &["batchscan-testbed"],
        never: &["axum", "rusqlite", "tokio", "tokio-postgres"],
        why: "it must build in seconds and judge a tree that does not compile",
    },
];

struct Wall {
    name: &'static str,
    /// The crates of this workspace that it may depend on.
    ours: &'static [&'static str],
    /// The crates of others that it must not depend on.
    never: &'static [&'static str],
    why: &'static str,
}

impl Wall {
    fn forbids(&self, dependency: &str, is_ours: bool) -> bool {
        if is_ours { !self.ours.contains(&dependency) } else { self.never.contains(&dependency) }
    }
}

/// Holds every crate's dependencies against its wall.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Fault> {
    let is_ours = |name: &str| workspace.packages.iter().any(|package| package.name == name);
    let check_one = |package: &Package| {
        let manifest = workspace.relative(&package.manifest_path);
        let Some(wall) = WALLS.iter().find(|wall| wall.name == package.name) else {
            let wrong = format!("{} has no wall", package.name);
            return vec![Fault::new(manifest, 1, wrong, "give it a row in xtask/src/tidy/crate_walls.rs")];
        };
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
        let forbidden = normal.filter(|dependency| wall.forbids(&dependency.name, is_ours(&dependency.name)));
        let fault = |name: &str| {
            let line = line_of(name, tree.text(&manifest).unwrap_or_default());
            let wrong = format!("{} depends on {name}", wall.name);
            Fault::new(manifest.clone(), line, wrong, format!("take it out: {}", wall.why))
        };
        forbidden.map(|dependency| fault(&dependency.name)).collect()
    };
    workspace.packages.iter().flat_map(check_one).collect()
}

fn line_of(dependency: &str, manifest: &str) -> usize {
    let names_it = |line: &str| {
        let rest = line.trim_start().strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with([' ', '.', '=']))
    };
    manifest.lines().position(names_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    /// Crates with their dependencies, each as its name and its kind in JSON.
    fn faults(packages: &[(&str, &[(&str, &str)])], tree: &Tree) -> Vec<String> {
        let dependency = |(name, kind): &(&str, &str)| format!(r#"{{"name": "{name}", "kind": {kind}}}"#);
        let package = |(name, dependencies): &(&str, &[(&str, &str)])| {
            let dependencies = dependencies.iter().map(dependency).collect::<Vec<_>>().join(",");
            let manifest = format!("/tree/crates/{name}/Cargo.toml");
            format!(
                r#"{{"name": "{name}", "manifest_path": "{manifest}", "dependencies": [{dependencies}]}}"#
            )
        };
        let packages = packages.iter().map(package).collect::<Vec<_>>().join(",");
        let json =
            format!(r#"{{"workspace_root": "/tree", "target_directory": "/t", "packages": [{packages}]}}"#);
        printed(&check(&Workspace::from_metadata(&json).unwrap(), tree))
    }

    #[test]
    fn a_crate_of_ours_outside_the_wall_is_a_fault_at_its_line() {
        let tree = Tree::of(&[(
            "crates/batchscan-check/Cargo.toml",
            "[dependencies]\nbatchscan-model-old = 1\nbatchscan-model.workspace = true\n",
        )]);
        let packages: &[(&str, &[(&str, &str)])] =
            &[("batchscan-model", &[]), ("batchscan-check", &[("batchscan-model", "null")])];
        assert_eq!(
            faults(packages, &tree),
            ["crates/batchscan-check/Cargo.toml:3: batchscan-check depends on batchscan-model; \
              take it out: conformance knows raw HTTP and JSON only, so that a shared mistake cannot hide"]
        );
    }

    #[test]
    fn the_model_does_no_io() {
        let found = faults(&[("batchscan-model", &[("serde", "null"), ("tokio", "null")])], &Tree::default());
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("batchscan-model depends on tokio"), "{}", found[0]);
    }

    #[test]
    fn tests_may_reach_across() {
        let packages: &[(&str, &[(&str, &str)])] =
            &[("batchscan-server", &[("batchscan-check", "\"dev\"")]), ("batchscan-check", &[])];
        assert_eq!(faults(packages, &Tree::default()), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_wall_is_a_fault() {
        let found = faults(&[("batchscan-new", &[])], &Tree::default());
        assert_eq!(
            found,
            [
                "crates/batchscan-new/Cargo.toml:1: batchscan-new has no wall; give it a row in xtask/src/tidy/crate_walls.rs"
            ]
        );
    }
}
