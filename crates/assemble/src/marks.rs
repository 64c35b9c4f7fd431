//! From the marks of a log to the tables of a capture: scopes and counters of threads.
//!
//! The log is read twice. The first time, threads and names become known, and which scopes enclose many others. The second
//! time, each scope and each reading goes to its table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stepscope_model::{Capture, Counter, FlowEvent, ProcessId, Scope, Thread, ThreadId};

use crate::entry::{Entry, MarkNameRef, MarkThreadRef};
use crate::nesting::{EarlyScopes, Interval, Nesting};

/// A thread's first mark may seem to come before its start by this much: their clocks differ a little.
const SLACK_NS: u64 = 1_000_000;

/// What the first reading of a log finds out about its marks.
#[derive(Default)]
pub(crate) struct MarkTables {
    names: Vec<Arc<str>>,
    threads: Vec<MarkThread>,
    intervals: Intervals,
    /// By thread id. Marks of one thread can come from several libraries.
    early: BTreeMap<u32, EarlyScopes<MarkThreadRef>>,
    last_ns: u64,
    lost: u64,
}

/// A thread that marked something, and a time at which it lived.
pub(crate) struct MarkThread {
    pid: u32,
    pub tid: u32,
    time_ns: u64,
}

impl MarkThread {
    /// Which of the threads with its id it is: these are in the order of their starts.
    pub fn among(&self, threads: &[Thread], with_its_id: &[ThreadId]) -> Option<ThreadId> {
        let began = |id: &&ThreadId| {
            threads[id.index()].start_ns.is_none_or(|start_ns| start_ns <= self.time_ns.saturating_add(SLACK_NS))
        };
        with_its_id.iter().rev().find(began).or(with_its_id.first()).copied()
    }
}

impl MarkTables {
    /// Adds an entry about marks. `None` if it refers to a missing entry, or is about something else.
    pub fn accept(&mut self, entry: &Entry) -> Option<()> {
        match entry {
            Entry::MarkName { name } => self.names.push(name.as_str().into()),
            &Entry::MarkThread { pid, tid, time_ns } => self.threads.push(MarkThread { pid, tid, time_ns }),
            &Entry::Scope { thread, name, .. }
            | &Entry::FrameMark { thread, name, .. }
            | &Entry::MarkedCounter { thread, name, .. } => {
                self.refers(thread, Some(name))?;
                self.add_interval(entry);
            }
            &Entry::FlowMark { thread, name, by, .. } => {
                self.refers(thread, Some(name))?;
                self.refers(thread, by)?;
            }
            &Entry::MarksLost { count } => self.lost = count,
            _ => return None,
        }
        Some(())
    }

    fn add_interval(&mut self, entry: &Entry) {
        let Some(interval) = self.intervals.ended_by(entry) else { return };
        if matches!(entry, Entry::Scope { .. }) {
            self.last_ns = self.last_ns.max(interval.end_ns);
        }
        let tid = self.threads[interval.thread.0 as usize].tid;
        self.early.entry(tid).or_default().add(interval);
    }

    fn refers(&self, thread: MarkThreadRef, name: Option<MarkNameRef>) -> Option<()> {
        let known =
            (thread.0 as usize) < self.threads.len() && name.is_none_or(|name| (name.0 as usize) < self.names.len());
        known.then_some(())
    }

    /// Whether a thread is known.
    pub fn has_thread(&self, thread: MarkThreadRef) -> bool {
        self.refers(thread, None).is_some()
    }

    /// Threads that marked something, and the names of marks.
    pub fn known(&self) -> (&[MarkThread], &[Arc<str>]) {
        (&self.threads, &self.names)
    }

    /// Marks that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The time of the last mark.
    pub fn last_ns(&self) -> Option<u64> {
        Some(self.last_ns).filter(|&ns| ns > 0)
    }

    /// Notes losses, and adds threads that are known by their marks alone. Gives what the second reading needs.
    pub fn resolve(self, capture: &mut Capture) -> Marks {
        capture.info.losses.lost_marks = self.lost;
        if self.lost > 0 {
            capture.info.notes.push(format!(
                "{} marks are missing, because they were made faster than they could be read: scopes and counters may be \
                 among them, and a step whose mark is missing seems to last longer.",
                self.lost
            ));
        }
        let threads = resolve(&self.threads, capture);
        let window_ns = capture.info.first_interval_ns();
        let nestings = self.early.into_iter().map(|(tid, early)| {
            let resolved = |interval: Interval<MarkThreadRef>| interval.on(threads[interval.thread.0 as usize]);
            (tid, Nesting::new(early.into_intervals().into_iter().map(resolved), window_ns))
        });
        Marks {
            nestings: nestings.collect(),
            names: self.names.iter().map(|name| capture.intern_text(name)).collect(),
            tids: self.threads.iter().map(|thread| thread.tid).collect(),
            threads,
            intervals: Intervals::default(),
        }
    }
}

/// Makes scopes and readings of marks, once all threads and names are known.
#[derive(Default)]
pub(crate) struct Marks {
    names: Vec<Arc<str>>,
    /// The capture's thread, and the thread id, for each thread that marked something.
    threads: Vec<ThreadId>,
    tids: Vec<u32>,
    intervals: Intervals,
    nestings: BTreeMap<u32, Nesting>,
}

impl Marks {
    /// The capture's thread.
    pub fn thread(&self, thread: MarkThreadRef) -> Option<ThreadId> {
        self.threads.get(thread.0 as usize).copied()
    }

    /// Adds a scope or a mark of a frame, and gives the scopes whose depth is known now. Scopes that started before the
    /// recording are incomplete, and left out.
    pub fn add_scope(&mut self, entry: &Entry, mut take: impl FnMut(Scope)) {
        let Some(interval) = self.intervals.ended_by(entry) else { return };
        let Some((thread, tid)) = self.thread(interval.thread).zip(self.tids.get(interval.thread.0 as usize)) else {
            return;
        };
        let (names, nesting) = (&self.names, self.nestings.get_mut(tid));
        let Some(nesting) = nesting.filter(|_| (interval.name.0 as usize) < names.len()) else { return };
        nesting.add(interval.on(thread), |interval, depth| take(scope(names, &interval, depth)));
    }

    /// Gives the last scopes.
    pub fn finish(self, mut take: impl FnMut(Scope)) {
        let names = self.names;
        for nesting in self.nestings.into_values() {
            nesting.finish(|interval, depth| take(scope(&names, &interval, depth)));
        }
    }

    /// A reading that a program marked.
    pub fn counter(&self, capture: &Capture, entry: &Entry) -> Option<Counter> {
        let &Entry::MarkedCounter { thread, name, time_ns, value } = entry else { return None };
        let (thread, name) = (self.thread(thread)?, self.names.get(name.0 as usize)?.clone());
        let process = capture.threads.get(thread.index())?.process;
        Some(Counter { time_ns, process, thread: Some(thread), name, value })
    }

    /// A stage of a message.
    pub fn flow(&self, entry: &Entry) -> Option<FlowEvent> {
        let &Entry::FlowMark { thread, name, time_ns, flow, stage, by, period_ns } = entry else { return None };
        let (thread, topic) = (self.thread(thread)?, self.names.get(name.0 as usize)?.clone());
        let name = by.and_then(|by| self.names.get(by.0 as usize)).cloned();
        Some(FlowEvent { time_ns, thread, topic, flow, stage, name, period_ns })
    }
}

/// The row of a scope.
pub(crate) fn scope(names: &[Arc<str>], interval: &Interval<ThreadId>, depth: u32) -> Scope {
    let &Interval { thread, name, start_ns, end_ns } = interval;
    Scope { thread, name: names[name.0 as usize].clone(), start_ns, end_ns, depth }
}

/// Makes intervals of scopes and of marks of frames. A frame lasts from one mark of its name to the next on the same thread.
#[derive(Default)]
pub(crate) struct Intervals {
    last_marks: HashMap<(MarkThreadRef, MarkNameRef), u64>,
}

impl Intervals {
    /// The interval that ends with this entry.
    pub fn ended_by(&mut self, entry: &Entry) -> Option<Interval<MarkThreadRef>> {
        let interval = match *entry {
            Entry::Scope { thread, name, start_ns, end_ns } => Interval { thread, name, start_ns, end_ns },
            Entry::FrameMark { thread, name, time_ns } => {
                let start_ns = self.last_marks.insert((thread, name), time_ns)?;
                Interval { thread, name, start_ns, end_ns: time_ns }
            }
            _ => return None,
        };
        (interval.start_ns <= interval.end_ns).then_some(interval)
    }
}

/// The capture's thread for each thread that marked something. A thread without kernel records is added.
fn resolve(marked: &[MarkThread], capture: &mut Capture) -> Vec<ThreadId> {
    let mut by_tid: HashMap<u32, Vec<ThreadId>> = HashMap::new();
    for (index, thread) in capture.threads.iter().enumerate() {
        by_tid.entry(thread.tid).or_default().push(ThreadId::from_index(index));
    }
    let mut resolved = Vec::with_capacity(marked.len());
    for marked in marked {
        let &MarkThread { pid, tid, .. } = marked;
        let known = by_tid.entry(tid).or_default();
        let found = marked.among(&capture.threads, known);
        let thread = found.unwrap_or_else(|| {
            let process = capture.processes.iter().rposition(|process| process.pid == pid);
            let process = process.map(ProcessId::from_index);
            capture.add_thread(Thread { tid, process, name: "(known by its marks)".into(), ..Thread::default() })
        });
        if found.is_none() {
            known.push(thread);
        }
        resolved.push(thread);
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Sink;
    use crate::kernel_account::{KernelAccount, Readings};
    use crate::rows::RowSink;
    use crate::sample_weights::SampleWeights;
    use stepscope_model::{CaptureInfo, Process};

    /// A capture from time 100 on, with these threads (id, start), all of process 40.
    fn capture(threads: &[(u32, u64)]) -> Capture {
        let mut capture = Capture::of(CaptureInfo { start_ns: Some(100), ..CaptureInfo::default() });
        let process = Some(capture.add_process(Process { pid: 40, ..Process::default() }));
        for &(tid, start_ns) in threads {
            capture.add_thread(Thread { tid, process, start_ns: Some(start_ns), ..Thread::default() });
        }
        capture
    }

    fn filled(mut capture: Capture, entries: Vec<Entry>) -> Capture {
        let mut tables = MarkTables::default();
        let others = entries.iter().filter(|entry| !matches!(entry, Entry::StepMark { .. }));
        others.for_each(|entry| tables.accept(entry).unwrap());
        let marks = tables.resolve(&mut capture);
        let account = KernelAccount::of(&capture, &Readings::default());
        let mut rows = RowSink::new(capture, Vec::new(), account, SampleWeights::default()).with_marks(marks);
        entries.into_iter().for_each(|entry| rows.take(entry));
        let (capture, ..) = rows.finish().unwrap();
        capture.check().unwrap();
        capture
    }

    fn name(name: &str) -> Entry {
        Entry::MarkName { name: name.into() }
    }

    fn thread(tid: u32, time_ns: u64) -> Entry {
        Entry::MarkThread { pid: 40, tid, time_ns }
    }

    fn scope(thread: u32, name: u32, start_ns: u64, end_ns: u64) -> Entry {
        Entry::Scope { thread: MarkThreadRef(thread), name: MarkNameRef(name), start_ns, end_ns }
    }

    fn shown(capture: &Capture) -> Vec<(u32, &str, u64, u64, u32)> {
        let tid = |scope: &Scope| capture.threads[scope.thread.index()].tid;
        let show = |scope: &'_ Scope| (tid(scope), scope.start_ns, scope.end_ns, scope.depth);
        let rows = capture.scopes.iter().map(|scope| (show(scope), &*scope.name));
        rows.map(|((tid, start, end, depth), name)| (tid, name, start, end, depth)).collect()
    }

    #[test]
    fn depth_is_the_number_of_scopes_around() {
        // Written as they end: the innermost first.
        let entries = vec![
            name("a"),
            name("b"),
            thread(41, 100),
            scope(0, 1, 120, 130),
            scope(0, 1, 130, 150),
            scope(0, 1, 200, 300),
            scope(0, 0, 200, 300),
            scope(0, 0, 110, 300),
        ];
        assert_eq!(
            shown(&filled(capture(&[(41, 100)]), entries)),
            [
                (41, "a", 110, 300, 0),
                (41, "b", 120, 130, 1),
                (41, "b", 130, 150, 1),
                (41, "a", 200, 300, 1),
                (41, "b", 200, 300, 2),
            ]
        );
    }

    #[test]
    fn intervals_that_overlap_do_not_enclose_each_other() {
        let entries =
            vec![name("a"), thread(41, 100), scope(0, 0, 100, 200), scope(0, 0, 160, 180), scope(0, 0, 150, 250)];
        let depths: Vec<(u64, u32)> =
            filled(capture(&[(41, 100)]), entries).scopes.iter().map(|s| (s.start_ns, s.depth)).collect();
        assert_eq!(depths, [(100, 0), (150, 0), (160, 2)]);
    }

    #[test]
    fn marks_of_one_thread_by_two_libraries_are_those_of_one_thread() {
        let entries =
            vec![name("a"), name("b"), thread(41, 100), thread(41, 100), scope(1, 1, 120, 130), scope(0, 0, 110, 140)];
        assert_eq!(shown(&filled(capture(&[(41, 100)]), entries)), [(41, "a", 110, 140, 0), (41, "b", 120, 130, 1)]);
    }

    #[test]
    fn a_thread_id_that_was_used_again_is_another_thread() {
        let entries = vec![
            name("a"),
            thread(41, 2_000_200),
            thread(41, 9_000_300),
            scope(0, 0, 2_000_200, 2_000_210),
            scope(1, 0, 9_000_300, 9_000_310),
        ];
        let capture = filled(capture(&[(41, 2_000_100), (41, 9_000_000)]), entries);
        assert_eq!(capture.scopes.iter().map(|scope| scope.thread.index()).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_thread_without_a_start_record_is_added_to_its_process() {
        let entries = vec![name("a"), thread(77, 150), thread(77, 150), scope(0, 0, 150, 160), scope(1, 0, 170, 180)];
        let capture = filled(capture(&[(41, 100)]), entries);
        assert_eq!(
            (capture.threads.len(), capture.threads[1].tid, capture.threads[1].process),
            (2, 77, capture.threads[0].process)
        );
        assert_eq!(capture.scopes.len(), 2);
    }

    #[test]
    fn a_scope_that_began_before_the_window_is_not_whole_and_left_out() {
        let entries = vec![name("a"), thread(41, 100), scope(0, 0, 99, 130), scope(0, 0, 100, 130)];
        assert_eq!(shown(&filled(capture(&[(41, 100)]), entries)), [(41, "a", 100, 130, 0)]);
    }

    #[test]
    fn steps_last_from_mark_to_mark_with_the_simulated_time_of_their_end() {
        let mark =
            |thread, time_ns, sim_time_ns| Entry::StepMark { thread: MarkThreadRef(thread), time_ns, sim_time_ns };
        let entries = vec![
            thread(41, 100),
            thread(42, 100),
            mark(0, 200, Some(0)),
            mark(1, 250, None),
            mark(0, 300, Some(1_000)),
            mark(0, 450, Some(-1)),
            mark(1, 650, None),
        ];
        let capture = filled(capture(&[(41, 100), (42, 100)]), entries);
        let steps: Vec<_> = capture
            .steps
            .iter()
            .map(|step| (step.thread.index(), step.index, step.start_ns, step.end_ns, step.sim_time_ns))
            .collect();
        assert_eq!(steps, [(0, 0, 200, 300, Some(1_000)), (1, 0, 250, 650, None), (0, 1, 300, 450, None)]);
    }

    #[test]
    fn frames_last_from_mark_to_mark_of_their_name() {
        let mark = |name, time_ns| Entry::FrameMark { thread: MarkThreadRef(0), name: MarkNameRef(name), time_ns };
        let entries = vec![
            name("render"),
            name("lidar"),
            thread(41, 100),
            mark(0, 110),
            mark(1, 120),
            mark(0, 140),
            mark(1, 220),
            mark(0, 160),
        ];
        assert_eq!(
            shown(&filled(capture(&[(41, 100)]), entries)),
            [(41, "render", 110, 140, 0), (41, "lidar", 120, 220, 0), (41, "render", 140, 160, 1)]
        );
    }

    #[test]
    fn lost_marks_are_counted_with_a_note() {
        let lost = |count| Entry::MarksLost { count };
        let capture = filled(capture(&[]), vec![lost(3), lost(20)]);
        assert_eq!(capture.info.losses.lost_marks, 20);
        assert!(capture.info.notes[0].starts_with("20 marks are missing,"), "{:?}", capture.info.notes);
    }

    #[test]
    fn marks_of_unknown_threads_and_other_entries_are_refused() {
        let mut tables = MarkTables::default();
        assert_eq!(tables.accept(&scope(0, 0, 1, 2)), None);
        tables.accept(&thread(41, 100)).unwrap();
        assert_eq!(tables.accept(&scope(0, 0, 1, 2)), None);
        assert_eq!(tables.accept(&Entry::WindowStart { time_ns: 1 }), None);
    }

    proptest::proptest! {
        /// Blocks nest: whatever the tree of blocks, the depth is that of the block in it.
        #[test]
        fn nested_blocks_have_the_depth_they_were_drawn_with(shape in proptest::collection::vec(0u8..3, 1..200)) {
            // 0 opens a block, the others close one; each takes a moment or none.
            let (mut open, mut now, mut written) = (Vec::new(), 1_000u64, Vec::new());
            for what in shape.into_iter().chain(std::iter::repeat_n(1, 200)) {
                if what == 0 {
                    open.push(now);
                } else if let Some(start_ns) = open.pop() {
                    written.push((start_ns, now, open.len() as u32));
                }
                now += u64::from(what == 2 || what == 0);
            }
            let mut entries = vec![name("block"), thread(41, 100)];
            entries.extend(written.iter().map(|&(start_ns, end_ns, _)| scope(0, 0, start_ns, end_ns)));
            let capture = filled(capture(&[(41, 100)]), entries);
            let mut given: Vec<(u64, u64, u32)> = capture.scopes.iter().map(|scope| (scope.start_ns, scope.end_ns, scope.depth)).collect();
            given.sort_unstable();
            written.sort_unstable();
            proptest::prop_assert_eq!(given, written);
        }
    }
}
