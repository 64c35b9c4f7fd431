//! Publishes messages to other processes over TCP on the loopback interface.
//!
//! A thread sleeps in `poll` until a subscriber connects. Messages are sent on the thread that publishes. A subscriber that
//! is too slow is dropped.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Accepts subscribers. Stops when it is dropped.
pub struct Transport {
    port: u16,
    publisher: Publisher,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// Sends messages to subscribers. Cheap to clone.
#[derive(Clone, Default)]
pub struct Publisher {
    subscribers: Arc<Mutex<Subscribers>>,
}

#[derive(Default)]
struct Subscribers {
    newcomers: Vec<TcpStream>,
    welcomed: Vec<TcpStream>,
}

impl Transport {
    /// Listens at a port of the loopback interface; 0 takes a free one.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (wake, woken) = UnixStream::pair()?;
        let publisher = Publisher::default();
        let accepting = publisher.clone();
        let thread = std::thread::Builder::new()
            .name("transport".into())
            .spawn(move || accept_loop(&listener, &woken, &accepting))?;
        Ok(Self { port, publisher, wake, thread: Some(thread) })
    }

    /// The port it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where to publish to its subscribers.
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Publisher {
    /// Longest time that sending to a subscriber may block.
    const PATIENCE: Duration = Duration::from_millis(200);

    /// Whether there are subscribers without their first message.
    pub fn has_newcomers(&self) -> bool {
        !self.lock().newcomers.is_empty()
    }

    /// Whether there are subscribers that have their first message.
    pub fn has_subscribers(&self) -> bool {
        !self.lock().welcomed.is_empty()
    }

    /// Sends the newcomers their first message.
    pub fn welcome(&self, message: &str) {
        let mut subscribers = self.lock();
        let newcomers = std::mem::take(&mut subscribers.newcomers);
        subscribers.welcomed.extend(newcomers.into_iter().filter_map(|stream| sent(stream, message)));
    }

    /// Sends every welcomed subscriber a message.
    pub fn publish(&self, message: &str) {
        let mut subscribers = self.lock();
        let welcomed = std::mem::take(&mut subscribers.welcomed);
        subscribers.welcomed.extend(welcomed.into_iter().filter_map(|stream| sent(stream, message)));
    }

    fn add(&self, stream: TcpStream) {
        if stream.set_write_timeout(Some(Self::PATIENCE)).is_ok() {
            self.lock().newcomers.push(stream);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Subscribers> {
        self.subscribers.lock().expect("nothing panics while it is held")
    }
}

fn sent(mut stream: TcpStream, message: &str) -> Option<TcpStream> {
    stream.write_all(message.as_bytes()).ok()?;
    Some(stream)
}

#[inline(never)]
fn accept_loop(listener: &TcpListener, woken: &UnixStream, publisher: &Publisher) {
    while wait_readable([listener.as_raw_fd(), woken.as_raw_fd()]) == Some([true, false]) {
        if let Ok((stream, _)) = listener.accept() {
            // Linux does not inherit this from the listener; set for clarity.
            let _ = stream.set_nonblocking(false);
            publisher.add(stream);
        }
    }
}

/// Waits until one of these is readable, and returns which. `None` if the kernel refuses to wait.
fn wait_readable(fds: [RawFd; 2]) -> Option<[bool; 2]> {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: the pointer and the length are of one array that lives through the call.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        if ready > 0 {
            return Some(polled.map(|fd| fd.revents != 0));
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// Subscribes to a simulator and copies its messages to `out` until it ends.
///
/// # Errors
/// If no program listens on the port, or `out` fails.
pub fn echo(port: u16, out: &mut impl Write) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => out.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_welcomed_and_then_gets_every_message() {
        let transport = Transport::listen(0).unwrap();
        let publisher = transport.publisher();
        let port = transport.port();
        let subscriber = std::thread::spawn(move || {
            let mut received = Vec::new();
            echo(port, &mut received).unwrap();
            String::from_utf8(received).unwrap()
        });
        while !publisher.has_newcomers() {
            std::thread::yield_now();
        }
        publisher.publish("too early\n");
        publisher.welcome("scene\n");
        assert!(publisher.has_subscribers() && !publisher.has_newcomers());
        publisher.publish("one\n");
        publisher.publish("two\n");
        drop((publisher, transport));
        assert_eq!(subscriber.join().unwrap(), "scene\none\ntwo\n");
    }

    #[test]
    fn a_disconnected_subscriber_is_removed() {
        let transport = Transport::listen(0).unwrap();
        let publisher = transport.publisher();
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, transport.port())).unwrap());
        while !publisher.has_newcomers() {
            std::thread::yield_now();
        }
        publisher.welcome("scene\n");
        while publisher.has_subscribers() {
            publisher.publish("anybody?\n");
        }
    }
}
