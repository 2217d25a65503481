//! The source tree, the build folder, and running commands in them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The workspace that this program belongs to.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// The build folder, usually `target`.
    target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        // Read at run time: clones may share a build folder, so a path compiled in could be another clone's.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("start this with `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask is not inside a workspace")?.to_owned();
        let executable = std::env::current_exe()?;
        let target = executable.ancestors().nth(2).context("xtask is not in target/debug")?.to_owned();
        Ok(Self { root, target })
    }

    /// A cargo command in the root of the workspace: `cargo("build --workspace")`.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        // The cargo that started us, so that a toolchain chosen with `cargo +name` is used for every step.
        self.cargo_at(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
    }

    /// The same with another cargo.
    pub(crate) fn cargo_at(&self, program: impl Into<OsString>, arguments: &str) -> Command {
        let mut command = self.command(program);
        command.args(arguments.split(' '));
        // `cargo run` sets these for xtask. Some build scripts watch them and would rebuild every time.
        remove_variables(&mut command, &["CARGO_PKG_", "CARGO_MANIFEST_"]);
        command
    }

    /// A command in the root of the workspace, without the developer's own `BATCHSCAN_*` settings.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        remove_settings(command.current_dir(&self.root));
        command
    }

    /// `batchscan`: the executable that `BATCHSCAN_EXE` names, else the one built before.
    pub(crate) fn executable(&self) -> Result<PathBuf> {
        let path = match std::env::var_os("BATCHSCAN_EXE") {
            Some(path) => PathBuf::from(path),
            None => self.built("debug", "batchscan"),
        };
        path.canonicalize()
            .with_context(|| format!("no executable {}; run `cargo xtask test build`", path.display()))
    }

    /// The same, after building it unless `BATCHSCAN_EXE` names one.
    pub(crate) fn build_executable(&self) -> Result<PathBuf> {
        if std::env::var_os("BATCHSCAN_EXE").is_none() {
            run_command(&mut self.cargo("build --package batchscan"))?;
        }
        self.executable()
    }

    /// Something that cargo built: `built("dist", "hot-path")`.
    pub(crate) fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(name)
    }

    /// The executable of a tool such as `cargo-deb@3.8.0`, which is compiled into the build folder first.
    pub(crate) fn install_tool(&self, tool: &str) -> Result<PathBuf> {
        let folder = self.built("tools", tool);
        let name = tool.split('@').next().unwrap_or(tool);
        let executable = folder.join("bin").join(name);
        if !executable.exists() {
            println!("installing {tool} into {}", folder.display());
            let mut install = self.cargo(&format!("install --locked --quiet {tool} --root"));
            run_command(install.arg(&folder).env_remove("CARGO_TARGET_DIR"))?;
        }
        Ok(executable)
    }

    /// A file in the build folder for a log, so that it can be read after a failure.
    pub(crate) fn log_file(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join("xtask");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder.join(name))
    }
}

/// Runs a command and passes its output through. Fails unless it exits with 0.
pub(crate) fn run_command(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    println!("$ {line}");
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// The command as a person would type it, the program without its folder.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Removes the developer's own `BATCHSCAN_*` settings from a command's environment.
pub(crate) fn remove_settings(command: &mut Command) {
    remove_variables(command, &["BATCHSCAN_"]);
}

fn remove_variables(command: &mut Command, prefixes: &[&str]) {
    for (name, _) in std::env::vars_os() {
        if prefixes.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_named_without_its_folder() {
        let error = run_command(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c exit 3` failed: exit status: 3");
        let error = run_command(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert_eq!(error, "cannot start `no-such-program`");
    }
}
