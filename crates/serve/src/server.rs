//! Listens on loopback, and serves until it is stopped.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::access::Token;
use crate::connection;
use crate::limits::Limits;
use crate::shared::{Secrets, Shared};
use crate::workers::Workers;
use crate::{Data, Page};

/// Free ports to try, when the one that is free at 127.0.0.1 is taken at ::1.
const ATTEMPTS: usize = 20;

/// Connections that wait to be accepted. With a short queue, a burst makes clients wait for a second.
const BACKLOG: u32 = 1024;

/// Wait after a connection could not be accepted, e.g. because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long connections may take to end after the server was stopped.
const FAREWELL: Duration = Duration::from_millis(500);

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another program listens on the port.
    #[error("port {0} is in use. Name another with --port, or leave --port out: a free port is chosen then")]
    PortTaken(u16),
    /// The user may not listen on the port.
    #[error("port {0} needs more rights. Name one from 1024 on, or leave --port out: a free port is chosen then")]
    PortDenied(u16),
    /// Anything else.
    #[error("cannot listen on 127.0.0.1")]
    Listening(#[from] io::Error),
    /// The kernel gives no random numbers.
    #[error("cannot make a random token: {0}")]
    Random(getrandom::Error),
}

/// Ends a server, from any thread.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Ends the server. Connections end, too.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A server that listens, but does not answer yet.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    listeners: Vec<TcpListener>,
    port: u16,
    token: Token,
    ticket: Token,
    stop: Stop,
    limits: Limits,
}

impl Server {
    /// Listens at this port of 127.0.0.1, and of ::1 where the machine has it. 0 chooses a free port.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn bind(port: u16) -> Result<Self, ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (listeners, port) = {
            let _entered = runtime.enter();
            listen(port)?
        };
        let random = || Token::random().map_err(ServeError::Random);
        let (token, ticket) = (random()?, random()?);
        let stop = Stop(Arc::new(watch::Sender::new(false)));
        Ok(Self { runtime, listeners, port, token, ticket, stop, limits: Limits::default() })
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The port at which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address to open, with the token. A hash may follow.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token.as_str())
    }

    /// An address that can be opened once, for a browser's command line: other users of the machine can read command lines.
    pub fn ticket_url(&self) -> String {
        format!("http://127.0.0.1:{}/?ticket={}", self.port, self.ticket.as_str())
    }

    /// Ends the server later.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until it is stopped, and until the last table that is being made is complete.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn run(self, page: &Page, data: &dyn Data) -> Result<(), ServeError> {
        let Self { runtime, listeners, token, ticket, stop, limits, .. } = self;
        let instance = Token::random().map_err(ServeError::Random)?;
        thread::scope(|scope| {
            let workers = Workers::start(limits.workers, data, scope);
            let connections = Arc::new(Semaphore::new(limits.connections));
            let is_live = data.feed().is_some();
            let secrets = Secrets { token, ticket: Mutex::new(Some(ticket)), instance };
            let shared = Arc::new(Shared::new(page, secrets, limits, workers, stop.0.subscribe(), is_live));
            runtime.block_on(serve(listeners, &connections, &shared));
            // Ends connections that are still open. The workers end when nobody can ask them any more.
            drop(runtime);
        });
        Ok(())
    }
}

async fn serve(listeners: Vec<TcpListener>, connections: &Arc<Semaphore>, shared: &Arc<Shared>) {
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, connections.clone(), shared.clone()));
    }
    shared.stopped().await;
    accepting.shutdown().await;
    let all = u32::try_from(shared.limits.connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(FAREWELL, connections.acquire_many(all)).await;
}

async fn accept(listener: TcpListener, connections: Arc<Semaphore>, shared: Arc<Shared>) {
    loop {
        let stream: TcpStream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = connections.clone().try_acquire_owned() else { continue };
        tokio::spawn(connection::serve(stream, shared.clone(), permit));
    }
}

/// One port on both addresses.
fn listen(port: u16) -> Result<(Vec<TcpListener>, u16), ServeError> {
    let mut taken = port;
    for _ in 0..ATTEMPTS {
        let four = at(IpAddr::V4(Ipv4Addr::LOCALHOST), port).map_err(|error| named(error, port))?;
        let chosen = four.local_addr()?.port();
        match at(IpAddr::V6(Ipv6Addr::LOCALHOST), chosen) {
            Ok(six) => return Ok((vec![four, six], chosen)),
            // `localhost` may mean ::1, where another program would get our user's requests.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => taken = chosen,
            Err(_) => return Ok((vec![four], chosen)),
        }
        if port != 0 {
            break;
        }
    }
    Err(ServeError::PortTaken(taken))
}

fn at(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that starts again at its port must not wait for old connections.
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(BACKLOG)
}

fn named(error: io::Error, port: u16) -> ServeError {
    match error.kind() {
        io::ErrorKind::AddrInUse => ServeError::PortTaken(port),
        io::ErrorKind::PermissionDenied => ServeError::PortDenied(port),
        _ => ServeError::Listening(error),
    }
}
