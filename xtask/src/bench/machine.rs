//! What the run was made on and with: the machine, the day, and the versions of everything.

use std::fs;
use std::process::Command;

use super::peers;
use super::stock::Stock;

/// Python packages that do the peers' work.
const PACKAGES: [&str; 9] =
    ["fastapi", "uvicorn", "uvloop", "httptools", "asyncpg", "pydantic", "orjson", "datasette", "roapi"];

/// Facts for the head of the results.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) day: String,
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
    pub(crate) system: String,
    /// Names and versions.
    pub(crate) versions: Vec<(String, String)>,
}

impl Machine {
    /// Looks around.
    pub(crate) fn describe(stock: &Stock) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (processors, release) = (read("/proc/cpuinfo"), read("/etc/os-release"));
        Self {
            day: first_line(Command::new("date").args(["-u", "+%F"])),
            processor: labelled(&processors, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: processors.lines().filter(|line| line.starts_with("processor")).count(),
            memory_gib: memory_gib(&read("/proc/meminfo")).unwrap_or_default(),
            kernel: first_line(Command::new("uname").arg("-r")),
            system: quoted(&release, "PRETTY_NAME").unwrap_or_else(|| "unknown".to_owned()),
            versions: versions(stock),
        }
    }
}

fn versions(stock: &Stock) -> Vec<(String, String)> {
    let mut versions = vec![
        ("batchscan".to_owned(), first_line(Command::new(&stock.executable).arg("--version"))),
        ("of commit".to_owned(), commit(stock)),
        ("rustc".to_owned(), first_line(Command::new("rustc").arg("--version"))),
        ("wrk".to_owned(), first_line(Command::new("wrk").arg("-v"))),
        ("nginx".to_owned(), first_line(Command::new("/usr/sbin/nginx").arg("-v"))),
    ];
    if let Some(postgres) = &stock.postgres {
        let version = postgres.sql("postgres", "show server_version").unwrap_or_default();
        versions.push(("PostgreSQL".to_owned(), version));
    }
    if let Some(made) = &stock.peers {
        versions
            .push(("Python".to_owned(), first_line(Command::new(made.program("python")).arg("--version"))));
        let pinned = fs::read_to_string(stock.root.join(peers::REQUIREMENTS)).unwrap_or_default();
        let pinned = pinned.lines().filter_map(|line| line.split_once("=="));
        let named = pinned.filter(|(name, _)| PACKAGES.contains(name));
        versions.extend(named.map(|(name, version)| (name.to_owned(), version.to_owned())));
    }
    versions
}

/// Which sources the program is of, and whether they were changed since.
fn commit(stock: &Stock) -> String {
    first_line(Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(&stock.root))
}

/// The first line that a program prints on either stream.
fn first_line(command: &mut Command) -> String {
    let output = command.output().map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let text = String::from_utf8_lossy(&output).into_owned();
    text.lines().next().map_or_else(|| "unknown".to_owned(), |line| plain_version(line).to_owned())
}

/// A version without what some programs say around it.
fn plain_version(line: &str) -> &str {
    let line = line.trim().trim_start_matches("nginx version: ");
    line.split(" [").next().unwrap_or(line)
}

/// The value of a line `label : value`.
fn labelled(text: &str, label: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(label))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

/// The value of a line `NAME="value"`.
fn quoted(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(line.trim_matches('"').to_owned())
}

fn memory_gib(text: &str) -> Option<f64> {
    let kibibytes: f64 = labelled(text, "MemTotal")?.strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_the_kernels_files() {
        assert_eq!(
            labelled("processor\t: 0\nmodel name\t: Fast 9\n", "model name").as_deref(),
            Some("Fast 9")
        );
        assert_eq!(quoted("NAME=x\nPRETTY_NAME=\"A 12\"\n", "PRETTY_NAME").as_deref(), Some("A 12"));
        assert_eq!(memory_gib("MemTotal:       2097152 kB\nMemFree: 1 kB\n"), Some(2.0));
        assert_eq!(memory_gib(""), None);
        assert_eq!(plain_version("wrk debian/4.1.0 [epoll] Copyright (C) 2012"), "wrk debian/4.1.0");
        assert_eq!(plain_version("nginx version: nginx/1.22.1\n"), "nginx/1.22.1");
    }
}
