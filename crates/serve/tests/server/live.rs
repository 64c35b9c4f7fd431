//! Viewers of a live recording.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use stepscope_serve::{Command, Data, Feed, Limits, Refusal, Subscription, Viewers};
use tokio_tungstenite::tungstenite::client::{IntoClientRequest, client};
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use crate::{PATIENCE, Served};

/// Counts up: each message is a number, and padding.
struct Counter {
    viewers: Mutex<Option<Viewers>>,
    sent: AtomicU64,
    padding: usize,
}

impl Counter {
    fn new(limit_bytes: usize, padding: usize) -> Arc<Self> {
        Arc::new(Self { viewers: Mutex::new(Some(Viewers::new(limit_bytes))), sent: AtomicU64::new(0), padding })
    }

    fn send(&self) {
        let viewers = self.viewers.lock().unwrap();
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.resize(8 + self.padding, 0);
        viewers.as_ref().unwrap().send(&Bytes::from(bytes));
    }

    fn has_viewers(&self) -> bool {
        !self.viewers.lock().unwrap().as_ref().unwrap().is_empty()
    }
}

impl Feed for Counter {
    /// Everything so far is the last number.
    fn subscribe(&self) -> Subscription {
        let viewers = self.viewers.lock().unwrap();
        let so_far = vec![Bytes::copy_from_slice(&self.sent.load(Ordering::Relaxed).to_le_bytes())];
        Subscription { so_far, updates: viewers.as_ref().unwrap().join() }
    }

    fn command(&self, command: Command) -> Result<String, String> {
        match command {
            Command::Save { seconds } => Ok(format!("saved {seconds:?}")),
            Command::Mark { text } => Err(format!("cannot mark {text:?}")),
            Command::Stop {} => {
                self.viewers.lock().unwrap().take();
                Ok("stopped".to_owned())
            }
        }
    }
}

struct Recording(Arc<Counter>);

impl Data for Recording {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        Ok(format!(r#"{{"sent":{}}}"#, self.0.sent.load(Ordering::Relaxed)).into())
    }

    fn table(&self, _name: &str) -> Result<Vec<u8>, Refusal> {
        Err(Refusal::Absent)
    }

    fn feed(&self) -> Option<&dyn Feed> {
        Some(&*self.0)
    }
}

fn served(limits: Limits, counter: &Arc<Counter>) -> Served {
    Served::start(limits, Arc::new(Recording(counter.clone())))
}

fn request(served: &Served, protocols: &str, origin: Option<&str>) -> Request {
    let mut request = format!("ws://{}/live", served.host()).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", protocols.parse().unwrap());
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    request
}

type Socket = WebSocket<TcpStream>;

fn viewer(served: &Served) -> Socket {
    let protocols = format!("stepscope, token.{}", served.token);
    let origin = format!("http://{}", served.host());
    let (socket, answer) = client(request(served, &protocols, Some(&origin)), served.connect()).unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "stepscope");
    socket
}

/// The next message, but for those which only say that the connection holds: they may come at any time.
fn next(socket: &mut Socket) -> Message {
    loop {
        match socket.read().unwrap() {
            Message::Ping(_) => {}
            Message::Text(text) if text.contains(r#""kind":"alive""#) => {}
            other => return other,
        }
    }
}

fn text(socket: &mut Socket) -> String {
    match next(socket) {
        Message::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

fn number(socket: &mut Socket) -> u64 {
    match next(socket) {
        Message::Binary(bytes) => u64::from_le_bytes(bytes[..8].try_into().unwrap()),
        other => panic!("{other:?}"),
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let waited = (0..PATIENCE.as_millis()).any(|_| {
        thread::sleep(Duration::from_millis(1));
        condition()
    });
    assert!(waited);
}

#[test]
fn viewers_get_everything_so_far_and_then_each_message() {
    let counter = Counter::new(1 << 20, 0);
    let served = served(Limits::default(), &counter);
    (0..3).for_each(|_| counter.send());
    let mut viewers = [viewer(&served), viewer(&served)];
    for socket in &mut viewers {
        assert_eq!(text(socket), r#"{"kind":"start","dropped":0}"#);
        assert_eq!(number(socket), 3);
    }
    (0..3).for_each(|_| counter.send());
    for socket in &mut viewers {
        assert_eq!([number(socket), number(socket), number(socket)], [4, 5, 6]);
    }
    let manifest = served.get("/data/manifest.json");
    assert_eq!(
        (manifest.body(), manifest.header("cache-control").as_deref()),
        (&br#"{"sent":6}"#[..], Some("no-store"))
    );
    counter.send();
    assert_eq!(served.get("/data/manifest.json").body(), br#"{"sent":7}"#, "it is not kept");
}

#[test]
fn handshakes_without_a_token_or_from_elsewhere_are_refused() {
    let counter = Counter::new(1 << 20, 0);
    let served = served(Limits::default(), &counter);
    let good = format!("stepscope, token.{}", served.token);
    let refused = |protocols: &str, origin: Option<&str>| {
        let error = client(request(&served, protocols, origin), served.connect()).unwrap_err();
        error.to_string()
    };
    assert!(refused("stepscope", None).contains("401"));
    assert!(refused("stepscope, token.0", None).contains("401"));
    assert!(refused(&good, Some("http://evil.example")).contains("403"));
    assert!(refused(&good, Some("null")).contains("403"));
    assert!(!counter.has_viewers());
    // No handshake, and none that makes sense.
    assert_eq!(served.get_with("/live", &[("Sec-WebSocket-Protocol", &good)]).status(), 400);
    let half = [("Sec-WebSocket-Protocol", good.as_str()), ("Upgrade", "websocket"), ("Connection", "Upgrade")];
    assert_eq!(served.get_with("/live", &half).status(), 400);
}

#[test]
fn without_a_recording_nothing_is_live() {
    struct Finished;
    impl Data for Finished {
        fn manifest(&self) -> Result<Vec<u8>, Refusal> {
            Ok(Vec::new())
        }
        fn table(&self, _name: &str) -> Result<Vec<u8>, Refusal> {
            Err(Refusal::Absent)
        }
    }
    let served = Served::start(Limits::default(), Arc::new(Finished));
    let protocols = format!("stepscope, token.{}", served.token);
    assert!(client(request(&served, &protocols, None), served.connect()).unwrap_err().to_string().contains("404"));
}

#[test]
fn a_slow_viewer_hears_what_it_lost_and_starts_again() {
    // Large enough to fill the buffers of the sockets, which hold some megabytes.
    let counter = Counter::new(4 << 20, 1 << 20);
    let served = served(Limits { viewers: 2, ..Limits::default() }, &counter);
    let (mut slow, mut quick) = (viewer(&served), viewer(&served));
    assert_eq!(text(&mut quick), r#"{"kind":"start","dropped":0}"#);
    assert_eq!(number(&mut quick), 0);
    for sent in 1..=60 {
        counter.send();
        assert_eq!(number(&mut quick), sent, "the slow viewer delays nobody");
    }
    assert_eq!(text(&mut slow), r#"{"kind":"start","dropped":0}"#);
    let (mut last, mut lost) = (number(&mut slow), 0);
    while last < 60 {
        match next(&mut slow) {
            Message::Binary(bytes) => {
                let next = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                assert_eq!(next, last + 1, "no row is missing without a word");
                last = next;
            }
            Message::Text(news) => {
                let dropped: u64 = news.split(':').next_back().unwrap().trim_end_matches('}').parse().unwrap();
                assert_eq!(news.as_str(), format!(r#"{{"kind":"start","dropped":{dropped}}}"#));
                let so_far = number(&mut slow);
                assert!(dropped > 0 && last + dropped <= so_far, "{last} + {dropped}, {so_far}");
                (last, lost) = (so_far, lost + dropped);
            }
            _ => {}
        }
    }
    assert!(lost > 0);
    counter.send();
    assert_eq!(number(&mut slow), 61, "it goes on");
}

#[test]
fn viewers_that_are_gone_are_forgotten() {
    let counter = Counter::new(1 << 20, 0);
    let limits = Limits { ping_time: Duration::from_millis(50), ..Limits::default() };
    let served = served(limits, &counter);
    let mut left = viewer(&served);
    text(&mut left);
    wait_until(|| counter.has_viewers());
    drop(left);
    wait_until(|| !counter.has_viewers());
    // One that is still connected, but answers no ping: its machine is off.
    let mut silent = viewer(&served);
    text(&mut silent);
    wait_until(|| counter.has_viewers());
    wait_until(|| !counter.has_viewers());
    drop(silent);
}

#[test]
fn there_is_a_limit_of_viewers() {
    let counter = Counter::new(1 << 20, 0);
    let served = served(Limits { viewers: 1, ..Limits::default() }, &counter);
    let mut first = viewer(&served);
    text(&mut first);
    let protocols = format!("stepscope, token.{}", served.token);
    assert!(client(request(&served, &protocols, None), served.connect()).unwrap_err().to_string().contains("503"));
}

#[test]
fn commands_are_answered_and_nonsense_is_refused() {
    let counter = Counter::new(1 << 20, 0);
    let served = served(Limits::default(), &counter);
    let mut socket = viewer(&served);
    text(&mut socket);
    number(&mut socket);
    let mut ask = |message: &str| {
        socket.send(Message::text(message)).unwrap();
        text(&mut socket)
    };
    let save = ask(r#"{"id":1,"command":"save","seconds":10}"#);
    assert_eq!(save, r#"{"kind":"answer","id":1,"done":true,"text":"saved Some(10.0)"}"#);
    let mark = ask(r#"{"id":2,"command":"mark","text":"here"}"#);
    assert_eq!(mark, r#"{"kind":"answer","id":2,"done":false,"text":"cannot mark Some(\"here\")"}"#);
    for nonsense in ["", "{", "[]", r#"{"id":-1,"command":"save"}"#, r#"{"id":1,"command":"launch"}"#] {
        assert!(ask(nonsense).starts_with(r#"{"kind":"answer","id":0,"done":false,"text":"This is no command"#));
    }
    socket.send(Message::text(r#"{"id":3,"command":"stop"}"#)).unwrap();
    // The answer and the end race.
    let mut news = vec![text(&mut socket)];
    if !news[0].contains("end") {
        news.push(text(&mut socket));
    }
    assert_eq!(news.last().unwrap(), r#"{"kind":"end"}"#);
}

#[test]
fn a_viewer_that_sends_too_much_is_left() {
    let counter = Counter::new(1 << 20, 0);
    let served = served(Limits::default(), &counter);
    let mut socket = viewer(&served);
    text(&mut socket);
    let _ = socket.send(Message::text("x".repeat(1 << 20)));
    wait_until(|| !counter.has_viewers());
    text(&mut viewer(&served));
}

#[test]
fn frames_of_random_bytes_end_their_own_connection_alone() {
    let counter = Counter::new(1 << 20, 0);
    let served = served(Limits::default(), &counter);
    let mut other = viewer(&served);
    text(&mut other);
    number(&mut other);
    let mut random = fastrand::Rng::with_seed(17);
    for _ in 0..100 {
        let mut socket = viewer(&served);
        let mut bytes = vec![0; random.usize(1..2000)];
        random.fill(&mut bytes);
        // A masked message of the announced length, so that some of them are read to their end.
        if random.bool() {
            bytes.truncate(100);
            (bytes[0], bytes[1]) = (bytes[0] & 0x8f, 0x80 | (bytes.len().saturating_sub(6) as u8));
        }
        let stream = socket.get_mut();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    counter.send();
    assert_eq!(number(&mut other), 1, "the others go on");
    text(&mut viewer(&served));
}

#[test]
fn a_stopped_server_closes_viewers() {
    let counter = Counter::new(1 << 20, 0);
    let mut served = served(Limits::default(), &counter);
    let mut socket = viewer(&served);
    text(&mut socket);
    number(&mut socket);
    served.end().unwrap();
    while !matches!(socket.read(), Ok(Message::Close(_)) | Err(_)) {}
}
