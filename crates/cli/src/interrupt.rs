//! Ctrl-C and its relatives, for work that ends in order. A second one ends the program at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::flag as on_signal;
use signal_hook::iterator::Signals;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The exit code of a program that was interrupted, as shells give it.
pub const EXIT_CODE: u8 = 130;

/// A flag that SIGINT, SIGTERM and SIGHUP set. So does SIGUSR2, which a viewer sends to its recorder. The recorder may have got Ctrl-C from the
/// terminal before, so SIGUSR2 is never the second one.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    on_signal::register(SIGUSR2, flag.clone()).expect("this signal can be handled");
    for signal in SIGNALS {
        // In this order: the second signal finds the flag set and ends the program.
        on_signal::register_conditional_shutdown(signal, EXIT_CODE.into(), flag.clone())
            .and_then(|_| on_signal::register(signal, flag.clone()))
            .expect("these signals can be handled");
    }
    flag
}

/// Calls `act` in a thread of its own at the first of these signals.
pub fn at_first(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    flag();
    let mut signals = Signals::new(SIGNALS)?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            act();
        }
    });
    Ok(())
}
