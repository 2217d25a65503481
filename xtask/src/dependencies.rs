//! The check of the dependencies, and `cargo xtask sbom`: what the executable is made of, as CycloneDX JSON.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::workspace::{Workspace, run_command};

const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Checks licences, bans and sources with `cargo deny` (`deny.toml`), which it compiles into the build folder first.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let executable = workspace.install_tool(CARGO_DENY)?;
    run_command(
        workspace.command(executable).args("--log-level error check licenses bans sources".split(' ')),
    )
}

/// Prints a CycloneDX document with the packages that are compiled into the executable.
pub(crate) fn print_sbom(workspace: &Workspace) -> Result<()> {
    let metadata = metadata(workspace)?;
    let packages = packages(&metadata)?;
    let root =
        packages.values().find(|package| package["name"] == "batchscan").context("no package batchscan")?;
    let linked = linked_packages(&metadata, root["id"].as_str().unwrap_or_default());
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
        "metadata": { "component": { "type": "application", "name": "batchscan", "version": root["version"] } },
        "components": components,
    });
    println!("{document:#}");
    Ok(())
}

fn metadata(workspace: &Workspace) -> Result<Value> {
    let output = workspace.cargo("metadata --format-version 1 --locked").output()?;
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

/// A package and its dependencies, without those of tests and build scripts.
fn linked_packages<'a>(metadata: &'a Value, root: &'a str) -> BTreeSet<&'a str> {
    let nodes = metadata["resolve"]["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut linked, mut rest) = (BTreeSet::new(), vec![root]);
    while let Some(id) = rest.pop() {
        if !linked.insert(id) {
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
