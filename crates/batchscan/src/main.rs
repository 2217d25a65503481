//! The batchscan executable: arguments, one match, thin commands.

mod args;
mod commands;
mod connection;
mod figures;
mod nursery;
mod output;
mod overview;
mod printable;
mod profiles;
mod pull;
mod secret;
mod units;
mod window;

use std::process::ExitCode;

use args::{Cli, Command};
use tokio::runtime::{Builder, Runtime};

// A page is a buffer of 700 KB, made and freed a thousand times a second: with the system's allocator each one is
// mapped, faulted in and unmapped, which was a fifth of a pull's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    output::silence_panics();
    use_small_pages();
    let cli = Cli::read();
    let runtime = match runtime_for(&cli.command) {
        Ok(runtime) => runtime,
        Err(error) => return output::failed(&anyhow::Error::new(error).context("cannot start")),
    };
    match runtime.block_on(run(cli)) {
        Ok(code) => code,
        Err(error) => output::failed(&error),
    }
}

/// The allocator asks for huge pages where the system gives them on request. They made every command 10 to 40 MiB larger,
/// and nothing that we measured faster.
fn use_small_pages() {
    // A kernel that knows no such setting has no huge pages to give.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// A service uses every core. A client waits for one answer after the other, and is faster on one thread: nothing has to
/// wake another; rows are made on threads of their own either way.
fn runtime_for(command: &Command) -> std::io::Result<Runtime> {
    match command {
        Command::Pull(_) | Command::List(_) | Command::Summary(_) | Command::Login(_) => {
            Builder::new_current_thread().enable_all().build()
        }
        _ => Builder::new_multi_thread().enable_all().build(),
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let database = cli.database.read("--database").unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Demo(demo) => commands::demo::run(demo).await,
        Command::Serve(serve) => commands::serve::run(&database, serve).await,
        Command::Org(org) => commands::org::run(&database, org).await,
        Command::Credential(credential) => commands::credential::run(&database, credential).await,
        Command::Import(import) => commands::import::run(&database, import).await,
        Command::Backup(backup) => commands::backup::run(&database, backup).await,
        Command::Copy(copy) => commands::copy::run(copy).await,
        Command::Doctor(doctor) => commands::doctor::run(&database, doctor).await,
        Command::Key(key) => commands::key::run(&database, key).await,
        Command::Pull(pull) => commands::pull::run(*pull).await,
        Command::List(list) => commands::list::run(list).await,
        Command::Summary(summary) => commands::summary::run(summary).await,
        Command::Login(login) => commands::login::run(login).await,
        Command::Logout(logout) => commands::login::run_logout(&logout),
        Command::Check(check) => commands::check::run(check).await,
        Command::Openapi(openapi) => commands::openapi::run(openapi),
        Command::Completions(completions) => commands::completions::run(&completions),
    }
}
