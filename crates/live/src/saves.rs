//! The saves that go on, and the end that waits for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Time between two looks whether they are complete.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The saves that go on.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    number: AtomicUsize,
    are_last: AtomicBool,
}

impl Saves {
    /// Counts one as long as the guard lives.
    pub fn start(&self) -> impl Drop {
        struct Save<'a>(&'a Saves);
        impl Drop for Save<'_> {
            fn drop(&mut self) {
                self.0.number.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.number.fetch_add(1, Ordering::Relaxed);
        Save(self)
    }

    /// Whether nobody waits for names any more.
    pub fn are_last(&self) -> bool {
        self.are_last.load(Ordering::Relaxed)
    }

    /// Waits until those that go on are complete, with the names that are known. Gives whether there were any.
    pub fn complete(&self) -> bool {
        self.are_last.store(true, Ordering::Relaxed);
        let go_on = || self.number.load(Ordering::Relaxed) > 0;
        let were_any = go_on();
        while go_on() {
            thread::sleep(LOOK_EVERY);
        }
        were_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_saves_and_they_for_no_names() {
        let saves = Saves::default();
        thread::scope(|scope| {
            let save = saves.start();
            scope.spawn(|| {
                let _save = save;
                while !saves.are_last() {
                    thread::sleep(Duration::from_millis(1));
                }
            });
            assert!(saves.complete());
        });
        assert!(!saves.complete());
    }
}
