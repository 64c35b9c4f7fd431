use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stepscope_model::{ClockExchange, ClockId};

use super::datagram::{BYTES, read_reply, read_request, reply, request};
use super::*;
use crate::clock;

const WAIT: Duration = Duration::from_millis(500);

/// A server until it is dropped.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Running {
    fn new() -> Self {
        let server = Server::bind(Some("127.0.0.1:0".parse().unwrap())).unwrap();
        let (address, stop) = (server.address().unwrap(), Arc::new(AtomicBool::new(false)));
        let flag = stop.clone();
        Self { address, stop, thread: Some(thread::spawn(move || server.serve(&flag).unwrap())) }
    }

    fn answered(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A peer that does with each request what a test says: datagrams to send back, in order.
fn peer(mut answers: impl FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static, requests: usize) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut bytes = [0; 2 * BYTES];
        for number in 0..requests {
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { return };
            for answer in answers(number, &bytes[..length]) {
                socket.send_to(&answer, from).unwrap();
            }
        }
    });
    address
}

fn answer(request: &[u8]) -> Vec<u8> {
    let now_ns = clock::now_ns();
    reply(read_request(request).unwrap(), now_ns, &clock(), || now_ns).to_vec()
}

fn clock() -> ClockId {
    let boot_id = "0123abcd-4567-89ef-0123-456789abcdef".to_owned();
    ClockId { host: "base".into(), boot_id, namespace_offset_ns: -7 }
}

#[test]
fn a_datagram_says_what_was_written_into_it() {
    let nonce = [7; 16];
    assert_eq!(read_request(&request(nonce)), Some(nonce));
    assert_eq!(read_reply(&request(nonce)), None);
    let bytes = reply(nonce, 5, &clock(), || 9);
    let read = read_reply(&bytes).unwrap();
    assert_eq!((read.nonce, read.received_ns, read.sent_ns, read.clock), (nonce, 5, 9, clock()));
    assert_eq!(read_request(&bytes), None);
    let long = ClockId { host: "ä".repeat(100), ..clock() };
    assert_eq!(read_reply(&reply(nonce, 0, &long, || 0)).unwrap().clock.host, "ä".repeat(27));
}

#[test]
fn datagrams_of_others_are_refused() {
    let good = reply([7; 16], 5, &clock(), || 9);
    let changed = |at: usize, byte: u8| {
        let mut bytes = good;
        bytes[at] = byte;
        read_reply(&bytes)
    };
    assert!(changed(20, 1).is_some());
    // Magic, version, kind, length of the host name, a control character in it.
    assert!(
        [(0, b'X'), (7, b'2'), (8, 3), (72, 200), (73, 0x1b)].iter().all(|&(at, byte)| changed(at, byte).is_none())
    );
    assert!((0..BYTES).all(|length| read_reply(&good[..length]).is_none() && read_request(&good[..length]).is_none()));
    assert!(read_reply(&[&good[..], &[0]].concat()).is_none());
}

#[test]
fn a_client_learns_the_clock_of_a_server() {
    let server = Running::new();
    let mut client = Client::connect(&server.address.to_string()).unwrap();
    for _ in 0..20 {
        client.exchange(WAIT).unwrap().expect("a reply");
    }
    let [found] = client.take().try_into().unwrap();
    assert_eq!(Some(found.clock), clock::id());
    assert_eq!((found.exchanges.len(), found.refused), (21, 0));
    for ClockExchange { sent_ns, peer_received_ns, peer_sent_ns, received_ns } in found.exchanges {
        // Both are this machine, so that all times are of one clock.
        assert!(sent_ns <= peer_received_ns && peer_received_ns <= peer_sent_ns && peer_sent_ns <= received_ns);
    }
    assert!(client.take().is_empty());
    assert_eq!(server.answered(), 21);
}

#[test]
fn a_server_ignores_what_is_no_request() {
    let server = Running::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    for junk in [&b""[..], b"hello", &[0xff; 300], &reply([1; 16], 0, &clock(), || 0), &request([1; 16])[..100]] {
        socket.send_to(junk, server.address).unwrap();
    }
    socket.send_to(&request([2; 16]), server.address).unwrap();
    let mut bytes = [0; 200];
    let length = socket.recv(&mut bytes).unwrap();
    assert_eq!(length, BYTES);
    assert_eq!(read_reply(&bytes[..length]).unwrap().nonce, [2; 16]);
    assert_eq!(server.answered(), 1);
}

#[test]
fn only_replies_to_our_requests_count_and_each_once() {
    let address = peer(
        |_, request| {
            let good = answer(request);
            let mut other = good.clone();
            other[16] ^= 1;
            let wrong_magic = [b"XTEPCLK1", &good[8..]].concat();
            vec![other, wrong_magic, vec![0; 3], good.clone(), good]
        },
        2,
    );
    let mut client = Client::connect(&address.to_string()).unwrap();
    client.exchange(WAIT).unwrap().expect("the second reply");
    let [found] = client.take().try_into().unwrap();
    assert_eq!((found.exchanges.len(), found.lost), (2, 0));
    // Before the first sound reply, nobody knows whose these are. The last one is not read any more.
    assert_eq!(found.refused, 1 + 3);
}

#[test]
fn lost_and_late_replies_do_no_harm() {
    let mut late = Vec::new();
    let address = peer(
        move |number, request| match number {
            // Lost.
            1 => Vec::new(),
            // Late: sent with the next one, in the other order.
            2 => {
                late = answer(request);
                Vec::new()
            }
            3 => vec![answer(request), late.clone()],
            _ => vec![answer(request)],
        },
        5,
    );
    let mut client = Client::connect(&address.to_string()).unwrap();
    let short = Duration::from_millis(30);
    assert_eq!(client.exchange(short).unwrap(), None);
    assert_eq!(client.exchange(short).unwrap(), None);
    assert!(client.exchange(WAIT).unwrap().is_some());
    assert!(client.exchange(WAIT).unwrap().is_some());
    let [found] = client.take().try_into().unwrap();
    assert_eq!((found.exchanges.len(), found.lost, found.refused), (3, 2, 0));
    // The late one is an exchange with a long round trip, which the fit does not need.
    let longest = found.exchanges.iter().filter_map(ClockExchange::round_trip_ns).max().unwrap();
    assert!(longest >= 25_000_000, "{longest}");
}

#[test]
fn a_silent_peer_is_an_error_that_says_what_to_do() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let error = Client::connect(&address).unwrap_err().to_string();
    assert!(error.contains("stepscope clock serve") && error.contains(&address), "{error}");
}

#[test]
fn a_watch_asks_at_the_start_and_at_the_end() {
    let server = Running::new();
    let mut watch = ClockWatch::start(&server.address.to_string()).unwrap();
    thread::sleep(Duration::from_millis(300));
    let count = |peers: Vec<stepscope_model::ClockPeer>| peers.iter().map(|peer| peer.exchanges.len()).sum::<usize>();
    let before = count(watch.take());
    watch.finish();
    let after = count(watch.take());
    // The first one, and those at the end.
    assert!(before + after > 8, "{before} {after}");
}

#[test]
fn a_watch_ends_soon_if_its_peer_is_gone() {
    let server = Running::new();
    let mut watch = ClockWatch::start(&server.address.to_string()).unwrap();
    server.answered();
    let start = std::time::Instant::now();
    watch.finish();
    // Far more than it waits, for a busy machine.
    assert!(start.elapsed() < Duration::from_secs(10));
}
