//! Ctrl-C and its relatives, for work that ends in order. A second one ends the program at once.
//!
//! One Ctrl-C may arrive twice: from the terminal, and from a parent (`timeout`, `sudo`, a task runner) that passes it on. So a signal
//! within [`ONE_CTRL_C`] of the first is not a second one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::flag as on_signal;
use signal_hook::iterator::Signals;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Signals so close together are one Ctrl-C.
const ONE_CTRL_C: Duration = Duration::from_millis(500);

/// The exit code of a program that was interrupted, as shells give it.
pub const EXIT_CODE: u8 = 130;

/// A flag that SIGINT, SIGTERM and SIGHUP set. So does SIGUSR2, which a viewer sends to its recorder. The recorder may have got Ctrl-C from the
/// terminal before, so SIGUSR2 is never the second one.
pub fn flag() -> Arc<AtomicBool> {
    let (flag, ends_at_once) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    on_signal::register(SIGUSR2, flag.clone()).expect("this signal can be handled");
    for signal in SIGNALS {
        on_signal::register_conditional_shutdown(signal, EXIT_CODE.into(), ends_at_once.clone())
            .and_then(|_| on_signal::register(signal, flag.clone()))
            .expect("these signals can be handled");
    }
    let act = move || {
        thread::sleep(ONE_CTRL_C);
        ends_at_once.store(true, Ordering::Relaxed);
    };
    after_first(act).expect("signals can be waited for");
    flag
}

/// Calls `act` in a thread of its own at the first of these signals.
pub fn at_first(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    flag();
    after_first(act)
}

/// Waits for the first of these signals in a thread of its own.
fn after_first(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(SIGNALS)?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            act();
        }
    });
    Ok(())
}
