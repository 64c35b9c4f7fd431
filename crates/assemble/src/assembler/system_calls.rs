//! System calls: what each record of a sum adds to the last one of the same sum.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::samples::SampleRecord;
use super::{Assembler, Target};
use crate::entry::{Entry, Sink, StackRef, SystemCalls, ThreadRef};
use crate::kernel_record::ThreadIds;
use crate::system_call::{self, Amount, CallRecord, Sum, TimeCount};
use crate::target::UsedFile;

/// The sums so far, and the names of files.
#[derive(Default)]
pub(super) struct SystemCallSums {
    known: FxHashMap<[u64; Sum::KEY_WORDS], Known>,
    /// The last stack of each place in the present log.
    stacks: FxHashMap<Place, StackRef>,
    /// The calls by time that earlier logs have.
    times: FxHashMap<[u64; TimeCount::KEY_WORDS], u64>,
    /// The name of each file by device and inode, and the path by which it was opened.
    files: FxHashMap<(u64, u64), Named>,
    /// The threads of the present log and when they started. The sums of short ones may have no record.
    threads: FxHashMap<u32, (ThreadRef, Option<u64>)>,
}

struct Known {
    sum: Sum,
    time_ns: u64,
    stack: Option<StackRef>,
    file: Option<String>,
    /// Its thread in the present log, which may have ended.
    thread: Option<ThreadRef>,
}

struct Named {
    name: String,
    opened_as: Option<String>,
}

/// Calls this long before the next one have a row of their own.
const SILENCE_NS: u64 = 4_000_000;

/// What the sums of the files that one place uses have in common.
type Place = [u64; Sum::PLACE_WORDS];

fn place(&[call, instruction, stack_pointer, ..]: &[u64; Sum::KEY_WORDS]) -> Place {
    [call, instruction, stack_pointer]
}

impl SystemCallSums {
    /// The next log starts its numbers at zero.
    pub fn forget_numbers(&mut self) {
        self.known.values_mut().for_each(|known| (known.stack, known.thread) = (None, None));
        self.threads.clear();
        self.stacks.clear();
    }

    pub fn note_thread(&mut self, tid: u32, thread: ThreadRef, start_ns: Option<u64>) {
        self.threads.insert(tid, (thread, start_ns));
    }

    /// Calls that are in no log, and in none of the next ones.
    fn leave_out(&mut self, sum: Sum) {
        self.known.insert(sum.key, Known { sum, time_ns: sum.last_ns(), stack: None, file: None, thread: None });
    }

    /// The name of the file of a sum, as its other calls found it.
    fn file_name(&self, sum: &Sum) -> Option<String> {
        self.files.get(&sum.file()?).map(|named| named.name.clone())
    }
}

impl<W: Target> Assembler<W> {
    /// Adds what a sum has more than at its last record.
    pub(super) fn add_system_call(
        &mut self,
        ids: ThreadIds,
        thread: ThreadRef,
        at: &SampleRecord<'_>,
        sink: &mut impl Sink,
    ) {
        let record = at.sample.raw.as_deref().and_then(CallRecord::read);
        let (Some(record), Some(end_ns)) = (record, at.record.time) else {
            self.losses.malformed_records += 1;
            return;
        };
        // Of a place with many files, most records have no stack.
        let stack = match at.register_mask != 0 || !at.sample.callchain.is_empty() {
            true => self.stack(ids, at, sink),
            false => self.system_calls.stacks.get(&place(&record.sum.key)).copied(),
        };
        let file = self.file_of(ids.pid, &record);
        let start_ns = end_ns.saturating_sub(record.duration_ns);
        let last_ns = Some(record.duration_ns);
        self.add_calls_before(&record, thread, start_ns, sink);
        self.add_sum(record.sum, thread, SumEnd { start_ns, end_ns, stack, file, last_ns }, sink);
    }

    /// Adds what is left of the sums at the end of a log: the calls since the last record of each.
    ///
    /// All records of a sum may be lost. Then it has the stack that its place has with other files, and the name by which other
    /// calls know its file.
    pub fn add_sums(&mut self, sums: Vec<Sum>, sink: &mut impl Sink) {
        for sum in sums {
            let known = self.system_calls.known.get(&sum.key);
            let of_tid = self.system_calls.threads.get(&sum.tid()).copied();
            let thread = match (known.and_then(|known| known.thread), of_tid) {
                (Some(thread), _) => thread,
                (None, Some((thread, start_ns))) if start_ns.is_none_or(|start_ns| start_ns <= sum.last_ns()) => thread,
                // The recorder's own child makes calls before it executes the program.
                (None, Some(_)) => {
                    self.system_calls.leave_out(sum);
                    continue;
                }
                (None, None) => {
                    self.lose_calls(sum);
                    continue;
                }
            };
            let stack =
                known.and_then(|known| known.stack).or_else(|| self.system_calls.stacks.get(&place(&sum.key)).copied());
            let file = match known {
                Some(known) => known.file.clone(),
                None => self.system_calls.file_name(&sum).or_else(|| {
                    let (device, inode) = sum.file()?;
                    self.target.file_name(sum.tid(), &UsedFile { device, inode, descriptor: None, path: None })
                }),
            };
            let end_ns = sum.last_ns();
            self.add_sum(sum, thread, SumEnd { start_ns: end_ns, end_ns, stack, file, last_ns: None }, sink);
        }
    }

    /// Counts the calls of a thread whose first record was lost.
    fn lose_calls(&mut self, sum: Sum) {
        let known = self.system_calls.known.get(&sum.key);
        let Amount { count, .. } = sum.since(known.map(|known| &known.sum));
        if count > 0 && self.losses.lost_records > 0 {
            *self.losses.lost_calls.get_or_insert(0) += count;
        }
        self.system_calls.leave_out(sum);
    }

    /// Adds the times of the calls of a log, at its end and after the sums.
    pub fn add_call_times(&mut self, times: Vec<TimeCount>, sink: &mut impl Sink) {
        let mut places: BTreeMap<[u64; Sum::KEY_WORDS], Vec<(u64, u64)>> = BTreeMap::new();
        for time in times {
            let (place, bucket) = time.place();
            let before = self.system_calls.times.insert(time.key, time.count).unwrap_or(0);
            let count = time.count.saturating_sub(before);
            if count > 0 {
                places.entry(place).or_default().push((bucket, count));
            }
        }
        let known = &self.system_calls.known;
        let of_tid: FxHashMap<u32, (ThreadRef, u64)> =
            known.values().filter_map(|known| Some((known.sum.tid(), (known.thread?, known.time_ns)))).collect();
        for (place, mut times) in places {
            let sum = Sum::new(place, [0; Sum::VALUE_WORDS]);
            let known = self.system_calls.known.get(&place);
            let of_place = known.and_then(|known| Some((known.thread?, known.time_ns)));
            // Times that had no room by place are of the thread. A place without a row has its calls before the program.
            let of_thread = of_tid.get(&sum.tid()).copied().filter(|_| place[1..] == [0; Sum::KEY_WORDS - 1]);
            let Some((thread, end_ns)) = of_place.or(of_thread) else { continue };
            let (stack, file) = known.map_or((None, None), |known| (known.stack, known.file.clone()));
            times.sort_unstable();
            let entry = SystemCalls {
                start_ns: end_ns,
                end_ns,
                thread,
                call: system_call::name(sum.call()),
                stack,
                file,
                amount: Amount::default(),
                last_ns: None,
                times,
            };
            sink.take(Entry::SystemCalls(Box::new(entry)));
        }
    }

    /// Adds the calls before that of a record, if they ended long before it: what a step did is not spread up to the next call.
    fn add_calls_before(&mut self, record: &CallRecord, thread: ThreadRef, start_ns: u64, sink: &mut impl Sink) {
        let Some(known) = self.system_calls.known.get(&record.sum.key) else { return };
        let amount = record.sum.since(Some(&known.sum));
        let rest = amount.without(&record.own(&amount));
        let end_ns = record.sum.last_ns();
        if rest.count == 0 || end_ns < known.time_ns || start_ns.saturating_sub(end_ns) < SILENCE_NS {
            return;
        }
        let sum = known.sum.and(&rest);
        let end = SumEnd { start_ns: end_ns, end_ns, stack: known.stack, file: known.file.clone(), last_ns: None };
        self.add_sum(sum, thread, end, sink);
    }

    fn add_sum(&mut self, sum: Sum, thread: ThreadRef, end: SumEnd, sink: &mut impl Sink) {
        let SumEnd { start_ns, end_ns, stack, file, last_ns } = end;
        let known = self.system_calls.known.get(&sum.key);
        let amount = sum.since(known.map(|known| &known.sum));
        // Calls of one thread have an order, but records of two CPUs may not.
        if amount.count == 0 {
            return;
        }
        let start_ns = match (known, amount.count) {
            (_, 1) => start_ns,
            (Some(known), _) => known.time_ns,
            (None, _) => self.start_ns.unwrap_or(start_ns),
        };
        if let Some(stack) = stack {
            self.system_calls.stacks.insert(place(&sum.key), stack);
        }
        let entry = SystemCalls {
            start_ns: start_ns.min(end_ns),
            end_ns,
            thread,
            call: system_call::name(sum.call()),
            stack,
            file: file.clone(),
            amount,
            last_ns,
            times: Vec::new(),
        };
        sink.take(Entry::SystemCalls(Box::new(entry)));
        self.system_calls.known.insert(sum.key, Known { sum, time_ns: end_ns, stack, file, thread: Some(thread) });
    }

    /// The name of the file of a call.
    fn file_of(&mut self, pid: u32, record: &CallRecord) -> Option<String> {
        let Some(file) = record.sum.file() else {
            // The path is that of one call among those of all places, or of many files.
            let is_of_others = record.sum.is_of_any_place() || record.sum.is_of_many_files();
            return record.path.clone().filter(|_| !is_of_others);
        };
        let known = self.system_calls.files.get(&file);
        // An inode that is opened by another path may be another file by now.
        let is_same = |known: &&Named| record.path.is_none() || known.opened_as == record.path;
        if let Some(known) = known.filter(is_same) {
            return Some(known.name.clone());
        }
        let (device, inode) = file;
        let used = UsedFile { device, inode, descriptor: record.descriptor, path: record.path.as_deref() };
        let name = self.target.file_name(pid, &used).or_else(|| record.path.clone())?;
        let named = Named { name: name.clone(), opened_as: record.path.clone() };
        self.system_calls.files.insert(file, named);
        Some(name)
    }
}

/// Where a part of a sum ends.
struct SumEnd {
    /// The start of its last call.
    start_ns: u64,
    end_ns: u64,
    stack: Option<StackRef>,
    file: Option<String>,
    last_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use syscalls::x86_64::Sysno;

    use super::*;
    use crate::event_role::{Follow, Switches};
    use crate::initial_process::{InitialProcess, InitialThread};
    use crate::target::NoTarget;
    use crate::thread_timeline::InitialState;

    fn calls(entries: &[Entry]) -> Vec<&SystemCalls> {
        let mut calls = Vec::new();
        for entry in entries {
            if let Entry::SystemCalls(one) = entry {
                calls.push(&**one);
            }
        }
        calls
    }

    const CLOSE: u64 = Sysno::close as u64;

    /// Calls of `close` by one thread at one place, by inode.
    fn sum(tid: u64, inode: u64, count: u64) -> Sum {
        Sum::new([CLOSE << 32 | tid, 0x1000, 0x7000, inode, 9], [count, 0, count * 10, 10, 0, 0, 50])
    }

    /// An assembler that knows one thread.
    fn assembler(entries: &mut Vec<Entry>) -> Assembler<NoTarget> {
        let mut assembler = Assembler::new(NoTarget, Follow::Tree, Switches::Recorded, Some(1));
        let threads = vec![InitialThread { tid: 20, name: String::new(), state: InitialState::Runnable }];
        assembler.add_running(&InitialProcess { pid: 20, parent_pid: None, threads, mappings: Vec::new() }, entries);
        assembler
    }

    #[test]
    fn calls_whose_records_are_all_lost_are_those_of_their_thread_even_if_it_ended() {
        let mut entries = Vec::new();
        let mut assembler = assembler(&mut entries);
        let thread = assembler.thread_ref(20).unwrap();
        assembler.end_process(20, 60, &mut entries);
        assembler.add_sums(vec![sum(20, 5, 7)], &mut entries);
        assert_eq!(
            calls(&entries).iter().map(|calls| (calls.thread, calls.amount.count)).collect::<Vec<_>>(),
            [(thread, 7)]
        );
        assembler.add_call_times(
            vec![TimeCount::new([sum(20, 5, 7).key.as_slice(), &[10]].concat().try_into().unwrap(), 7)],
            &mut entries,
        );
        assert_eq!(calls(&entries).last().map(|calls| calls.times.clone()), Some(vec![(10, 7)]));
        assert_eq!(assembler.losses().lost_calls, None);
    }

    #[test]
    fn a_sum_without_a_record_has_the_stack_of_its_place_and_the_name_of_its_file() {
        let mut entries = Vec::new();
        let mut assembler = assembler(&mut entries);
        let thread = assembler.thread_ref(20).unwrap();
        let end =
            SumEnd { start_ns: 10, end_ns: 20, stack: Some(StackRef(4)), file: Some("/a".into()), last_ns: Some(10) };
        assembler.add_sum(sum(20, 5, 1), thread, end, &mut entries);
        let named = Named { name: "/b".to_owned(), opened_as: None };
        assembler.system_calls.files.insert((9, 6), named);
        assembler.add_sums(vec![sum(20, 5, 1), sum(20, 6, 3), sum(20, 7, 2)], &mut entries);
        let calls = calls(&entries);
        let found = calls[1..].iter().map(|calls| (calls.stack, calls.file.as_deref(), calls.amount.count));
        assert_eq!(found.collect::<Vec<_>>(), [(Some(StackRef(4)), Some("/b"), 3), (Some(StackRef(4)), None, 2)]);
    }

    #[test]
    fn calls_long_before_the_next_one_have_a_row_of_their_own() {
        const MS: u64 = 1_000_000;
        let mut entries = Vec::new();
        let mut assembler = assembler(&mut entries);
        let thread = assembler.thread_ref(20).unwrap();
        let mut add = |count: u64, previous_ns: u64, end_ns: u64| {
            let sum = Sum::new(sum(20, 5, count).key, [count, 0, count * 10, 10, 0, 0, previous_ns]);
            let record = CallRecord { sum, returned: -2, duration_ns: 10, descriptor: None, path: None };
            let start_ns = end_ns - 10;
            assembler.add_calls_before(&record, thread, start_ns, &mut entries);
            let end = SumEnd { start_ns, end_ns, stack: None, file: None, last_ns: Some(10) };
            assembler.add_sum(record.sum, thread, end, &mut entries);
        };
        add(1, 0, 100 * MS);
        // 29 more within 2 ms, then one after a silence, then 7 soon after it.
        add(31, 102 * MS, 300 * MS);
        add(38, 311 * MS, 312 * MS);
        let rows = calls(&entries).iter().map(|row| (row.start_ns, row.end_ns, row.amount.count)).collect::<Vec<_>>();
        let one = |end_ns: u64| (end_ns - 10, end_ns, 1);
        assert_eq!(rows, [one(100 * MS), (100 * MS, 102 * MS, 29), one(300 * MS), (300 * MS, 312 * MS, 7)]);
        assert_eq!(calls(&entries)[1].amount.total_ns, 290);
    }

    #[test]
    fn calls_of_all_places_together_have_no_file() {
        let mut assembler = assembler(&mut Vec::new());
        let record = |key| {
            let sum = Sum::new(key, [7, 0, 70, 10, 0, 0, 50]);
            CallRecord { sum, returned: 3, duration_ns: 10, descriptor: None, path: Some("/a".into()) }
        };
        let open = Sysno::openat as u64;
        assert_eq!(assembler.file_of(20, &record([open << 32 | 20, 0, 0, 0, 0])), None);
        let of_place = record([open << 32 | 20, 0x1000, 0x7000, 0, 0]);
        assert_eq!(assembler.file_of(20, &of_place).as_deref(), Some("/a"));
    }

    #[test]
    fn calls_before_the_program_do_not_count() {
        let mut entries = Vec::new();
        let mut assembler = assembler(&mut entries);
        let thread = assembler.thread_ref(20).unwrap();
        assembler.system_calls.note_thread(20, thread, Some(51));
        assembler.add_sums(vec![sum(20, 5, 7)], &mut entries);
        assembler.split(60, &mut entries, &mut Vec::new());
        assembler.add_sums(vec![sum(20, 5, 7)], &mut entries);
        assert!(calls(&entries).is_empty());
        assembler.add_sums(vec![sum(20, 6, 7)], &mut entries);
        assert_eq!(calls(&entries).len(), 1, "whatever is new since then");
    }

    #[test]
    fn calls_of_unknown_threads_are_counted_as_lost_once() {
        let mut entries = Vec::new();
        let mut assembler = assembler(&mut entries);
        assembler.losses.lost_records = 1;
        for _ in 0..2 {
            assembler.add_sums(vec![sum(21, 5, 7)], &mut entries);
        }
        assert!(calls(&entries).is_empty());
        assert_eq!(assembler.losses().lost_calls, Some(7));
    }
}
