//! Sums of the selected system calls.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;

use stepscope_model::{CallTimes, StackId, SystemCalls};
use stepscope_stats::Distribution;

use crate::query::select::Selection;
use crate::query::steps::Loops;

/// Calls of one kind, added up.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallSum {
    pub count: u64,
    pub errors: u64,
    pub total_ns: u64,
    /// The part of it in calls that do not [wait](is_wait) for others.
    pub busy_ns: u64,
    pub longest_ns: u64,
    pub bytes: u64,
    /// Those that ended within steps of the main loop.
    pub in_steps: InSteps,
    /// Times of single calls: of the last one of each row.
    times: Vec<u64>,
    /// Ends of buckets of times, by start, and the number of calls in each.
    buckets: BTreeMap<u64, (u64, u64)>,
}

/// What calls have in common that are added up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallPlace<'a> {
    pub call: &'a Arc<str>,
    pub stack: Option<StackId>,
    pub file: Option<&'a str>,
}

impl<'a> From<&'a SystemCalls> for CallPlace<'a> {
    fn from(calls: &'a SystemCalls) -> Self {
        Self { call: &calls.call, stack: calls.stack, file: calls.file.as_deref() }
    }
}

impl<'a> From<&'a CallTimes> for CallPlace<'a> {
    fn from(times: &'a CallTimes) -> Self {
        Self { call: &times.call, stack: times.stack, file: times.file.as_deref() }
    }
}

/// Calls that ended within steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InSteps {
    pub count: u64,
    pub errors: u64,
    /// Time within calls that do not [wait](is_wait) for others.
    pub busy_ns: u64,
}

impl CallSum {
    fn add(&mut self, calls: &SystemCalls, in_step: bool) {
        self.count += calls.count;
        self.errors += calls.errors;
        self.total_ns += calls.total_ns;
        self.longest_ns = self.longest_ns.max(calls.longest_ns);
        self.bytes += calls.bytes;
        let busy_ns = if is_wait(calls) { 0 } else { calls.total_ns };
        self.busy_ns += busy_ns;
        if in_step {
            self.in_steps.count += calls.count;
            self.in_steps.errors += calls.errors;
            self.in_steps.busy_ns += busy_ns;
        }
        self.times.extend(calls.last_ns);
    }

    pub fn mean_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.count)
    }

    fn add_times(&mut self, times: &CallTimes) {
        self.buckets.entry(times.from_ns).or_insert((times.until_ns, 0)).1 += times.count;
    }

    /// The 99th percentile (nearest rank): the middle of the bucket that it is in. Without buckets, of the calls that have a record.
    pub fn p99_ns(&self) -> Option<u64> {
        let counted: u64 = self.buckets.values().map(|(_, count)| count).sum();
        if counted == 0 {
            return self.times.iter().copied().collect::<Distribution>().percentile(99.0);
        }
        let rank = counted - counted / 100;
        let mut up_to = 0;
        let (&from_ns, &(until_ns, _)) = self.buckets.iter().find(|(_, (_, count))| {
            up_to += count;
            up_to >= rank
        })?;
        // The longest call is known exactly.
        let middle_ns = if rank == counted { self.longest_ns } else { from_ns.midpoint(until_ns.saturating_sub(1)) };
        Some(middle_ns.min(self.longest_ns))
    }

    /// Calls without a bucket, where there are buckets.
    pub fn without_time(&self) -> u64 {
        let counted: u64 = self.buckets.values().map(|(_, count)| count).sum();
        if counted == 0 { 0 } else { self.count.saturating_sub(counted) }
    }
}

/// The selected rows of system calls. A row counts for the moment at which its last call ended.
pub fn selected_rows<'a>(selection: &Selection<'a>) -> impl Iterator<Item = &'a SystemCalls> {
    let is_selected = |calls: &&SystemCalls| {
        selection.has_thread(calls.thread) && selection.has_time(Some(calls.end_ns)) && selection.has_stack(calls.stack)
    };
    selection.capture().system_calls.iter().filter(is_selected)
}

/// The selected calls.
pub(crate) struct SelectedCalls<'a> {
    pub rows: Vec<(&'a SystemCalls, bool)>,
    /// Their times. Empty if a part of the recording is selected: they are of all of it.
    pub times: Vec<&'a CallTimes>,
    /// Number of steps of the main loop.
    pub steps: Option<usize>,
}

impl<'a> SelectedCalls<'a> {
    pub fn of(selection: &Selection<'a>) -> Self {
        let loops = Loops::of_costs(selection);
        let main = loops.as_ref().map(|loops| loops.main());
        let is_selected = |times: &&CallTimes| selection.has_thread(times.thread) && selection.has_stack(times.stack);
        let times = selection.capture().call_times.iter().filter(|_| !selection.filters_time());
        Self {
            times: times.filter(is_selected).collect(),
            rows: selected_rows(selection)
                .map(|calls| (calls, main.is_some_and(|main| main.at(calls.end_ns).is_some())))
                .collect(),
            steps: main.map(|main| main.count()),
        }
    }

    /// A sum for each key. Those with most time in calls that do not wait come first, then those with most time.
    pub fn by<K: Ord + Clone>(&self, key: impl Fn(CallPlace<'a>) -> Option<K>) -> Vec<(K, CallSum)> {
        let mut sums: BTreeMap<K, CallSum> = BTreeMap::new();
        for (calls, in_step) in &self.rows {
            if let Some(key) = key((*calls).into()) {
                sums.entry(key).or_default().add(calls, *in_step);
            }
        }
        for times in &self.times {
            if let Some(sum) = key((*times).into()).and_then(|key| sums.get_mut(&key)) {
                sum.add_times(times);
            }
        }
        let mut sums: Vec<(K, CallSum)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| Reverse((sum.busy_ns, sum.total_ns)));
        sums
    }

    /// All calls together.
    pub fn total(&self) -> CallSum {
        self.by(|_| Some(())).pop().map(|(_, sum)| sum).unwrap_or_default()
    }

    /// A number of all steps, by step. `None` without steps.
    pub fn per_step(&self, of_steps: u64) -> Option<f64> {
        self.steps.filter(|steps| *steps > 0).map(|steps| of_steps as f64 / steps as f64)
    }
}

/// Whether a call waits for others: for a lock, a moment, a descriptor, a child. Its time is no cost of its own.
pub(crate) fn is_wait(calls: &SystemCalls) -> bool {
    #[rustfmt::skip]
    const WAITS: [&str; 21] = [
        "futex", "futex_wait", "futex_waitv", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait",
        "epoll_pwait2", "nanosleep", "clock_nanosleep", "pause", "rt_sigsuspend", "rt_sigtimedwait", "wait4", "waitid",
        "sched_yield", "accept", "accept4", "restart_syscall",
    ];
    const READS: [&str; 5] = ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];
    // What has no path is a socket, a pipe or the like: there, a read waits for the other side.
    let is_stream = calls.file.as_deref().is_some_and(|file| !file.starts_with('/'));
    WAITS.contains(&&*calls.call) || (is_stream && READS.contains(&&*calls.call))
}

/// Whether a file is of Stepscope's own libraries in the program: a map of Python functions, a table of a heap, a segment of marks.
pub(crate) fn is_of_recorder(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_prefix("memfd:").unwrap_or(name);
    ["stepscope-python", "stepscope-heap-", "stepscope-marks-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Sockets, and pipes, from which on they are one row.
const MANY: usize = 17;

/// What files are called in tables: `[pid]` stands for any process, and `socket:[any]` for the sockets of a program that has many.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    /// `socket:[` or `pipe:[`, if there are many.
    many: Vec<&'static str>,
}

impl FileNames {
    /// The names of these files.
    pub fn of<'f>(files: impl Iterator<Item = &'f str>) -> Self {
        let files: BTreeSet<&str> = files.collect();
        let are_many = |kind: &&str| files.iter().filter(|file| file.starts_with(*kind)).count() >= MANY;
        Self { many: ["socket:[", "pipe:["].into_iter().filter(are_many).collect() }
    }

    /// The name of a file.
    pub fn name<'f>(&self, file: &'f str) -> Cow<'f, str> {
        match self.many.iter().find(|kind| file.starts_with(**kind)) {
            Some(kind) => format!("{kind}any]").into(),
            None => of_any_process(file),
        }
    }
}

/// The path of a file with `[pid]` in place of a process's number.
pub(crate) fn of_any_process(path: &str) -> Cow<'_, str> {
    let Some((pid, rest)) = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/')) else {
        return path.into();
    };
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("/proc/[pid]/{rest}").into() } else { path.into() }
}
