//! `cargo xtask test windows`: builds the executable for Windows, and runs the commands of users and operators under wine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use batchscan_testbed::{Process, wait_until};

use crate::cluster::cli::{Cli, Credential};
use crate::cluster::service::Service;
use crate::workspace::{Workspace, run_command};

const TARGET: &str = "x86_64-pc-windows-gnu";
const WINE: &str = "/usr/lib/wine/wine64";
const WINESERVER: &str = "/usr/lib/wine/wineserver64";
const ORGANISATION: &str = "Green Valley";
const BATCHES: usize = 2_000;
const PAGE_SIZE: u16 = 1_000;
const FORMATS: [&str; 5] = ["ndjson", "csv", "json", "parquet", "xlsx"];
/// How often a command is interrupted, each time a little later.
const MOMENTS: u32 = 10;
const FILES: usize = 200;
/// The first file that is held open. Later ones wait for it.
const FIRST_HELD: usize = 3;
/// Ends a test that hangs.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Compiles without code generation, so that every change is checked.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    run_command(&mut cargo(workspace, "check")?)
}

/// Builds what is published.
pub(crate) fn build(workspace: &Workspace) -> Result<()> {
    run_command(&mut cargo(workspace, "build --locked --profile dist")?)
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let wine = Wine::prepare(workspace)?;
    let demo = Service::demo(&wine.cli(""), u32::try_from(BATCHES)?, workspace.log_file("wine-demo.log")?)?;
    pull_and_mirror(&wine, workspace, &demo).with_context(|| demo.log_tail())?;
    interrupted_pulls(&wine).context("pulls with Ctrl-C")?;
    demo.interrupt()?;
    operators_commands(&wine)?;
    watch(&wine, workspace).context("watch")
}

/// Uses the target of rustup. Debian has only the source of the standard library, which is compiled as well.
fn cargo(workspace: &Workspace, command: &str) -> Result<Command> {
    let arguments = format!("{command} --package batchscan --target {TARGET}");
    let installed = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output()?;
    let mut cargo = if Path::new(String::from_utf8(installed.stdout)?.trim()).is_dir() {
        workspace.cargo(&arguments)
    } else {
        let arguments = format!("{arguments} -Z build-std=std,panic_unwind");
        let mut cargo = workspace.cargo_at("/usr/bin/cargo", &arguments);
        cargo.envs([("RUSTC", "/usr/bin/rustc"), ("RUSTC_BOOTSTRAP", "1")]);
        cargo
    };
    // Compiling takes longer than the test.
    cargo.envs([("CARGO_PROFILE_DEV_OPT_LEVEL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")]);
    Ok(cargo)
}

/// The executable for Windows, with a folder for files.
struct Wine {
    /// A script that starts it, so that it is used like any other.
    executable: PathBuf,
    linux: PathBuf,
    folder: PathBuf,
    prefix: PathBuf,
}

impl Wine {
    fn prepare(workspace: &Workspace) -> Result<Self> {
        run_command(&mut cargo(workspace, "build")?)?;
        let (folder, prefix) = (workspace.log_file("windows")?, workspace.log_file("wine")?);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("bin"))?;
        let bin = folder.join("bin");
        fs::copy(workspace.built(&format!("{TARGET}/debug"), "batchscan.exe"), bin.join("batchscan.exe"))?;
        for (output, source) in [("bcryptprimitives.dll", "bcryptprimitives.c"), ("hold.exe", "hold.c")] {
            let mut gcc = workspace.command("x86_64-w64-mingw32-gcc");
            gcc.arg(Path::new("xtask/windows").join(source)).arg("-o").arg(bin.join(output));
            run_command(if output.ends_with(".dll") { gcc.arg("-shared") } else { &mut gcc })?;
        }
        let wine = Self { executable: bin.join("batchscan"), linux: workspace.executable()?, folder, prefix };
        wine.write_script("batchscan")?;
        wine.write_script("hold")?;
        Ok(wine)
    }

    fn write_script(&self, name: &str) -> Result<()> {
        let (prefix, folder) = (self.prefix.display(), self.folder.display());
        let environment = format!("export WINEPREFIX='{prefix}' WINEDEBUG=-all");
        let script =
            format!("#!/bin/sh\n{environment}\ncd '{folder}' && exec {WINE} bin/{name}.exe \"$@\"\n");
        let path = self.executable.with_file_name(name);
        fs::write(&path, script)?;
        Ok(fs::set_permissions(path, PermissionsExt::from_mode(0o755))?)
    }

    fn cli(&self, database: &str) -> Cli {
        Cli::new(self.executable.clone(), database.to_owned())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts a program; its output goes to a file.
    fn start(&self, program: &str, arguments: &[&str]) -> Result<Process> {
        let log = fs::File::create(self.path(&format!("{program}.log")))?;
        let mut command = Command::new(self.executable.with_file_name(program));
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Process::start(&mut command)
    }

    /// Waits until a program has printed this.
    fn wait_for(&self, program: &str, text: &str) -> Result<()> {
        let path = self.path(&format!("{program}.log"));
        let has_printed = || fs::read_to_string(&path).is_ok_and(|log| log.contains(text));
        ensure!(wait_until(TIMEOUT, has_printed), "{program} did not print {text:?}");
        Ok(())
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        let _ = Command::new(WINESERVER).arg("-k").env("WINEPREFIX", &self.prefix).status();
    }
}

/// `login`, `pull` to every format, `list`, `summary` and `mirror`.
fn pull_and_mirror(wine: &Wine, workspace: &Workspace, demo: &Service) -> Result<()> {
    let (cli, Credential { client_id, client_secret }) = (wine.cli(""), demo.demo_credential()?);
    let url = demo.url();
    let login = ["login", "--url", &url, "--client-id", &client_id, "--client-secret-file", "-"];
    cli.run(&login, client_secret.as_bytes())?;
    for format in FORMATS {
        cli.run(&["pull", "--output", &format!("all.{format}")], b"")?;
    }
    for name in ["all.ndjson", "all.csv", "all.json"] {
        let mut linux = workspace.command(&wine.linux);
        linux.args(["pull", "--url", &url, "--client-id", &client_id, "--output"]);
        let expected = wine.path(&format!("linux-{name}"));
        run_command(linux.arg(&expected).env("BATCHSCAN_CLIENT_SECRET", &client_secret))?;
        ensure!(fs::read(expected)? == fs::read(wine.path(name))?, "{name} differs from the one of Linux");
    }
    let listed = cli.run(&["list", "--json"], b"")?;
    ensure!(listed.contains("batch_id"), "list printed {listed}");
    cli.run(&["summary", "--start-date", "365d"], b"")?;
    for _ in 0..2 {
        cli.run(&["mirror", "--output", "mirror.db"], b"")?;
    }
    let count = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM batches').fetchone()[0])";
    let counted = Command::new("python3").args(["-c", count]).arg(wine.path("mirror.db")).output()?;
    let counted = String::from_utf8(counted.stdout)?;
    ensure!(counted.trim() == BATCHES.to_string(), "the mirror has {counted} batches");
    Ok(())
}

/// A pull that is interrupted leaves the complete file or none.
fn interrupted_pulls(wine: &Wine) -> Result<()> {
    let (started, path) = (Instant::now(), wine.path("stopped.csv"));
    let pull = ["pull", "--force", "--output", "stopped.csv"];
    wine.start("batchscan", &pull)?.wait(TIMEOUT)?;
    let (whole, complete) = (started.elapsed(), fs::read(&path)?);
    for moment in 0..MOMENTS {
        let _ = fs::remove_file(&path);
        let mut pulling = wine.start("batchscan", &pull)?;
        // Starting it takes the first half.
        sleep(whole * (MOMENTS + moment) / (2 * MOMENTS));
        let _ = pulling.signal("INT");
        let status = pulling.wait(TIMEOUT)?;
        let is_complete = fs::read(&path).is_ok_and(|bytes| bytes == complete);
        println!("Ctrl-C {moment}: {status}, {}", if is_complete { "complete" } else { "absent" });
        ensure!(is_complete == path.exists(), "the file is not complete");
        // Before the program handles Ctrl-C, wine ends it with status 0.
        ensure!(status.success() || !is_complete, "complete, but {status}");
        let left = fs::read_dir(&wine.folder)?.flatten().map(|entry| entry.file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().ends_with("-partial")).collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
    }
    Ok(())
}

/// A database on Windows: the five formats are the same batches; `serve`, `check`, `backup`, `status`, `doctor`.
fn operators_commands(wine: &Wine) -> Result<()> {
    let cli = wine.cli("sqlite:scans.db");
    cli.add_organisation(ORGANISATION)?;
    for (index, format) in FORMATS.iter().enumerate() {
        let report = cli.run(&["import", "--org", ORGANISATION, "--json", &format!("all.{format}")], b"")?;
        let report: serde_json::Value = serde_json::from_str(&report)?;
        let field = if index == 0 { "new" } else { "unchanged" };
        ensure!(report[field] == BATCHES, "import of {format}: {report}");
    }
    let Credential { client_id, client_secret } = cli.issue_credential(ORGANISATION)?;
    let service = Service::serve(&cli, PAGE_SIZE, wine.path("serve.log"))?;
    let check = ["check", &service.url(), "--client-id", &client_id, "--client-secret-file", "-"];
    cli.run(&check, client_secret.as_bytes())?;
    cli.run(&["backup", "backup.db"], b"")?;
    cli.run(&["status", "--json"], b"")?;
    service.interrupt()?;
    for database in ["sqlite:scans.db", "sqlite:backup.db"] {
        wine.cli(database).run(&["doctor", "--json"], b"")?;
    }
    Ok(())
}

/// Files are imported into a service on Linux: some are held open for a while, some are invalid.
fn watch(wine: &Wine, workspace: &Workspace) -> Result<()> {
    let linux = Cli::new(wine.linux.clone(), format!("sqlite:{}", wine.path("linux.db").display()));
    linux.add_organisation(ORGANISATION)?;
    let issued = linux
        .run(&["operator", "token", "issue", "--role", "ingest", "--org", ORGANISATION, "--json"], b"")?;
    let issued: serde_json::Value = serde_json::from_str(&issued)?;
    fs::write(wine.path("token"), issued["token"].as_str().context("no token")?)?;
    let mut service = Service::serve(&linux, PAGE_SIZE, workspace.log_file("watch-service.log")?)?;
    let (names, invalid) = write_files(wine)?;
    let held: Vec<&str> = names.iter().skip(FIRST_HELD).step_by(FILES / 10).map(String::as_str).collect();
    let mut holding = wine.start("hold", &held)?;
    wine.wait_for("hold", "holding")?;

    let url = format!("http://127.0.0.1:{}", service.operator_port);
    let options = format!("watch inbox --url {url} --token-file token --stable 1s --poll 1s --org");
    let mut arguments: Vec<&str> = options.split(' ').collect();
    arguments.push(ORGANISATION);
    let count = |folder: &str| fs::read_dir(wine.path(folder)).map_or(0, |entries| entries.flatten().count());
    for moment in 1..=MOMENTS {
        let mut watching = wine.start("batchscan", &arguments)?;
        wine.wait_for("batchscan", "watching ")?;
        if moment == MOMENTS / 2 {
            // The files before the first one that is held open.
            wait_until(TIMEOUT, || count("inbox/done") == FIRST_HELD);
            sleep(Duration::from_secs(3));
            ensure!(count("inbox/done") == FIRST_HELD, "newer files did not wait");
            holding.kill()?;
        }
        // After a second, the first files are known to be complete.
        sleep(Duration::from_millis(1_000 + 200 * u64::from(moment)));
        watching.signal("INT")?;
        let status = watching.wait(TIMEOUT)?;
        println!("Ctrl-C {moment}: {status}, {} imported", count("inbox/done"));
        ensure!(status.success(), "watch: {status}");
    }
    let mut watching = wine.start("batchscan", &arguments)?;
    wine.wait_for("batchscan", "watching ")?;
    let is_done = || count("inbox/done") + count("inbox/failed") / 2 == FILES;
    wait_until(TIMEOUT, is_done);
    watching.signal("INT")?;
    ensure!(watching.wait(TIMEOUT)?.success(), "watch did not end well");
    service.stop()?;
    let found = ["inbox/done", "inbox/failed", "inbox/importing"].map(count);
    ensure!(found == [FILES - invalid, 2 * invalid, 0], "done, failed, importing: {found:?}");
    let orgs: serde_json::Value = serde_json::from_str(&linux.run(&["org", "list", "--json"], b"")?)?;
    let expected = (FILES - invalid) * BATCHES / FILES;
    ensure!(orgs.to_string().contains(&format!("\"batches\":{expected}")), "expected {expected}: {orgs}");
    Ok(())
}

/// Splits the batches into files, of which every tenth is cut off. Returns their names and the number of invalid ones.
fn write_files(wine: &Wine) -> Result<(Vec<String>, usize)> {
    fs::create_dir(wine.path("inbox"))?;
    let text = fs::read_to_string(wine.path("all.ndjson"))?;
    let lines: Vec<&str> = text.lines().collect();
    let (mut names, mut invalid) = (Vec::new(), 0);
    for (index, lines) in lines.chunks(BATCHES / FILES).enumerate() {
        let (name, mut content) = (format!("inbox/{index:03}.ndjson"), lines.join("\r\n"));
        if index % 10 == 9 {
            content.truncate(content.len() / 2);
            invalid += 1;
        }
        fs::write(wine.path(&name), content)?;
        names.push(name);
    }
    if names.len() != FILES {
        bail!("{} files instead of {FILES}", names.len());
    }
    Ok((names, invalid))
}
