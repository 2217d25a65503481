//! The batchscan executable: arguments, one match, commands.

mod args;
mod atomic_file;
mod client_secret;
mod commands;
mod connection;
mod date_range;
mod demo_data;
mod log;
mod numbers;
mod profiles;
mod progress;
mod pull;
mod reports;
mod table;
mod terminal;

use std::process::ExitCode;

use args::{Cli, Command};
use tokio::runtime::{Builder, Runtime};

// Page buffers of 700 KB are allocated and freed a thousand times per second. The system's allocator maps and unmaps
// each one, which was a fifth of a pull's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    log::report_panics();
    disable_huge_pages();
    let cli = Cli::from_command_line();
    let runtime = match build_runtime(&cli.command) {
        Ok(runtime) => runtime,
        Err(error) => return terminal::fail(&anyhow::Error::new(error).context("cannot start")),
    };
    match runtime.block_on(run(cli.command)) {
        Ok(code) => code,
        Err(error) => terminal::fail(&error),
    }
}

/// The allocator requests huge pages. They made every command 10 to 40 MiB larger, and nothing faster that we measured.
fn disable_huge_pages() {
    // Fails only on kernels without huge pages.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// A service uses every core. A client waits for one response at a time and is faster on one thread.
fn build_runtime(command: &Command) -> std::io::Result<Runtime> {
    match command {
        Command::Pull(_) | Command::List(_) | Command::Summary(_) | Command::Login(_) => {
            Builder::new_current_thread().enable_all().build()
        }
        _ => Builder::new_multi_thread().enable_all().build(),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(demo) => commands::demo::run(demo).await?,
        Command::Serve(serve) => commands::serve::run(*serve).await?,
        Command::Org(org) => commands::org::run(org).await?,
        Command::Credential(credential) => commands::credential::run(credential).await?,
        Command::Import(import) => commands::import::run(import).await?,
        Command::Backup(backup) => commands::backup::run(backup).await?,
        Command::Copy(copy) => commands::copy::run(copy).await?,
        Command::Doctor(doctor) => return commands::doctor::run(doctor).await,
        Command::Key(key) => commands::key::run(key).await?,
        Command::Pull(pull) => commands::pull::run(*pull).await?,
        Command::List(list) => commands::list::run(list).await?,
        Command::Summary(summary) => commands::summary::run(summary).await?,
        Command::Login(login) => commands::login::run(login).await?,
        Command::Logout(logout) => commands::login::run_logout(&logout)?,
        Command::Check(check) => return commands::check::run(check).await,
        Command::Openapi(openapi) => commands::openapi::run(openapi)?,
        Command::Completions(completions) => commands::completions::run(&completions)?,
    }
    Ok(ExitCode::SUCCESS)
}
