//! The clients of avatars, which run on one thread instead of other machines.
//!
//! In each round every client receives the region's datagrams of the last step and sends the action of its avatar. The
//! region waits for the round, so all actions have arrived when it receives.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::packets::{AgentUpdate, LARGEST_DATAGRAM, decode_object_updates};
use crate::random::{Random, mixed};

/// A round of all clients.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// The step of their avatars.
    pub step: u64,
    /// Datagrams that the region sent to each client since the last round.
    pub sent_to_each: usize,
}

/// Longest time that a client waits for a datagram, which may be lost. Shorter than the region waits for clients.
const PATIENCE: Duration = Duration::from_millis(500);

/// The thread of all clients. Ends when this is dropped.
pub struct Bots {
    rounds: Option<Sender<Round>>,
    rounds_done: Receiver<()>,
    seen: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Bots {
    /// Starts clients with these sockets, each connected to the region.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(sockets: Vec<UdpSocket>) -> io::Result<Self> {
        sockets.iter().try_for_each(|socket| socket.set_read_timeout(Some(PATIENCE)))?;
        let (rounds, started) = mpsc::channel();
        let seen = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&seen);
        let (done, rounds_done) = mpsc::channel();
        let run = move || {
            for round in started {
                run_round(round, &sockets, &sum);
                // Fails only if the region is closing.
                let _ = done.send(());
            }
        };
        let thread = std::thread::Builder::new().name("bots".into()).spawn(run)?;
        Ok(Self { rounds: Some(rounds), rounds_done, seen, thread: Some(thread) })
    }

    /// Starts a round of the clients.
    pub fn start_round(&self, round: Round) {
        if let Some(rounds) = &self.rounds {
            // Fails only if the thread panicked.
            let _ = rounds.send(round);
        }
    }

    /// Waits for the end of the round, at most four times as long as a client waits for a lost datagram.
    pub fn wait_for_round(&self) {
        let _ = self.rounds_done.recv_timeout(4 * PATIENCE);
    }

    /// A hash of all updates that the clients received before their last round.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }
}

impl Drop for Bots {
    fn drop(&mut self) {
        self.rounds = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[inline(never)]
fn run_round(round: Round, sockets: &[UdpSocket], seen: &AtomicU64) {
    for (agent, socket) in (0..).zip(sockets) {
        let sum = receive_updates(socket, round.sent_to_each).wrapping_mul(u64::from(agent) * 2 + 1);
        seen.fetch_add(sum, Ordering::Release);
        // The region waits a limited time for a lost datagram.
        let _ = socket.send(&agent_update(agent, round.step).encode());
    }
}

/// A hash of all updates in a number of datagrams. It does not depend on their order or distribution.
#[inline(never)]
fn receive_updates(socket: &UdpSocket, datagrams: usize) -> u64 {
    let mut bytes = [0; LARGEST_DATAGRAM];
    let mut sum = 0_u64;
    for _ in 0..datagrams {
        let Ok(length) = socket.recv(&mut bytes) else { break };
        for update in decode_object_updates(&bytes[..length]) {
            let [x, y, _] = update.position.map(f32::to_bits).map(u64::from);
            let look =
                update.colour.iter().fold(update.rotation.to_bits(), |sum, part| sum.rotate_left(7) ^ part.to_bits());
            sum = sum.wrapping_add(mixed(u64::from(update.local_id) << 32 ^ x << 16 ^ y ^ u64::from(look)));
        }
    }
    sum
}

/// The action of an avatar: it turns every 16 steps, and walks, runs or stands.
fn agent_update(agent: u32, step: u64) -> AgentUpdate {
    let mut random = Random::new((u64::from(agent) << 32) + step / 16);
    let heading = random.next_unit() as f32 * std::f32::consts::TAU;
    AgentUpdate { agent, step: step as u32, heading, speed: (random.next_bits() % 3) as f32 * 2.0 }
}
