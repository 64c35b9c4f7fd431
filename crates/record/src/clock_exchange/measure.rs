//! A measurement beside recordings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stepscope_assemble::clocks::add_peer;
use stepscope_model::Clocks;

use super::{ClockError, ClockWatch};
use crate::clock;

/// Time between two looks at the flag that ends it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Asks a peer for its clock for this long, or until the flag is set.
///
/// # Errors
/// [`ClockError`], if it does not answer.
pub fn measure(address: &str, duration: Duration, stop: &AtomicBool) -> Result<Clocks, ClockError> {
    let start = Instant::now();
    let mut clocks = Clocks { own: clock::id(), wall: vec![clock::wall_reading()], peers: Vec::new() };
    let mut watch = ClockWatch::start(address)?;
    while start.elapsed() < duration && !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY.min(duration.saturating_sub(start.elapsed())));
        watch.take().into_iter().for_each(|peer| add_peer(&mut clocks, peer));
    }
    watch.finish();
    watch.take().into_iter().for_each(|peer| add_peer(&mut clocks, peer));
    clocks.wall.push(clock::wall_reading());
    Ok(clocks)
}
