//! A relay between a client and a service: passes bytes on, and cuts or holds the connection after exactly as many of
//! the service's as a test likes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::service::Service;

/// A client gets to where it is held within milliseconds; a busy machine may need more.
const PASSED_WITHIN: Duration = Duration::from_secs(30);
/// Few enough for a cut to fall into the middle of what the service sends at once.
const PIECE_BYTES: usize = 4_096;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As if the service had closed it (FIN).
    Closed,
    /// As if the service's machine knew nothing of it (RST).
    Reset,
}

/// What happens once the service has sent so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing.
    Pass,
    /// The connection ends; later ones pass, or are closed at once.
    Cut { after: u64, end: End, later_pass: bool },
    /// No byte passes any more.
    Hold { after: u64 },
    /// Every new connection is closed at once.
    Refuse,
}

/// A relay to one service. Dropping it ends its connections.
pub(crate) struct Relay {
    state: Arc<State>,
    address: SocketAddr,
    _runtime: Runtime,
}

struct State {
    service: SocketAddr,
    now: Mutex<Now>,
    changed: Notify,
}

/// The plan, and how many bytes passed since it was made.
struct Now {
    plan: Plan,
    passed: u64,
}

/// What may happen to the next bytes.
enum Next {
    Pass(usize),
    Wait,
    Cut(End),
}

impl Relay {
    /// A relay on a port of its own, which passes everything.
    pub(crate) fn to(service: &Service) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let now = Mutex::new(Now { plan: Plan::Pass, passed: 0 });
        let state =
            Arc::new(State { service: service.address().parse().unwrap(), now, changed: Notify::new() });
        runtime.spawn(accept(listener, state.clone()));
        Self { state, address, _runtime: runtime }
    }

    /// The address for clients.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a plan, and counts from zero.
    pub(crate) fn plan(&self, plan: Plan) {
        *self.state.now.lock().unwrap() = Now { plan, passed: 0 };
        self.state.changed.notify_waiters();
    }

    /// How many bytes of the service passed since the plan was made.
    pub(crate) fn passed(&self) -> u64 {
        self.state.now.lock().unwrap().passed
    }

    /// Waits until so many bytes of the service have passed.
    #[track_caller]
    pub(crate) fn wait_until_passed(&self, bytes: u64) {
        let begun = Instant::now();
        while self.passed() < bytes {
            assert!(begun.elapsed() < PASSED_WITHIN, "{} bytes passed, and {bytes} were to", self.passed());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl State {
    fn next(&self, wanted: usize) -> Next {
        let mut now = self.now.lock().unwrap();
        let left = match now.plan {
            Plan::Pass | Plan::Refuse => u64::MAX,
            Plan::Cut { after, .. } | Plan::Hold { after } => after - now.passed,
        };
        match (now.plan, left) {
            (Plan::Cut { end, later_pass, .. }, 0) => {
                now.plan = if later_pass { Plan::Pass } else { Plan::Refuse };
                Next::Cut(end)
            }
            (_, 0) => Next::Wait,
            (_, left) => {
                let may_pass = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
                now.passed += may_pass as u64;
                Next::Pass(may_pass)
            }
        }
    }

    fn is_refusing(&self) -> bool {
        self.now.lock().unwrap().plan == Plan::Refuse
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if !state.is_refusing() {
            tokio::spawn(serve(client, state.clone()));
        }
    }
}

/// One connection to its end. A service that is not there is one that closes it.
async fn serve(mut client: TcpStream, state: Arc<State>) {
    let Ok(mut service) = TcpStream::connect(state.service).await else { return };
    let end = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_service, mut to_service) = service.split();
        tokio::select! {
            end = pass_back(&mut from_service, &mut to_client, &state) => end,
            _ = tokio::io::copy(&mut from_client, &mut to_service) => End::Closed,
        }
    };
    if end == End::Reset {
        let _ = client.set_zero_linger();
    }
}

/// Passes what the service sends, as far as the plan lets it.
async fn pass_back(
    from_service: &mut (impl AsyncReadExt + Unpin),
    to_client: &mut (impl AsyncWriteExt + Unpin),
    state: &State,
) -> End {
    let mut buffer = [0; PIECE_BYTES];
    let mut waiting: &[u8] = &[];
    loop {
        // Asked with nothing at hand, too: a cut comes with the last byte before it, not with the first one after it.
        let changed = state.changed.notified();
        match state.next(waiting.len()) {
            Next::Cut(end) => return end,
            Next::Wait => {
                changed.await;
                continue;
            }
            Next::Pass(0) => {}
            Next::Pass(count) => {
                if to_client.write_all(&waiting[..count]).await.is_err() {
                    return End::Closed;
                }
                waiting = &waiting[count..];
                continue;
            }
        }
        waiting = match from_service.read(&mut buffer).await {
            Ok(count @ 1..) => &buffer[..count],
            _ => return End::Closed,
        };
    }
}
