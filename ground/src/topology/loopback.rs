//! The transport for "IPC off": datagrams over the loopback interface, and a receiving thread.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::message::{HEADER_BYTES, MAX_PAYLOAD_BYTES, Message};
use super::qos::Reliability;
use super::reader::Readers;
use crate::account::{Counter, count};

/// Most bytes of a message in a datagram. Larger messages are split.
const FRAGMENT_BYTES: usize = 60_000;
/// Bytes of the prefix: topic, writer, number, size of the message, offset of the fragment.
const PREFIX_BYTES: usize = 24;
/// Bytes in flight above which a reliable writer waits. Less than half of the kernel's default buffer.
const WINDOW_BYTES: usize = 96 << 10;
/// Approximate overhead of a datagram in the kernel.
const DATAGRAM_OVERHEAD_BYTES: usize = 1 << 10;
/// How long a reliable writer waits for room: the default `max_blocking_time` of DDS.
const MAX_BLOCKING_TIME: Duration = Duration::from_millis(100);

/// Sends messages through the loopback interface to the readers of their topic.
pub struct Loopback {
    socket: UdpSocket,
    window: Arc<Window>,
    is_closing: Arc<AtomicBool>,
    receiver: Mutex<Option<JoinHandle<()>>>,
}

/// Bytes in flight.
#[derive(Default)]
struct Window {
    bytes: Mutex<usize>,
    room: Condvar,
}

impl Window {
    fn enter(&self, bytes: usize, reliability: Reliability) {
        let mut under_way = lock!(self.bytes);
        if reliability == Reliability::Reliable {
            let is_full = |under_way: &mut usize| *under_way > 0 && *under_way + bytes > WINDOW_BYTES;
            let (held, waited) =
                self.room.wait_timeout_while(under_way, MAX_BLOCKING_TIME, is_full).expect("nothing panics in here");
            under_way = held;
            if waited.timed_out() {
                // Datagrams that did not arrive by now are lost.
                *under_way = 0;
            }
        }
        *under_way += bytes;
    }

    fn leave(&self, bytes: usize) {
        let mut under_way = lock!(self.bytes);
        *under_way = under_way.saturating_sub(bytes);
        drop(under_way);
        self.room.notify_all();
    }
}

/// Two connected sockets of the loopback interface.
fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let [one, other] = [UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?];
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

impl Loopback {
    /// Opens it; `topics` are the readers of each topic by its number.
    ///
    /// # Errors
    /// If sockets or a thread cannot be created.
    pub fn open(topics: Vec<Readers>) -> io::Result<Arc<Self>> {
        let (socket, receiving) = pair()?;
        let (window, is_closing) = (Arc::new(Window::default()), Arc::new(AtomicBool::new(false)));
        let receiver = Receiver {
            socket: receiving,
            topics,
            window: window.clone(),
            is_closing: is_closing.clone(),
            partial: HashMap::new(),
        };
        let thread = std::thread::Builder::new().name("transport".to_owned()).spawn(move || receiver.run())?;
        Ok(Arc::new(Self { socket, window, is_closing, receiver: Mutex::new(Some(thread)) }))
    }

    /// Sends a message. Datagrams that the interface rejects are lost.
    pub fn send(&self, topic: u32, message: &Message, reliability: Reliability) {
        let mut bytes = Vec::new();
        message.serialize(&mut bytes);
        let mut datagram = Vec::with_capacity(PREFIX_BYTES + bytes.len().min(FRAGMENT_BYTES));
        for (index, fragment) in bytes.chunks(FRAGMENT_BYTES).enumerate() {
            datagram.clear();
            datagram.extend_from_slice(&topic.to_le_bytes());
            datagram.extend_from_slice(&message.header.writer.to_le_bytes());
            datagram.extend_from_slice(&message.header.number.to_le_bytes());
            datagram.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            datagram.extend_from_slice(&((index * FRAGMENT_BYTES) as u32).to_le_bytes());
            datagram.extend_from_slice(fragment);
            self.window.enter(datagram.len() + DATAGRAM_OVERHEAD_BYTES, reliability);
            if self.socket.send(&datagram).is_ok() {
                count(Counter::DatagramsSent);
            }
        }
    }

    /// Ends the thread that receives.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        let _ = self.socket.send(&[]);
        if let Some(thread) = lock!(self.receiver).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.close();
    }
}

struct Receiver {
    socket: UdpSocket,
    topics: Vec<Readers>,
    window: Arc<Window>,
    is_closing: Arc<AtomicBool>,
    partial: HashMap<(u32, u32), Partial>,
}

/// An incomplete message.
struct Partial {
    number: u64,
    bytes: Vec<u8>,
    missing: usize,
}

impl Receiver {
    fn run(mut self) {
        let mut datagram = vec![0; PREFIX_BYTES + FRAGMENT_BYTES];
        loop {
            wait_readable(&self.socket);
            let received = self.socket.recv(&mut datagram);
            if self.is_closing.load(Ordering::Acquire) {
                return;
            }
            let Ok(length) = received else { continue };
            count(Counter::DatagramsReceived);
            self.window.leave(length + DATAGRAM_OVERHEAD_BYTES);
            if let Some((topic, message)) = self.assemble(&datagram[..length]) {
                let message = Arc::new(message);
                for reader in self.topics.get(topic as usize).into_iter().flatten() {
                    reader.deliver(message.clone());
                }
            }
        }
    }

    /// The message that this datagram completes.
    fn assemble(&mut self, datagram: &[u8]) -> Option<(u32, Message)> {
        let (prefix, fragment) = datagram.split_at_checked(PREFIX_BYTES)?;
        let narrow = |at: usize| u32::from_le_bytes(prefix[at..at + 4].try_into().expect("four bytes of the prefix"));
        let number = u64::from_le_bytes(prefix[8..16].try_into().expect("eight bytes of the prefix"));
        let (topic, writer, size, offset) = (narrow(0), narrow(4), narrow(16) as usize, narrow(20) as usize);
        if size == fragment.len() {
            return Some((topic, Message::deserialize(fragment)?));
        }
        if size > HEADER_BYTES + MAX_PAYLOAD_BYTES {
            return None;
        }
        let partial = self.partial.entry((topic, writer)).or_insert_with(|| Partial::new(number, size));
        if partial.number != number || partial.bytes.len() != size {
            *partial = Partial::new(number, size);
        }
        partial.bytes.get_mut(offset..offset.checked_add(fragment.len())?)?.copy_from_slice(fragment);
        partial.missing = partial.missing.saturating_sub(fragment.len());
        if partial.missing > 0 {
            return None;
        }
        let whole = self.partial.remove(&(topic, writer))?;
        Some((topic, Message::deserialize(&whole.bytes)?))
    }
}

impl Partial {
    fn new(number: u64, size: usize) -> Self {
        Self { number, bytes: vec![0; size], missing: size }
    }
}

/// Sleeps in `poll` until a datagram has come.
#[inline(never)]
fn wait_readable(socket: &UdpSocket) {
    let mut waiting = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to the one entry that is announced, and lives through the call.
    unsafe { libc::poll(&mut waiting, 1, -1) };
}

/// Transport threads without traffic, like those of a middleware on idle interfaces. They sleep in `poll` until the program
/// ends.
pub struct IdleThreads {
    _peers: Vec<UdpSocket>,
}

impl IdleThreads {
    /// Starts threads and returns when all are about to sleep.
    ///
    /// # Errors
    /// If sockets or threads cannot be created.
    pub fn start(count: u32) -> io::Result<Self> {
        let started = Arc::new(AtomicUsize::new(0));
        let mut peers = Vec::new();
        for _ in 0..count {
            let (peer, socket) = pair()?;
            let started = started.clone();
            let thread = std::thread::Builder::new().name("transport".to_owned());
            thread.spawn(move || idle_thread(&socket, &started))?;
            peers.push(peer);
        }
        while started.load(Ordering::Acquire) < peers.len() {
            std::thread::yield_now();
        }
        Ok(Self { _peers: peers })
    }
}

#[inline(never)]
fn idle_thread(socket: &UdpSocket, started: &AtomicUsize) {
    started.fetch_add(1, Ordering::Release);
    let mut datagram = [0];
    loop {
        wait_readable(socket);
        let _ = socket.recv(&mut datagram);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Header, Payload};
    use super::super::qos::{History, PassBy};
    use super::super::reader::Reader;
    use super::*;

    fn message(number: u64, size: usize) -> Message {
        let header = Header { writer: 3, number, stamp_ns: 5, period_ns: 1 };
        Message { header, payload: Payload::Bytes((0..size).map(|byte| (byte % 251) as u8).collect()) }
    }

    #[test]
    fn messages_of_all_sizes_arrive_at_the_readers_of_their_topic() {
        let readers = [(); 3].map(|()| Reader::new(History::KeepAll, PassBy::SharedPtr));
        let transport = Loopback::open(vec![vec![readers[0].clone()], readers[1..].to_vec()]).unwrap();
        let sizes = [0, 10, FRAGMENT_BYTES - HEADER_BYTES, FRAGMENT_BYTES, 1_000_000];
        for (number, size) in sizes.into_iter().enumerate() {
            transport.send(1, &message(number as u64, size), Reliability::Reliable);
        }
        for reader in &readers[1..] {
            for (number, size) in sizes.into_iter().enumerate() {
                let taken = loop {
                    match reader.take() {
                        Some(message) => break message,
                        None => std::thread::yield_now(),
                    }
                };
                assert!(*taken == message(number as u64, size), "message {number} of {size} bytes");
            }
        }
        assert!(!readers[0].is_ready(&[]));
        transport.close();
    }

    #[test]
    fn foreign_datagrams_are_dropped() {
        let (_, socket) = pair().unwrap();
        let (window, is_closing) = (Arc::default(), Arc::default());
        let mut receiver = Receiver { socket, topics: Vec::new(), window, is_closing, partial: HashMap::new() };
        assert!(receiver.assemble(&[0; PREFIX_BYTES - 1]).is_none());
        assert!(receiver.assemble(&[0xff; PREFIX_BYTES + 10]).is_none(), "four gigabytes are not allocated");
        let mut beyond = vec![0; PREFIX_BYTES + 10];
        beyond[16..20].copy_from_slice(&20_u32.to_le_bytes());
        beyond[20..24].copy_from_slice(&11_u32.to_le_bytes());
        assert!(receiver.assemble(&beyond).is_none(), "bytes 11 to 21 of 20");
        assert!(receiver.partial.len() <= 1);
    }
}
