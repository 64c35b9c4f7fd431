//! A loop is paced by a sleep of fixed length, so each of its cycles is longer by the time of its work.
//!
//! Evidence: a thread sleeps at one place again and again, always for the same time, while the time from the end of a sleep to
//! that of the next one varies with its work, which is 15 % of it or more. The thread waits for nothing else. It has no gain, because
//! nobody says that the sleep's length is meant as the period; the evidence says how much shorter cycles would be. Look-alikes: a loop that sleeps until a point in time: its sleeps
//! vary with its work, and its cycles do not; a pause that is wanted after each piece of work.

use std::collections::BTreeMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::{Seen, Tenths};
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use stepscope_model::ThreadId;

/// Fewest sleeps of a thread.
const FEWEST: usize = 20;

/// Lengths of sleeps that pace a loop, in ns.
const LENGTHS: std::ops::RangeInclusive<f64> = 500_000.0..=500_000_000.0;

/// Least spread of cycles, as a multiple of that of the sleeps in them, and as a part of the cycle. Where the work does not vary, fixed sleeps
/// look like sleeps that end at points in time.
const VARIES: f64 = 3.0;
const SPREAD: f64 = 0.01;

/// Most that the sleeps vary, as a part of their length.
const FIXED: f64 = 0.05;

/// Least work, and least other waits that pace the loop, in percent of the cycle. A loop that is late by less keeps its pace well enough.
const LEAST: f64 = 15.0;
const OTHER: f64 = 10.0;

/// Least part of the program's CPU time that the thread takes.
const OF_PROGRAM: f64 = 0.2;

pub(super) struct FixedSleep;

impl Kind for FixedSleep {
    fn name(&self) -> &'static str {
        "fixed-sleep-each-cycle"
    }

    fn advice(&self) -> &'static str {
        "Sleep until the time of the next cycle (`std::this_thread::sleep_until`, `clock_nanosleep` with `TIMER_ABSTIME`), \
         and add the period to that time. If the loop only waits for something, wait for that instead."
    }

    fn confirm(&self) -> &'static str {
        "Measure the loop's rate: it is below one per sleep, and falls when the work grows."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() || !seen.selection.has_switches() {
            return Vec::new();
        }
        let cpu = seen.selection.cpu_times();
        let all: u64 = cpu.iter().flatten().sum();
        let works = |thread: ThreadId| cpu[thread.index()].is_some_and(|own| own as f64 >= OF_PROGRAM * all as f64);
        let mut classes = Classes::new(seen.capture(), seen.functions());
        let mut found: Vec<Found> = Vec::new();
        for (thread, row) in seen.selection.threads().filter(|(thread, _)| works(*thread)) {
            let Some(pace) = Pace::of(seen, &mut classes, thread) else { continue };
            if found.iter().any(|one| one.function == Some(pace.function)) {
                continue;
            }
            let cycle = pace.sleep_ns + pace.work_ns;
            let name = seen.name(pace.function);
            let title = format!(
                "`{name}` sleeps for {} in each cycle, whatever its work takes: cycles are late by their work",
                ns(pace.sleep_ns)
            );
            let text = format!(
                "Thread `{}` works for {} between sleeps of the same length, so a cycle takes {}. If the sleep should be its period, \
                 cycles could be {} shorter.",
                row.name,
                ns(pace.work_ns),
                ns(cycle),
                percent(100.0 * pace.work_ns.min(pace.sleep_ns) / cycle)
            );
            // Whether the loop has to keep a pace is not known.
            let one = Found::of_program(title, None).about(Some(pace.function)).sure(Confidence::Weak);
            found.push(one.because(text, "show --view wall"));
        }
        found
    }
}

/// A thread's cycles.
struct Pace {
    /// The owned function that sleeps.
    function: FunctionId,
    sleep_ns: f64,
    work_ns: f64,
}

impl Pace {
    /// The cycles of a thread that fixed sleeps pace.
    fn of(seen: &Seen<'_, '_>, classes: &mut Classes<'_>, thread: ThreadId) -> Option<Self> {
        let span = seen.span();
        let mut sleeps: BTreeMap<FunctionId, Vec<(u64, u64)>> = BTreeMap::new();
        for wait in seen.waits(thread).filter(|wait| wait.count == 1 && span.contains(&wait.start_ns)) {
            let Some(stack) = wait.stack.filter(|stack| classes.of(*stack) == WaitClass::Sleep) else { continue };
            if let Some(function) = seen.functions().attributed(stack) {
                sleeps.entry(function).or_default().push((wait.start_ns, wait.start_ns + blocked_ns(&wait)));
            }
        }
        let (function, sleeps) = sleeps.into_iter().max_by_key(|(_, sleeps)| sleeps.len())?;
        let (first, last) = sleeps.first().zip(sleeps.last()).filter(|_| sleeps.len() > FEWEST)?;
        let mut met = Tenths::default();
        sleeps.iter().for_each(|(start, _)| met.meet(*start, &span));
        if !met.are_most() {
            return None;
        }
        let between = seen.off_cpu.spent(thread, first.1..last.0)?;
        let slept_ns: u64 = sleeps[1..sleeps.len() - 1].iter().map(|(start, end)| end - start).sum();
        let cycles = sleeps.len() - 1;
        let work_ns = between.running as f64 / cycles as f64;
        let other_ns = between.blocked.saturating_sub(slept_ns) as f64 / cycles as f64;
        let lengths = Quartiles::of(sleeps.iter().map(|(start, end)| end - start))?;
        let periods = Quartiles::of(sleeps.windows(2).map(|pair| pair[1].1 - pair[0].1))?;
        let cycle = lengths.median + work_ns;
        let is_fixed = lengths.spread() <= FIXED * lengths.median
            && periods.spread() >= (VARIES * lengths.spread()).max(SPREAD * periods.median);
        let matters = 100.0 * work_ns >= LEAST * cycle && 100.0 * other_ns <= OTHER * cycle;
        (is_fixed && matters && LENGTHS.contains(&lengths.median)).then_some(Self {
            function,
            sleep_ns: lengths.median,
            work_ns,
        })
    }
}

struct Quartiles {
    low: f64,
    median: f64,
    high: f64,
}

impl Quartiles {
    fn of(values: impl Iterator<Item = u64>) -> Option<Self> {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        let at = |quarter: usize| values.get((values.len().checked_sub(1)?) * quarter / 4).map(|value| *value as f64);
        Some(Self { low: at(1)?, median: at(2)?, high: at(3)? })
    }

    fn spread(&self) -> f64 {
        self.high - self.low
    }
}
