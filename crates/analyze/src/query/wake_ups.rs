//! [`WakeUps`]: whether a capture has the wake-ups of blocked threads.
//!
//! The wake-up splits a blocked interval: before it the thread waited for something, after it for a CPU. A
//! recorder that was denied wake-ups has none at all; one that had them still misses a few, at the edges of its window
//! and where records were lost. Notes distinguish the two: a few missing wake-ups hardly change a sum.
//!
//! An interval that is *cut*, by the start or the end of the thread's life within the recording, has no wake-up to miss:
//! its end is that of the evidence, or the thread was killed.

use stepscope_model::{Wait, WaitState};

use crate::query::select::Selection;

/// Coverage of wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeUps {
    /// They were recorded: of `of` blocked intervals that were not cut, `missing` have none.
    Recorded {
        /// How many lack theirs.
        missing: usize,
        /// How many there are.
        of: usize,
    },
    /// They were not recorded: most blocked intervals have none.
    Unrecorded,
}

impl WakeUps {
    /// Coverage in the waits of the selected threads. It is counted once.
    pub fn of(selection: &Selection<'_>) -> Self {
        let (missing, of) = *selection.steps.wake_ups.get_or_init(|| counted(selection));
        if missing * 2 > of { Self::Unrecorded } else { Self::Recorded { missing, of } }
    }
}

/// How many blocked intervals lack their wake-up, and how many there are.
fn counted(selection: &Selection<'_>) -> (usize, usize) {
    let (mut missing, mut of) = (0, 0);
    for wait in selection.thread_waits().filter(|wait| wait.state == WaitState::Blocked) {
        match wait.runnable_ns {
            Some(_) => of += 1,
            None if is_cut(selection, &wait) => {}
            None => {
                missing += 1;
                of += 1;
            }
        }
    }
    (missing, of)
}

/// Whether the wait lacks a wake-up that it should have.
pub(crate) fn is_missing(selection: &Selection<'_>, wait: &Wait) -> bool {
    wait.state == WaitState::Blocked && wait.runnable_ns.is_none() && !is_cut(selection, wait)
}

fn is_cut(selection: &Selection<'_>, wait: &Wait) -> bool {
    let life = selection.lifetime(wait.thread).or_else(|| selection.window());
    life.is_some_and(|life| wait.start_ns <= life.start || wait.end_ns >= life.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing};
    use crate::query::select::{Filter, TimeRange};

    fn drawing() -> Drawing {
        Drawing::new()
            .window(0..1_000)
            .lived("main", 0..1_000, 500)
            .blocked("main", 0..100, "a")
            .blocked_then_runnable("main", 200..300, 10, "a")
            .blocked("main", 900..1_000, "a")
    }

    #[test]
    fn waits_that_the_recording_cut_miss_no_wake_up() {
        let known = drawn::selected(&drawing().capture, &[], WakeUps::of);
        assert_eq!(known, WakeUps::Recorded { missing: 0, of: 1 });
        let filter = Filter { time: Some(TimeRange { from_ns: 50, to_ns: Some(950) }), ..Filter::default() };
        assert_eq!(drawn::filtered(&drawing().capture, &[], &filter, WakeUps::of), known);
    }

    #[test]
    fn a_few_that_are_missing_are_counted_and_most_mean_that_none_were_recorded() {
        let one = drawing().blocked("main", 400..500, "a");
        assert_eq!(drawn::selected(&one.capture, &[], WakeUps::of), WakeUps::Recorded { missing: 1, of: 2 });
        let two = one.blocked("main", 600..700, "a");
        assert_eq!(drawn::selected(&two.capture, &[], WakeUps::of), WakeUps::Unrecorded);
    }
}
