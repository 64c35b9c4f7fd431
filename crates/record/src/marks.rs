//! Marks: steps, scopes, counters and frames that a program reports itself, read from shared memory into the log.
//!
//! A program that is compiled with marks (the folder `marks/`) leaves them in a segment of shared memory; the format is
//! `docs/marks-format.md`. This module finds the segments of the recorded processes, announces the recorder in them, and
//! drains them every round. A killed process loses no finished mark: its file stays and is read after its end.
//!
//! Marks name their thread by its id, which the kernel reuses, and they may arrive before or after the kernel's records
//! of that thread. So the log has both in order of arrival, and [`finish`](crate::finish()) finds the thread.

mod bytes;
mod folder;
mod layout;
mod owner;
mod segment;
mod ticks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use stepscope_assemble::ros2::{Caller, Stage};
use stepscope_assemble::{Entry, MarkNameRef, MarkThreadRef, Sink};

use crate::clock;
use crate::proc;
pub use bytes::{ReadMark, read_segment};
use folder::Folder;
use layout::Clock;
use segment::{Identity, Kind, Record, Refusal, Segment};
pub(crate) use ticks::Ticks;
pub use ticks::counter;

/// The variable that announces the recorder to a launched program, so that it makes marks from its first instruction.
pub(crate) const RECORDER_VARIABLE: &str = "STEPSCOPE_RECORDER";
/// Interval of the recorder's sign of life in segments, of checks for ended processes, and of retries.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The simulated time of a step that has none.
const UNTIMED: i64 = i64::MIN;
/// A call this long after the last one of the same id may be of another thread.
const SAME_THREAD_NS: u64 = 5_000_000_000;
/// Retries for a file that cannot be recorded. A program creates its segment much faster.
const MOST_TRIES: u32 = 20;

/// The source of the simulation's steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepMarks {
    /// Marks made by `STEPSCOPE_STEP`.
    Marked,
    /// The begins of the scope of this name.
    Scope(String),
    /// Not marks: the steps are calls of a function.
    Elsewhere,
}

/// The marks of a recording.
#[derive(Debug)]
pub(crate) struct Marks {
    us: Identity,
    folder: Folder,
    step_marks: StepMarks,
    ticks: Ticks,
    segments: Vec<Open>,
    /// Files that are not recorded, or not yet.
    waiting: BTreeMap<PathBuf, Waiting>,
    log: Log,
    looked: Instant,
    lost: u64,
    /// Marks lost in earlier logs.
    lost_before: u64,
    names_lost: u64,
    damaged: u64,
    scratch: Vec<u8>,
    problems: BTreeSet<String>,
    steps: u64,
    others: u64,
}

/// A segment that is not recorded.
#[derive(Debug, Default)]
struct Waiting {
    pid: u32,
    /// Whether its program started with our greeting; unknown until the segment is complete.
    greets: Option<bool>,
    tries: u32,
}

#[derive(Debug)]
struct Open {
    segment: Segment,
    /// Known numbers in the log: of names, and of the threads of rings.
    names: Vec<Option<MarkNameRef>>,
    threads: HashMap<usize, RingThread>,
    /// The last marks in the log before, by ring: their steps and frames go on.
    unfinished: HashMap<usize, LastMarks>,
    /// When the thread of a ring was first seen, to distinguish it from others with its id.
    since_ns: HashMap<usize, u64>,
    in_log: u32,
}

/// The thread of a ring.
#[derive(Debug)]
struct RingThread {
    number: MarkThreadRef,
    last: LastMarks,
}

/// Marks whose step or frame has not ended.
#[derive(Debug, Default)]
struct LastMarks {
    step: Option<(u64, Option<i64>)>,
    /// By the number that the name has in the ring's segment.
    frames: Vec<(u32, u64)>,
}

impl LastMarks {
    fn note(&mut self, name: u32, entry: &Entry) {
        match *entry {
            Entry::StepMark { time_ns, sim_time_ns, .. } => self.step = Some((time_ns, sim_time_ns)),
            Entry::FrameMark { time_ns, .. } => match self.frames.iter_mut().find(|(known, _)| *known == name) {
                Some(last) => last.1 = time_ns,
                None => self.frames.push((name, time_ns)),
            },
            _ => {}
        }
    }
}

/// Where the log that starts at a cut goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// With another phase, to which steps across the cut do not belong.
    Phase,
    /// With the next segment, to which they belong.
    Segment,
}

/// Numbers assigned in the current log.
#[derive(Debug, Default)]
struct Log {
    number: u32,
    names: FxHashMap<Arc<str>, MarkNameRef>,
    threads: u32,
    /// Threads that called, and when they did last.
    callers: FxHashMap<(u32, u32), (MarkThreadRef, u64)>,
}

impl Marks {
    /// Prepares to record marks. Reads no segment yet.
    pub fn new(step_marks: StepMarks) -> Self {
        let folder = Folder::shared_memory();
        folder.sweep();
        Self {
            us: identity(),
            folder,
            step_marks,
            ticks: Ticks::new(),
            segments: Vec::new(),
            waiting: BTreeMap::new(),
            log: Log::default(),
            looked: Instant::now(),
            lost: 0,
            lost_before: 0,
            names_lost: 0,
            damaged: 0,
            scratch: Vec::new(),
            problems: BTreeSet::new(),
            steps: 0,
            others: 0,
        }
    }

    /// The value of [`RECORDER_VARIABLE`] for a launched program.
    pub fn greeting(&self) -> String {
        let Identity { pid, start_ticks, token } = self.us;
        format!("{pid}:{start_ticks}:{token:x}")
    }

    /// Reads all new marks. `follows` selects the recorded processes.
    pub fn round(&mut self, follows: impl Fn(u32) -> bool, sink: &mut impl Sink) {
        let due = self.looked.elapsed() >= LOOK_EVERY;
        self.find(follows, due);
        self.drain(sink);
        if due {
            self.looked = Instant::now();
            self.look_after(sink);
        }
    }

    /// Writes a stage of a message that the program did not mark.
    pub fn add_stage(&mut self, stage: Stage, sink: &mut impl Sink) {
        let Stage { caller, time_ns, topic, flow, stage, name, period_ns } = stage;
        let thread = self.log.caller(caller, time_ns, sink);
        let by = name.map(|name| self.log.name(name, sink));
        let name = self.log.name(topic, sink);
        sink.take(Entry::FlowMark { thread, name, time_ns, flow, stage, by, period_ns });
    }

    /// Writes a scope that the program did not mark.
    pub fn add_scope(&mut self, caller: Caller, name: Arc<str>, start_ns: u64, end_ns: u64, sink: &mut impl Sink) {
        let thread = self.log.caller(caller, end_ns, sink);
        let name = self.log.name(name, sink);
        sink.take(Entry::Scope { thread, name, start_ns, end_ns });
    }

    /// Whether any recorded program makes marks.
    pub fn are_made(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Whether steps were marked.
    pub fn has_steps(&self) -> bool {
        self.steps > 0
    }

    /// Marks lost since the current log started.
    pub fn lost(&self) -> u64 {
        let open: u64 = self.segments.iter().map(|open| open.segment.lost()).sum();
        (self.lost + open).saturating_sub(self.lost_before)
    }

    /// Ends the current log and starts another with new numbers.
    pub fn cut(&mut self, cut: Cut) {
        for open in &mut self.segments {
            let last = open.threads.drain().map(|(ring, thread)| (ring, thread.last));
            open.unfinished.extend(last);
            if cut == Cut::Phase {
                open.unfinished.clear();
            }
        }
        self.lost_before += self.lost();
        self.log = Log { number: self.log.number + 1, ..Log::default() };
    }

    /// What there is to know of the marks in full sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.problems.iter().cloned().collect();
        match &self.step_marks {
            StepMarks::Marked if self.steps > 0 => {
                notes.push(
                    "Steps come from the program's STEPSCOPE_STEP marks; each runs from one mark to the next on the same thread."
                        .into(),
                );
            }
            StepMarks::Scope(name) if self.steps > 0 => {
                notes.push(format!(
                    "Steps come from the marked scope `{name}`; each runs from one start to the next on the same thread."
                ));
            }
            _ => {}
        }
        if self.steps + self.others > 0 {
            notes.push(format!("Step and scope timestamps are accurate to ±{} ns.", self.ticks.error_ns()));
        }
        let names_lost = self.names_lost + self.segments.iter().map(|open| open.segment.names_lost()).sum::<u64>();
        if names_lost > 0 {
            notes.push(format!("{names_lost} marks have no name: the program used more names than fit."));
        }
        let damaged = self.damaged + self.segments.iter().map(|open| open.segment.damaged()).sum::<u64>();
        if damaged > 0 {
            notes.push(format!("Damaged marks were skipped {damaged} times."));
        }
        notes
    }

    /// Replaces the reason for missing steps by a more exact one, if there is one.
    pub fn explain_no_steps(&self, reason: &mut String) {
        match &self.step_marks {
            StepMarks::Scope(name) if self.others > 0 => {
                *reason = format!("The program marked no scope named `{name}`.");
            }
            StepMarks::Scope(name) => *reason = format!("The program marked no scopes, so there is no scope `{name}`."),
            _ => {}
        }
    }

    /// Reads the remaining marks and announces the end of the recording.
    pub fn stop(&mut self, follows: impl Fn(u32) -> bool, sink: &mut impl Sink) {
        self.find(follows, true);
        self.segments.iter().for_each(|open| open.segment.dismiss());
        self.drain(sink);
        for open in std::mem::take(&mut self.segments) {
            self.lay_down(&open);
        }
        self.folder.sweep();
    }

    /// Opens new segments, and with `again` those that could not be opened so far.
    fn find(&mut self, follows: impl Fn(u32) -> bool, again: bool) {
        if let Some(found) = self.folder.look() {
            self.waiting.retain(|path, _| found.iter().any(|(_, there)| there == path));
            for (pid, path) in found {
                if !self.segments.iter().any(|open| open.segment.is_at(&path)) {
                    self.waiting.entry(path).or_insert(Waiting { pid, ..Waiting::default() });
                }
            }
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|path, waiting| {
            // A launched program carries our greeting; it may have ended before the kernel's record of its start is read.
            waiting.greets = waiting.greets.or_else(|| segment::greets(path, self.us));
            let is_ours = waiting.greets == Some(true) || follows(waiting.pid);
            if !is_ours || waiting.tries >= MOST_TRIES && !again {
                return true;
            }
            match Segment::take(path, self.us) {
                Ok(segment) => self.add(segment),
                Err(refusal) => {
                    waiting.tries += 1;
                    self.note_refusal(waiting.pid, &refusal);
                    return true;
                }
            }
            false
        });
        self.waiting = waiting;
    }

    fn add(&mut self, segment: Segment) {
        let (names, threads, unfinished, since_ns) = Default::default();
        self.segments.push(Open { segment, names, threads, unfinished, since_ns, in_log: self.log.number });
    }

    fn note_refusal(&mut self, pid: u32, refusal: &Refusal) {
        use layout::Unfit::{Nonsense, Version};
        if matches!(refusal, Refusal::Taken(_) | Refusal::Elsewhere | Refusal::Unfit(Version(_) | Nonsense(_))) {
            self.problems.insert(format!("The marks of process {pid} were not recorded at first: {refusal}."));
        }
    }

    fn drain(&mut self, sink: &mut impl Sink) {
        let mut segments = std::mem::take(&mut self.segments);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut new: Vec<&mut Open> =
            segments.iter_mut().filter_map(|open| open.segment.look().then_some(open)).collect();
        // All marks found lie before this moment, and so between two pairs.
        if !new.is_empty() {
            self.ticks.take_pair();
        }
        for open in &mut new {
            self.drain_one(open, &mut scratch, sink);
        }
        (self.segments, self.scratch) = (segments, scratch);
    }

    fn drain_one(&mut self, open: &mut Open, scratch: &mut Vec<u8>, sink: &mut impl Sink) {
        if open.in_log != self.log.number {
            open.names.clear();
            open.in_log = self.log.number;
        }
        let Open { segment, names, threads, unfinished, since_ns, .. } = open;
        segment.drain(scratch, |segment, record| {
            let ns = |ticks| match segment.layout().clock {
                Clock::Monotonic => ticks,
                Clock::Counter => self.ticks.ns(ticks),
            };
            let time_ns = ns(record.ticks);
            if record.kind == Kind::Thread {
                threads.remove(&record.ring);
                unfinished.remove(&record.ring);
                since_ns.insert(record.ring, time_ns);
                return;
            }
            let start_ns = if record.kind == Kind::Scope { ns(record.payload) } else { time_ns };
            let thread = threads.entry(record.ring).or_insert_with(|| {
                let time_ns = since_ns.get(&record.ring).copied().unwrap_or(time_ns);
                let number = self.log.thread(segment.layout().pid, segment.thread_of(record.ring), time_ns, sink);
                let last = unfinished.remove(&record.ring).unwrap_or_default();
                if let Some((time_ns, sim_time_ns)) = last.step {
                    sink.take(Entry::StepMark { thread: number, time_ns, sim_time_ns });
                }
                for &(name, time_ns) in &last.frames {
                    let name = self.log.name_of(segment, names, name, sink);
                    sink.take(Entry::FrameMark { thread: number, name, time_ns });
                }
                RingThread { number, last }
            });
            let name = self.log.name_of(segment, names, record.name, sink);
            for entry in entries(&self.step_marks, segment, &record, thread.number, name, (start_ns, time_ns)) {
                thread.last.note(record.name, &entry);
                match entry {
                    Entry::StepMark { .. } => self.steps += 1,
                    _ => self.others += 1,
                }
                sink.take(entry);
            }
        });
    }

    /// Renews the sign of life in segments, and releases those whose process has ended.
    fn look_after(&mut self, sink: &mut impl Sink) {
        let mut ended = Vec::new();
        for (index, open) in self.segments.iter().enumerate() {
            match open.segment.is_orphan() {
                true => ended.push(index),
                false => drop(open.segment.announce(self.us)),
            }
        }
        for index in ended.into_iter().rev() {
            let mut open = self.segments.swap_remove(index);
            let mut scratch = std::mem::take(&mut self.scratch);
            // Marks between the last look and its end.
            if open.segment.look() {
                self.ticks.take_pair();
                self.drain_one(&mut open, &mut scratch, sink);
            }
            self.scratch = scratch;
            self.lay_down(&open);
        }
    }

    fn lay_down(&mut self, open: &Open) {
        self.lost += open.segment.lost();
        self.names_lost += open.segment.names_lost();
        self.damaged += open.segment.damaged();
        if open.segment.is_orphan() {
            open.segment.remove();
        }
    }
}

/// The entry for a record, and another for the step if the record is a step's scope.
fn entries(
    step_marks: &StepMarks,
    segment: &mut Segment,
    record: &Record,
    thread: MarkThreadRef,
    name: MarkNameRef,
    (start_ns, end_ns): (u64, u64),
) -> impl Iterator<Item = Entry> {
    let mut step = None;
    let entry = match record.kind {
        // One of the two times is wrong, and it is unknown which.
        Kind::Scope if start_ns > end_ns => None,
        Kind::Scope => {
            if let StepMarks::Scope(wanted) = step_marks
                && segment.name(record.name).is_some_and(|name| **name == **wanted)
            {
                step = Some(Entry::StepMark { thread, time_ns: start_ns, sim_time_ns: None });
            }
            Some(Entry::Scope { thread, name, start_ns, end_ns })
        }
        Kind::Step if *step_marks == StepMarks::Marked => {
            let sim_time_ns = Some(record.payload as i64).filter(|&ns| ns != UNTIMED);
            Some(Entry::StepMark { thread, time_ns: end_ns, sim_time_ns })
        }
        Kind::Step | Kind::Thread => None,
        Kind::Counter => Some(Entry::MarkedCounter { thread, name, time_ns: end_ns, value: record.payload as i64 }),
        Kind::Frame => Some(Entry::FrameMark { thread, name, time_ns: end_ns }),
        Kind::Flow(stage) => {
            let flow = Some(record.payload);
            Some(Entry::FlowMark { thread, name, time_ns: end_ns, flow, stage, by: None, period_ns: None })
        }
    };
    entry.into_iter().chain(step)
}

impl Log {
    fn thread(&mut self, pid: u32, tid: u32, time_ns: u64, sink: &mut impl Sink) -> MarkThreadRef {
        let thread = MarkThreadRef(self.threads);
        self.threads += 1;
        sink.take(Entry::MarkThread { pid, tid, time_ns });
        thread
    }

    fn name_of(
        &mut self,
        segment: &mut Segment,
        known: &mut Vec<Option<MarkNameRef>>,
        number: u32,
        sink: &mut impl Sink,
    ) -> MarkNameRef {
        if let Some(Some(name)) = known.get(number as usize) {
            return *name;
        }
        let found = segment.name(number).cloned();
        let name = self.name(found.clone().unwrap_or_else(|| "(no name)".into()), sink);
        if found.is_some() {
            let index = number as usize;
            known.resize(known.len().max(index + 1), None);
            known[index] = Some(name);
        }
        name
    }

    fn name(&mut self, text: Arc<str>, sink: &mut impl Sink) -> MarkNameRef {
        let next = MarkNameRef(self.names.len() as u32);
        *self.names.entry(text).or_insert_with_key(|text| {
            sink.take(Entry::MarkName { name: text.to_string() });
            next
        })
    }

    /// The thread of a call, in the log.
    fn caller(&mut self, Caller { pid, tid }: Caller, time_ns: u64, sink: &mut impl Sink) -> MarkThreadRef {
        if let Some((thread, last_ns)) = self.callers.get_mut(&(pid, tid))
            && time_ns.saturating_sub(*last_ns) < SAME_THREAD_NS
        {
            *last_ns = time_ns;
            return *thread;
        }
        let thread = self.thread(pid, tid, time_ns, sink);
        self.callers.insert((pid, tid), (thread, time_ns));
        thread
    }
}

/// The identity of this recording, with a token that is unique in this process.
fn identity() -> Identity {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let pid = std::process::id();
    let token = clock::now_ns() << 8 | NEXT.fetch_add(1, Ordering::Relaxed) & 0xff;
    Identity { pid, start_ticks: proc::stat(pid).map_or(0, |stat| stat.start_ticks), token }
}

#[cfg(test)]
mod tests;
