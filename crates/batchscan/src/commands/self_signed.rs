//! `serve --self-signed`: a certificate for testing HTTPS.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use batchscan_server::tls::Tls;
use batchscan_store::platform::host_name;

use crate::atomic_file;

/// The first line of the file. Only a file with this line is replaced.
const FIRST_LINE: &str = "# Certificate of `batchscan serve --self-signed`, for testing only\n";

/// Makes a certificate and writes it to the file. Its key exists only in this process.
pub(super) fn create(file: &Path, listen: &str) -> anyhow::Result<Arc<Tls>> {
    check_replaceable(file)?;
    let (tls, made) = Tls::self_signed(names(listen))?;
    let shown = file.display();
    atomic_file::write(file, format!("{FIRST_LINE}{}", made.pem).as_bytes())
        .with_context(|| format!("cannot write {shown}"))?;
    let sha256 = made.fingerprint;
    tracing::warn!(
        sha256,
        "self-signed certificate, for testing only: clients trust it with --ca-cert {shown}"
    );
    Ok(tls)
}

fn check_replaceable(file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    match std::fs::read(file) {
        Ok(content) if content.starts_with(FIRST_LINE.as_bytes()) => Ok(()),
        Ok(_) => bail!("{shown} already exists and is not from --self-signed: choose another file"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}

/// The names under which clients may reach the service.
fn names(listen: &str) -> Vec<String> {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host).trim_matches(['[', ']']);
    let machine = host_name();
    let mut names = ["localhost", "127.0.0.1", "::1", host, &machine].map(str::to_owned).to_vec();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}
