//! How long the recorder waits between two looks at the rings.

use std::time::{Duration, Instant};

use stepscope_model::Losses;

/// The longest round. A ring that fills ends it earlier.
const ROUND: Duration = Duration::from_millis(50);
/// The longest round if stacks are continued from live memory, or if programs leave marks. That memory must have changed
/// little since the copy, and a program's rings have room for marks for about this time.
const SHORT_ROUND: Duration = Duration::from_millis(20);
/// Rounds stay short for this long after the last such event.
const SHORT_FOR: Duration = Duration::from_secs(1);

/// How long rounds are.
#[derive(Default)]
pub(super) struct Pace {
    /// Stacks so far for which the copy was too short.
    beyond_copy: u64,
    short_since: Option<Instant>,
}

impl Pace {
    /// How long the next round may last. `marked`: programs leave marks.
    pub fn next(&mut self, losses: &Losses, marked: bool) -> Duration {
        let beyond_copy = losses.continued_stacks + losses.truncated_stacks;
        if marked || beyond_copy != self.beyond_copy {
            self.beyond_copy = beyond_copy;
            self.short_since = Some(Instant::now());
        }
        let short = self.short_since.is_some_and(|since| since.elapsed() < SHORT_FOR);
        if short { SHORT_ROUND } else { ROUND }
    }
}
