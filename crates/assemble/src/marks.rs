//! From the marks of a log to the tables of a capture: scopes and counters of threads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stepscope_model::{Capture, Counter, ProcessId, Scope, Thread, ThreadId};

use crate::entry::{Entry, MarkNameRef, MarkThreadRef};

/// A thread's first mark may seem to come before its start by this much: their clocks differ a little.
const SLACK_NS: u64 = 1_000_000;
/// The largest depth that is counted. Only scopes that never nest have more open at a time.
const MAX_DEPTH: usize = 256;

/// The marks of a log.
#[derive(Default)]
pub(crate) struct MarkTables {
    names: Vec<Arc<str>>,
    threads: Vec<MarkThread>,
    scopes: Vec<Interval>,
    frames: Vec<FrameMark>,
    counters: Vec<MarkedCounter>,
    last_ns: u64,
    lost: u64,
}

/// A thread that marked something, and a time at which it lived.
struct MarkThread {
    pid: u32,
    tid: u32,
    time_ns: u64,
}

struct FrameMark {
    thread: MarkThreadRef,
    name: MarkNameRef,
    time_ns: u64,
}

struct MarkedCounter {
    thread: MarkThreadRef,
    name: MarkNameRef,
    time_ns: u64,
    value: i64,
}

struct Interval {
    thread: MarkThreadRef,
    name: MarkNameRef,
    start_ns: u64,
    end_ns: u64,
}

impl MarkTables {
    /// Adds an entry about marks. `None` if it refers to a missing entry, or is about something else.
    pub fn accept(&mut self, entry: Entry) -> Option<()> {
        match entry {
            Entry::MarkName { name } => self.names.push(name.into()),
            Entry::MarkThread { pid, tid, time_ns } => self.threads.push(MarkThread { pid, tid, time_ns }),
            Entry::Scope { thread, name, start_ns, end_ns } => {
                self.refers(thread, Some(name))?;
                self.scopes.push(Interval { thread, name, start_ns, end_ns });
                self.last_ns = self.last_ns.max(end_ns);
            }
            Entry::FrameMark { thread, name, time_ns } => {
                self.refers(thread, Some(name))?;
                self.frames.push(FrameMark { thread, name, time_ns });
            }
            Entry::MarkedCounter { thread, name, time_ns, value } => {
                self.refers(thread, Some(name))?;
                self.counters.push(MarkedCounter { thread, name, time_ns, value });
            }
            Entry::MarksLost { count } => self.lost = count,
            _ => return None,
        }
        Some(())
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

    /// The time of the last mark.
    pub fn last_ns(&self) -> Option<u64> {
        Some(self.last_ns).filter(|&ns| ns > 0)
    }

    /// Fills the capture's tables. Scopes that started before the capture's window are incomplete, and left out.
    ///
    /// Gives the capture's thread for each thread that marked something.
    pub fn fill(self, capture: &mut Capture) -> Vec<ThreadId> {
        capture.info.losses.lost_marks = self.lost;
        if self.lost > 0 {
            capture.info.notes.push(format!(
                "{} marks are missing, because they were made faster than they could be read: scopes and counters may be \
                 among them, and a step whose mark is missing seems to last longer.",
                self.lost
            ));
        }
        if self.threads.is_empty() {
            return Vec::new();
        }
        let threads = resolve(&self.threads, capture);
        let of = |thread: MarkThreadRef| threads[thread.0 as usize];
        let window_ns = capture.info.start_ns.unwrap_or(0);
        let names: Vec<Arc<str>> = self.names.iter().map(|name| capture.intern_text(name)).collect();
        let name_of = |name: MarkNameRef| names[name.0 as usize].clone();

        let scope = |&Interval { thread, name, start_ns, end_ns }: &Interval| Scope {
            thread: of(thread),
            name: name_of(name),
            start_ns,
            end_ns,
            depth: 0,
        };
        let mut scopes: Vec<Scope> = self.scopes.iter().map(scope).collect();
        scopes.extend(frames(self.frames.iter().map(|mark| (of(mark.thread), name_of(mark.name), mark.time_ns))));
        scopes.retain(|scope| scope.start_ns >= window_ns && scope.end_ns >= scope.start_ns);
        count_depths(&mut scopes);
        capture.scopes.extend(scopes);

        for &MarkedCounter { thread, name, time_ns, value } in &self.counters {
            let thread = of(thread);
            let process = capture.threads[thread.index()].process;
            capture.counters.push(Counter { time_ns, process, thread: Some(thread), name: name_of(name), value });
        }
        threads
    }
}

/// The capture's thread for each thread that marked something. A thread without kernel records is added.
fn resolve(marked: &[MarkThread], capture: &mut Capture) -> Vec<ThreadId> {
    let mut by_tid: HashMap<u32, Vec<ThreadId>> = HashMap::new();
    for (index, thread) in capture.threads.iter().enumerate() {
        by_tid.entry(thread.tid).or_default().push(ThreadId::from_index(index));
    }
    let mut resolved = Vec::with_capacity(marked.len());
    for &MarkThread { pid, tid, time_ns } in marked {
        let known = by_tid.entry(tid).or_default();
        let began = |id: &&ThreadId| {
            capture.threads[id.index()].start_ns.is_none_or(|start_ns| start_ns <= time_ns.saturating_add(SLACK_NS))
        };
        let found = known.iter().rev().find(began).or(known.first()).copied();
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

/// A frame lasts from one mark of its name to the next on the same thread.
fn frames(marks: impl Iterator<Item = (ThreadId, Arc<str>, u64)>) -> Vec<Scope> {
    let mut by_loop: BTreeMap<(ThreadId, Arc<str>), Vec<u64>> = BTreeMap::new();
    for (thread, name, time_ns) in marks {
        by_loop.entry((thread, name)).or_default().push(time_ns);
    }
    let of_loop = |((thread, name), mut times): ((ThreadId, Arc<str>), Vec<u64>)| -> Vec<Scope> {
        times.sort_unstable();
        let frame = |pair: &[u64]| Scope { thread, name: name.clone(), start_ns: pair[0], end_ns: pair[1], depth: 0 };
        times.windows(2).map(frame).collect()
    };
    by_loop.into_iter().flat_map(of_loop).collect()
}

/// Sorts scopes by thread and start, an enclosing one first, and counts for each how many enclose it.
///
/// A scope is written when it ends. Of two with the same interval, the one written later encloses the other.
fn count_depths(scopes: &mut Vec<Scope>) {
    scopes.reverse();
    scopes.sort_by_key(|scope| (scope.thread, scope.start_ns, Reverse(scope.end_ns)));
    let (mut thread, mut open) = (None, Vec::<u64>::new());
    for scope in scopes {
        if thread.replace(scope.thread) != Some(scope.thread) {
            open.clear();
        }
        // A scope that ended when this one starts does not enclose it, unless both are a single moment.
        open.retain(|&end_ns| end_ns > scope.start_ns || end_ns == scope.end_ns);
        scope.depth = open.iter().filter(|&&end_ns| end_ns >= scope.end_ns).count() as u32;
        if open.len() < MAX_DEPTH {
            open.push(scope.end_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Sink;
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
        let (step_marks, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| matches!(entry, Entry::StepMark { .. }));
        others.into_iter().for_each(|entry| tables.accept(entry).unwrap());
        let threads = tables.fill(&mut capture);
        let mut rows = RowSink::new(capture, Vec::new(), 0, SampleWeights::default()).with_mark_threads(threads);
        step_marks.into_iter().for_each(|entry| rows.take(entry));
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
        assert_eq!(tables.accept(scope(0, 0, 1, 2)), None);
        tables.accept(thread(41, 100)).unwrap();
        assert_eq!(tables.accept(scope(0, 0, 1, 2)), None);
        assert_eq!(tables.accept(Entry::WindowStart { time_ns: 1 }), None);
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
