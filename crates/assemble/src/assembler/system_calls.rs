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
    /// The calls by time that earlier logs have.
    times: FxHashMap<[u64; TimeCount::KEY_WORDS], u64>,
    /// The name of each file by device and inode, and the path by which it was opened.
    files: FxHashMap<(u64, u64), Named>,
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

impl SystemCallSums {
    /// The next log starts its numbers at zero.
    pub fn forget_numbers(&mut self) {
        self.known.values_mut().for_each(|known| (known.stack, known.thread) = (None, None));
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
        let stack = self.stack(ids, at, sink);
        let file = self.file_of(ids.pid, &record);
        let start_ns = end_ns.saturating_sub(record.duration_ns);
        let last_ns = Some(record.duration_ns);
        self.add_sum(record.sum, thread, SumEnd { start_ns, end_ns, stack, file, last_ns }, sink);
    }

    /// Adds what is left of the sums at the end of a log: the calls since the last record of each.
    pub fn add_sums(&mut self, sums: Vec<Sum>, sink: &mut impl Sink) {
        for sum in sums {
            let known = self.system_calls.known.get(&sum.key);
            let living = self.threads.get(&sum.tid()).map(|thread| thread.id);
            let Some(thread) = known.and_then(|known| known.thread).or(living) else { continue };
            let (stack, file) = known.map_or((None, None), |known| (known.stack, known.file.clone()));
            let end_ns = sum.last_ns();
            self.add_sum(sum, thread, SumEnd { start_ns: end_ns, end_ns, stack, file, last_ns: None }, sink);
        }
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
        let Some(file) = record.sum.file() else { return record.path.clone() };
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
