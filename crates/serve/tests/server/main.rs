//! A server on a real port, with clients that send what they like.

mod fuzzed;
mod live;
mod requests;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stepscope_serve::{Data, Limits, Page, ServeError, Server, Stop};

const PAGE: Page = Page { html: "<!doctype html><title>page</title>", script: "let script;", style: "p{}" };

/// Longest wait for anything. Only a defect reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server in a thread of this process.
struct Served {
    port: u16,
    token: String,
    ticket: String,
    stop: Stop,
    running: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    fn start(limits: Limits, data: Arc<dyn Data + Send + Sync>) -> Self {
        let server = Server::bind(0).unwrap().with_limits(limits);
        let (port, stop, url) = (server.port(), server.stop(), server.url());
        let token = url.split_once("?token=").unwrap().1.to_owned();
        let ticket = server.ticket_url().split_once("?ticket=").unwrap().1.to_owned();
        let running = Some(thread::spawn(move || server.run(&PAGE, &*data)));
        Self { port, token, ticket, stop, running }
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect_timeout(&self.address(), PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// What comes back until the server closes the connection.
    fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer(answer)
    }

    /// Asks for an address with these headers alone.
    fn ask(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.send(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes())
    }

    /// Asks as our page does, with more headers.
    fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let (host, bearer) = (self.host(), format!("Bearer {}", self.token));
        self.ask(path, &[&[("Host", host.as_str()), ("Authorization", &bearer)], headers].concat())
    }

    /// Asks as our page does.
    fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    fn end(&mut self) -> Result<(), ServeError> {
        self.stop.stop();
        self.running.take().map_or(Ok(()), |running| running.join().expect("the server does not panic"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end().unwrap();
        }
    }
}

/// The bytes of a response.
struct Answer(Vec<u8>);

impl Answer {
    fn head(&self) -> String {
        let end = self.0.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    fn body(&self) -> &[u8] {
        self.0.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(&[], |end| &self.0[end + 4..])
    }

    /// 0 if the server closed the connection without an answer.
    fn status(&self) -> u16 {
        self.head().split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    fn header(&self, name: &str) -> Option<String> {
        let head = self.head();
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    }
}
