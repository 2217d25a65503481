//! Runs the executable to its end, and holds what it said against what was promised. Starts nothing that stays.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No command of these tests takes longer, however busy the machine.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// What a person must never read, whatever went wrong.
const PANIC_MARKS: [&str; 4] = ["panicked", "RUST_BACKTRACE", "thread '", "internal error"];

/// The executable under test.
pub(crate) fn executable() -> OsString {
    std::env::var_os("BATCHSCAN_EXE").unwrap_or_else(|| env!("CARGO_BIN_EXE_batchscan").into())
}

/// Whether the executable is the optimised one, which users get.
pub(crate) fn is_optimised() -> bool {
    std::env::var_os("BATCHSCAN_EXE").is_some()
}

/// A command line of the executable, free of the settings of whoever runs the tests.
pub(crate) fn batchscan(words: &[&str]) -> Command {
    let mut command = clean(&executable());
    command.args(words);
    command
}

/// A command line of any program, in the same clean environment.
pub(crate) fn clean(program: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BATCHSCAN_"))
    {
        command.env_remove(name);
    }
    for name in
        ["NO_COLOR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
    {
        command.env_remove(name);
    }
    // Profiles that a developer keeps are none of a test's.
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Fails if a text shows a panic.
#[track_caller]
pub(crate) fn assert_calm(text: &str) {
    for mark in PANIC_MARKS {
        assert!(!text.contains(mark), "a panic shows: {text}");
    }
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::with_input(command, Vec::new())
    }

    /// The same, with these bytes on standard input.
    pub(crate) fn with_input(command: &mut Command, input: Vec<u8>) -> Self {
        let (out, err) = (Stdio::piped(), Stdio::piped());
        let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(err).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that ends without reading it all closes the pipe: that is its right.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let out = text_of(child.stdout.take().unwrap());
        let err = text_of(child.stderr.take().unwrap());
        let code = wait(&mut child, RUN_LIMIT);
        writing.join().unwrap();
        let outcome = Self { code, out: out.join().unwrap(), err: err.join().unwrap() };
        assert_calm(&outcome.out);
        assert_calm(&outcome.err);
        outcome
    }

    /// It did what it was asked to, and said so on standard output alone.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }

    /// It failed with this one line, and nothing else.
    #[track_caller]
    pub(crate) fn fails(self, message: &str) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!((self.out.as_str(), self.err), ("", format!("error: {message}\n")));
    }

    /// It found the command line wrong, and said so in these first lines, before how to get help.
    #[track_caller]
    pub(crate) fn misused(self, message: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        assert!(self.err.starts_with(&format!("error: {message}\n")), "{}", self.err);
        assert!(self.err.ends_with("\nFor more information, try '--help'.\n"), "{}", self.err);
    }
}

/// A process of the test's own. Dropping it kills it.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing to a child that was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a child's end; one that takes too long is ended and fails the test.
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
