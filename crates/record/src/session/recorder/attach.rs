//! Recording processes that run already.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Recorder, SETTLED_NS};
use crate::clock;
use crate::marks::Marks;
use crate::perf::Scope;
use crate::proc::{self, ProcessSet, ProcessTree, SelectionError};
use crate::python::{Python, PythonFunctions};
use crate::ros2::{Libraries, Ros2};
use crate::session::running::present;
use crate::session::{Options, RecordError};

impl Recorder {
    /// Prepares to record running processes and what descends from them.
    pub fn of_set(set: ProcessSet, options: &Options, folder: &Path, marks: Marks) -> Result<Self, RecordError> {
        let nothing = || RecordError::Selection(SelectionError::NoMatch { what: set.selection().describe() });
        let first = set.pids().first().copied().ok_or_else(nothing)?;
        let tree_of_set = || {
            let mut tree = ProcessTree::of(first);
            set.pids().into_iter().for_each(|pid| tree.add(pid));
            tree
        };
        let mut tree = tree_of_set();
        tree.refresh();
        let pids = |tree: &ProcessTree| -> Vec<u32> { tree.members().map(|member| member.pid()).collect() };
        let threads: Vec<u32> =
            pids(&tree).into_iter().flat_map(|pid| proc::threads(pid).unwrap_or_default()).collect();
        if threads.is_empty() {
            return Err(nothing());
        }
        let mut recorder = Self::open(Scope::Threads(threads.clone()), options, None, tree_of_set(), marks)?;
        recorder.note_program(first);
        recorder.python = (options.python == PythonFunctions::Always).then(Python::of_running);
        recorder.ros2 =
            options.ros2.then(|| Ros2::of_running(Libraries::of_running(&pids(&tree)), &mut recorder.events));
        pids(&tree).into_iter().for_each(|pid| recorder.events.admit(pid));
        recorder.enable()?;
        recorder.observe_started(&mut tree, threads);
        // Read after enabling: later changes are also in the rings, and it does no harm to know them twice.
        tree.refresh();
        for pid in pids(&tree) {
            recorder.events.admit(pid);
            if let Some(present) = present(pid) {
                recorder.assembler.add_running(&present, &mut recorder.sink);
            }
        }
        recorder.forget_places();
        // The capture begins when all is enabled and known. Records that were lost until then are not of it.
        recorder.begin_next(folder, options.label.clone())?;
        recorder.set = Some(set);
        Ok(recorder)
    }

    /// Observes the threads that started while the events were opened: events of single threads miss those which a thread started
    /// that had no event yet.
    pub(super) fn observe_started(&mut self, tree: &mut ProcessTree, threads: Vec<u32>) {
        /// Threads of a look have all events after it, and so have those that they start from then on. A program whose new threads start
        /// others at once is followed for this long.
        const LONGEST: Duration = Duration::from_secs(1);
        /// A thread is in `/proc` shortly before the record of its start is in the ring.
        const STARTED_NS: u64 = 2 * SETTLED_NS;
        let mut known: BTreeSet<u32> = threads.into_iter().collect();
        let began = Instant::now();
        while self.events.may_miss_threads() {
            let is_last = began.elapsed() > LONGEST;
            tree.refresh();
            let threads = tree.members().flat_map(|member| proc::threads(member.pid()).unwrap_or_default());
            let started: Vec<u32> = threads.filter(|&thread| known.insert(thread)).collect();
            std::thread::sleep(Duration::from_nanos(STARTED_NS));
            self.drain(clock::now_ns());
            match self.events.observe_started(&started) {
                Ok(0) => break,
                // Those that they started meanwhile are not looked for.
                Ok(lacking) => self.unobserved_threads += if is_last { lacking } else { 0 },
                Err(_) => self.unobserved_threads += started.len() as u64,
            }
            if is_last {
                break;
            }
        }
        self.events.all_are_observed();
    }

    /// Records processes that came to the set since the last look.
    pub(super) fn follow_new(&mut self) {
        let Some(set) = &mut self.set else { return };
        self.gone.iter().for_each(|&pid| set.remove(pid));
        set.refresh();
        let new: Vec<u32> = set.pids().into_iter().filter(|&pid| self.assembler.process_ref(pid).is_none()).collect();
        if new.is_empty() {
            return;
        }
        // Of records before this time, all are taken.
        let since_ns = clock::now_ns().saturating_sub(SETTLED_NS);
        self.round();
        for pid in new {
            self.events.admit(pid);
            // If this fails, the process has ended, or the limit on open files is reached.
            let observed = self.events.observe(&proc::threads(pid).unwrap_or_default());
            self.unobserved += u64::from(observed.is_err());
            if let Some(present) = present(pid) {
                self.assembler.add_running_since(&present, since_ns, &mut self.sink);
            }
        }
        self.forget_places();
    }
}
