//! The batchscan executable: arguments, one match, commands.

mod args;
mod atomic_file;
mod client_secret;
mod commands;
mod connection;
mod date_range;
mod demo_data;
mod log;
mod mirror;
mod numbers;
mod platform;
mod profiles;
mod progress;
mod pull;
mod reports;
mod selection;
mod table;
mod terminal;

use std::process::ExitCode;

use args::{Cli, Command, unknown_variables};
use tokio::runtime::{Builder, Runtime};

// Page buffers of 700 KB are allocated and freed a thousand times per second. The system's allocator maps and unmaps
// each one, which was a fifth of a pull's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    platform::disable_huge_pages();
    terminal::catch_panic(|| {
        let cli = Cli::from_command_line();
        // These two log the warnings.
        if !matches!(cli.command, Command::Serve(_) | Command::Watch(_)) {
            unknown_variables().iter().for_each(|warning| terminal::note(&format!("warning: {warning}")));
        }
        let runtime = match build_runtime(&cli.command) {
            Ok(runtime) => runtime,
            Err(error) => return terminal::fail(&anyhow::Error::new(error).context("cannot start")),
        };
        let done = runtime.block_on(run(cli.command));
        log::flush();
        done.unwrap_or_else(|error| terminal::fail(&error))
    })
}

/// A service uses every core. A client waits for one response at a time and is faster on one thread.
fn build_runtime(command: &Command) -> std::io::Result<Runtime> {
    match command {
        Command::Pull(_)
        | Command::Mirror(_)
        | Command::List(_)
        | Command::Summary(_)
        | Command::Login(_) => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().enable_all().build(),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(demo) => commands::demo::run(demo).await?,
        Command::Serve(serve) => commands::serve::run(*serve).await?,
        Command::Status(status) => return commands::status::run(status).await,
        Command::Imports(imports) => commands::imports::run(imports).await?,
        Command::Org(org) => commands::org::run(org).await?,
        Command::Credential(credential) => commands::credential::run(credential).await?,
        Command::Session(session) => commands::session::run(session).await?,
        Command::Import(import) => commands::import::run(import).await?,
        Command::Watch(watch) => commands::watch::run(watch).await?,
        Command::Batch(batch) => commands::batch::run(batch).await?,
        Command::Backup(backup) => commands::backup::run(backup).await?,
        Command::Restore(restore) => commands::restore::run(restore).await?,
        Command::Copy(copy) => commands::copy::run(copy).await?,
        Command::Doctor(doctor) => return commands::doctor::run(doctor).await,
        Command::Key(key) => commands::key::run(key).await?,
        Command::Operator(operator) => commands::operator::run(operator).await?,
        Command::Audit(audit) => commands::audit::run(audit).await?,
        Command::Pull(pull) => commands::pull::run(*pull).await?,
        Command::Mirror(mirror) => commands::mirror::run(mirror).await?,
        Command::List(list) => commands::list::run(list).await?,
        Command::Summary(summary) => commands::summary::run(summary).await?,
        Command::Login(login) => commands::login::run(login).await?,
        Command::Logout(logout) => commands::login::run_logout(&logout)?,
        Command::Check(check) => return commands::check::run(check).await,
        Command::Openapi(openapi) => commands::openapi::run(openapi)?,
        Command::Completions(completions) => commands::completions::run(&completions)?,
        Command::ManPages(pages) => commands::completions::write_man_pages(&pages)?,
    }
    Ok(ExitCode::SUCCESS)
}
