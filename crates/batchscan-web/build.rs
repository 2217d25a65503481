//! Compresses the files of the dashboard and of the API docs, and generates `files.rs` for `src/lib.rs`.
//!
//! npm builds the dashboard in a copy of `web/`, so that the source tree stays clean. Without Node, or with
//! `BATCHSCAN_DASHBOARD=off`, the page in `no-dashboard/` replaces it. The API docs are Swagger UI, from a crate.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Cursor, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// What the build of the dashboard needs. Excludes its tests and a developer's `node_modules`.
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
/// The oldest Node that Vite supports, as major and minor version.
const NODE_MIN: (u32, u32) = (20, 19);

/// The files of the API docs and their parts: paths in the archive start with `/`, others are in `docs/`.
const DOCS: &[(&str, &[&str])] = &[
    ("initializer.js", &["initializer.js"]),
    ("swagger-ui-bundle.js", &["/dist/swagger-ui-bundle.js"]),
    ("swagger-ui-license.txt", &["/NOTICE", "/LICENSE"]),
    ("swagger-ui.css", &["/dist/swagger-ui.css", "overrides.css"]),
];

type Outcome<T> = Result<T, Box<dyn Error>>;
type Files = BTreeMap<String, Vec<u8>>;

fn main() -> Outcome<()> {
    let web = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../web");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    for source in ["build.rs", "docs", "no-dashboard"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=BATCHSCAN_DASHBOARD");

    let mut dashboard = Files::new();
    let missing = match build_dashboard(&web, &out.join("web")) {
        Ok(dist) => {
            read_folder(&dist, "", &mut dashboard)?;
            None
        }
        Err(error) => {
            println!("cargo::warning=the dashboard is not included: {error}");
            read_folder(Path::new("no-dashboard"), "", &mut dashboard)?;
            Some(error.to_string())
        }
    };
    let text = format!(
        "/// The files of the dashboard, sorted by path.\npub static DASHBOARD: &[File] = &[\n{}];\n\n\
         /// The files of the API docs, below `/docs/`.\npub static DOCS: &[File] = &[\n{}];\n\n\
         /// Why the dashboard is not included, if it is not.\n\
         pub const DASHBOARD_MISSING: Option<&str> = {missing:?};\n",
        table(&dashboard, &out)?,
        table(&read_docs()?, &out)?
    );
    fs::write(out.join("files.rs"), text)?;
    Ok(())
}

/// Builds the dashboard in a copy and returns the folder with the result.
fn build_dashboard(web: &Path, copy: &Path) -> Outcome<PathBuf> {
    if std::env::var("BATCHSCAN_DASHBOARD").is_ok_and(|value| value == "off") {
        return Err("BATCHSCAN_DASHBOARD is off".into());
    }
    require_node()?;
    let installed = fs::read(copy.join("package-lock.json")).unwrap_or_default();
    for source in SOURCES {
        copy_all(&web.join(source), &copy.join(source))?;
    }
    let is_installed = copy.join("node_modules/.package-lock.json").is_file();
    if !is_installed || installed != fs::read(copy.join("package-lock.json"))? {
        npm(copy, &["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    }
    npm(copy, &["run", "build"])?;
    Ok(copy.join("dist"))
}

fn require_node() -> Outcome<()> {
    let output = Command::new("node").arg("--version").output().map_err(|_| "Node is not installed")?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut numbers = version.trim_start_matches('v').split('.').map(|number| number.parse().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < NODE_MIN {
        return Err(format!("Node {version} is older than {}.{}", NODE_MIN.0, NODE_MIN.1).into());
    }
    Ok(())
}

fn npm(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let line = format!("npm {}", arguments.join(" "));
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let result = Command::new(program).args(arguments).current_dir(folder).env_remove("NODE_ENV").output();
    let output = result.map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let first = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("no error message").trim();
    let log = folder.join("npm.log");
    fs::write(&log, [&output.stdout[..], &output.stderr].concat())?;
    Err(format!("`{line}` failed: {first}; see {}, then touch web/package.json to retry", log.display())
        .into())
}

fn copy_all(from: &Path, to: &Path) -> Outcome<()> {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
        return Ok(());
    }
    // Deleted sources must not stay in the copy.
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).map_err(|error| format!("cannot read {}: {error}", from.display()))? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Files) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_folder(&entry.path(), &path, files)?;
        } else {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

fn read_docs() -> Outcome<Files> {
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    let mut files = Files::new();
    for (name, parts) in DOCS {
        let mut content = Vec::new();
        for part in *parts {
            let read = read_docs_part(&mut archive, part).map_err(|error| format!("{part}: {error}"))?;
            content.extend(read);
            content.push(b'\n');
        }
        files.insert((*name).to_owned(), content);
    }
    Ok(files)
}

fn read_docs_part(archive: &mut ZipArchive<Cursor<&[u8]>>, part: &str) -> Outcome<Vec<u8>> {
    if !part.starts_with('/') {
        return Ok(fs::read(Path::new("docs").join(part))?);
    }
    // The name of the archive's only folder contains the version.
    let is_part = |name: &str| name.split_once('/').is_some_and(|(_, rest)| rest == &part[1..]);
    let mut names = archive.file_names().filter_map(Result::ok);
    let name = names.find(|name| is_part(name)).ok_or("not in the archive")?.into_owned();
    drop(names);
    let mut content = Vec::new();
    archive.by_name(&name)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Compresses the files and returns the entries of a Rust array of `File`.
fn table(files: &Files, out: &Path) -> Outcome<String> {
    let mut text = String::new();
    for (path, content) in files {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let hash = format!("{:016x}", hasher.finish());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content)?;
        let gzip = out.join(format!("{hash}.gz"));
        fs::write(&gzip, encoder.finish()?)?;
        let content_type = content_type(path)?;
        writeln!(
            text,
            "    File {{ path: {path:?}, content_type: {content_type:?}, hash: {hash:?}, gzip: include_bytes!({gzip:?}) }},"
        )?;
    }
    Ok(text)
}

fn content_type(path: &str) -> Outcome<&'static str> {
    Ok(match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => return Err(format!("{path} has an unknown media type; add it to build.rs").into()),
    })
}
