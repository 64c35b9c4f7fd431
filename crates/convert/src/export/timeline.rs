//! A capture on a time axis: its window, thread states over time, and unique ids.

use rustc_hash::FxHashSet;
use stepscope_model::{Capture, ProcessId, StackId, Thread, ThreadId, Wait, WaitState};

/// The first and last time in a capture, on its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Origin of the time axis.
    pub start_ns: u64,
    /// The end.
    pub end_ns: u64,
}

impl Window {
    /// The capture's window, extended to include everything that has a time. `None` if nothing has.
    pub fn of(capture: &Capture) -> Option<Self> {
        let info = &capture.info;
        let times = (info.start_ns.into_iter().chain(info.end_ns))
            .chain(capture.samples.iter().filter_map(|sample| sample.time_ns))
            .chain(capture.waits.iter().flat_map(|wait| [wait.start_ns, wait.end_ns]))
            .chain(capture.steps.iter().flat_map(|step| [step.start_ns, step.end_ns]))
            .chain(capture.scopes.iter().flat_map(|scope| [scope.start_ns, scope.end_ns]))
            .chain(capture.counters.iter().map(|counter| counter.time_ns))
            .chain(capture.flows.iter().map(|stage| stage.time_ns))
            .chain(capture.threads.iter().flat_map(|thread| thread.start_ns.into_iter().chain(thread.end_ns)))
            .chain(capture.processes.iter().flat_map(|process| process.start_ns.into_iter().chain(process.end_ns)));
        times.fold(None, |window, time_ns| {
            let window = window.unwrap_or(Window { start_ns: time_ns, end_ns: time_ns });
            Some(Window { start_ns: window.start_ns.min(time_ns), end_ns: window.end_ns.max(time_ns) })
        })
    }

    /// A time relative to the window's start.
    pub fn since_start_ns(self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns)
    }
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On-CPU.
    Running,
    /// Waiting for a CPU: preempted, or woken and not yet running.
    Runnable,
    /// Waiting for something other than a CPU.
    Blocked,
}

/// A thread in one state from `start_ns` to `end_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Start.
    pub start_ns: u64,
    /// End, later than the start.
    pub end_ns: u64,
    /// The state.
    pub state: State,
    /// Its stack when it left the CPU.
    pub stack: Option<StackId>,
}

/// When a wait became runnable: the thread was woken or preempted.
pub fn woken_ns(wait: &Wait) -> u64 {
    match wait.state {
        WaitState::Preempted => wait.start_ns,
        WaitState::Blocked => wait.end_ns.saturating_sub(wait.runnable_ns.unwrap_or(0)).max(wait.start_ns),
    }
}

/// The consecutive slices of a thread. Empty without waits and CPU time: the thread may have run all the time or never.
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

/// Rows grouped by thread, in the table's order within a thread.
pub struct ByThread<T> {
    rows: Vec<T>,
    starts: Vec<usize>,
}

impl<T: Copy> ByThread<T> {
    /// Groups `rows` by `thread_of`.
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

/// Unique process and thread ids. The kernel reuses ids, and the formats have no other identity. The first row keeps
/// its id; later rows with the same id get the next free one above all.
pub struct Ids {
    pids: Vec<u32>,
    tids: Vec<u32>,
    /// Process id of threads without a process.
    no_process: u32,
}

impl Ids {
    /// Assigns ids to the rows of a capture.
    pub fn of(capture: &Capture) -> Self {
        let mut pids = unique(capture.processes.iter().map(|process| process.pid).chain([u32::MAX]).collect());
        let no_process = pids.pop().unwrap_or(u32::MAX);
        Self { pids, tids: unique(capture.threads.iter().map(|thread| thread.tid).collect()), no_process }
    }

    /// The id of a process, or of the made-up process of threads without one.
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
    // There are fewer rows than numbers, so one is free.
    let highest = ids.iter().copied().filter(|&id| id != u32::MAX).max().unwrap_or(0);
    let mut free = (highest.saturating_add(1)..u32::MAX).chain(1..highest).filter(|id| !all.contains(id));
    ids.into_iter().map(|id| if taken.insert(id) { id } else { free.next().unwrap_or(id) }).collect()
}

/// Display name of a process: the requested one, its executable's file name, its first thread's name, or its id.
pub fn process_name(capture: &Capture, names: &[String], process: ProcessId) -> String {
    if let Some(name) = names.get(process.index()).filter(|name| !name.is_empty()) {
        return name.clone();
    }
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
        Wait {
            start_ns,
            end_ns,
            thread,
            stack: None,
            state,
            runnable_ns,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        }
    }

    fn drawn(thread: &Thread, waits: &[Wait]) -> Vec<String> {
        slices(thread, waits, Window { start_ns: 0, end_ns: 100 })
            .iter()
            .map(|slice| format!("{}-{} {:?}", slice.start_ns, slice.end_ns, slice.state))
            .collect()
    }

    #[test]
    fn a_thread_runs_between_waits_and_is_runnable_after_each() {
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
    fn a_thread_without_waits_has_slices_only_if_it_used_a_cpu() {
        let thread = |cpu_ns| Thread { cpu_ns, ..Thread::default() };
        assert_eq!(drawn(&thread(None), &[]), Vec::<String>::new());
        assert_eq!(drawn(&thread(Some(0)), &[]), Vec::<String>::new());
        assert_eq!(drawn(&thread(Some(100)), &[]), ["0-100 Running"]);
    }

    #[test]
    fn overlapping_waits_never_go_back_in_time() {
        let waits = [wait(10, 30, WaitState::Blocked, Some(50)), wait(20, 25, WaitState::Blocked, None)];
        assert_eq!(drawn(&Thread::default(), &waits), ["0-10 Running", "10-30 Runnable", "30-100 Running"]);
    }

    #[test]
    fn reused_ids_become_unique() {
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
