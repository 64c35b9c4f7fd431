//! A thread of a Python program waits for the interpreter's global lock (GIL), which another thread of the same process holds.
//!
//! Evidence: waits of a thread in CPython's functions that take this lock, all the time, and the thread that ended them. The gain is
//! that time as a part of the time in which the thread runs or waits for something other than time to pass. Look-alikes: a lock of
//! the program (`threading.Lock`), which has other functions; native code that runs without the lock, which nobody waits for.

use std::collections::BTreeMap;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::python;
use crate::analyses::diagnose::seen::{Seen, Tenths};
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::waits::blocked_ns;
use crate::query::weights::StackWeights;
use stepscope_model::{ThreadId, WaitState};

/// Least gain in percent.
const LEAST: f64 = 10.0;

/// Least gain in percent of threads that take turns; below it, only what processes on other CPUs gain is worth a change, which is not known.
const LEAST_OF_TURNS: f64 = 2.0;

/// Least part of the recorded time that a thread waits so.
const OF_TIME: f64 = 0.01;

/// Least part of the recorded time that it runs: who has little to do waits long for little.
const RUNS: f64 = 0.03;

/// Fewest waits.
const FEWEST: u64 = 50;

pub(super) struct GilWait;

impl Kind for GilWait {
    fn name(&self) -> &'static str {
        "gil-wait"
    }

    fn advice(&self) -> &'static str {
        "Move the thread that computes to a process of its own (`multiprocessing`, `concurrent.futures.ProcessPoolExecutor`), or its \
         work to code that runs without the lock, such as NumPy's."
    }

    fn confirm(&self) -> &'static str {
        "Run the program without the other thread's work: the waits end. `sys.setswitchinterval` with a shorter time makes them shorter."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["work-in-small-pieces", "threads-woken-for-nothing", "barrier-imbalance"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() || !seen.selection.has_switches() {
            return Vec::new();
        }
        let takes_lock = python::takes_lock(seen);
        if !takes_lock.contains(&true) {
            return Vec::new();
        }
        let mut waiting: Vec<Waiting> =
            seen.selection.threads().filter_map(|(thread, _)| Waiting::of(seen, &takes_lock, thread)).collect();
        if waiting.is_empty() {
            return Vec::new();
        }
        let cpu = seen.selection.cpu_times();
        let work = |thread: ThreadId| (thread, work_of(seen, thread), cpu[thread.index()].unwrap_or(0));
        let works: Vec<(ThreadId, Option<FunctionId>, u64)> =
            seen.selection.threads().map(|(thread, _)| work(thread)).collect();
        let handing_over = python::hands_lock_over(seen);
        // The part of all CPU time that taking and dropping the lock costs.
        let part_of_lock = seen.share(seen.sum(|stack| handing_over[stack.index()])) / 100.0;
        waiting.sort_by(|a, b| b.share().total_cmp(&a.share()));
        let mut found: Vec<Found> = Vec::new();
        for one in waiting {
            // One function of several threads is one finding.
            if found.iter().any(|found| found.function == Some(one.function)) {
                continue;
            }
            let name = seen.name(one.function);
            let title = match one.holder.filter(|holder| *holder != one.function) {
                Some(holder) => {
                    format!("`{name}` waits for Python's global lock (GIL), which `{}` holds", seen.name(holder))
                }
                None => format!("`{name}` waits for Python's global lock (GIL), which other threads hold"),
            };
            let text = format!(
                "Its thread waits {:.0} times a second for the lock, in all for {} of the time in which it does not sleep. Only one \
                 thread of a process runs Python code at a time.",
                one.rate,
                percent(one.share())
            );
            let mut gain = Gain::of_phase_waiting(one.ns, one.able_ns);
            let of_gain =
                |gain| Found::of_program(title, gain).about(Some(one.function)).because(text, "show --view wall");
            if !take_turns(&works, one.thread) {
                found.push(of_gain(Some(gain)).sure(Confidence::Strong));
                continue;
            }
            // Work that takes turns is not done sooner because nobody waits: what surely goes is the time for taking turns.
            gain.time.value = part_of_lock * gain.whole_ns;
            gain.time.low = gain.time.value / 2.0;
            gain.time.high = gain.time.high.max(gain.time.value);
            let turns = format!(
                "The threads that hold it do the same work, so they take turns. Taking turns costs {}: that is the gain of one thread. \
                 Processes on CPUs that are free gain up to {}.",
                percent(gain.share().value),
                percent(gain.share().high)
            );
            let known = (gain.share().value >= LEAST_OF_TURNS).then_some(gain);
            found.push(of_gain(known).sure(Confidence::Fair).because(turns, "show --view threads"));
        }
        found
    }
}

/// A thread's waits for the lock.
struct Waiting {
    thread: ThreadId,
    /// The owned function that waits most.
    function: FunctionId,
    /// What the thread that ended most of it does.
    holder: Option<FunctionId>,
    ns: f64,
    /// Time in which the thread runs, or waits for something other than time to pass.
    able_ns: f64,
    /// Waits per second.
    rate: f64,
}

impl Waiting {
    fn of(seen: &Seen<'_, '_>, takes_lock: &[bool], thread: ThreadId) -> Option<Self> {
        let (span, mut classes) = (seen.span(), Classes::new(seen.capture(), seen.functions()));
        let (mut count, mut ns, mut slept_ns, mut met) = (0, 0, 0, Tenths::default());
        let mut by_function: BTreeMap<FunctionId, u64> = BTreeMap::new();
        let mut ended_by: BTreeMap<ThreadId, u64> = BTreeMap::new();
        for wait in seen.waits(thread).filter(|wait| wait.state == WaitState::Blocked) {
            let end = (wait.start_ns + blocked_ns(&wait)).min(span.end);
            let within = end.saturating_sub(wait.start_ns.max(span.start));
            let Some(stack) = wait.stack else { continue };
            if !takes_lock[stack.index()] {
                slept_ns += if classes.of(stack) == WaitClass::Sleep { within } else { 0 };
                continue;
            }
            count += u64::from(wait.count);
            ns += within;
            met.meet(wait.start_ns, &span);
            if let Some(function) = seen.functions().attributed(stack) {
                *by_function.entry(function).or_default() += within;
            }
            if let Some(waker) = wait.waker.filter(|waker| *waker != thread) {
                *ended_by.entry(waker).or_default() += within;
            }
        }
        let most = |sums: BTreeMap<FunctionId, u64>| sums.into_iter().max_by_key(|(_, ns)| *ns).map(|(one, _)| one);
        let spent = seen.off_cpu.spent(thread, span.clone())?;
        let length = (span.end - span.start).max(1) as f64;
        let function = most(by_function)?;
        let holder = ended_by.into_iter().max_by_key(|(_, ns)| *ns).and_then(|(holder, _)| work_of(seen, holder));
        let waiting = Self {
            thread,
            function,
            holder,
            ns: ns as f64,
            able_ns: (spent.running + spent.blocked).saturating_sub(slept_ns).max(1) as f64,
            rate: count as f64 * 1e9 / length,
        };
        let runs = spent.running as f64 >= RUNS * length;
        let matters = waiting.share() >= LEAST && waiting.ns >= OF_TIME * length && runs;
        (count >= FEWEST && met.are_most() && matters).then_some(waiting)
    }

    /// In percent of the time in which the thread does not sleep.
    fn share(&self) -> f64 {
        100.0 * self.ns / self.able_ns
    }
}

/// Whether the other threads do the same work as this one for most of their CPU time. Each thread stands with its work and its CPU time.
fn take_turns(works: &[(ThreadId, Option<FunctionId>, u64)], thread: ThreadId) -> bool {
    let own = works.iter().find(|(one, ..)| *one == thread).and_then(|(_, work, _)| *work);
    let others = works.iter().filter(|(one, ..)| *one != thread);
    let (same, all) =
        others.fold((0, 0), |(same, all), (_, work, cpu)| (same + if *work == own { *cpu } else { 0 }, all + cpu));
    own.is_some() && same * 2 > all
}

/// The owned function that takes most of a thread's CPU time.
fn work_of(seen: &Seen<'_, '_>, thread: ThreadId) -> Option<FunctionId> {
    let own = StackWeights::of_samples(&seen.selection.of_thread(thread)).attributed_by_function(seen.functions());
    let largest = seen.functions().all().map(|(id, _)| id).max_by_key(|id| own[id.index()].weight);
    largest.filter(|id| own[id.index()].weight > 0)
}
