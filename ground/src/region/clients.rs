//! The region's side of its clients: receives what avatars do, and sends what they see.
//!
//! Each client has a circuit, a UDP socket of its own. Datagrams are received by the step itself, which waits for all
//! circuits at once, or by a thread for each of them.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::bots::{Bots, Turn};
use super::packets::{AgentUpdate, UPDATES_A_DATAGRAM, encode_object_updates};
use super::scene::ObjectUpdate;
use crate::account::{self, Counter};
use crate::random::StateHash;
use crate::switches::{Switch, Switches};

/// Longest that a step waits for a datagram which the system may have lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest that is waited for circuits at a time, ms. So often, threads look whether they are to end.
const POLL_MS: i32 = 100;

/// All clients.
pub struct Clients {
    circuits: Vec<Arc<UdpSocket>>,
    receiving: Receiving,
    bots: Bots,
    /// What was last told of entities, for everyone to see; the oldest is replaced first.
    recent: [ObjectUpdate; UPDATES_A_DATAGRAM],
    oldest: usize,
    updates_a_datagram: usize,
    sent_to_each: usize,
    sequence: u32,
}

impl Clients {
    /// Connects so many clients.
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

    /// Lets the clients see what they were sent, and say what their avatars do in this step.
    pub fn begin(&self, step: u64) {
        if self.circuits.is_empty() {
            return;
        }
        if let Receiving::ByThreads(threads) = &self.receiving {
            threads.inbox.expect(self.circuits.len());
        }
        self.bots.begin(Turn { step, sent_to_each: self.sent_to_each });
    }

    /// What each client said that its avatar does, in the order of avatars, and what came too late for earlier steps
    /// before it.
    #[inline(never)]
    pub fn receive_agent_updates(&mut self) -> Vec<AgentUpdate> {
        if self.circuits.is_empty() {
            return Vec::new();
        }
        let _timed = account::scope("ground::region::clients::Clients::receive_agent_updates");
        self.bots.wait_for_turn();
        let mut updates = match &self.receiving {
            Receiving::ByThreads(threads) => threads.inbox.take(),
            Receiving::ByLoop(all) => all.event_loop(),
        };
        updates.sort_unstable_by_key(|update| (update.agent, update.step));
        updates
    }

    /// Sends every client what was last told of entities.
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
        // One more acknowledged what they said.
        self.sent_to_each = 1 + UPDATES_A_DATAGRAM / self.updates_a_datagram;
    }

    /// Takes what clients saw into a hash.
    pub fn hash(&self, hash: &mut StateHash) {
        hash.add(self.bots.seen());
    }
}

/// What is lost on its way to a client is told again in the next step.
#[inline(never)]
fn send_packet(circuit: &UdpSocket, datagram: &[u8]) {
    account::count(Counter::DatagramsSent);
    let _ = circuit.send(datagram);
}

/// A client's socket at the region and its own.
fn circuit() -> io::Result<(Arc<UdpSocket>, UdpSocket)> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (circuit, socket) = (bind()?, bind()?);
    circuit.connect(socket.local_addr()?)?;
    socket.connect(circuit.local_addr()?)?;
    circuit.set_nonblocking(true)?;
    Ok((Arc::new(circuit), socket))
}

/// Raises how many files this process may have open, as far as it may.
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
            format!("so many clients need {number} open files; raise the limit with `ulimit -n`, or give fewer");
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
    }
    Ok(())
}

/// What was received and not yet taken.
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
    /// So many are to come.
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

    /// Waits until all that are expected have come; gives fewer if the system lost some.
    fn take(&self) -> Vec<AgentUpdate> {
        let is_waiting = |received: &mut Received| received.updates.len() < received.expected;
        let waited = self.is_complete.wait_timeout_while(self.lock(), PATIENCE, is_waiting);
        std::mem::take(&mut waited.expect("nothing panics while it is held").0.updates)
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("nothing panics while it is held")
    }
}

/// Who receives.
enum Receiving {
    ByThreads(ClientThreads),
    ByLoop(EventLoop),
}

/// A thread for each client, until this is dropped.
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

/// Datagrams that a client's thread receives before it looks whether it is to end.
const PACKETS_A_LOOP: u32 = 8;

/// The thread of one client: polls its circuit, and passes on what comes.
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
            // Like all that is sent, it may be lost: the client says more in the next step.
            let _ = circuit.send(&update.acknowledgement());
            account::count(Counter::DatagramsSent);
            inbox.put(update);
        }
    }
}

/// Room for an agent update, and for one byte more, which shows that it is something else.
const ROOM: usize = AgentUpdate::BYTES + 1;

fn received(datagram: &[u8]) -> Option<AgentUpdate> {
    account::count(Counter::DatagramsReceived);
    AgentUpdate::decode(datagram)
}

/// Waits for all circuits at once.
struct EventLoop {
    circuits: Vec<Arc<UdpSocket>>,
    epoll: OwnedFd,
}

/// Circuits that are told ready at once, at most.
const EVENTS: usize = 512;

impl EventLoop {
    fn new(circuits: Vec<Arc<UdpSocket>>) -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened just now, and nobody else knows it.
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

    /// Receives until it is as much as there are circuits, or nothing comes for long.
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

    /// Waits until circuits are ready, and receives from each of them.
    fn receive_ready(&self, updates: &mut Vec<AgentUpdate>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let room = events.len() as i32;
        // SAFETY: the pointer is to as many events as are said, which live through the call.
        let ready = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), room, POLL_MS) };
        let ready = &events[..usize::try_from(ready).unwrap_or(0)];
        for event in ready {
            let Some(circuit) = self.circuits.get(event.u64 as usize) else { continue };
            let mut datagram = [0; ROOM];
            let Ok(length) = circuit.recv(&mut datagram) else { continue };
            let Some(update) = received(&datagram[..length]) else { continue };
            // Like all that is sent, it may be lost: the client says more in the next step.
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
    fn every_client_is_heard_in_every_step_and_sees_the_same_whoever_receives_and_however_it_is_sent() {
        let seen =
            [Switches::default(), Switches::only(Switch::ThreadPerClient), Switches::only(Switch::PerUpdatePacket)]
                .map(|switches| {
                    let mut clients = Clients::connect(5, &switches).unwrap();
                    for step in 0..20 {
                        clients.begin(step);
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
    fn a_region_without_clients_waits_for_nobody() {
        let mut clients = Clients::connect(0, &Switches::only(Switch::ThreadPerClient)).unwrap();
        clients.begin(0);
        assert!(clients.receive_agent_updates().is_empty());
        clients.send_object_updates(&[]);
    }
}
