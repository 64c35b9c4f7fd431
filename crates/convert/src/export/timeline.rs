//! A capture on a time axis: its window, what each thread was doing when, and ids that are unique over all of it.

use rustc_hash::FxHashSet;
use stepscope_model::{Capture, ProcessId, StackId, Thread, ThreadId, Wait, WaitState};

/// From the first to the last moment anything is known of, on the capture's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The moment that readers count from.
    pub start_ns: u64,
    /// The end.
    pub end_ns: u64,
}

impl Window {
    /// The capture's window, widened to hold everything that has a time. `None` if nothing has.
    pub fn of(capture: &Capture) -> Option<Self> {
        let info = &capture.info;
        let times = (info.start_ns.into_iter().chain(info.end_ns))
            .chain(capture.samples.iter().filter_map(|sample| sample.time_ns))
            .chain(capture.waits.iter().flat_map(|wait| [wait.start_ns, wait.end_ns]))
            .chain(capture.steps.iter().flat_map(|step| [step.start_ns, step.end_ns]))
            .chain(capture.scopes.iter().flat_map(|scope| [scope.start_ns, scope.end_ns]))
            .chain(capture.counters.iter().map(|counter| counter.time_ns))
            .chain(capture.threads.iter().flat_map(|thread| thread.start_ns.into_iter().chain(thread.end_ns)))
            .chain(capture.processes.iter().flat_map(|process| process.start_ns.into_iter().chain(process.end_ns)));
        times.fold(None, |window, time_ns| {
            let window = window.unwrap_or(Window { start_ns: time_ns, end_ns: time_ns });
            Some(Window { start_ns: window.start_ns.min(time_ns), end_ns: window.end_ns.max(time_ns) })
        })
    }

    /// A time counted from the window's start.
    pub fn since_start_ns(self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns)
    }
}

/// What a thread was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was on a processor.
    Running,
    /// It wanted to be: preempted, or woken and waiting for its turn.
    Runnable,
    /// It waited for something else than a processor.
    Blocked,
}

/// A thread in one state, from `start_ns` to `end_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Start.
    pub start_ns: u64,
    /// End, later than the start.
    pub end_ns: u64,
    /// What it was doing.
    pub state: State,
    /// Where it was when it left the processor.
    pub stack: Option<StackId>,
}

/// When the end of a wait was decided: when the thread was woken, or preempted.
pub fn woken_ns(wait: &Wait) -> u64 {
    match wait.state {
        WaitState::Preempted => wait.start_ns,
        WaitState::Blocked => wait.end_ns.saturating_sub(wait.runnable_ns.unwrap_or(0)).max(wait.start_ns),
    }
}

/// A thread's life as slices that follow each other. Empty if nothing is known of it: without waits a thread ran all
/// the time or never, and only its CPU time tells which.
pub fn slices(thread: &Thread, waits: &[Wait], window: Window) -> Vec<Slice> {
    if waits.is_empty() && thread.cpu_ns.unwrap_or(0) == 0 {
        return Vec::new();
    }
    let mut slices = Vec::with_capacity(waits.len() * 3 + 1);
    let mut now = thread.start_ns.unwrap_or(window.start_ns);
    let mut until = |end_ns: u64, state: State, stack: Option<StackId>| {
        if end_ns > now {
            slices.push(Slice { start_ns: now, end_ns, state, stack });
            now = end_ns;
        }
    };
    for wait in waits {
        until(wait.start_ns, State::Running, None);
        until(woken_ns(wait), State::Blocked, wait.stack);
        until(wait.end_ns, State::Runnable, wait.stack);
    }
    until(thread.end_ns.unwrap_or(window.end_ns), State::Running, None);
    slices
}

/// Rows that belong to threads, by thread; within a thread in the order of the table.
pub struct ByThread<T> {
    rows: Vec<T>,
    starts: Vec<usize>,
}

impl<T: Copy> ByThread<T> {
    /// Sorts `rows`, whose thread `thread_of` tells.
    pub fn new(capture: &Capture, rows: impl Iterator<Item = T>, thread_of: impl Fn(&T) -> ThreadId) -> Self {
        let mut rows: Vec<T> = rows.collect();
        rows.sort_by_key(&thread_of);
        let first = |thread: usize| rows.partition_point(|row| thread_of(row).index() < thread);
        let starts = (0..=capture.threads.len()).map(first).collect();
        Self { rows, starts }
    }

    /// The rows of a thread.
    pub fn of(&self, thread: ThreadId) -> &[T] {
        &self.rows[self.starts[thread.index()]..self.starts[thread.index() + 1]]
    }
}

/// Process and thread ids that no two rows share: the kernel uses ids again, and the formats know no other identity.
/// The first row keeps its id, later ones of the same take the next that is free above all.
pub struct Ids {
    pids: Vec<u32>,
    tids: Vec<u32>,
    /// The process of threads that have none.
    no_process: u32,
}

impl Ids {
    /// Numbers the rows of a capture.
    pub fn of(capture: &Capture) -> Self {
        let mut pids = unique(capture.processes.iter().map(|process| process.pid).chain([u32::MAX]).collect());
        let no_process = pids.pop().unwrap_or(u32::MAX);
        Self { pids, tids: unique(capture.threads.iter().map(|thread| thread.tid).collect()), no_process }
    }

    /// A process' id, or that of the process made up for threads that have none.
    pub fn pid(&self, process: Option<ProcessId>) -> u32 {
        process.map_or(self.no_process, |process| self.pids[process.index()])
    }

    /// A thread's id.
    pub fn tid(&self, thread: ThreadId) -> u32 {
        self.tids[thread.index()]
    }
}

fn unique(ids: Vec<u32>) -> Vec<u32> {
    let all: FxHashSet<u32> = ids.iter().copied().collect();
    let mut taken = FxHashSet::default();
    // There are fewer rows than numbers, so that one is always free.
    let highest = ids.iter().copied().filter(|&id| id != u32::MAX).max().unwrap_or(0);
    let mut free = (highest.saturating_add(1)..u32::MAX).chain(1..highest).filter(|id| !all.contains(id));
    ids.into_iter().map(|id| if taken.insert(id) { id } else { free.next().unwrap_or(id) }).collect()
}

/// What to call a process: its executable's file name, its first thread's name, or its id.
pub fn process_name(capture: &Capture, process: ProcessId) -> String {
    let row = &capture.processes[process.index()];
    let executable = row.executable.rsplit('/').next().unwrap_or_default();
    if !executable.is_empty() {
        return executable.to_owned();
    }
    let mut threads = capture.threads.iter().filter(|thread| thread.process == Some(process));
    let main = threads.clone().find(|thread| thread.tid == row.pid).or_else(|| threads.next());
    match main {
        Some(thread) if !thread.name.is_empty() => thread.name.clone(),
        _ => format!("process {}", row.pid),
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::Process;

    use super::*;

    fn wait(start_ns: u64, end_ns: u64, state: WaitState, runnable_ns: Option<u64>) -> Wait {
        let thread = ThreadId(0);
        Wait { start_ns, end_ns, thread, stack: None, state, runnable_ns, cpu: None, waker: None, waker_stack: None }
    }

    fn drawn(thread: &Thread, waits: &[Wait]) -> Vec<String> {
        slices(thread, waits, Window { start_ns: 0, end_ns: 100 })
            .iter()
            .map(|slice| format!("{}-{} {:?}", slice.start_ns, slice.end_ns, slice.state))
            .collect()
    }

    #[test]
    fn a_life_is_running_between_waits_and_waits_end_in_being_runnable() {
        let thread = Thread { start_ns: Some(5), end_ns: Some(90), ..Thread::default() };
        let waits = [
            wait(10, 30, WaitState::Blocked, Some(4)),
            wait(40, 50, WaitState::Preempted, Some(10)),
            wait(50, 60, WaitState::Blocked, None),
            wait(70, 90, WaitState::Blocked, Some(0)),
        ];
        assert_eq!(
            drawn(&thread, &waits),
            [
                "5-10 Running",
                "10-26 Blocked",
                "26-30 Runnable",
                "30-40 Running",
                "40-50 Runnable",
                "50-60 Blocked",
                "60-70 Running",
                "70-90 Blocked"
            ]
        );
    }

    #[test]
    fn of_a_thread_without_waits_nothing_is_claimed_unless_it_used_a_processor() {
        let thread = |cpu_ns| Thread { cpu_ns, ..Thread::default() };
        assert_eq!(drawn(&thread(None), &[]), Vec::<String>::new());
        assert_eq!(drawn(&thread(Some(0)), &[]), Vec::<String>::new());
        assert_eq!(drawn(&thread(Some(100)), &[]), ["0-100 Running"]);
    }

    #[test]
    fn contradicting_waits_never_go_back_in_time() {
        let waits = [wait(10, 30, WaitState::Blocked, Some(50)), wait(20, 25, WaitState::Blocked, None)];
        assert_eq!(drawn(&Thread::default(), &waits), ["0-10 Running", "10-30 Runnable", "30-100 Running"]);
    }

    #[test]
    fn ids_that_were_used_again_are_told_apart() {
        let mut capture = Capture::default();
        for pid in [7, 7, 8] {
            let process = capture.add_process(Process { pid, ..Process::default() });
            capture.add_thread(Thread { tid: pid, process: Some(process), ..Thread::default() });
        }
        let ids = Ids::of(&capture);
        assert_eq!([0, 1, 2].map(|id| ids.pid(Some(ProcessId(id)))), [7, 9, 8]);
        assert_eq!([0, 1, 2].map(|id| ids.tid(ThreadId(id))), [7, 9, 8]);
        assert!(![7, 8, 9].contains(&ids.pid(None)));
        assert_eq!(unique(vec![u32::MAX, u32::MAX, 3]), [u32::MAX, 4, 3]);
    }
}
