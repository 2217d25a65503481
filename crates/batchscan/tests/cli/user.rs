//! A user of a service: its address, credentials, a folder and the commands of a user.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use snapbox::IntoData;

use crate::program::{Outcome, assert_no_panic};
use crate::service::Service;
use crate::site::{Credential, Site};
use crate::snapshot::{assert_snapshot, transcript};

/// A user with credentials and a folder.
pub(crate) struct User<'s> {
    site: &'s Site,
    /// A folder in the site.
    folder: String,
    pub(crate) url: String,
    pub(crate) credential: Credential,
}

impl<'s> User<'s> {
    /// A user of this service.
    pub(crate) fn of(site: &'s Site, service: &Service) -> Self {
        Self::with(site, &service.url, site.credential())
    }

    /// A user with these credentials.
    pub(crate) fn with(site: &'s Site, url: &str, credential: Credential) -> Self {
        Self { site, folder: String::new(), url: url.to_owned(), credential }.in_folder("files")
    }

    /// The same user with another address.
    pub(crate) fn at(&self, url: &str) -> Self {
        Self { url: url.to_owned(), ..self.in_folder(&self.folder) }
    }

    /// The same user in another folder.
    pub(crate) fn in_folder(&self, folder: &str) -> Self {
        std::fs::create_dir_all(self.site.path(folder)).unwrap();
        let (url, credential) = (self.url.clone(), self.credential.clone());
        Self { site: self.site, folder: folder.to_owned(), url, credential }
    }

    /// A command in the folder, without address or credentials.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = self.site.command(words);
        command.current_dir(self.site.path(&self.folder));
        command
    }

    /// A command in the folder, with address and credentials in its environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(words);
        command.env("BATCHSCAN_URL", &self.url);
        command.env("BATCHSCAN_CLIENT_ID", &self.credential.id);
        command.env("BATCHSCAN_CLIENT_SECRET", &self.credential.secret);
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Outcome {
        Outcome::run(&mut self.command(words))
    }

    /// Runs command lines with address and credentials and compares their output with a snapshot.
    #[track_caller]
    pub(crate) fn transcript(&self, lines: &[&str], expected: impl IntoData) {
        assert_snapshot(&transcript(lines, |words| self.command(words)), expected);
    }

    /// The same without address and credentials.
    #[track_caller]
    pub(crate) fn bare_transcript(&self, lines: &[&str], expected: impl IntoData) {
        assert_snapshot(&transcript(lines, |words| self.bare(words)), expected);
    }

    /// `batchscan pull` into a file of the folder.
    pub(crate) fn pull(&self, file: &str, flags: &[&str]) -> Outcome {
        Outcome::run(self.command(&["pull", "--output", file]).args(flags))
    }

    /// Pulls a file and returns its bytes.
    #[track_caller]
    pub(crate) fn pulled(&self, file: &str, flags: &[&str]) -> Vec<u8> {
        self.pull(file, flags).succeeds();
        self.read(file)
    }

    /// Standard output and standard error of `batchscan pull --output -`.
    #[track_caller]
    pub(crate) fn piped(&self, flags: &[&str]) -> (Vec<u8>, String) {
        let mut command = self.command(&["pull", "--output", "-"]);
        let output = command.args(flags).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_no_panic(&err);
        assert_eq!(output.status.code(), Some(0), "{err}");
        (output.stdout, err)
    }

    /// A path in the folder.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.site.path(&self.folder).join(file)
    }

    /// A file of the folder.
    #[track_caller]
    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The names of all files in the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let names = std::fs::read_dir(self.path("")).unwrap().map(name);
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The summary of a pull without its time.
#[track_caller]
pub(crate) fn untimed(line: &str) -> String {
    let (text, rest) = line.trim_end_matches('\n').rsplit_once(" in ").unwrap();
    let (secs, retries) = rest.split_once(" s, ").unwrap();
    assert!(secs.parse::<f64>().is_ok() && secs.contains('.') && !retries.contains('\n'), "{line}");
    format!("{text}, {retries}")
}

/// A number of bytes, as in the summary of a pull.
pub(crate) fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "only for display")]
    let kib = bytes as f64 / 1_024.0;
    if bytes < 1_024 { format!("{bytes} bytes") } else { format!("{:.1} KiB", (kib * 10.0).floor() / 10.0) }
}
