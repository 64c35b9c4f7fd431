//! Ctrl-C and its relatives: a flag that long work looks at. A second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag as on_signal;

/// The exit code of a program that was interrupted, as shells give it.
pub const EXIT_CODE: u8 = 130;

/// A flag that SIGINT, SIGTERM and SIGHUP set.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the second signal finds the flag set and ends the program.
        on_signal::register_conditional_shutdown(signal, EXIT_CODE.into(), flag.clone())
            .and_then(|_| on_signal::register(signal, flag.clone()))
            .expect("these signals can be handled");
    }
    flag
}
