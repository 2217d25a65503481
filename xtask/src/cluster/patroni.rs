//! Three database nodes that Patroni looks after, with the configuration that operators are given: addresses and
//! folders are replaced, TLS and sizes for big machines are left out. Here nobody but Patroni promotes.
//!
//! Each node is a PID namespace of its own: Patroni's PostgreSQL leaves its parent, but not its namespace. So SIGKILL to
//! the one process that a node shows outside is a power cut. etcd is one member, configured here.

use std::fs::{self, File};
use std::io::PipeWriter;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Process, ports};

use super::http::Client;
use crate::process;
use crate::workspace::Workspace;

/// What operators are given, in the tree.
const DEPLOYED: &str = "deploy/patroni/patroni.yml";
/// Patroni makes a cluster step by step, with seconds between them.
const START_LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);
/// The password of `postgres` that stands in what operators are given, for them to replace.
const PASSWORD: &str = "SUPERUSER-PASSWORD";
/// PostgreSQL refuses to run as root; Debian's package makes this user.
const SERVER_USER: &str = "postgres";
/// Debian keeps PostgreSQL's programs here, a folder a version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// Lines that speak of TLS, and of memory that three nodes on one machine do not have.
const LEFT_OUT: &[&str] = &[
    "cacert",
    "cafile",
    "cert",
    "certfile",
    "ctl",
    "effective_cache_size",
    "key",
    "keyfile",
    "maintenance_work_mem",
    "protocol",
    "shared_buffers",
    "ssl",
    "ssl_ca_file",
    "ssl_cert_file",
    "ssl_key_file",
    "ssl_min_protocol_version",
    "sslmode",
    "sslrootcert",
    "verify_client",
];

/// A node: Patroni and its PostgreSQL.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) rest_port: u16,
    process: Process,
}

/// Three nodes and their etcd. Dropping it takes them down, and so does our own end.
#[derive(Debug)]
pub(crate) struct Patroni {
    pub(crate) members: Vec<Member>,
    _etcd: Process,
    _sweeper: Sweeper,
}

impl Patroni {
    /// Starts three nodes, and waits for a primary, a synchronous standby and another standby.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        for program in ["patroni", "etcd", "unshare"] {
            if !process::is_on_path(program) {
                bail!(
                    "no {program} on this machine; run `apt-get install patroni etcd-server python3-etcd util-linux`"
                );
            }
        }
        let path = workspace.root.join(DEPLOYED);
        let deployed =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = std::env::temp_dir().join(format!("batchscan-patroni-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let sweeper = Sweeper::over(&folder)?;
        let (etcd, etcd_port) = start_etcd(&folder)?;
        let members = ["db1", "db2", "db3"].map(|name| Member::start(name, &folder, &deployed, etcd_port));
        let members = members.into_iter().collect::<Result<Vec<_>>>()?;
        let patroni = Self { members, _etcd: etcd, _sweeper: sweeper };
        patroni.wait_until_healthy().with_context(|| patroni.log_tails(&folder))?;
        Ok(patroni)
    }

    /// The URL of a database on all three.
    pub(crate) fn url(&self, database: &str) -> String {
        let hosts: Vec<String> =
            self.members.iter().map(|member| format!("127.0.0.1:{}", member.port)).collect();
        format!("postgres://postgres:{PASSWORD}@{}/{database}", hosts.join(","))
    }

    /// Makes an empty database.
    pub(crate) fn create_database(&self, name: &str) -> Result<()> {
        let url = format!("{}?target_session_attrs=read-write", self.url("postgres"));
        let statement = format!("create database {name}");
        process::stdout_of(Command::new("psql").args(["-X", "-q", "-d", &url, "-c", &statement])).map(drop)
    }

    fn wait_until_healthy(&self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        let count = |role: &str| self.members.iter().filter(|member| member.is(role)).count();
        while (count("primary"), count("synchronous"), count("replica")) != (1, 1, 2) {
            if Instant::now() > deadline {
                bail!("Patroni had no primary and two standbys after {START_LIMIT:?}");
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn log_tails(&self, folder: &Path) -> String {
        let tail = |member: &Member| {
            let log = fs::read_to_string(folder.join(&member.name).join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            format!("{}:\n{}", member.name, lines[lines.len().saturating_sub(8)..].join("\n"))
        };
        self.members.iter().map(tail).collect::<Vec<_>>().join("\n")
    }
}

impl Member {
    /// The process whose end is the end of the node.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn start(name: &str, folder: &Path, deployed: &str, etcd_port: u16) -> Result<Self> {
        let home = folder.join(name);
        fs::create_dir(&home)?;
        let place = Place {
            name,
            home: &home,
            port: ports::free()?,
            rest_port: ports::free()?,
            etcd_port,
            programs: &postgres_programs()?,
        };
        let configuration = home.join("patroni.yml");
        fs::write(&configuration, on_loopback(deployed, &place)?)?;
        let log = File::create(home.join("log"))?;
        let mut command = in_namespace(&home)?;
        command.arg("patroni").arg(&configuration).current_dir(&home).env("LC_ALL", "C.UTF-8");
        let process = Process::start(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))?;
        Ok(Self { name: name.to_owned(), port: place.port, rest_port: place.rest_port, process })
    }

    /// Whether Patroni says that this node has a role.
    fn is(&self, role: &str) -> bool {
        Client::new(&format!("http://127.0.0.1:{}", self.rest_port)).text(&format!("/{role}")).is_some()
    }
}

/// What differs from node to node.
struct Place<'a> {
    name: &'a str,
    home: &'a Path,
    port: u16,
    rest_port: u16,
    etcd_port: u16,
    programs: &'a Path,
}

/// What operators are given, for one node on loopback.
fn on_loopback(deployed: &str, place: &Place<'_>) -> Result<String> {
    let Place { name, home, port, rest_port, etcd_port, programs } = place;
    let home = home.display();
    let mut replaced = 0;
    let mut lines = Vec::new();
    for line in deployed.lines() {
        let text = line.trim_start();
        let Some((key, value)) = text.split_once(':').filter(|_| !text.starts_with(['#', '-'])) else {
            let is_rule = text.starts_with("- hostssl ");
            lines.push(if is_rule { loopback_rule(line) } else { line.to_owned() });
            continue;
        };
        if LEFT_OUT.contains(&key) {
            continue;
        }
        let new = match (key, value.trim()) {
            ("name", _) => (*name).to_owned(),
            ("listen" | "connect_address", address) if address.ends_with(":8008") => {
                format!("127.0.0.1:{rest_port}")
            }
            ("listen" | "connect_address", address) if address.ends_with(":5432") => {
                format!("127.0.0.1:{port}")
            }
            ("hosts", _) => format!("[127.0.0.1:{etcd_port}]"),
            ("data_dir", _) => format!("{home}/data"),
            ("bin_dir", _) => programs.display().to_string(),
            ("pgpass", _) => format!("{home}/pgpass"),
            ("unix_socket_directories", _) => home.to_string(),
            _ => {
                lines.push(line.to_owned());
                continue;
            }
        };
        replaced += 1;
        lines.push(format!("{}{key}: {new}", &line[..line.len() - text.len()]));
    }
    if replaced != 10 {
        bail!("{DEPLOYED} has {replaced} of the 10 lines that hold addresses and folders");
    }
    Ok(lines.join("\n") + "\n")
}

/// A line of `pg_hba` for whoever is on this machine, without TLS.
fn loopback_rule(line: &str) -> String {
    let words = line.replace("hostssl", "host");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if let Some(network) = words.iter_mut().find(|word| word.contains('/')) {
        *network = "127.0.0.0/8";
    }
    format!("    {}", words.join(" "))
}

fn start_etcd(folder: &Path) -> Result<(Process, u16)> {
    let (port, peer_port) = (ports::free()?, ports::free()?);
    let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    let log = File::create(folder.join("etcd.log"))?;
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(folder.join("etcd")).args(["--name", "etcd"]);
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("etcd={peers}")]);
    Ok((Process::start(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))?, port))
}

/// The beginning of a command whose end is the end of all that it started, as a user that PostgreSQL accepts.
fn in_namespace(home: &Path) -> Result<Command> {
    let is_root = process::stdout_of(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    if is_root {
        process::stdout_of(Command::new("chown").arg(format!("{SERVER_USER}:{SERVER_USER}")).arg(home))?;
        command.args(["setpriv", &format!("--reuid={SERVER_USER}"), &format!("--regid={SERVER_USER}")]);
        // Becoming another user drops the order to end with `unshare`, so it is given again.
        command.args(["--clear-groups", "--pdeathsig", "KILL"]);
    } else {
        command.args(["--user", "--map-current-user", "env"]);
    }
    Ok(command)
}

fn postgres_programs() -> Result<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten().filter_map(|entry| {
        let version = entry.file_name().to_str()?.parse::<u32>().ok()?;
        entry.path().join("bin/initdb").is_file().then(|| (version, entry.path().join("bin")))
    });
    let newest = versions.max().map(|(_, folder)| folder);
    newest.with_context(|| format!("no PostgreSQL in {POSTGRES_VERSIONS}; run `apt-get install postgresql`"))
}

/// A shell that outlives us and removes a folder: the end of its input is the end of us.
#[derive(Debug)]
struct Sweeper {
    shell: Child,
    orders: Option<PipeWriter>,
}

impl Sweeper {
    fn over(folder: &Path) -> Result<Self> {
        let (reader, orders) = std::io::pipe()?;
        // The servers that write there end at the same time as we do.
        let script = r#"read -r line; for attempt in 1 2 3 4 5; do rm -rf -- "$1" && break; sleep 0.5; done"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sweeper"]).arg(folder).process_group(0);
        let shell = command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { shell, orders: Some(orders) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYED: &str = include_str!("../../../deploy/patroni/patroni.yml");

    fn made(deployed: &str) -> Result<String> {
        let (home, programs) = (Path::new("/h/db2"), Path::new("/p"));
        on_loopback(deployed, &Place { name: "db2", home, port: 1, rest_port: 2, etcd_port: 3, programs })
    }

    #[test]
    fn what_operators_are_given_keeps_its_rules_and_loses_its_addresses() {
        let text = made(DEPLOYED).unwrap();
        for line in ["name: db2", "synchronous_mode: true", "data_dir: /h/db2/data", "hosts: [127.0.0.1:3]"] {
            assert!(text.lines().any(|made| made.trim() == line), "{line} is missing in {text}");
        }
        assert_eq!(text.matches("127.0.0.1:1\n").count(), 2);
        assert_eq!(text.matches("127.0.0.1:2\n").count(), 2);
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        assert!(!code.iter().any(|line| line.contains("10.0.") || line.contains("tls")), "{text}");
        assert!(code.contains(&"    - host all postgres 127.0.0.0/8 scram-sha-256"), "{text}");
    }

    #[test]
    fn a_deployed_file_of_another_form_is_refused() {
        assert!(made(&DEPLOYED.replace("bin_dir:", "bins:")).is_err());
    }
}
