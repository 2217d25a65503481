//! A TCP proxy that cuts or stalls the connection after an exact number of the service's bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::program::wait_until;
use crate::service::Service;

/// Small, so that a cut falls into the middle of a response.
const PIECE_BYTES: usize = 4_096;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// FIN.
    Closed,
    /// RST.
    Reset,
}

/// What happens after a number of bytes from the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing.
    Pass,
    /// The connection ends. Later connections pass, or are closed at once.
    Cut { after: u64, end: End, later_pass: bool },
    /// No more bytes pass.
    Hold { after: u64 },
    /// Every new connection is closed at once.
    Refuse,
}

/// A proxy to one service. Dropping it closes its connections.
pub(crate) struct Proxy {
    state: Arc<State>,
    address: SocketAddr,
    _runtime: Runtime,
}

struct State {
    service: SocketAddr,
    now: Mutex<Now>,
    changed: Notify,
}

/// The plan, and the bytes that passed since it was set.
struct Now {
    plan: Plan,
    passed: u64,
}

/// What happens to the next bytes.
enum Next {
    Pass(usize),
    Wait,
    Cut(End),
}

impl Proxy {
    /// A proxy that passes everything.
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

    /// Sets a plan and counts from zero.
    pub(crate) fn plan(&self, plan: Plan) {
        *self.state.now.lock().unwrap() = Now { plan, passed: 0 };
        self.state.changed.notify_waiters();
    }

    /// The bytes that passed since the plan was set.
    pub(crate) fn passed(&self) -> u64 {
        self.state.now.lock().unwrap().passed
    }

    /// Waits until this many bytes have passed.
    #[track_caller]
    pub(crate) fn wait_until_passed(&self, bytes: u64) {
        wait_until("the bytes pass", || self.passed() >= bytes);
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

/// Serves one connection.
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

/// Passes the service's bytes according to the plan.
async fn pass_back(
    from_service: &mut (impl AsyncReadExt + Unpin),
    to_client: &mut (impl AsyncWriteExt + Unpin),
    state: &State,
) -> End {
    let mut buffer = [0; PIECE_BYTES];
    let mut waiting: &[u8] = &[];
    loop {
        // Also without bytes, so that a cut follows the last byte before it.
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
