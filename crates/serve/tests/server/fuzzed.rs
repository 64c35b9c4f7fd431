//! Clients that send nonsense, half requests, too much, or nothing. After each the server answers as before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use stepscope_serve::{Data, Limits, Refusal};

use crate::{PATIENCE, Served};

struct Nothing;

impl Data for Nothing {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        Ok(b"{}".to_vec())
    }

    fn table(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        if name == "large" { Ok(vec![0; 64 << 20]) } else { Err(Refusal::Absent) }
    }
}

fn served(limits: Limits) -> Served {
    Served::start(limits, Arc::new(Nothing))
}

/// Soon enough for a test.
fn short() -> Limits {
    Limits { head_time: Duration::from_millis(100), stalled_time: Duration::from_millis(100), ..Limits::default() }
}

/// A busy machine may miss the short times of these tests, and a connection over the limit is closed: so the client tries again.
fn assert_answers(served: &Served) {
    let started = Instant::now();
    while served.get("/data/manifest.json").body() != b"{}" {
        assert!(started.elapsed() < PATIENCE, "the server does not answer any more");
    }
}

/// Until the server closes the connection.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    read
}

#[test]
fn random_bytes() {
    let served = served(short());
    let mut random = fastrand::Rng::with_seed(15);
    for _ in 0..200 {
        let mut bytes = vec![0; random.usize(..2000)];
        random.fill(&mut bytes);
        assert!(matches!(served.send(&bytes).status(), 0 | 400 | 408 | 431));
    }
    assert_answers(&served);
}

#[test]
fn requests_with_damaged_bytes() {
    let served = served(short());
    let host = served.host();
    let whole = format!(
        "GET /data/0/samples.parquet HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nUpgrade: websocket\r\n\r\n",
        served.token
    );
    let mut random = fastrand::Rng::with_seed(16);
    for _ in 0..300 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\r\n\0 :/%."[random.usize(..8)]),
            }
        }
        assert_ne!(served.send(&bytes).status(), 500);
    }
    assert_answers(&served);
}

#[test]
fn half_requests_and_idle_connections_are_closed_in_time() {
    let served = served(short());
    for half in ["", "G", "GET / HT", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", "\r\n\r\n"] {
        let mut stream = served.connect();
        stream.write_all(half.as_bytes()).unwrap();
        // Reads to the end of what the server sends: it closes, or this fails after a minute.
        assert!(!String::from_utf8_lossy(&read_to_end(&mut stream)).contains("200 OK"), "{half}");
    }
    assert_answers(&served);
}

/// A client that sends one byte now and then (slowloris) must not hold its connection longer than the headers may take.
#[test]
fn slow_headers_have_an_end() {
    let served = served(short());
    let mut stream = served.connect();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    let closed = (0..PATIENCE.as_millis() / 50).any(|_| {
        let is_open = stream.write_all(b"x").is_ok();
        let mut byte = [0];
        // A timeout is an error of its own kind; 0 bytes are the end.
        !is_open || matches!(stream.read(&mut byte), Ok(0)) || stream.take_error().unwrap().is_some()
    });
    assert!(closed);
    assert_answers(&served);
}

#[test]
fn huge_headers_are_refused() {
    let served = served(Limits::default());
    let host = served.host();
    let long = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(matches!(served.send(long.as_bytes()).status(), 0 | 431));
    let many = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "X: x\r\n".repeat(1000));
    assert!(matches!(served.send(many.as_bytes()).status(), 0 | 400 | 431));
    let path = format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(1 << 20));
    assert!(matches!(served.send(path.as_bytes()).status(), 0 | 414 | 431));
    assert_answers(&served);
}

#[test]
fn thousands_of_connections() {
    let served = served(Limits { connections: 64, ..short() });
    let address = served.address();
    for _ in 0..4 {
        // Twice the limit stays open at once; the sum is thousands.
        let open: Vec<_> = (0..128).filter_map(|_| TcpStream::connect_timeout(&address, PATIENCE).ok()).collect();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(move || {
                    (0..200).filter(|_| TcpStream::connect_timeout(&address, PATIENCE).is_ok()).count()
                })
            })
            .collect();
        assert!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>() > 0);
        drop(open);
    }
    assert_answers(&served);
}

/// A client that asks for much and takes nothing must not hold its connection.
#[test]
fn clients_that_take_no_bytes_are_left() {
    let served = served(Limits { connections: 1, ..short() });
    let mut greedy = served.connect();
    let (host, token) = (served.host(), &served.token);
    let request = format!("GET /data/large.parquet HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    greedy.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 15];
    greedy.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    // The only connection is free again without a byte more being read.
    assert_answers(&served);
    assert!(read_to_end(&mut greedy).len() < 64 << 20);
}
