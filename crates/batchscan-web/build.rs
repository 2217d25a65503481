//! Builds the dashboard with npm and the lock file, and writes the list of its files for `src/lib.rs`.
//!
//! Works on a copy of `web/` in the build folder: the tree stays as it was. Without Node, or with
//! `BATCHSCAN_DASHBOARD=off`, the files of `without/` take the dashboard's place.

use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the build reads of `web/`. Its tests and a developer's own `node_modules` stay where they are.
const SOURCES: &[&str] = &[
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "src",
    "svelte.config.js",
    "tsconfig.json",
    "vite.config.ts",
];
/// The oldest Node that Vite runs on, as major and minor version.
const OLDEST_NODE: (u32, u32) = (20, 19);
/// Files are made once and sent often: the most that each encoder can do.
const GZIP_LEVEL: u32 = 9;
const ZSTD_LEVEL: i32 = 19;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let crate_folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let web = crate_folder.join("../../web");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    println!("cargo::rerun-if-changed={}", crate_folder.join("without").display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BATCHSCAN_DASHBOARD");

    let (files, why_not) = match built(&web, &out.join("web")) {
        Ok(folder) => (folder, None),
        Err(why) => {
            println!("cargo::warning=the dashboard is left out: {why}");
            (crate_folder.join("without"), Some(why.to_string()))
        }
    };
    fs::write(out.join("files.rs"), listing(&files, &out.join("compressed"), why_not.as_deref())?)?;
    Ok(())
}

/// Builds in a copy; gives the folder of the finished files.
fn built(web: &Path, copy: &Path) -> Outcome<PathBuf> {
    if std::env::var("BATCHSCAN_DASHBOARD").is_ok_and(|wish| wish == "off") {
        return Err("BATCHSCAN_DASHBOARD is off".into());
    }
    require_node()?;
    let installed = fs::read(copy.join("package-lock.json")).unwrap_or_default();
    for source in SOURCES {
        copy_anew(&web.join(source), &copy.join(source))?;
    }
    if installed != fs::read(copy.join("package-lock.json"))?
        || !copy.join("node_modules/.package-lock.json").is_file()
    {
        npm(copy, &["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    }
    npm(copy, &["run", "build"])?;
    Ok(copy.join("dist"))
}

fn require_node() -> Outcome<()> {
    let asked = Command::new("node").arg("--version").output();
    let version = asked.map_err(|_| "Node is not installed")?.stdout;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let mut numbers =
        version.trim_start_matches('v').split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let (major, minor) = OLDEST_NODE;
    if found < OLDEST_NODE {
        return Err(format!("Node {version} is older than {major}.{minor}").into());
    }
    Ok(())
}

fn npm(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let line = format!("npm {}", arguments.join(" "));
    let ran = Command::new("npm").args(arguments).current_dir(folder).env_remove("NODE_ENV").output();
    let output = ran.map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
    let log = folder.join("npm.log");
    fs::write(&log, [&output.stdout[..], &output.stderr].concat())?;
    Err(format!("`{line}`: {first}; see {}, and touch web/package.json to try again", log.display()).into())
}

fn copy_anew(from: &Path, to: &Path) -> Outcome<()> {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
        return Ok(());
    }
    // What was deleted from the sources must not live on in the copy.
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).map_err(|error| format!("cannot read {}: {error}", from.display()))? {
        let entry = entry?;
        copy_anew(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The Rust text of `FILES`, by path, and of `WHY_NOT_BUILT`.
fn listing(folder: &Path, compressed: &Path, why_not: Option<&str>) -> Outcome<String> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    let mut paths: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|file| {
            Ok((format!("/{}", file.strip_prefix(folder)?.to_string_lossy().replace('\\', "/")), file))
        })
        .collect::<Outcome<_>>()?;
    paths.sort();
    fs::create_dir_all(compressed)?;
    let mut text = String::from("/// Every file, by path.\npub static FILES: &[File] = &[\n");
    for (index, (path, file)) in paths.iter().enumerate() {
        text.push_str(&entry(path, file, &compressed.join(index.to_string()))?);
    }
    text.push_str("];\n\n/// Why the dashboard itself is not among them, if it is not.\n");
    writeln!(text, "pub const WHY_NOT_BUILT: Option<&str> = {why_not:?};")?;
    Ok(text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn entry(path: &str, file: &Path, compressed: &Path) -> Outcome<String> {
    let plain = fs::read(file)?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    gzip.write_all(&plain)?;
    let gzip = kept(&plain, gzip.finish()?, &compressed.with_extension("gz"))?;
    let zstd = kept(&plain, zstd::bulk::compress(&plain, ZSTD_LEVEL)?, &compressed.with_extension("zst"))?;
    // Fixed keys: the same content has the same mark in every build by the same compiler.
    let mut hasher = DefaultHasher::new();
    plain.hash(&mut hasher);
    let (kind, mark) = (content_type(path)?, format!("{:016x}", hasher.finish()));
    Ok(format!(
        "    File {{ path: {path:?}, content_type: {kind:?}, mark: {mark:?}, plain: include_bytes!({file:?}), gzip: {gzip}, zstd: {zstd} }},\n"
    ))
}

/// Keeps a compressed form if it is smaller; gives its Rust text.
fn kept(plain: &[u8], compressed: Vec<u8>, file: &Path) -> Outcome<String> {
    if compressed.len() >= plain.len() {
        return Ok("None".into());
    }
    fs::write(file, compressed)?;
    Ok(format!("Some(include_bytes!({file:?}))"))
}

fn content_type(path: &str) -> Outcome<&'static str> {
    Ok(match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("png") => "image/png",
        _ => return Err(format!("{path} has no known media type; name it in build.rs").into()),
    })
}
