//! Scheduler delay: how long each thread wanted a CPU and had none.
//!
//! A delay is one wait for a CPU: a preempted interval, or the end of a blocked one that follows the wake-up. For each
//! thread: their total, mean, 99th percentile and maximum, and how often it was switched out by its own will (blocked) and
//! against it (preempted).
//!
//! Where [wake-ups](crate::query::wake_ups) were not recorded, the single delays after them are unknown. The kernel still counts
//! their sum (`schedstat`), so total and mean are then exact (the mean over all switches) and percentile and maximum are of
//! the preempted intervals alone. Where only a few are missing, these are left out. The notes say which is the case.
//!
//! A thread is *flagged* if its mean delay exceeds a threshold (1 ms: a simulation step at 1 kHz is lost) *and* it does real
//! work: it is on a CPU, or waiting for one, for a tenth of its lifetime. The study flagged idle helper threads that had
//! been late once, and no thread that mattered (erratum 10 is about what it did with the flag).

use std::cmp::Reverse;

use stepscope_model::{Dimension, Table, ThreadId, Value, WaitState, quantity};
use stepscope_stats::Distribution;

use crate::analysis::{Analysis, View};
use crate::columns;
use crate::query::select::{Selection, process_name};
use crate::query::waits::runnable_ns;
use crate::query::wake_ups::{self, WakeUps};
use crate::query::weights::percent;

/// When a thread is flagged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Mean delay above which a thread is late.
    pub threshold_ns: u64,
    /// Percent of its lifetime that a thread must want a CPU for, to be flagged.
    pub least_demand_percent: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold_ns: 1_000_000, least_demand_percent: 10.0 }
    }
}

/// The delays of one thread.
#[derive(Debug, Clone)]
pub struct Delays {
    /// The thread.
    pub thread: ThreadId,
    /// Every delay that was recorded by itself, in ns.
    pub recorded: Distribution,
    /// All delays together in ns, as exactly as it is known.
    pub total_ns: u128,
    /// Whether there were delays that are known only in the total, or not at all, since wake-ups were not recorded.
    pub wake_ups_unrecorded: bool,
    /// Times it was switched out because it waited for something.
    pub voluntary: u64,
    /// Times it was switched out though it wanted to run.
    pub involuntary: u64,
    /// Exact time on a CPU.
    pub cpu_ns: Option<u64>,
    /// Length of its life.
    pub lifetime_ns: Option<u64>,
}

impl Delays {
    /// Mean delay in ns: over the delays, or over all switches where only the total of some is known.
    pub fn mean_ns(&self) -> Option<f64> {
        if !self.wake_ups_unrecorded {
            return self.recorded.mean();
        }
        let switches = self.voluntary + self.involuntary;
        (switches > 0).then(|| self.total_ns as f64 / switches as f64)
    }

    /// Time on a CPU or waiting for one, in percent of the lifetime.
    pub fn demand_percent(&self) -> Option<f64> {
        percent(u128::from(self.cpu_ns?) + self.total_ns, u128::from(self.lifetime_ns?))
    }

    /// Whether the thread is late and does real work. A thread whose CPU time is not known is not flagged.
    pub fn is_flagged(&self, options: &Options) -> bool {
        self.mean_ns().is_some_and(|mean| mean > options.threshold_ns as f64)
            && self.demand_percent().is_some_and(|demand| demand >= options.least_demand_percent)
    }
}

/// The delays of every selected thread that was ever switched out.
pub fn delays(selection: &Selection<'_>) -> Vec<Delays> {
    let capture = selection.capture();
    let unrecorded = WakeUps::of(selection) == WakeUps::Unrecorded;
    let mut recorded: Vec<Vec<u64>> = vec![Vec::new(); capture.threads.len()];
    let mut switches = vec![(0_u64, 0_u64, false); capture.threads.len()];
    for wait in selection.thread_waits() {
        let thread = wait.thread.index();
        let (voluntary, involuntary, missing) = &mut switches[thread];
        match wait.state {
            WaitState::Blocked => *voluntary += 1,
            WaitState::Preempted => *involuntary += 1,
        }
        if wait.state == WaitState::Blocked && wait.runnable_ns.is_none() {
            *missing |= unrecorded && wake_ups::is_missing(selection, &wait);
        } else {
            recorded[thread].push(runnable_ns(&wait));
        }
    }
    let cpu_times = selection.cpu_times();
    let of_thread = |(id, _): (ThreadId, _)| {
        let (voluntary, involuntary, wake_ups_unrecorded) = switches[id.index()];
        let recorded: Distribution = recorded[id.index()].iter().copied().collect();
        let counted = capture.threads[id.index()].runnable_ns.filter(|_| !selection.filters_time());
        let total_ns = match counted {
            Some(counted) if wake_ups_unrecorded => recorded.sum().max(u128::from(counted)),
            _ => recorded.sum(),
        };
        let lifetime_ns = selection.lifetime(id).map(|life| life.end - life.start);
        let cpu_ns = cpu_times[id.index()];
        Delays { thread: id, recorded, total_ns, wake_ups_unrecorded, voluntary, involuntary, cpu_ns, lifetime_ns }
    };
    let delays = selection.threads().map(of_thread);
    delays.filter(|delays| delays.voluntary + delays.involuntary > 0 || delays.total_ns > 0).collect()
}

/// The table `sched`: rows by total delay, then name and id.
pub fn table(selection: &Selection<'_>, options: &Options) -> Table {
    let capture = selection.capture();
    let mut delays = delays(selection);
    delays.sort_by_key(|one| {
        let thread = &capture.threads[one.thread.index()];
        (Reverse(one.total_ns), thread.name.clone(), thread.tid, one.thread)
    });
    let mut table = Table::new(
        "sched",
        "Scheduler delay by thread",
        vec![
            columns::text("thread", "Last name of the thread."),
            columns::number("tid", "", "Thread id."),
            columns::text("process", "Name of its process; empty where unknown.").detail(),
            columns::duration("cpu", "Exact time on a CPU, from context switches."),
            columns::duration("delay", "Total time ready to run and waiting for a CPU.").essential(),
            columns::duration("delay_mean", "Mean delay; over all switches where wake-ups were not recorded.")
                .essential(),
            columns::duration(
                "delay_p99",
                "99th percentile of the delays; of the preempted intervals where wake-ups were not recorded.",
            ),
            columns::duration(
                "delay_max",
                "Longest delay; of the preempted intervals where wake-ups were not recorded.",
            ),
            columns::percent("delay_share", "Total delay in percent of the lifetime.").detail(),
            columns::count("voluntary", "switches", "Times it was switched out because it waited for something.")
                .detail(),
            columns::count("involuntary", "switches", "Times it was switched out though it wanted to run.").detail(),
            columns::flag("flagged", "Mean delay above the threshold, on a thread that does real work.").essential(),
        ],
    );
    for one in &delays {
        table.push(row(selection, one, options));
    }
    table.add_notes(notes(selection, &delays, options));
    table
}

fn row(selection: &Selection<'_>, delays: &Delays, options: &Options) -> Vec<Value> {
    let capture = selection.capture();
    let thread = &capture.threads[delays.thread.index()];
    let process = thread.process.map(|process| process_name(&capture.processes[process.index()]));
    vec![
        thread.name.as_str().into(),
        thread.tid.into(),
        process.unwrap_or("").into(),
        delays.cpu_ns.into(),
        delays.total_ns.into(),
        delays.mean_ns().into(),
        delays.recorded.percentile(99.0).into(),
        delays.recorded.max().into(),
        delays.lifetime_ns.and_then(|life| percent(delays.total_ns, u128::from(life))).into(),
        delays.voluntary.into(),
        delays.involuntary.into(),
        delays.is_flagged(options).into(),
    ]
}

fn notes(selection: &Selection<'_>, delays: &[Delays], options: &Options) -> Vec<String> {
    if !selection.has_switches() && delays.is_empty() {
        return vec!["Context switches were not recorded, so no delays are known.".to_owned()];
    }
    let mut notes = vec![format!(
        "Flagged: a mean delay above {} ms on a thread that wants a CPU for at least {} % of its lifetime.",
        options.threshold_ns as f64 / 1e6,
        options.least_demand_percent,
    )];
    notes.extend(wake_ups_note(selection));
    notes
}

/// What is not known of delays because wake-ups are missing: all of them, or some.
fn wake_ups_note(selection: &Selection<'_>) -> Option<String> {
    match WakeUps::of(selection) {
        WakeUps::Recorded { missing: 0, .. } => None,
        WakeUps::Recorded { missing, of } => Some(format!(
            "{} of {} blocked waits lack their wake-up: the delays after them are left out.",
            quantity::grouped(missing as i128),
            quantity::grouped(of as i128),
        )),
        WakeUps::Unrecorded => {
            let total = if selection.filters_time() {
                "no total of them for a range of time"
            } else {
                "their total from the kernel's count"
            };
            Some(format!(
                "Wake-ups were not recorded: of the delays after them there is {total}; percentile and maximum are of preempted intervals."
            ))
        }
    }
}

/// Scheduler delay.
pub struct Scheduling;

impl Analysis for Scheduling {
    fn title(&self) -> &'static str {
        "Scheduler delay"
    }

    fn views(&self) -> &'static [View] {
        &[View {
            name: "sched",
            question: "How long did each thread wait for a CPU, and how often did it switch?",
            tables: |selection, _| vec![table(selection, &Options::default())],
        }]
    }

    fn needs(&self) -> &'static [Dimension] {
        &[Dimension::Sched]
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::Capture;

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    const MS: u64 = 1_000_000;

    fn sched(capture: &Capture) -> Table {
        drawn::selected(capture, &[], |selection| table(selection, &Options::default()))
    }

    #[test]
    fn delays_are_preempted_intervals_and_the_ends_of_blocked_ones() {
        let capture = Drawing::new()
            .lived("main", 0..100 * MS, 90 * MS)
            .preempted("main", MS..4 * MS, "a")
            .blocked_then_runnable("main", 5 * MS..9 * MS, MS, "a")
            .blocked_then_runnable("main", 10 * MS..12 * MS, 0, "a")
            .capture;
        let columns =
            ["delay", "delay_mean", "delay_p99", "delay_max", "delay_share", "voluntary", "involuntary", "flagged"];
        let mean = 4.0 * MS as f64 / 3.0;
        assert_eq!(
            cells(&sched(&capture), &columns),
            [format!("4000000 | {mean:.6} | 3000000 | 3000000 | 4 | 2 | 1 | true")]
        );
    }

    #[test]
    fn an_idle_thread_that_was_late_once_is_not_flagged() {
        let capture = Drawing::new()
            .lived("main", 0..100 * MS, 80 * MS)
            .lived("helper", 0..100 * MS, MS)
            .preempted("main", 0..20 * MS, "a")
            .blocked_then_runnable("helper", 0..99 * MS, 5 * MS, "b")
            .capture;
        assert_eq!(
            cells(&sched(&capture), &["thread", "delay_mean", "flagged"]),
            ["main | 20000000 | true", "helper | 5000000 | false",]
        );
    }

    #[test]
    fn a_mean_delay_of_exactly_the_threshold_is_not_above_it() {
        let delayed = |ns| {
            let capture = Drawing::new().lived("main", 0..10 * MS, 8 * MS).preempted("main", 0..ns, "a").capture;
            cells(&sched(&capture), &["flagged"]).remove(0)
        };
        assert_eq!((delayed(MS), delayed(MS + 1)), ("false".to_owned(), "true".to_owned()));
    }

    #[test]
    fn without_wake_ups_total_and_mean_come_from_the_kernels_count() {
        let mut capture = Drawing::new()
            .lived("main", 0..100 * MS, 50 * MS)
            .preempted("main", 0..2 * MS, "a")
            .blocked("main", 10 * MS..20 * MS, "a")
            .capture;
        capture.threads[0].runnable_ns = Some(6 * MS);
        let table = sched(&capture);
        assert_eq!(
            cells(&table, &["delay", "delay_mean", "delay_p99", "delay_max"]),
            ["6000000 | 3000000 | 2000000 | 2000000"]
        );
        assert!(table.notes[1].contains("their total from the kernel's count"), "{:?}", table.notes);
    }

    #[test]
    fn one_missing_wake_up_is_counted_and_leaves_the_mean_alone() {
        let mut capture = Drawing::new()
            .lived("main", 0..100 * MS, 50 * MS)
            .blocked_then_runnable("main", 10 * MS..20 * MS, 3 * MS, "a")
            .blocked_then_runnable("main", 30 * MS..40 * MS, MS, "a")
            .blocked("main", 50 * MS..60 * MS, "a")
            .blocked("main", 90 * MS..100 * MS, "a")
            .capture;
        capture.threads[0].runnable_ns = Some(4 * MS);
        let table = sched(&capture);
        assert_eq!(
            cells(&table, &["delay", "delay_mean", "delay_max", "voluntary"]),
            ["4000000 | 2000000 | 3000000 | 4"]
        );
        assert_eq!(table.notes[1..], ["1 of 3 blocked waits lack their wake-up: the delays after them are left out."]);
    }

    #[test]
    fn threads_that_never_left_the_cpu_have_no_row_and_no_switches_are_said() {
        let capture = Drawing::new().lived("main", 0..10, 10).capture;
        let table = sched(&capture);
        assert!(table.rows.is_empty());
        assert_eq!(table.notes, ["Context switches were not recorded, so no delays are known."]);
    }
}
