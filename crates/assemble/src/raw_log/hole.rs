//! What is left of a log beyond a hole: chunks that refer to entries of a lost one.
//!
//! Each chunk says how many entries of each kind come before it, so a reader knows what is missing. Numbers of lost
//! entries all stand for one placeholder of their kind, and the numbers behind the hole move.

use stepscope_model::{CaptureInfo, Event, Origin};

use super::kind::{Counts, Kind};
use crate::entry::{Entry, FrameRef, Module, ModuleKind, ModuleRef, ProcessRef, Sink, StackMark, ThreadRef};

/// The name of what is lost.
const LOST: &str = "(lost)";

/// Gives the entries of a log to a sink, numbered as if nothing were missing. It is always the same sink.
#[derive(Default)]
pub(super) struct Renumbering {
    /// Entries of the log up to here.
    position: Counts,
    /// Entries that the sink has, with placeholders.
    given: Counts,
    holes: [Holes; Kind::NUMBERED],
    has_holes: bool,
    has_start: bool,
    /// Entries that no chunk has.
    lost: Counts,
}

/// Lost entries of one kind.
#[derive(Default)]
struct Holes {
    /// In the order of their numbers.
    ranges: Vec<Hole>,
    /// The number that the sink knows for all of them.
    placeholder: Option<u32>,
}

struct Hole {
    /// Number of the first lost entry, in the log.
    start: u32,
    /// Number of the first entry behind it, in the log.
    end: u32,
    /// The sink's number of that entry.
    end_given: u32,
}

impl Renumbering {
    /// Entries of the log up to here.
    pub fn position(&self) -> &Counts {
        &self.position
    }

    /// Entries that are lost so far.
    pub fn lost(&self) -> &Counts {
        &self.lost
    }

    /// Goes on behind a hole. `before` is how many entries come before the next one, and `repeated` are the last of these.
    /// `None` if both cannot be.
    pub fn go_on(&mut self, before: &Counts, repeated: Vec<Entry>, sink: &mut impl Sink) -> Option<()> {
        before.since(&self.position)?;
        let mut count = Counts::default();
        repeated.iter().for_each(|entry| count[Kind::of(entry)] += 1);
        let mut next = before.since(&count)?;
        if !self.has_start && !repeated.iter().any(|entry| matches!(entry, Entry::Start(_))) {
            // Without a start, the capture would not count as recorded.
            let info = CaptureInfo { origin: Origin::Recorded, ..CaptureInfo::default() };
            self.hand_over(Entry::Start(Box::new(info)), sink);
        }
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_numbered()) {
            self.skip_to(kind, next[kind], sink)?;
        }
        for entry in repeated {
            let kind = Kind::of(&entry);
            let is_new = next[kind] >= self.position[kind];
            next[kind] += 1;
            if is_new || !kind.is_numbered() {
                self.give(entry, sink);
            }
        }
        for kind in Kind::ALL {
            self.lost[kind] += before[kind].saturating_sub(self.position[kind]);
            self.position[kind] = before[kind];
        }
        Some(())
    }

    /// Notes that all entries of a kind are lost up to a number.
    fn skip_to(&mut self, kind: Kind, end: u64, sink: &mut impl Sink) -> Option<()> {
        let lost = end.saturating_sub(self.position[kind]);
        if lost > 0 {
            let end = u32::try_from(end).ok()?;
            self.placeholder(kind, sink);
            let start = self.position[kind] as u32;
            self.holes[kind as usize].ranges.push(Hole { start, end, end_given: self.given[kind] as u32 });
            self.position[kind] = end.into();
            self.lost[kind] += lost;
        }
        Some(())
    }

    /// Gives the next entry of the log to the sink.
    pub fn give(&mut self, mut entry: Entry, sink: &mut impl Sink) {
        let kind = Kind::of(&entry);
        self.position[kind] += 1;
        match !self.has_holes || self.renumber(&mut entry) {
            true => self.hand_over(entry, sink),
            false => self.lost[kind] += 1,
        }
    }

    fn hand_over(&mut self, entry: Entry, sink: &mut impl Sink) {
        self.has_start |= matches!(entry, Entry::Start(_));
        self.given[Kind::of(&entry)] += 1;
        sink.take(entry);
    }

    /// Replaces the numbers in an entry by those that the sink knows. False if it makes no sense without what it refers to:
    /// waits, steps and scopes of several lost threads would seem to be of one. Samples can be counted together.
    fn renumber(&self, entry: &mut Entry) -> bool {
        if let Entry::Wait(wait) = entry
            && wait.waker.is_some_and(|waker| self.holes[Kind::Thread as usize].known(waker.0).is_none())
        {
            (wait.waker, wait.waker_stack) = (None, None);
        }
        let mut has_owner = true;
        for_references(entry, |kind, number| {
            let holes = &self.holes[kind as usize];
            let known = holes.known(*number);
            has_owner &= known.is_some() || !matches!(kind, Kind::Process | Kind::Thread | Kind::MarkThread);
            *number = known.or(holes.placeholder).unwrap_or(*number);
        });
        has_owner || matches!(entry, Entry::Sample(_) | Entry::Thread { .. })
    }

    /// The sink's number of what stands for lost entries of a kind.
    fn placeholder(&mut self, kind: Kind, sink: &mut impl Sink) -> u32 {
        if let Some(number) = self.holes[kind as usize].placeholder {
            return number;
        }
        let entry = match kind {
            Kind::Process => Entry::Process { pid: 0, parent_pid: None, start_ns: None },
            Kind::Thread => {
                let process = ProcessRef(self.placeholder(Kind::Process, sink));
                Entry::Thread { tid: 0, process, start_ns: None, name: LOST.to_owned() }
            }
            Kind::Module => {
                Entry::Module(Module { kind: ModuleKind::StackMarks, path: LOST.to_owned(), build_id: None })
            }
            Kind::Frame => {
                let module = Some(ModuleRef(self.placeholder(Kind::Module, sink)));
                Entry::Frame { module, offset: StackMark::Lost as u64 }
            }
            Kind::Stack => Entry::Stack { parent: None, frame: FrameRef(self.placeholder(Kind::Frame, sink)) },
            Kind::Event => Entry::Event(Event::sampled(LOST, "")),
            Kind::MarkThread => Entry::MarkThread { pid: 0, tid: 0, time_ns: 0 },
            _ => Entry::MarkName { name: LOST.to_owned() },
        };
        let number = self.given[kind] as u32;
        self.hand_over(entry, sink);
        let next = self.position[kind] as u32;
        let holes = &mut self.holes[kind as usize];
        holes.placeholder = Some(number);
        // It moves the numbers of what follows, even if nothing of its kind is lost.
        holes.ranges.push(Hole { start: next, end: next, end_given: self.given[kind] as u32 });
        self.has_holes = true;
        number
    }
}

impl Holes {
    /// The sink's number of an entry. `None` if the entry is lost.
    fn known(&self, number: u32) -> Option<u32> {
        let holes_before = self.ranges.partition_point(|hole| hole.start <= number);
        let Some(last) = holes_before.checked_sub(1) else { return Some(number) };
        let hole = &self.ranges[last];
        number.checked_sub(hole.end).map(|behind| behind.saturating_add(hole.end_given))
    }
}

/// Shows each number that an entry refers to.
fn for_references(entry: &mut Entry, mut change: impl FnMut(Kind, &mut u32)) {
    let optional = |thread: &mut Option<ThreadRef>, change: &mut dyn FnMut(Kind, &mut u32)| {
        thread.iter_mut().for_each(|thread| change(Kind::Thread, &mut thread.0));
    };
    match entry {
        Entry::Image { process, .. }
        | Entry::WorkingDirectory { process, .. }
        | Entry::ProcessEnd { process, .. }
        | Entry::Thread { process, .. } => {
            change(Kind::Process, &mut process.0);
        }
        Entry::ThreadName { thread, .. } | Entry::ThreadEnd { thread, .. } | Entry::StepStart { thread, .. } => {
            change(Kind::Thread, &mut thread.0);
        }
        Entry::Counter { process, thread, .. } => {
            change(Kind::Process, &mut process.0);
            optional(thread, &mut change);
        }
        Entry::Allocations(allocations) => {
            change(Kind::Process, &mut allocations.process.0);
            optional(&mut allocations.thread, &mut change);
            allocations.stack.iter_mut().for_each(|stack| change(Kind::Stack, &mut stack.0));
        }
        Entry::AllocationBurst(burst) => {
            change(Kind::Process, &mut burst.process.0);
            optional(&mut burst.thread, &mut change);
            burst.stack.iter_mut().for_each(|stack| change(Kind::Stack, &mut stack.0));
        }
        Entry::Frame { module, .. } => module.iter_mut().for_each(|module| change(Kind::Module, &mut module.0)),
        Entry::Stack { parent, frame } => {
            parent.iter_mut().for_each(|parent| change(Kind::Stack, &mut parent.0));
            change(Kind::Frame, &mut frame.0);
        }
        Entry::Sample(sample) => {
            change(Kind::Thread, &mut sample.thread.0);
            sample.stack.iter_mut().for_each(|stack| change(Kind::Stack, &mut stack.0));
            change(Kind::Event, &mut sample.event.0);
        }
        Entry::Wait(wait) => {
            change(Kind::Thread, &mut wait.thread.0);
            optional(&mut wait.waker, &mut change);
            let stacks = wait.stack.iter_mut().chain(&mut wait.waker_stack);
            stacks.for_each(|stack| change(Kind::Stack, &mut stack.0));
        }
        Entry::DataAccess(access) => {
            change(Kind::Thread, &mut access.thread.0);
            access.stack.iter_mut().for_each(|stack| change(Kind::Stack, &mut stack.0));
            access.object.iter_mut().for_each(|(module, _)| change(Kind::Module, &mut module.0));
        }
        Entry::SystemCalls(calls) => {
            change(Kind::Thread, &mut calls.thread.0);
            calls.stack.iter_mut().for_each(|stack| change(Kind::Stack, &mut stack.0));
        }
        Entry::Scope { thread, name, .. }
        | Entry::FrameMark { thread, name, .. }
        | Entry::MarkedCounter { thread, name, .. } => {
            change(Kind::MarkThread, &mut thread.0);
            change(Kind::MarkName, &mut name.0);
        }
        Entry::FlowMark { thread, name, by, .. } => {
            change(Kind::MarkThread, &mut thread.0);
            change(Kind::MarkName, &mut name.0);
            by.iter_mut().for_each(|by| change(Kind::MarkName, &mut by.0));
        }
        Entry::StepMark { thread, .. } => change(Kind::MarkThread, &mut thread.0),
        Entry::Start(_)
        | Entry::WindowStart { .. }
        | Entry::Program { .. }
        | Entry::Event(_)
        | Entry::Process { .. }
        | Entry::ExitStatus { .. }
        | Entry::ExitUsage { .. }
        | Entry::Module(_)
        | Entry::MarkName { .. }
        | Entry::MarkThread { .. }
        | Entry::MarksLost { .. }
        | Entry::ClockPeer(_)
        | Entry::Losses(_)
        | Entry::RecordingEnd(_) => {}
    }
}
