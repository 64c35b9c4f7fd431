//! Threads of folded stacks, by the first name of a line.

use std::collections::HashMap;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Capture, Process, ProcessId, Thread, ThreadId};

use super::ThreadIds;

/// The threads so far, by label.
#[derive(Default)]
pub(super) struct Threads {
    by_label: HashMap<String, ThreadId>,
    processes: FxHashMap<u32, ProcessId>,
    /// Threads whose tid is unknown.
    unnumbered: Vec<ThreadId>,
}

impl Threads {
    /// The thread with this label, added if it is new.
    pub(super) fn of(&mut self, label: &str, ids: ThreadIds, capture: &mut Capture) -> ThreadId {
        if let Some(&thread) = self.by_label.get(label) {
            return thread;
        }
        let (name, pid, tid) = match ids {
            ThreadIds::Absent => (label, None, None),
            ThreadIds::Pid => split_pid(label).map_or((label, None, None), |(name, pid)| (name, pid, None)),
            ThreadIds::Detect | ThreadIds::PidTid => split_pid_tid(label).unwrap_or((label, None, None)),
        };
        let process = pid.map(|pid| {
            *self.processes.entry(pid).or_insert_with(|| capture.add_process(Process { pid, ..Process::default() }))
        });
        let thread =
            capture.add_thread(Thread { tid: tid.unwrap_or(0), process, name: name.to_owned(), ..Thread::default() });
        if tid.is_none() {
            self.unnumbered.push(thread);
        }
        self.by_label.insert(label.to_owned(), thread);
        thread
    }

    /// Gives unique tids to the threads whose tid is unknown.
    pub(super) fn assign_missing_tids(&self, capture: &mut Capture) {
        let unnumbered: FxHashSet<ThreadId> = self.unnumbered.iter().copied().collect();
        let taken: FxHashSet<u32> = capture
            .threads
            .iter()
            .enumerate()
            .filter(|(index, _)| !unnumbered.contains(&ThreadId::from_index(*index)))
            .map(|(_, thread)| thread.tid)
            .collect();
        let free = (1..=u32::MAX).filter(|tid| !taken.contains(tid));
        for (thread, tid) in self.unnumbered.iter().zip(free) {
            capture.threads[thread.index()].tid = tid;
        }
    }
}

/// Splits `name-PID`; perf scripts write `?` for an unknown pid.
fn split_pid(label: &str) -> Option<(&str, Option<u32>)> {
    let (name, pid) = label.rsplit_once('-')?;
    match pid {
        "?" => Some((name, None)),
        _ => Some((name, Some(id(pid)?))),
    }
}

/// Splits `name-PID/TID`.
fn split_pid_tid(label: &str) -> Option<(&str, Option<u32>, Option<u32>)> {
    let (name, tid) = label.rsplit_once('/')?;
    let (name, pid) = split_pid(name)?;
    Some((name, pid, Some(id(tid)?)))
}

/// An id in plain decimal. Other notations are rejected, because export must restore the text.
fn id(text: &str) -> Option<u32> {
    let id: u32 = text.parse().ok()?;
    (id.to_string() == text).then_some(id)
}
