//! Runs the executable to its end and checks its exit status and output.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use snapbox::IntoData;

use crate::snapshot::assert_snapshot;

/// Ends a test that hangs. No test depends on the speed of the machine.
pub(crate) const HANG_LIMIT: Duration = Duration::from_secs(300);

/// Texts that show a panic.
const PANIC_MARKS: [&str; 4] = ["panicked", "RUST_BACKTRACE", "thread '", "internal error"];

/// The executable under test.
pub(crate) fn executable() -> OsString {
    std::env::var_os("BATCHSCAN_EXE").unwrap_or_else(|| env!("CARGO_BIN_EXE_batchscan").into())
}

/// A command of the executable, without the settings of the developer.
pub(crate) fn batchscan(words: &[&str]) -> Command {
    let mut command = clean(&executable());
    command.args(words);
    command
}

/// A command of any program, in the same environment.
pub(crate) fn clean(program: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATCHSCAN_"))
    {
        command.env_remove(name);
    }
    for name in [
        "COLUMNS",
        "NO_COLOR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Fails if a text shows a panic.
#[track_caller]
pub(crate) fn assert_no_panic(text: &str) {
    for mark in PANIC_MARKS {
        assert!(!text.contains(mark), "a panic shows: {text}");
    }
}

/// The output and exit status of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    /// Without the note that it waits for PostgreSQL: whether it is printed depends on the speed of the machine.
    pub(crate) err: String,
    pub(crate) waiting_note: Option<String>,
}

impl Outcome {
    /// Runs a command to its end.
    pub(crate) fn run(command: &mut Command) -> Self {
        Self::with_input(command, Vec::new())
    }

    /// The same, with these bytes on standard input.
    pub(crate) fn with_input(command: &mut Command, input: Vec<u8>) -> Self {
        let (out, err) = (Stdio::piped(), Stdio::piped());
        let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(err).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Fails if the program ends without reading everything.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let out = text_of(child.stdout.take().unwrap());
        let err = text_of(child.stderr.take().unwrap());
        let code = wait(&mut child, HANG_LIMIT);
        writing.join().unwrap();
        let (out, err) = (out.join().unwrap(), err.join().unwrap());
        let (notes, errors): (Vec<&str>, Vec<&str>) =
            err.split_inclusive('\n').partition(|line| line.starts_with("waiting for PostgreSQL at "));
        let waiting_note = notes.first().map(|note| (*note).to_owned());
        let outcome = Self { code, out, err: errors.concat(), waiting_note };
        assert_no_panic(&outcome.out);
        assert_no_panic(&outcome.err);
        outcome
    }

    /// Standard output. Fails unless the exit status is 0 and standard error is empty.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        let errors = self.err.lines().filter(|line| !line.starts_with("created the database "));
        assert_eq!((self.code, errors.count()), (Some(0), 0), "{self:?}");
        self.out
    }

    /// Fails unless the exit status is 1 and the only output is this error.
    #[track_caller]
    pub(crate) fn fails(self, error: impl IntoData) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:?}");
        assert_snapshot(&self.err, error);
    }
}

/// A running process. Dropping it kills it.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // No effect on a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + HANG_LIMIT;
    while !is_true() {
        assert!(Instant::now() < deadline, "{what}: not within {HANG_LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of a process. Kills it and fails after the limit.
#[track_caller]
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("a process did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn text_of(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}
