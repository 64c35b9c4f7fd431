//! Exchanges beside a recording.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stepscope_model::ClockPeer;

use super::{Client, ClockError};

/// Exchanges at the start and at the end: the error is smallest where many are.
const BURST: u32 = 8;
/// Time between two of these.
const BURST_PAUSE: Duration = Duration::from_millis(10);
/// Time between two exchanges otherwise.
const EVERY: Duration = Duration::from_secs(1);
/// How long a reply is waited for.
const WAIT: Duration = Duration::from_millis(300);
/// How long the exchanges at the end may take. A peer that is gone must not delay the end of a recording much.
const LONGEST_END: Duration = Duration::from_millis(500);

/// Asks a peer for its clock, in a thread of its own, until it is finished or dropped.
#[derive(Debug)]
pub struct ClockWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    found: Mutex<Vec<ClockPeer>>,
}

impl ClockWatch {
    /// Starts to ask the peer.
    ///
    /// # Errors
    /// [`ClockError`], if it does not answer.
    pub fn start(address: &str) -> Result<Self, ClockError> {
        let client = Client::connect(address)?;
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("clock".to_owned()).spawn(move || of_thread.run(client));
        let failed = |source| ClockError::Socket { address: address.to_owned(), source };
        Ok(Self { shared, thread: Some(thread.map_err(failed)?) })
    }

    /// The exchanges since the last time.
    pub fn take(&self) -> Vec<ClockPeer> {
        self.shared.found.lock().map(|mut found| std::mem::take(&mut *found)).unwrap_or_default()
    }

    /// Makes the last exchanges, and ends.
    pub fn finish(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    fn run(&self, mut client: Client) {
        for _ in 0..BURST {
            if self.stop.load(Ordering::Relaxed) || !self.exchange(&mut client, WAIT) {
                break;
            }
            thread::park_timeout(BURST_PAUSE);
        }
        while !self.stop.load(Ordering::Relaxed) {
            thread::park_timeout(EVERY);
            if !self.stop.load(Ordering::Relaxed) && !self.exchange(&mut client, WAIT) {
                return;
            }
        }
        let end = Instant::now() + LONGEST_END;
        for _ in 0..BURST {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.exchange(&mut client, WAIT.min(left)) {
                return;
            }
        }
    }

    /// Makes an exchange. `false` if the socket fails: a recording goes on without it.
    fn exchange(&self, client: &mut Client, wait: Duration) -> bool {
        let is_open = client.exchange(wait).is_ok();
        if let Ok(mut found) = self.found.lock() {
            found.extend(client.take());
        }
        is_open
    }
}
