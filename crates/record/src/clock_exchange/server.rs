//! The machine that answers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stepscope_model::ClockId;

use super::datagram;
use super::socket::Socket;
use super::{ClockError, PORT};
use crate::clock;

/// Time between two looks at the flag that ends the server.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Answers requests for this machine's clock.
#[derive(Debug)]
pub struct Server {
    socket: Socket,
    clock: ClockId,
}

impl Server {
    /// Opens a server on this address; without one, on all addresses of the machine and [`PORT`].
    ///
    /// # Errors
    /// [`ClockError`], if the address is in use or not of this machine.
    pub fn bind(address: Option<SocketAddr>) -> Result<Self, ClockError> {
        let everywhere =
            [SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)), SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))];
        let bound = match address {
            Some(address) => UdpSocket::bind(address),
            None => UdpSocket::bind(&everywhere[..]),
        };
        let open = |socket: UdpSocket| {
            socket.set_read_timeout(Some(LOOK_EVERY))?;
            let clock = clock::id().ok_or_else(|| io::Error::other("the kernel does not name its boot"))?;
            Ok(Self { socket: Socket::new(socket), clock })
        };
        bound
            .and_then(open)
            .map_err(|source| ClockError::Socket { address: address.unwrap_or(everywhere[0]).to_string(), source })
    }

    /// The address that it answers on.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.0.local_addr()
    }

    /// Answers until the flag is set. Gives how many requests were answered.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn serve(&self, stop: &AtomicBool) -> io::Result<u64> {
        let mut answered = 0;
        while !stop.load(Ordering::Relaxed) {
            match self.answer_next() {
                Ok(is_answered) => answered += u64::from(is_answered),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(answered)
    }

    fn answer_next(&self) -> io::Result<bool> {
        let received = self.socket.receive(0)?;
        let (Some(nonce), Some(from)) = (datagram::read_request(received.bytes()), received.from) else {
            return Ok(false);
        };
        let reply = datagram::reply(nonce, received.time_ns, &self.clock, clock::now_ns);
        self.socket.0.send_to(&reply, from)?;
        Ok(true)
    }
}

/// Whether the next datagram may do better: the time is up, a signal came, or a client or its network is gone.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AddrNotAvailable, ConnectionRefused, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        PermissionDenied, TimedOut, WouldBlock,
    };
    matches!(
        error.kind(),
        AddrNotAvailable
            | ConnectionRefused
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
            | TimedOut
            | WouldBlock
    ) || error.raw_os_error() == Some(libc::ENOBUFS)
}
