//! The region's side of its clients: receives the actions of avatars and sends object updates.
//!
//! Each client has a circuit, which is a UDP socket. The step itself receives from all circuits at once, or a thread per
//! circuit receives.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::bots::{Bots, Round};
use super::packets::{AgentUpdate, UPDATES_A_DATAGRAM, encode_object_updates};
use super::scene::ObjectUpdate;
use crate::account::{self, Counter};
use crate::random::StateHash;
use crate::switches::{Switch, Switches};

/// Longest time that a step waits for a datagram, which may be lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// Timeout of a wait for circuits, ms. Threads check for the end of the run this often.
const POLL_MS: i32 = 100;

/// All clients.
pub struct Clients {
    circuits: Vec<Arc<UdpSocket>>,
    receiving: Receiving,
    bots: Bots,
    /// The last updates of entities, a ring buffer.
    recent: [ObjectUpdate; UPDATES_A_DATAGRAM],
    oldest: usize,
    updates_a_datagram: usize,
    sent_to_each: usize,
    sequence: u32,
}

impl Clients {
    /// Connects clients.
    ///
    /// # Errors
    /// If there are too many for the system.
    pub fn connect(number: u32, switches: &Switches) -> io::Result<Self> {
        allow_open_files(2 * u64::from(number) + 64)?;
        let pairs = (0..number).map(|_| circuit()).collect::<io::Result<Vec<_>>>()?;
        let (circuits, sockets): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let receiving = if switches.is_slow(Switch::ThreadPerClient) {
            Receiving::ByThreads(ClientThreads::start(&circuits)?)
        } else {
            Receiving::ByLoop(EventLoop::new(circuits.clone())?)
        };
        Ok(Self {
            receiving,
            bots: Bots::start(sockets)?,
            circuits,
            recent: [ObjectUpdate::default(); UPDATES_A_DATAGRAM],
            oldest: 0,
            updates_a_datagram: if switches.is_slow(Switch::PerUpdatePacket) { 1 } else { UPDATES_A_DATAGRAM },
            sent_to_each: 0,
            sequence: 0,
        })
    }

    /// Starts a step: the clients receive updates and send the actions of their avatars.
    pub fn start_step(&self, step: u64) {
        if self.circuits.is_empty() {
            return;
        }
        if let Receiving::ByThreads(threads) = &self.receiving {
            threads.inbox.expect(self.circuits.len());
        }
        self.bots.start_round(Round { step, sent_to_each: self.sent_to_each });
    }

    /// The actions of avatars, ordered by avatar and step. They may include late ones of earlier steps.
    #[inline(never)]
    pub fn receive_agent_updates(&mut self) -> Vec<AgentUpdate> {
        if self.circuits.is_empty() {
            return Vec::new();
        }
        let _timed = account::scope("ground::region::clients::Clients::receive_agent_updates");
        self.bots.wait_for_round();
        let mut updates = match &self.receiving {
            Receiving::ByThreads(threads) => threads.inbox.take(),
            Receiving::ByLoop(all) => all.event_loop(),
        };
        updates.sort_unstable_by_key(|update| (update.agent, update.step));
        updates
    }

    /// Sends the last updates of entities to every client.
    #[inline(never)]
    pub fn send_object_updates(&mut self, news: &[ObjectUpdate]) {
        if self.circuits.is_empty() {
            return;
        }
        let _timed = account::scope("ground::region::clients::Clients::send_object_updates");
        for update in news.iter().skip(news.len().saturating_sub(UPDATES_A_DATAGRAM)) {
            self.recent[self.oldest] = *update;
            self.oldest = (self.oldest + 1) % UPDATES_A_DATAGRAM;
        }
        let mut datagram = Vec::new();
        for circuit in &self.circuits {
            for updates in self.recent.chunks(self.updates_a_datagram) {
                encode_object_updates(self.sequence, updates, &mut datagram);
                send_packet(circuit, &datagram);
            }
        }
        self.sequence += 1;
        // Each step also sends one acknowledgement.
        self.sent_to_each = 1 + UPDATES_A_DATAGRAM / self.updates_a_datagram;
    }

    /// Adds what clients received to a hash.
    pub fn hash(&self, hash: &mut StateHash) {
        hash.add(self.bots.seen());
    }
}

/// Sends a datagram. If it is lost, the next step sends newer updates.
#[inline(never)]
fn send_packet(circuit: &UdpSocket, datagram: &[u8]) {
    account::count(Counter::DatagramsSent);
    let _ = circuit.send(datagram);
}

/// A pair of connected sockets: the region's and the client's.
fn circuit() -> io::Result<(Arc<UdpSocket>, UdpSocket)> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (circuit, socket) = (bind()?, bind()?);
    circuit.connect(socket.local_addr()?)?;
    socket.connect(circuit.local_addr()?)?;
    circuit.set_nonblocking(true)?;
    Ok((Arc::new(circuit), socket))
}

/// Raises the limit of open files as far as permitted.
fn allow_open_files(number: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to an rlimit that lives through the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur >= number {
        return Ok(());
    }
    limit.rlim_cur = number.min(limit.rlim_max);
    // SAFETY: as above.
    if limit.rlim_cur < number || unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
        let message =
            format!("these clients need {number} open files; raise the limit with `ulimit -n`, or use fewer clients");
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
    }
    Ok(())
}

/// Actions that were received and not yet taken.
#[derive(Default)]
struct Inbox {
    received: Mutex<Received>,
    is_complete: Condvar,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Received {
    updates: Vec<AgentUpdate>,
    expected: usize,
}

impl Inbox {
    /// Sets the number of actions to expect.
    fn expect(&self, number: usize) {
        self.lock().expected = number;
    }

    #[inline(never)]
    fn put(&self, update: AgentUpdate) {
        let mut received = self.lock();
        received.updates.push(update);
        if received.updates.len() >= received.expected {
            self.is_complete.notify_one();
        }
    }

    /// Waits for all expected actions. Returns fewer if some were lost.
    fn take(&self) -> Vec<AgentUpdate> {
        let is_waiting = |received: &mut Received| received.updates.len() < received.expected;
        let waited = self.is_complete.wait_timeout_while(self.lock(), PATIENCE, is_waiting);
        std::mem::take(&mut waited.expect("nothing panics while it is held").0.updates)
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("nothing panics while it is held")
    }
}

/// How the region receives.
enum Receiving {
    ByThreads(ClientThreads),
    ByLoop(EventLoop),
}

/// A thread per client. The threads end when this is dropped.
struct ClientThreads {
    inbox: Arc<Inbox>,
    threads: Vec<JoinHandle<()>>,
}

impl ClientThreads {
    fn start(circuits: &[Arc<UdpSocket>]) -> io::Result<Self> {
        let mut started = Self { inbox: Arc::default(), threads: Vec::new() };
        for circuit in circuits {
            let (circuit, inbox) = (Arc::clone(circuit), Arc::clone(&started.inbox));
            let thread = std::thread::Builder::new().name("client".into()).stack_size(128 << 10);
            started.threads.push(thread.spawn(move || {
                while !inbox.is_over.load(Ordering::Relaxed) {
                    client_loop(&circuit, &inbox);
                }
            })?);
        }
        Ok(started)
    }
}

impl Drop for ClientThreads {
    fn drop(&mut self) {
        self.inbox.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Datagrams that a thread receives between two checks for the end of the run.
const PACKETS_A_LOOP: u32 = 8;

/// The thread of one client: polls its circuit and puts actions into the inbox.
#[inline(never)]
fn client_loop(circuit: &UdpSocket, inbox: &Inbox) {
    let _timed = account::scope("ground::region::clients::client_loop");
    for _ in 0..PACKETS_A_LOOP {
        let mut polled = libc::pollfd { fd: circuit.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one pollfd that lives through the call.
        let ready = unsafe { libc::poll(&mut polled, 1, POLL_MS) };
        if ready <= 0 {
            return;
        }
        let mut datagram = [0; ROOM];
        if let Ok(length) = circuit.recv(&mut datagram)
            && let Some(update) = received(&datagram[..length])
        {
            // It may be lost; the client sends more in the next step.
            let _ = circuit.send(&update.acknowledgement());
            account::count(Counter::DatagramsSent);
            inbox.put(update);
        }
    }
}

/// Room for an agent update, and one byte more to recognise longer datagrams.
const ROOM: usize = AgentUpdate::BYTES + 1;

fn received(datagram: &[u8]) -> Option<AgentUpdate> {
    account::count(Counter::DatagramsReceived);
    AgentUpdate::decode(datagram)
}

/// Receives from all circuits with one `epoll`.
struct EventLoop {
    circuits: Vec<Arc<UdpSocket>>,
    epoll: OwnedFd,
}

/// Most circuits that one wait reports.
const EVENTS: usize = 512;

impl EventLoop {
    fn new(circuits: Vec<Arc<UdpSocket>>) -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened just now and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        for (index, circuit) in (0..).zip(&circuits) {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: index };
            // SAFETY: the pointer is to an event that lives through the call.
            let added =
                unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, circuit.as_raw_fd(), &mut event) };
            if added != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self { circuits, epoll })
    }

    /// Receives one action per circuit, or until a wait times out.
    #[inline(never)]
    fn event_loop(&self) -> Vec<AgentUpdate> {
        let _timed = account::scope("ground::region::clients::EventLoop::event_loop");
        let mut updates = Vec::with_capacity(self.circuits.len());
        while updates.len() < self.circuits.len() {
            let before = updates.len();
            self.receive_ready(&mut updates);
            if updates.len() == before {
                break;
            }
        }
        updates
    }

    /// Waits for ready circuits and receives from each.
    fn receive_ready(&self, updates: &mut Vec<AgentUpdate>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let room = events.len() as i32;
        // SAFETY: the pointer and the length belong to one array that lives through the call.
        let ready = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), room, POLL_MS) };
        let ready = &events[..usize::try_from(ready).unwrap_or(0)];
        for event in ready {
            let Some(circuit) = self.circuits.get(event.u64 as usize) else { continue };
            let mut datagram = [0; ROOM];
            let Ok(length) = circuit.recv(&mut datagram) else { continue };
            let Some(update) = received(&datagram[..length]) else { continue };
            // It may be lost; the client sends more in the next step.
            let _ = circuit.send(&update.acknowledgement());
            account::count(Counter::DatagramsSent);
            updates.push(update);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_receive_and_send_give_every_client_the_same() {
        let seen =
            [Switches::default(), Switches::only(Switch::ThreadPerClient), Switches::only(Switch::PerUpdatePacket)]
                .map(|switches| {
                    let mut clients = Clients::connect(5, &switches).unwrap();
                    for step in 0..20 {
                        clients.start_step(step);
                        let updates = clients.receive_agent_updates();
                        let heard: Vec<_> = updates.iter().map(|update| (update.agent, update.step)).collect();
                        assert_eq!(heard, [0, 1, 2, 3, 4].map(|agent| (agent, step as u32)));
                        let news = |id| ObjectUpdate { local_id: id, rotation: step as f32, ..ObjectUpdate::default() };
                        clients.send_object_updates(&[1, 2, 3].map(news));
                    }
                    clients.bots.seen()
                });
        assert_ne!(seen[0], 0);
        assert_eq!(seen, [seen[0]; 3]);
    }

    #[test]
    fn a_region_without_clients_does_not_wait() {
        let mut clients = Clients::connect(0, &Switches::only(Switch::ThreadPerClient)).unwrap();
        clients.start_step(0);
        assert!(clients.receive_agent_updates().is_empty());
        clients.send_object_updates(&[]);
    }
}
