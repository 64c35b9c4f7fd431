//! UDP with the kernel's time of reception, on the clock of recordings.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd as _;

use super::datagram::BYTES;
use crate::clock;

/// A socket that knows when its datagrams came.
#[derive(Debug)]
pub(super) struct Socket(pub UdpSocket);

/// A datagram.
#[derive(Debug)]
pub(super) struct Received {
    /// Its bytes; one more than the longest known datagram is enough to see that it is too long.
    pub bytes: [u8; BYTES + 1],
    pub length: usize,
    pub from: Option<SocketAddr>,
    /// When it came, on the clock of recordings. No earlier than it did.
    pub time_ns: u64,
}

impl Received {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Socket {
    /// Asks the kernel for the time of reception. Without it, the program's own time counts.
    pub fn new(socket: UdpSocket) -> Self {
        let on: libc::c_int = 1;
        // SAFETY: the option's value outlives the call, and its length is right.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            );
        }
        Self(socket)
    }

    /// Waits for a datagram. `not_before_ns` is a time that it cannot have come before: a time of the kernel before it is wrong, because
    /// the wall clock was set meanwhile.
    ///
    /// # Errors
    /// The system's, also if the socket's timeout has passed.
    pub fn receive(&self, not_before_ns: u64) -> io::Result<Received> {
        let mut received = Received { bytes: [0; BYTES + 1], length: 0, from: None, time_ns: 0 };
        // Aligned as a control message wants it, and with room for more than one.
        let mut control = [0_u64; 16];
        // SAFETY: all zero is a valid value of these structures. The buffers outlive the call, and their lengths are right.
        let (length, from, stamp_ns) = unsafe {
            let mut address: libc::sockaddr_storage = zeroed();
            let mut bytes = libc::iovec { iov_base: received.bytes.as_mut_ptr().cast(), iov_len: received.bytes.len() };
            let mut message: libc::msghdr = zeroed();
            message.msg_name = (&raw mut address).cast();
            message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_iov = &raw mut bytes;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control) as _;
            let length = libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0);
            if length < 0 {
                return Err(io::Error::last_os_error());
            }
            (length as usize, address_of(&address), stamp_of(&message))
        };
        let now_ns = clock::now_ns();
        let realtime = clock::realtime();
        // A little later than it was, so that no datagram comes before it is sent.
        let converted = stamp_ns.and_then(|unix_ns| {
            let time_ns = u64::try_from(unix_ns.checked_sub(realtime.offset_ns)?).ok()?;
            time_ns.checked_add(realtime.within_ns)
        });
        let is_sound = |time_ns: &u64| (not_before_ns..=now_ns).contains(time_ns);
        received.time_ns = converted.filter(is_sound).unwrap_or(now_ns);
        (received.length, received.from) = (length, from);
        Ok(received)
    }
}

/// The kernel's time of reception, in ns since 1970.
///
/// # Safety
/// `message` was filled by `recvmsg`, and its control buffer lives.
unsafe fn stamp_of(message: &libc::msghdr) -> Option<i64> {
    // SAFETY: these walk over the control messages that the kernel wrote, within the length that it gave.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(message);
        while !next.is_null() {
            let header = next.read_unaligned();
            let is_time = header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS;
            if is_time && header.cmsg_len as usize >= libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as usize {
                let time = libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned();
                return time.tv_sec.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec);
            }
            next = libc::CMSG_NXTHDR(message, next);
        }
    }
    None
}

fn address_of(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let storage: *const libc::sockaddr_storage = storage;
    // SAFETY: the storage is large enough for every address and aligned for it, and the family says which one it holds.
    unsafe {
        match i32::from((*storage).ss_family) {
            libc::AF_INET => {
                let address = &*storage.cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(address.sin_port)))
            }
            libc::AF_INET6 => {
                let address = &*storage.cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                let (flow, scope) = (address.sin6_flowinfo, address.sin6_scope_id);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, u16::from_be(address.sin6_port), flow, scope)))
            }
            _ => None,
        }
    }
}
