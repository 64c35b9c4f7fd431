//! Context switches and wake-ups that BPF programs write, and the stacks of their places.

use rustc_hash::FxHashMap;

use super::cpus::Leaving;
use super::interner::Carry;
use super::samples::SampleRecord;
use super::{Assembler, Process};
use crate::entry::{Sink, StackRef};
use crate::kernel_record::ThreadIds;
use crate::target::Target;
use crate::thread_timeline::WakeUp;
use crate::written_switch::{Pending, Place, Slice, Written};
use stepscope_model::WaitState;

/// The stacks of places, by thread.
#[derive(Default)]
pub(super) struct PlaceStacks {
    known: FxHashMap<(u32, Place), StackRef>,
    /// The last stack of similar places.
    similar: FxHashMap<(u32, u32), StackRef>,
}

/// A slice whose sums were added until a time, before the kernel wrote it.
pub(super) struct AddedSlice {
    slice: Slice,
    until_ns: u64,
}

impl PlaceStacks {
    /// Beyond that, all are learnt again.
    const MOST: usize = 64 << 10;

    /// Returns the stack that the place had before.
    fn learn(&mut self, tid: u32, place: Place, stack: StackRef) -> Option<StackRef> {
        if self.known.len() >= Self::MOST {
            *self = Self::default();
        }
        self.similar.insert((tid, place.instruction_and_pointer()), stack);
        self.known.insert((tid, place), stack)
    }

    /// Keeps the stacks of these threads in the next log. The programs in the kernel do not copy them again soon.
    pub fn carry(&mut self, is_kept: impl Fn(u32) -> bool, carry: &mut Carry<'_>, next: &mut impl Sink) {
        let mut again = |stack: &mut StackRef| carry.stack(*stack, next).map(|carried| *stack = carried).is_some();
        self.known.retain(|&(tid, _), stack| is_kept(tid) && again(stack));
        self.similar.retain(|&(tid, _), stack| is_kept(tid) && again(stack));
    }

    fn of(&self, tid: u32, place: Place) -> Option<StackRef> {
        let similar = || self.similar.get(&(tid, place.instruction_and_pointer()));
        self.known.get(&(tid, place)).or_else(similar).copied()
    }
}

impl<W: Target> Assembler<W> {
    pub(super) fn add_written(&mut self, at: &SampleRecord<'_>, sink: &mut impl Sink) {
        let Some((time, written)) = at.sample.raw.as_deref().and_then(Written::read) else {
            self.losses.malformed_records += 1;
            return;
        };
        match written {
            Written::Switch { leaves, comes, summed, dead } => {
                self.cpus.are_whole = true;
                let cpu = at.record.cpu;
                match leaves.filter(|&(ids, ..)| self.thread(ids, Some(time), sink).is_some()) {
                    Some((ids, state, place)) => {
                        let own = self.written_stack(ids, place, at, sink);
                        let stack = own.or_else(|| self.places.of(ids.tid, place?));
                        if let Some(thread) = self.threads.get_mut(&ids.tid) {
                            thread.timeline.will_switch_at(stack);
                        }
                        let leaving = match state {
                            _ if dead => Leaving::Dead,
                            WaitState::Preempted => Leaving::Preempted,
                            WaitState::Blocked => Leaving::Blocked,
                        };
                        self.leave_cpu(ids, cpu, time, leaving, sink);
                    }
                    None => self.note_unwritten(cpu, time, Some(leaves.map_or(0, |(ids, ..)| ids.tid)), sink),
                }
                match comes.filter(|&ids| self.thread(ids, Some(time), sink).is_some()) {
                    Some(ids) => {
                        self.enter_cpu(ids, cpu, time, sink);
                        self.set_summed(ids.tid, summed);
                    }
                    None => self.note_unwritten(cpu, time, None, sink),
                }
            }
            Written::Sums { slice, ends } => {
                let (tid, start_ns) = (slice.ids.tid, slice.start_ns);
                self.add_slice(slice, time, sink);
                self.pending.remove(&tid);
                self.written_slices.insert(tid, start_ns);
                self.set_summed(tid, !ends);
            }
            Written::Place { ids, place } => {
                if self.thread(ids, Some(time), sink).is_some() {
                    self.written_stack(ids, Some(place), at, sink);
                }
            }
            Written::WakeUp { woken, waker } => self.add_written_wake_up(woken, waker, time, at, sink),
        }
    }

    fn note_unwritten(&mut self, cpu: Option<u32>, time: u64, left: Option<u32>, sink: &mut impl Sink) {
        if let Some(cpu) = cpu {
            self.note_other_switch(cpu, time, left, sink);
        }
    }

    fn set_summed(&mut self, tid: u32, summed: bool) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.timeline.set_summed(summed);
        }
    }

    /// The stack that a record carries, if it does. It becomes the stack of its place.
    fn written_stack(
        &mut self,
        ids: ThreadIds,
        place: Option<Place>,
        at: &SampleRecord<'_>,
        sink: &mut impl Sink,
    ) -> Option<StackRef> {
        at.sample.regs.as_ref()?;
        let mut sample = at.sample.clone();
        sample.drop_program(&self.tracepoints);
        let stack = self.stack(ids, &SampleRecord { sample: &sample, ..*at }, sink);
        self.losses.samples += 1;
        if let (Some(place), Some(stack)) = (place, stack)
            && let Some(before) = self.places.learn(ids.tid, place, stack)
        {
            *self.losses.checked_stacks.get_or_insert(0) += 1;
            *self.losses.differing_stacks.get_or_insert(0) += u64::from(before != stack);
        }
        stack
    }

    fn add_written_wake_up(
        &mut self,
        woken: ThreadIds,
        waker: Option<(ThreadIds, Option<Place>)>,
        time_ns: u64,
        at: &SampleRecord<'_>,
        sink: &mut impl Sink,
    ) {
        let by = waker.and_then(|(ids, place)| Some((self.thread(ids, Some(time_ns), sink)?, ids, place)));
        let stack = by.and_then(|(_, ids, place)| {
            let own = self.written_stack(ids, place, at, sink);
            own.or_else(|| self.places.of(ids.tid, place?))
        });
        if let Some(woken) = self.threads.get_mut(&woken.tid) {
            woken.timeline.wake_up(WakeUp { time_ns, waker: by.map(|(waker, ..)| waker), stack });
        }
    }

    /// Adds the waits of a slice that ends now, as the thread comes to a CPU.
    fn add_slice(&mut self, mut slice: Slice, now_ns: u64, sink: &mut impl Sink) {
        self.subtract_added(&mut slice);
        self.add_sums_of(&slice, now_ns, sink);
        if slice.last.is_some() {
            self.switch(slice.ids, Some(now_ns), sink, |timeline, now_ns| timeline.switch_in(now_ns, None));
        }
    }

    fn subtract_added(&self, slice: &mut Slice) {
        if let Some(before) = self.pending.get(&slice.ids.tid).filter(|before| before.slice.start_ns == slice.start_ns)
        {
            slice.subtract(&before.slice, before.until_ns);
        }
    }

    /// Adds the sums of a slice until this time, and starts its last wait.
    fn add_sums_of(&mut self, slice: &Slice, until_ns: u64, sink: &mut impl Sink) {
        let ids = slice.ids;
        let until_ns = slice.last.map_or(until_ns, |last| last.since_ns);
        self.switch(ids, Some(slice.start_ns), sink, |timeline, start_ns| {
            timeline.on_cpu(start_ns, None).filter(|wait| wait.end_ns > wait.start_ns)
        });
        for sum in &slice.sums {
            let stack = sum.place.and_then(|place| self.places.of(ids.tid, place));
            self.losses.aggregated_waits = Some(self.losses.aggregated_waits.unwrap_or(0).saturating_add(sum.count));
            self.switch(ids, Some(until_ns), sink, |timeline, until_ns| timeline.sum(sum, stack, until_ns));
        }
        let Some(last) = slice.last else { return };
        let stack = last.place.and_then(|place| self.places.of(ids.tid, place));
        self.switch(ids, Some(last.since_ns), sink, |timeline, since_ns| {
            timeline.will_switch_at(stack);
            timeline.switch_out(since_ns, last.state == WaitState::Preempted)
        });
        if let (Some(time_ns), Some(thread)) = (last.woken_ns, self.threads.get_mut(&ids.tid)) {
            thread.timeline.wake_up(WakeUp { time_ns, waker: None, stack: None });
        }
    }

    /// Adds sums that the kernel had at this time, shortly before the end of a log, and did not write yet. They are not added again
    /// when it does.
    pub fn add_pending(&mut self, pending: Vec<Pending>, time_ns: u64, sink: &mut impl Sink) {
        for Pending(slice) in pending {
            let is_written =
                self.written_slices.get(&slice.ids.tid).is_some_and(|&start_ns| start_ns >= slice.start_ns);
            if is_written || !self.threads.contains_key(&slice.ids.tid) || slice.start_ns >= time_ns {
                continue;
            }
            self.set_summed(slice.ids.tid, true);
            let mut added = slice.clone();
            self.subtract_added(&mut added);
            added.last = added.last.filter(|last| last.since_ns < time_ns);
            self.add_sums_of(&added, time_ns, sink);
            self.pending.insert(slice.ids.tid, AddedSlice { slice, until_ns: time_ns });
        }
    }

    /// Where the code of each process is, for those whose mappings changed since the last call: starts and lengths of two ranges.
    pub fn changed_code(&mut self) -> Vec<(u32, [u64; 4])> {
        let is_file = |module| self.interner.path(module).starts_with('/');
        let changed = |(&pid, process): (&u32, &mut Process)| Some((pid, process.space.changed_code(is_file)?));
        self.processes.iter_mut().filter_map(changed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Entry, Wait};
    use crate::event_role::{Follow, Switches};
    use crate::initial_process::{InitialProcess, InitialThread};
    use crate::kernel_record::{Body, RawSample, Record};
    use crate::target::NoTarget;
    use crate::thread_timeline::InitialState;
    use crate::written_switch::{DEAD, SWITCH, Sum, WAKE_UP};

    #[derive(Default)]
    struct Waits(Vec<Wait>);

    impl Sink for Waits {
        fn take(&mut self, entry: Entry) {
            if let Entry::Wait(wait) = entry {
                self.0.push(wait);
            }
        }
    }

    #[test]
    fn the_program_that_wrote_a_stack_is_not_part_of_it() {
        const KERNEL: u64 = -128_i64 as u64;
        let without_program = |callchain: &[u64]| {
            let mut sample = RawSample { callchain: callchain.to_vec(), ..RawSample::default() };
            sample.drop_program(&[30]);
            sample.callchain
        };
        assert_eq!(without_program(&[KERNEL, 10, 20, 40, 50]), [KERNEL, 40, 50]);
        assert_eq!(
            without_program(&[KERNEL, 10, 20, 30, 40, 50]),
            [KERNEL, 40, 50],
            "others are at the tracepoint, too"
        );
        assert_eq!(without_program(&[KERNEL, 10]), [KERNEL, 10]);
    }

    #[test]
    fn the_last_sums_of_a_thread_that_exits_on_another_cpu_are_kept() {
        let mut assembler = Assembler::new(NoTarget, Follow::Tree, Switches::WithWakeUps, Some(1));
        let mut waits = Waits::default();
        let (ids, ends) = (ThreadIds { pid: 20, tid: 21 }, 500);
        let thread = |tid| InitialThread { tid, name: String::new(), state: InitialState::Runnable };
        let threads = vec![thread(20), thread(21)];
        assembler.add_running(&InitialProcess { pid: 20, parent_pid: None, threads, mappings: Vec::new() }, &mut waits);
        assembler.cpus.are_whole = true;
        assembler.enter_cpu(ids, Some(0), 10, &mut waits);
        assembler.set_summed(21, true);
        // It moved to another CPU, which no record says.
        assembler.exit(21, Some(400), Some(1), &mut waits);
        assembler.enter_cpu(ThreadIds { pid: 20, tid: 20 }, Some(0), 450, &mut waits);
        let sum = Sum { state: WaitState::Blocked, place: None, count: 7, blocked_ns: 300, runnable_ns: 40 };
        assembler.add_slice(Slice { ids, start_ns: 10, sums: vec![sum], last: None }, ends, &mut waits);
        assembler.set_summed(21, false);
        assembler.leave_cpu(ids, Some(1), ends, Leaving::of_flag(false), &mut waits);
        let counts: Vec<u32> = waits.0.iter().map(|wait| wait.count).filter(|&count| count > 1).collect();
        assert_eq!(counts, [7]);
        assert!(assembler.thread_ref(21).is_none(), "it ended with its last switch");
    }

    #[test]
    fn a_thread_that_blocks_in_its_exit_runs_until_it_is_dead() {
        let mut assembler = Assembler::new(NoTarget, Follow::Tree, Switches::WithWakeUps, Some(1));
        let mut waits = Waits::default();
        let word = 20_u64 << 32 | 20;
        let threads = vec![InitialThread { tid: 20, name: String::new(), state: InitialState::Runnable }];
        assembler.add_running(&InitialProcess { pid: 20, parent_pid: None, threads, mappings: Vec::new() }, &mut waits);
        let mut write = |assembler: &mut Assembler<NoTarget>, flags, time_ns, leaves: u64, comes: u64| {
            let raw: Vec<u8> =
                [flags, time_ns, leaves, comes, 0].iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
            let sample = RawSample { raw: Some(raw.into()), ..RawSample::default() };
            let record = Record { time: Some(time_ns), pid: None, tid: None, cpu: Some(0), body: Body::Other };
            assembler.add_written(&SampleRecord { record: &record, sample: &sample, register_mask: 0 }, &mut waits);
        };
        write(&mut assembler, SWITCH, 10, 0, word);
        assembler.exit(20, Some(100), Some(0), &mut Waits::default());
        write(&mut assembler, SWITCH, 120, word, 0);
        assert!(assembler.thread_ref(20).is_some(), "it only waits");
        write(&mut assembler, SWITCH, 150, 0, word);
        write(&mut assembler, SWITCH | DEAD, 190, word, 0);
        assert!(assembler.thread_ref(20).is_none());
        let off: Vec<(u64, u64)> = waits.0.iter().map(|wait| (wait.start_ns, wait.end_ns)).collect();
        assert_eq!(off, [(1, 10), (120, 150), (190, 190)], "it ran from 10 to 120, and from 150 to 190");
    }

    #[test]
    fn a_thread_that_comes_after_a_hidden_one_runs_since_its_cpu_switched() {
        // The kernel of a sandbox hides the sandbox's threads: the switch from one of them has no record.
        let [pid, main, young] = [20_u64, 20, 21];
        let [main, young] = [main, young].map(|tid| pid << 32 | tid);
        let run = |lost: bool| {
            let mut assembler = Assembler::new(NoTarget, Follow::Tree, Switches::WithWakeUps, Some(1));
            let mut waits = Waits::default();
            let threads = vec![InitialThread { tid: 20, name: String::new(), state: InitialState::Runnable }];
            let process = InitialProcess { pid: 20, parent_pid: None, threads, mappings: Vec::new() };
            assembler.add_running(&process, &mut waits);
            let mut write = |assembler: &mut Assembler<NoTarget>, flags, time_ns, [first, second]: [u64; 2]| {
                let raw: Vec<u8> =
                    [flags, time_ns, first, second, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
                let sample = RawSample { raw: Some(raw.into()), ..RawSample::default() };
                let record = Record { time: Some(time_ns), pid: None, tid: None, cpu: Some(0), body: Body::Other };
                assembler.add_written(&SampleRecord { record: &record, sample: &sample, register_mask: 0 }, &mut waits);
            };
            // A hidden thread comes at 50 and at 900.
            write(&mut assembler, SWITCH, 50, [main, 0]);
            assembler.fork(
                ThreadIds { pid: 20, tid: 21 },
                ThreadIds { pid: 20, tid: 20 },
                Some(60),
                &mut Waits::default(),
            );
            write(&mut assembler, WAKE_UP, 500, [main, young]);
            if lost {
                assembler.cpus.note_lost(0);
            }
            let mut at_exit = Waits::default();
            assembler.exit(21, Some(800), Some(0), &mut at_exit);
            write(&mut assembler, SWITCH | DEAD, 900, [young, 0]);
            write(&mut assembler, SWITCH, 1_000, [main, 0]);
            assembler.finish(Some(1_100), &mut waits);
            let waits = at_exit.0.iter().chain(&waits.0).filter(|wait| wait.end_ns > wait.start_ns);
            let waits = waits.map(|wait| (wait.thread.0, wait.start_ns, wait.end_ns)).collect::<Vec<_>>();
            (waits, assembler.losses().unknown_cpu_ns)
        };
        assert_eq!(run(false), (vec![(0, 50, 900), (0, 1_000, 1_100)], None), "the thread ran from its start at 60");
        let lost = (vec![(1, 60, 800), (0, 50, 900), (0, 1_000, 1_100)], Some(740));
        assert_eq!(run(true), lost, "who ran until then is unknown");
    }

    #[test]
    fn sums_across_a_cut_have_the_stacks_of_the_log_before() {
        let mut assembler = Assembler::new(NoTarget, Follow::Tree, Switches::WithWakeUps, Some(1));
        let (mut ending, mut next) = (Waits::default(), Waits::default());
        let ids = ThreadIds { pid: 20, tid: 20 };
        let threads = vec![InitialThread { tid: 20, name: String::new(), state: InitialState::Runnable }];
        assembler
            .add_running(&InitialProcess { pid: 20, parent_pid: None, threads, mappings: Vec::new() }, &mut ending);
        let frame = assembler.interner.frame(None, 7, &mut ending);
        let stack = assembler.interner.stack(&[frame], &mut ending).unwrap();
        let place = Place::of(9).unwrap();
        assembler.places.learn(20, place, stack);
        assembler.places.learn(21, place, stack);
        let sum = |blocked_ns, count| Sum {
            state: WaitState::Blocked,
            place: Some(place),
            count,
            blocked_ns,
            runnable_ns: 0,
        };
        let slice = |sum| Slice { ids, start_ns: 10, sums: vec![sum], last: None };
        assembler.add_pending(vec![Pending(slice(sum(30, 2)))], 100, &mut ending);
        assembler.split(100, &mut ending, &mut next);
        assert!(assembler.threads[&20].timeline.is_summed(), "no record said so");
        assert!(assembler.places.of(21, place).is_none(), "it ended");
        assembler.add_slice(slice(sum(80, 5)), 200, &mut next);
        let sums = |waits: &Waits| -> Vec<(u64, u32, bool)> {
            let summed = waits.0.iter().filter(|wait| wait.count > 1);
            summed.map(|wait| (wait.end_ns - wait.start_ns, wait.count, wait.stack.is_some())).collect()
        };
        assert_eq!((sums(&ending), sums(&next)), (vec![(30, 2, true)], vec![(50, 3, true)]));
    }
}
