//! Scheduler delay: how long each thread was runnable and waited for a CPU.
//!
//! A delay is one wait for a CPU: a preempted interval, or the end of a blocked one, after the wake-up. Each thread has
//! their total, mean, 99th percentile and maximum, and how often it was switched out voluntarily (blocked) and
//! involuntarily (preempted).
//!
//! If [wake-ups](crate::query::wake_ups) were not recorded, single delays after them are unknown. The kernel still counts
//! their sum (`schedstat`), so total and mean are exact (the mean over all switches), and percentile and maximum are of the
//! preempted intervals alone. If only a few wake-ups are missing, the delays after them are left out. A note says so.
//!
//! A thread is *flagged* if its mean delay exceeds a threshold (1 ms: a step at 1 kHz is lost) *and* it does real work: it
//! is on a CPU, or waiting for one, for a tenth of its lifetime. The Gazebo study flagged idle helper threads that had
//! been late once, and no thread that mattered (erratum 10).
//!
//! # Delays that other programs cause
//! A neighbour's load delays threads too, and no change of the program's code helps. [`CpuHolders`] knows which recorded
//! thread held the CPU that a delayed thread got in the end. The rest of the delay is due to other programs, or to the
//! time that the kernel takes to switch. If the CPUs of most delays are unknown, delays count as caused by others if
//! other programs used more than 5 % of the CPUs. Such delays give no points in the [score](crate::analyses::rank::score).

use std::cmp::Reverse;

use stepscope_model::{Columns, Dimension, Note, NoteValue, Table, ThreadId, Wait, WaitState, note};
use stepscope_stats::Distribution;

use crate::analysis::{Analysis, View};
use crate::columns;
use crate::query::cpu_holders::CpuHolders;
use crate::query::off_cpu::OffCpu;
use crate::query::select::Selection;
use crate::query::waits::runnable_ns;
use crate::query::wake_ups::{self, WakeUps};
use crate::query::weights::percent;

/// Mean delay above which a thread is late.
const THRESHOLD_NS: u64 = 1_000_000;

/// Percent of its lifetime that a thread must want a CPU for, to be flagged.
const LEAST_DEMAND_PERCENT: f64 = 10.0;

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
    /// Whether some delays were added up while recording, so that percentiles and the maximum are of the others.
    pub has_sums: bool,
    /// Times it was switched out because it waited for something.
    pub voluntary: u64,
    /// Times it was switched out though it wanted to run.
    pub involuntary: u64,
    /// Exact time on a CPU.
    pub cpu_ns: Option<u64>,
    /// Length of its life.
    pub lifetime_ns: Option<u64>,
    /// The part of the delays that recorded threads cause, 0 to 1.
    pub caused_share: f64,
}

impl Delays {
    /// Mean delay in ns: over the delays, or over all switches where only the total of some is known by itself.
    pub fn mean_ns(&self) -> Option<f64> {
        if !self.wake_ups_unrecorded && !self.has_sums {
            return self.recorded.mean();
        }
        let switches = self.voluntary + self.involuntary;
        (switches > 0).then(|| self.total_ns as f64 / switches as f64)
    }

    /// Mean delay in ns that recorded threads cause.
    pub fn caused_mean_ns(&self) -> Option<f64> {
        Some(self.mean_ns()? * self.caused_share)
    }

    /// Time on a CPU or waiting for one, in percent of the lifetime.
    pub fn demand_percent(&self) -> Option<f64> {
        percent(u128::from(self.cpu_ns?) + self.total_ns, u128::from(self.lifetime_ns?))
    }

    /// Whether the thread is late and does real work. A thread whose CPU time is not known is not flagged.
    pub fn is_flagged(&self) -> bool {
        self.is_late(self.mean_ns())
    }

    /// Whether it is flagged even without the delays that other programs cause.
    pub fn is_flagged_without_others(&self) -> bool {
        self.is_late(self.caused_mean_ns())
    }

    fn is_late(&self, mean_ns: Option<f64>) -> bool {
        mean_ns.is_some_and(|mean| mean > THRESHOLD_NS as f64)
            && self.demand_percent().is_some_and(|demand| demand >= LEAST_DEMAND_PERCENT)
    }
}

/// The delays of every selected thread that was ever switched out.
pub fn delays(selection: &Selection<'_>) -> Vec<Delays> {
    let capture = selection.capture();
    let unrecorded = WakeUps::of(selection) == WakeUps::Unrecorded;
    let mut count = vec![0_usize; capture.threads.len()];
    let mut summed = vec![0_u128; capture.threads.len()];
    let mut switches = vec![(0_u64, 0_u64, false); capture.threads.len()];
    let off_cpu = selection.off_cpu();
    let mut causes = Causes::of(selection, &off_cpu);
    for wait in selection.thread_waits() {
        let thread = wait.thread.index();
        let (voluntary, involuntary, missing) = &mut switches[thread];
        match wait.state {
            WaitState::Blocked => *voluntary += u64::from(wait.count),
            WaitState::Preempted => *involuntary += u64::from(wait.count),
        }
        if wait.state == WaitState::Blocked && wait.runnable_ns.is_none() {
            *missing |= unrecorded && wake_ups::is_missing(selection, &wait);
        } else if wait.is_aggregated() {
            summed[thread] += u128::from(runnable_ns(&wait));
            causes.add(&wait);
        } else {
            count[thread] += 1;
            causes.add(&wait);
        }
    }
    let causes = causes.shares();
    drop(off_cpu);
    // There may be as many delays as waits, so they come when the rest is done, in lists that need not grow.
    let mut recorded: Vec<Vec<u64>> = count.into_iter().map(Vec::with_capacity).collect();
    for wait in selection.thread_waits() {
        let is_unknown = wait.state == WaitState::Blocked && wait.runnable_ns.is_none();
        if !is_unknown && !wait.is_aggregated() {
            recorded[wait.thread.index()].push(runnable_ns(&wait));
        }
    }
    let cpu_times = selection.cpu_times();
    let mut of_thread = |(id, _): (ThreadId, _)| {
        let (voluntary, involuntary, wake_ups_unrecorded) = switches[id.index()];
        let summed = summed[id.index()];
        // Takes the list as it is.
        let recorded: Distribution = std::mem::take(&mut recorded[id.index()]).into_iter().collect();
        let counted = capture.threads[id.index()].runnable_ns.filter(|_| !selection.filters_time());
        let total_ns = match counted {
            Some(counted) if wake_ups_unrecorded => recorded.sum().max(u128::from(counted)),
            _ => recorded.sum() + summed,
        };
        let lifetime_ns = selection.lifetime(id).map(|life| life.end - life.start);
        let cpu_ns = cpu_times[id.index()];
        Delays {
            thread: id,
            recorded,
            total_ns,
            has_sums: summed > 0,
            wake_ups_unrecorded,
            voluntary,
            involuntary,
            cpu_ns,
            lifetime_ns,
            caused_share: causes[id.index()],
        }
    };
    let delays = selection.threads().map(&mut of_thread);
    delays.filter(|delays| delays.voluntary + delays.involuntary > 0 || delays.total_ns > 0).collect()
}

/// What a thread's delays overlap with: recorded threads on the CPU that it got in the end.
#[derive(Debug, Clone, Copy, Default)]
struct Cause {
    /// Delays with a known CPU, in ns.
    known: u128,
    /// The part of them during which another recorded thread held that CPU.
    held: u128,
    unknown: u128,
}

struct Causes<'a> {
    holders: CpuHolders<'a>,
    by_thread: Vec<Cause>,
    /// Whether other programs used the machine.
    is_shared: bool,
}

impl<'a> Causes<'a> {
    /// Background load in percent of the CPUs from which on delays without a known CPU count as caused by it.
    const BACKGROUND_PERCENT: f64 = 5.0;

    fn of(selection: &Selection<'_>, off_cpu: &OffCpu<'a>) -> Self {
        let capture = selection.capture();
        let info = &capture.info;
        let background = || {
            let capacity = info.wall_ns()? as f64 * f64::from(info.machine.as_ref()?.cores);
            Some(info.conditions.as_ref()?.others_cpu_ns? as f64 * 100.0 / capacity)
        };
        Self {
            holders: CpuHolders::of(capture, off_cpu),
            by_thread: vec![Cause::default(); capture.threads.len()],
            is_shared: background().is_some_and(|percent| percent > Self::BACKGROUND_PERCENT),
        }
    }

    fn add(&mut self, wait: &Wait) {
        let delay = runnable_ns(wait);
        let cause = &mut self.by_thread[wait.thread.index()];
        let Some(cpu) = wait.cpu else {
            cause.unknown += u128::from(delay);
            return;
        };
        let held = self.holders.within(cpu, &(wait.end_ns - delay..wait.end_ns));
        let by_others = held.filter(|(holder, _)| *holder != wait.thread);
        cause.held += by_others.map(|(_, when)| u128::from(when.end - when.start)).sum::<u128>();
        cause.known += u128::from(delay);
    }

    /// The part of each thread's delays that recorded threads cause, 0 to 1.
    fn shares(self) -> Vec<f64> {
        let share = |cause: Cause| match cause {
            cause if cause.known > cause.unknown => cause.held as f64 / cause.known as f64,
            _ if self.is_shared => 0.0,
            _ => 1.0,
        };
        self.by_thread.into_iter().map(share).collect()
    }
}

/// The table `sched`: rows by total delay, then name and id.
pub fn table(selection: &Selection<'_>) -> Table {
    let capture = selection.capture();
    let mut delays = delays(selection);
    delays.sort_by_key(|one| {
        let thread = &capture.threads[one.thread.index()];
        (Reverse(one.total_ns), thread.name.clone(), thread.tid, one.thread)
    });
    let mut table = table_columns(selection).table("sched", "Scheduler delay by thread", &delays);
    table.add_notes(notes(selection, &delays));
    table
}

fn table_columns<'a>(selection: &Selection<'a>) -> Columns<'a, Delays> {
    columns::thread(selection)
        .on(|delays: &Delays| &delays.thread)
        .duration("cpu", "Exact time on a CPU, from context switches.", |one| one.cpu_ns)
        .duration("delay", "Total time runnable, waiting for a CPU.", |one| one.total_ns)
        .duration("delay_mean", "Mean delay; over all switches if wake-ups were not recorded.", |one| one.mean_ns())
        .duration(
            "delay_p99",
            "99th percentile of the delays; of the preempted intervals if wake-ups were not recorded.",
            |one| one.recorded.percentile(99.0),
        )
        .duration("delay_max", "Longest delay; of the preempted intervals if wake-ups were not recorded.", |one| {
            one.recorded.max()
        })
        .percentage("delay_share", "Total delay in percent of the lifetime.", |one| {
            one.lifetime_ns.and_then(|life| percent(one.total_ns, u128::from(life)))
        })
        .count("voluntary", "switches", "Number of times it was switched out because it blocked.", |one| one.voluntary)
        .count("involuntary", "switches", "Number of times it was switched out although runnable.", |one| {
            one.involuntary
        })
        .flag("flagged", "Whether its mean delay is above the threshold and it does real work.", |one| one.is_flagged())
        .essential("delay delay_mean flagged")
        .detail("delay_share voluntary involuntary")
}

fn notes(selection: &Selection<'_>, delays: &[Delays]) -> Vec<Note> {
    if delays.is_empty() {
        return Vec::new();
    }
    let threshold = NoteValue::ns(THRESHOLD_NS);
    let demand = NoteValue::percent(LEAST_DEMAND_PERCENT);
    let mut notes = vec![note!(
        Fact,
        "Flagged: mean delay above {} on a thread that is running or runnable for at least {} of its lifetime.",
        threshold,
        demand
    )];
    let by_others = delays.iter().filter(|one| one.is_flagged() && !one.is_flagged_without_others());
    let by_others: Vec<&str> =
        by_others.map(|one| selection.capture().threads[one.thread.index()].name.as_str()).collect();
    if !by_others.is_empty() {
        let names = NoteValue::names(by_others, 5);
        notes.push(note!(Limit, "Other programs on the machine cause the delay of {}.", names));
    }
    notes.extend(wake_ups_note(selection));
    notes
}

/// Which delays are unknown because wake-ups are missing.
fn wake_ups_note(selection: &Selection<'_>) -> Option<Note> {
    match WakeUps::of(selection) {
        WakeUps::Recorded { missing: 0, .. } => None,
        WakeUps::Recorded { missing, of } => {
            let (missing, of) = (NoteValue::number(missing), NoteValue::plural(of, "blocked wait"));
            Some(note!(Loss, "{} of {} have no wake-up; the delays after them are left out.", missing, of))
        }
        WakeUps::Unrecorded if selection.filters_time() => Some(note!(
            Limit,
            "Wake-ups were not recorded: delays after them are missing, and the kernel counts none for a part of the recording."
        )),
        WakeUps::Unrecorded => Some(note!(
            Limit,
            "Wake-ups were not recorded: total and mean are the kernel's count; percentile and maximum are of preempted intervals."
        )),
    }
}

/// Scheduler delay.
pub const ANALYSIS: Analysis = Analysis {
    title: "Scheduler delay",
    views: &[View {
        name: "sched",
        question: "How long did each thread wait for a CPU, and how often did it switch?",
        tables: |selection, _| vec![table(selection)],
    }],
    needs: &[Dimension::Sched],
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::Capture;

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    const MS: u64 = 1_000_000;

    fn sched(capture: &Capture) -> Table {
        drawn::selected(capture, &[], table)
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
        assert!(table.notes[1].contains("total and mean are the kernel's count"), "{:?}", table.notes);
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
        assert_eq!(table.notes[1..], ["1 of 3 blocked waits have no wake-up; the delays after them are left out."]);
    }

    #[test]
    fn threads_that_never_left_the_cpu_have_no_row_and_missing_switches_are_noted() {
        let capture = Drawing::new().lived("main", 0..10, 10).capture;
        let tables = drawn::selected(&capture, &[], |selection| {
            crate::analysis::tables(&ANALYSIS, &ANALYSIS.views[0], selection, &Default::default())
        });
        assert!(tables[0].rows.is_empty());
        assert_eq!(tables[0].notes, ["`sched` was not recorded; fix: `stepscope record --dimensions cpu,sched`."]);
    }
}
