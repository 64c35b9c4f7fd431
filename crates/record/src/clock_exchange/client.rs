//! The machine that asks.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant};

use stepscope_model::{ClockExchange, ClockPeer};

use super::datagram::{self, Nonce, Reply};
use super::server::is_passing;
use super::socket::Socket;
use super::{ClockError, PORT};
use crate::clock;

/// Requests that are still waited for.
const MOST_PENDING: usize = 16;
/// Requests until a peer counts as silent, and how long each is waited for.
const FIRST_REQUESTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(400);

/// Asks one peer for its clock.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    pending: VecDeque<(Nonce, u64)>,
    /// What was found since the last [`take`](Self::take), the latest peer last.
    found: Vec<ClockPeer>,
    address: String,
}

impl Client {
    /// Connects to a peer (`HOST` or `HOST:PORT`), and waits for its first reply.
    ///
    /// # Errors
    /// [`ClockError`], if the address is unknown or nobody answers.
    pub fn connect(address: &str) -> Result<Self, ClockError> {
        let addresses =
            resolve(address).map_err(|source| ClockError::Address { address: address.to_owned(), source })?;
        let failed = |source| ClockError::Socket { address: address.to_owned(), source };
        let mut last = None;
        for peer in &addresses {
            match Self::open(*peer, address).and_then(|mut client| Ok((client.wait_for_first()?, client))) {
                Ok((true, client)) => return Ok(client),
                Ok((false, _)) => {}
                Err(error) => last = Some(error),
            }
        }
        Err(last.map(failed).unwrap_or_else(|| ClockError::NoReply {
            address: address.to_owned(),
            port: addresses.first().map_or(PORT, SocketAddr::port),
            requests: FIRST_REQUESTS,
        }))
    }

    fn open(peer: SocketAddr, address: &str) -> io::Result<Self> {
        let own = match peer {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((own, 0))?;
        // From now on, the kernel drops datagrams of other senders.
        socket.connect(peer)?;
        let socket = Socket::new(socket);
        Ok(Self { socket, pending: VecDeque::new(), found: Vec::new(), address: address.to_owned() })
    }

    fn wait_for_first(&mut self) -> io::Result<bool> {
        for _ in 0..FIRST_REQUESTS {
            if self.exchange(FIRST_WAIT)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends a request, and waits for a reply to it or to one before it. `None` if none came in time.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn exchange(&mut self, wait: Duration) -> io::Result<Option<ClockExchange>> {
        let deadline = Instant::now() + wait;
        let nonce = random();
        let request = datagram::request(nonce);
        let sent_ns = clock::now_ns();
        match self.socket.0.send(&request) {
            Ok(_) => self.pending.push_back((nonce, sent_ns)),
            Err(error) if is_passing(&error) => return Ok(self.lose()),
            Err(error) => return Err(error),
        }
        if self.pending.len() > MOST_PENDING {
            self.pending.pop_front();
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(self.lose());
            }
            self.socket.0.set_read_timeout(Some(left.max(Duration::from_micros(1))))?;
            let earliest_ns = self.pending.front().map_or(sent_ns, |(_, sent_ns)| *sent_ns);
            match self.socket.receive(earliest_ns) {
                Ok(received) => {
                    let reply = datagram::read_reply(received.bytes());
                    if let Some(exchange) = reply.and_then(|reply| self.take_reply(reply, received.time_ns)) {
                        return Ok(Some(exchange));
                    }
                    if let Some(peer) = self.found.last_mut() {
                        peer.refused += 1;
                    }
                }
                // The peer's machine says that nobody listens.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::thread::sleep(left.min(Duration::from_millis(50)));
                    return Ok(self.lose());
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The exchange of a reply. `None` if it is no reply to one of our requests, or came before.
    fn take_reply(&mut self, reply: Reply, received_ns: u64) -> Option<ClockExchange> {
        let at = self.pending.iter().position(|(nonce, _)| *nonce == reply.nonce)?;
        let (_, sent_ns) = self.pending.remove(at)?;
        let exchange = ClockExchange {
            sent_ns,
            peer_received_ns: reply.received_ns,
            peer_sent_ns: reply.sent_ns,
            received_ns: received_ns.max(sent_ns),
        };
        if self.found.last().is_none_or(|peer| peer.clock != reply.clock) {
            let address = self.address.clone();
            self.found.push(ClockPeer { address, clock: reply.clock, ..ClockPeer::default() });
        }
        self.found.last_mut()?.exchanges.push(exchange);
        Some(exchange)
    }

    fn lose(&mut self) -> Option<ClockExchange> {
        if let Some(peer) = self.found.last_mut() {
            peer.lost += 1;
        }
        None
    }

    /// What was found since the last time. There are several peers if another machine has the address now, or the peer started again.
    pub fn take(&mut self) -> Vec<ClockPeer> {
        let last = self.found.last().map(|peer| ClockPeer {
            address: peer.address.clone(),
            clock: peer.clock.clone(),
            ..ClockPeer::default()
        });
        let mut found = std::mem::replace(&mut self.found, last.into_iter().collect());
        found.retain(|peer| !peer.exchanges.is_empty() || peer.lost > 0 || peer.refused > 0);
        found
    }
}

/// The addresses of `HOST`, `HOST:PORT`, an IPv6 address or `[IPV6]:PORT`.
fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let ip = address.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match ip {
        Ok(ip) => Ok(vec![SocketAddr::new(ip, PORT)]),
        Err(_) if has_port => Ok(address.to_socket_addrs()?.collect()),
        Err(_) => Ok((address, PORT).to_socket_addrs()?.collect()),
    }
}

/// A number that nobody can guess, so that nobody else can reply.
fn random() -> Nonce {
    let mut nonce = Nonce::default();
    // SAFETY: the buffer outlives the call, and its length is right.
    let got = unsafe { libc::getrandom(nonce.as_mut_ptr().cast(), nonce.len(), 0) };
    if got != nonce.len() as isize {
        // Early in the boot. The number still differs from those before.
        nonce[..8].copy_from_slice(&clock::now_ns().to_ne_bytes());
    }
    nonce
}
