//! Progress of work that takes longer than a second: on standard error, and only if it is a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes longer shows a progress line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Interval between redraws.
const REDRAW: Duration = Duration::from_millis(100);

/// Does `work`, which counts the bytes it consumes, and shows the count after the first second.
pub fn of_bytes<T>(what: &str, size: Option<u64>, work: impl FnOnce(&AtomicU64) -> T) -> T {
    let consumed = AtomicU64::new(0);
    watched(
        || work(&consumed),
        || {
            let bar = match size {
                Some(size) => bar(ProgressBar::new(size), "{msg} {bar:30} {bytes}/{total_bytes} {eta}"),
                None => bar(ProgressBar::no_length(), "{msg} {spinner} {bytes}"),
            };
            bar.with_message(what.to_owned())
        },
        |bar| bar.set_position(consumed.load(Ordering::Relaxed)),
    )
}

/// Does `work`, and shows `what` it is after the first second.
pub fn of_step<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let started = || bar(ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}").with_message(what.to_owned());
    watched(work, started, |bar| bar.tick())
}

/// A line that the caller rewrites, e.g. while recording. It is cut to the width of the terminal.
#[cfg(feature = "record")]
pub fn line() -> ProgressBar {
    bar(ProgressBar::new_spinner(), "{spinner} {wide_msg}")
}

fn bar(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.with_style(ProgressStyle::with_template(template).expect("the template is ours"))
}

fn watched<T>(
    work: impl FnOnce() -> T,
    show: impl FnOnce() -> ProgressBar + Send,
    redraw: impl Fn(&ProgressBar) + Send + Sync,
) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let started = Instant::now();
            while started.elapsed() < PATIENCE {
                thread::park_timeout(PATIENCE);
                if done.load(Ordering::Acquire) {
                    return;
                }
            }
            let bar = show();
            while !done.load(Ordering::Acquire) {
                redraw(&bar);
                thread::park_timeout(REDRAW);
            }
            bar.finish_and_clear();
        });
        // A guard, so that a panic in the work does not leave the watcher running for ever.
        let guard = DoneGuard { done: &done, watcher: watcher.thread().clone() };
        let result = work();
        drop(guard);
        result
    })
}

struct DoneGuard<'a> {
    done: &'a AtomicBool,
    watcher: thread::Thread,
}

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.watcher.unpark();
    }
}
