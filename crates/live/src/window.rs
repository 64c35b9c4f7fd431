//! The rows of the last minute.

use std::collections::VecDeque;

use stepscope_assemble::Rows;
use stepscope_model::{Capture, Counter, Sample, Scope, Step, Wait};

/// Rows of a table beyond which the oldest are dropped.
const MOST_ROWS: usize = 1_000_000;

/// The rows that viewers may see.
#[derive(Debug, Default)]
pub(crate) struct Window {
    samples: VecDeque<Sample>,
    waits: VecDeque<Wait>,
    steps: VecDeque<Step>,
    scopes: VecDeque<Scope>,
    counters: VecDeque<Counter>,
    from_ns: u64,
}

impl Window {
    /// Adds rows, and forgets those that ended before `from_ns`.
    pub fn add(&mut self, rows: Rows, from_ns: u64) {
        let Rows { samples, waits, steps, scopes, counters } = rows;
        self.from_ns = self.from_ns.max(from_ns);
        self.samples.extend(samples);
        self.waits.extend(waits);
        self.steps.extend(steps);
        self.scopes.extend(scopes);
        self.counters.extend(counters);
        let dropped = [
            drop_most(&mut self.samples, |sample| sample.time_ns.unwrap_or(0)),
            drop_most(&mut self.waits, |wait| wait.end_ns),
            drop_most(&mut self.scopes, |scope| scope.end_ns),
            drop_most(&mut self.counters, |counter| counter.time_ns),
        ];
        self.from_ns = dropped.into_iter().flatten().fold(self.from_ns, u64::max);
        let from_ns = self.from_ns;
        // Rows are in the order of their ends, almost: a few old ones behind newer ones do no harm.
        forget(&mut self.samples, |sample| sample.time_ns.is_none_or(|time_ns| time_ns < from_ns));
        forget(&mut self.waits, |wait| wait.end_ns < from_ns);
        forget(&mut self.steps, |step| step.end_ns < from_ns);
        forget(&mut self.scopes, |scope| scope.end_ns < from_ns);
        forget(&mut self.counters, |counter| counter.time_ns < from_ns);
    }

    /// The time from which all rows are held.
    pub fn start_ns(&self) -> u64 {
        self.from_ns
    }

    /// Puts all rows into a capture, in the order of its tables.
    pub fn copy_to(&self, capture: &mut Capture) {
        capture.samples = self.samples.iter().copied().collect();
        capture.waits = self.waits.iter().copied().collect();
        capture.steps = self.steps.iter().copied().collect();
        capture.scopes = self.scopes.iter().cloned().collect();
        capture.counters = self.counters.iter().cloned().collect();
        capture.samples.sort_by_key(|sample| sample.time_ns);
        capture.waits.sort();
        capture.steps.sort_by_key(|step| step.start_ns);
        capture.scopes.sort_by_key(|scope| (scope.thread, scope.start_ns));
    }
}

/// Drops the oldest rows of a table that is too long. Gives the end of the last one.
fn drop_most<T>(rows: &mut VecDeque<T>, end_ns: impl Fn(&T) -> u64) -> Option<u64> {
    let excess = rows.len().checked_sub(MOST_ROWS).filter(|&excess| excess > 0)?;
    rows.drain(..excess).last().map(|row| end_ns(&row))
}

fn forget<T>(rows: &mut VecDeque<T>, is_old: impl Fn(&T) -> bool) {
    while rows.front().is_some_and(&is_old) {
        rows.pop_front();
    }
}

/// Puts rows into a capture that has none.
pub(crate) fn put(capture: &mut Capture, rows: &mut Rows) {
    capture.samples = std::mem::take(&mut rows.samples).into();
    capture.waits = rows.waits.iter().copied().collect();
    capture.scopes = std::mem::take(&mut rows.scopes).into();
    capture.counters = std::mem::take(&mut rows.counters).into();
}

/// Takes them out again.
pub(crate) fn take(capture: &mut Capture, rows: &mut Rows) {
    rows.samples = std::mem::take(&mut *capture.samples);
    rows.scopes = std::mem::take(&mut *capture.scopes);
    rows.counters = std::mem::take(&mut *capture.counters);
    remove(capture);
}

/// Removes all rows.
pub(crate) fn remove(capture: &mut Capture) {
    capture.samples = Vec::new().into();
    capture.waits = Vec::new().into();
    capture.steps = Vec::new().into();
    capture.scopes = Vec::new().into();
    capture.counters = Vec::new().into();
}

#[cfg(test)]
mod tests {
    use stepscope_model::{EventId, ThreadId};

    use super::*;

    fn sample(time_ns: u64) -> Sample {
        let (thread, event) = (ThreadId(0), EventId(0));
        Sample { time_ns: Some(time_ns), thread, cpu: None, stack: None, event, weight: 1 }
    }

    fn rows(times: impl Iterator<Item = u64>) -> Rows {
        Rows { samples: times.map(sample).collect(), ..Rows::default() }
    }

    #[test]
    fn rows_before_the_window_are_forgotten() {
        let mut window = Window::default();
        window.add(rows(0..10), 0);
        window.add(rows(10..20), 5);
        let mut capture = Capture::default();
        window.copy_to(&mut capture);
        assert_eq!((capture.samples.len(), capture.samples[0].time_ns, window.start_ns()), (15, Some(5), 5));
    }

    #[test]
    fn of_too_many_rows_the_oldest_go_and_the_window_is_shorter() {
        let mut window = Window::default();
        window.add(rows(0..MOST_ROWS as u64 + 7), 0);
        assert_eq!((window.samples.len(), window.start_ns()), (MOST_ROWS, 6));
    }
}
