//! Takes the two files that a page needs out of Swagger UI's archive, and writes the list of them for `src/lib.rs`.
//!
//! The archive is a crate of its own: nothing is downloaded. Of its 4 MB of scripts a browser runs one and a style sheet.

use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{Cursor, Read, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// What is carried: the name a browser asks for, and what it is made of. A `/` begins a path of the archive, all else is
/// a file of `page/`.
const FILES: &[(&str, &[&str])] = &[
    ("initializer.js", &["initializer.js"]),
    ("swagger-ui-bundle.js", &["/dist/swagger-ui-bundle.js"]),
    // Whoever passes Swagger UI on passes on its licence.
    ("swagger-ui-license.txt", &["/NOTICE", "/LICENSE"]),
    ("swagger-ui.css", &["/dist/swagger-ui.css", "page.css"]),
];

/// Made once and sent often.
const GZIP_LEVEL: Compression = Compression::best();

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=page");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    let mut text = String::from("/// Every file, by name.\npub static FILES: &[File] = &[\n");
    for (name, parts) in FILES {
        let mut plain = Vec::new();
        for part in *parts {
            plain.extend(read(&mut archive, part).map_err(|error| format!("{part}: {error}"))?);
            plain.push(b'\n');
        }
        text.push_str(&entry(name, &plain, &out)?);
    }
    text.push_str("];\n");
    fs::write(out.join("files.rs"), text)?;
    Ok(())
}

fn read(archive: &mut ZipArchive<Cursor<&[u8]>>, part: &str) -> Outcome<Vec<u8>> {
    if !part.starts_with('/') {
        return Ok(fs::read(Path::new("page").join(part))?);
    }
    // The archive's one folder carries its version in its name.
    let is_meant = |name: &str| name.split_once('/').is_some_and(|(_, rest)| rest == &part[1..]);
    let mut names = archive.file_names().filter_map(Result::ok);
    let name = names.find(|name| is_meant(name)).ok_or("not in the archive")?.into_owned();
    drop(names);
    let mut bytes = Vec::new();
    archive.by_name(&name)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn entry(name: &str, plain: &[u8], out: &Path) -> Outcome<String> {
    let mut encoder = GzEncoder::new(Vec::new(), GZIP_LEVEL);
    encoder.write_all(plain)?;
    let file = out.join(name).with_extension("gz");
    fs::write(&file, encoder.finish()?)?;
    // Fixed keys: the same content has the same mark in every build by the same compiler.
    let mut hasher = DefaultHasher::new();
    plain.hash(&mut hasher);
    let (kind, mark) = (content_type(name)?, format!("{:016x}", hasher.finish()));
    Ok(format!(
        "    File {{ name: {name:?}, content_type: {kind:?}, mark: {mark:?}, gzip: include_bytes!({file:?}) }},\n"
    ))
}

fn content_type(name: &str) -> Outcome<&'static str> {
    Ok(match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        _ => return Err(format!("{name} has no known media type; name it in build.rs").into()),
    })
}
