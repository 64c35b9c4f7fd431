//! The clients of avatars, as other machines would run them: one thread for all.
//!
//! In each turn every client takes what the region sent it in the last one, and sends what its avatar does. A region's
//! heartbeat is long compared with that, so that all have spoken when the region listens.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::packets::{AgentUpdate, LARGEST_DATAGRAM, decode_object_updates};
use crate::random::{Random, mixed};

/// A turn of all clients.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// The step that their avatars are to be in.
    pub step: u64,
    /// Datagrams that the region sent each of them since the last turn.
    pub sent_to_each: usize,
}

/// Longest that a client waits for a datagram which the system may have lost; less than the region waits for clients.
const PATIENCE: Duration = Duration::from_millis(500);

/// The thread that runs all clients until this is dropped.
pub struct Bots {
    turns: Option<Sender<Turn>>,
    turns_over: Receiver<()>,
    seen: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Bots {
    /// Clients with these sockets, each connected to the region.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(sockets: Vec<UdpSocket>) -> io::Result<Self> {
        sockets.iter().try_for_each(|socket| socket.set_read_timeout(Some(PATIENCE)))?;
        let (turns, to_take) = mpsc::channel();
        let seen = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&seen);
        let (over, turns_over) = mpsc::channel();
        let run = move || {
            for turn in to_take {
                take_turn(turn, &sockets, &sum);
                // Nobody waits any more only if the region is at its end.
                let _ = over.send(());
            }
        };
        let thread = std::thread::Builder::new().name("bots".into()).spawn(run)?;
        Ok(Self { turns: Some(turns), turns_over, seen, thread: Some(thread) })
    }

    /// Lets the clients take a turn.
    pub fn begin(&self, turn: Turn) {
        if let Some(turns) = &self.turns {
            // Nobody takes turns any more only if the thread panicked, which joining it will tell.
            let _ = turns.send(turn);
        }
    }

    /// Waits until all clients have taken their turn, or those that have lost a datagram hold it up for long.
    pub fn wait_for_turn(&self) {
        let _ = self.turns_over.recv_timeout(4 * PATIENCE);
    }

    /// A hash of all that the clients saw before their last turn.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }
}

impl Drop for Bots {
    fn drop(&mut self) {
        self.turns = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[inline(never)]
fn take_turn(turn: Turn, sockets: &[UdpSocket], seen: &AtomicU64) {
    for (agent, socket) in (0..).zip(sockets) {
        let sum = receive_updates(socket, turn.sent_to_each).wrapping_mul(u64::from(agent) * 2 + 1);
        seen.fetch_add(sum, Ordering::Release);
        // What cannot be sent is missed by the region, which waits for it only so long.
        let _ = socket.send(&agent_update(agent, turn.step).encode());
    }
}

/// A sum over all updates in so many datagrams, whatever their order and however they are dealt out to datagrams.
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

/// What an avatar does: it turns every 16 steps, and walks, runs or stands.
fn agent_update(agent: u32, step: u64) -> AgentUpdate {
    let mut random = Random::new((u64::from(agent) << 32) + step / 16);
    let heading = random.next_unit() as f32 * std::f32::consts::TAU;
    AgentUpdate { agent, step: step as u32, heading, speed: (random.next_bits() % 3) as f32 * 2.0 }
}
