//! The check of the dependencies, and `cargo xtask sbom`: what the executable is made of, as CycloneDX JSON.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::workspace::Workspace;

/// Permissive licences: the executable is distributed under MIT.
const LICENCES: &[&str] = &["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];
/// rustls is the only implementation of TLS. These need a system library.
const BANNED: &[&str] = &["native-tls", "openssl", "openssl-sys"];
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks where packages come from, which are banned, and the licences of those in the executable.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let metadata = metadata(workspace)?;
    let packages = packages(&metadata)?;
    let linked = linked_packages(&metadata, &packages, executable(&packages)?);
    let problem =
        |(id, package): (&&str, &&Value)| Some(format!("{id}: {}", problem(package, linked.contains(id))?));
    let problems: Vec<String> = packages.iter().filter_map(problem).collect();
    if !problems.is_empty() {
        bail!("packages that may not be used:\n{}", problems.join("\n"));
    }
    println!("{} packages, {} of them in the executable", packages.len(), linked.len());
    Ok(())
}

/// Why a package may not be used.
fn problem(package: &Value, is_linked: bool) -> Option<String> {
    let text = |name: &str| package[name].as_str();
    let is_ours = text("source").is_none();
    let has_wildcard = |dependency: &Value| dependency["req"] == "*" && dependency["path"].is_null();
    if !is_ours && text("source") != Some(CRATES_IO) {
        Some("not from crates.io".to_owned())
    } else if text("name").is_some_and(|name| BANNED.contains(&name)) {
        Some("banned; use rustls".to_owned())
    } else if is_linked && !text("license").is_some_and(is_permissive) {
        Some(format!("the licence {} is not in the list in {}", package["license"], file!()))
    } else if is_ours && package["dependencies"].as_array().into_iter().flatten().any(has_wildcard) {
        Some("a dependency has no version".to_owned())
    } else {
        None
    }
}

/// Evaluates a licence expression such as `(MIT OR Apache-2.0) AND Unicode-3.0`. Old packages write `MIT/Apache-2.0`.
fn is_permissive(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let expression = expression.trim();
    let (any, all) = (split(expression, " OR "), split(expression, " AND "));
    if any.len() > 1 {
        any.into_iter().any(is_permissive)
    } else if all.len() > 1 {
        all.into_iter().all(is_permissive)
    } else if let Some(inner) = expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        is_permissive(inner)
    } else {
        LICENCES.contains(&expression)
    }
}

/// Splits a text, but not within parentheses.
fn split<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in text.match_indices(separator) {
        let before = &text[..at];
        if before.matches('(').count() == before.matches(')').count() {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Prints a CycloneDX document with the packages that are compiled into the executable.
pub(crate) fn print_sbom(workspace: &Workspace) -> Result<()> {
    let metadata = metadata(workspace)?;
    let packages = packages(&metadata)?;
    let root = executable(&packages)?;
    let linked = linked_packages(&metadata, &packages, root);
    let component = |package: &Value| {
        let (name, version) = (&package["name"], &package["version"]);
        let purl = format!(
            "pkg:cargo/{}@{}",
            name.as_str().unwrap_or_default(),
            version.as_str().unwrap_or_default()
        );
        let licences = package["license"]
            .as_str()
            .map(|licence| json!([{ "expression": licence.replace('/', " OR ") }]));
        json!({ "type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl, "licenses": licences })
    };
    let components: Vec<Value> = packages
        .iter()
        .filter(|(id, _)| linked.contains(*id))
        .map(|(_, package)| component(package))
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "metadata": { "component": { "type": "application", "name": "batchscan", "version": packages[root]["version"] } },
        "components": components,
    });
    println!("{document:#}");
    Ok(())
}

/// The packages for the platforms that operators run.
fn metadata(workspace: &Workspace) -> Result<Value> {
    let mut command = workspace.cargo("metadata --format-version 1 --locked");
    for platform in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
        command.args(["--filter-platform", platform]);
    }
    let output = command.output()?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// All packages by id.
fn packages(metadata: &Value) -> Result<BTreeMap<&str, &Value>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    Ok(packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect())
}

/// The id of the package of the executable.
fn executable<'a>(packages: &BTreeMap<&'a str, &Value>) -> Result<&'a str> {
    let found = packages.iter().find(|(_, package)| package["name"] == "batchscan");
    found.map(|(id, _)| *id).context("no package batchscan")
}

/// A package and its dependencies, without those of tests and build scripts, and without macros.
fn linked_packages<'a>(
    metadata: &'a Value,
    packages: &BTreeMap<&str, &Value>,
    root: &'a str,
) -> BTreeSet<&'a str> {
    let nodes = metadata["resolve"]["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut linked, mut rest) = (BTreeSet::new(), vec![root]);
    let is_macro = |id: &str| packages[id]["targets"][0]["kind"][0] == "proc-macro";
    while let Some(id) = rest.pop() {
        if is_macro(id) || !linked.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id).unwrap_or(&Value::Null);
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.into_iter().any(|kind| kind["kind"].is_null()) {
                rest.extend(dependency["pkg"].as_str());
            }
        }
    }
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_expression_needs_one_alternative_with_permissive_licences_only() {
        for expression in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR (ISC AND Zlib)", "(MIT OR GPL-3.0) AND ISC"] {
            assert!(is_permissive(expression), "{expression}");
        }
        for expression in [
            "",
            "GPL-3.0",
            "(MIT AND GPL-3.0) OR MPL-2.0",
            "(MIT OR ISC) AND (GPL-3.0 OR MPL-2.0)",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(!is_permissive(expression), "{expression}");
        }
    }

    #[test]
    fn packages_of_other_sources_banned_ones_and_unknown_licences_are_problems() {
        let package = |name: &str, licence: &str, source: &str| json!({ "name": name, "license": licence, "source": source, "dependencies": [] });
        assert_eq!(problem(&package("a", "MIT", CRATES_IO), true), None);
        assert_eq!(problem(&package("a", "GPL-3.0", CRATES_IO), false), None, "a test may use it");
        assert!(problem(&package("a", "GPL-3.0", CRATES_IO), true).is_some());
        assert!(problem(&package("a", "MIT", "git+https://example.org/a"), false).is_some());
        assert!(problem(&package("openssl", "MIT", CRATES_IO), false).is_some());
        let own =
            |requirement: Value| json!({ "name": "a", "license": "MIT", "dependencies": [requirement] });
        assert!(problem(&own(json!({ "req": "*" })), true).is_some());
        assert_eq!(problem(&own(json!({ "req": "*", "path": "/b" })), true), None);
    }
}
