//! Starts and ends of intervals on threads become scopes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::ThreadId;
use stepscope_model::quantity::plural;

use super::Caller;
use super::nest::{Nest, Number};
use super::output::Output;

/// Most open scopes of a thread. A trace with more has lost their ends.
const MOST_OPEN: usize = 1 << 12;

#[derive(Default)]
pub struct Scopes {
    /// By thread.
    nests: Vec<Nest>,
    /// Threads of different processes can have the same id.
    open: FxHashMap<(u32, u32), Vec<Open>>,
    /// Ends without a start.
    lost_starts: u64,
    /// Starts without an end.
    lost_ends: u64,
}

struct Open {
    thread: ThreadId,
    /// What the end has, too: a callback, the address of a function.
    key: u64,
    number: Number,
}

impl Scopes {
    fn nest(&mut self, thread: ThreadId) -> &mut Nest {
        if self.nests.len() <= thread.index() {
            self.nests.resize_with(thread.index() + 1, Nest::default);
        }
        &mut self.nests[thread.index()]
    }

    /// A scope of which both times are known.
    pub fn whole(&mut self, thread: ThreadId, name: Arc<str>, start_ns: u64, end_ns: u64, output: &mut Output) {
        let name = output.shared(name);
        self.nest(thread).whole(name, start_ns, end_ns.max(start_ns), thread, |scope| output.scope(scope));
    }

    pub fn begin(
        &mut self,
        caller: Caller,
        thread: ThreadId,
        key: u64,
        name: Arc<str>,
        time_ns: u64,
        output: &mut Output,
    ) {
        let name = output.shared(name);
        let number = self.nest(thread).begin(name, time_ns, thread, |scope| output.scope(scope));
        let open = self.open.entry((caller.pid, caller.tid)).or_default();
        let oldest = (open.len() >= MOST_OPEN).then(|| open.remove(0));
        open.push(Open { thread, key, number });
        if let Some(oldest) = oldest {
            self.lost_ends += 1;
            self.nest(oldest.thread).lose(oldest.number);
        }
    }

    /// Ends the innermost scope with this key; without one, the innermost scope.
    pub fn end(&mut self, caller: Caller, key: Option<u64>, time_ns: u64, output: &mut Output) {
        let open = self.open.get_mut(&(caller.pid, caller.tid));
        let found = open.and_then(|open| {
            let at = open.iter().rposition(|open| key.is_none_or(|key| open.key == key))?;
            Some((open, at))
        });
        let Some((open, at)) = found else {
            self.lost_starts += 1;
            return;
        };
        // The ends of those inside are lost.
        for Open { thread, number, .. } in open.drain(at + 1..) {
            self.lost_ends += 1;
            self.nests[thread.index()].lose(number);
        }
        if let Some(Open { thread, number, .. }) = open.pop() {
            self.nests[thread.index()].end(number, time_ns, thread, |scope| output.scope(scope));
        }
    }

    /// Gives the scopes that wait for others.
    pub fn finish(&mut self, output: &mut Output) {
        for (index, nest) in std::mem::take(&mut self.nests).into_iter().enumerate() {
            nest.finish(ThreadId::from_index(index), |scope| output.scope(scope));
        }
        self.lost_ends += std::mem::take(&mut self.open).values().map(|open| open.len() as u64).sum::<u64>();
    }

    /// Starts and ends without their counterpart.
    pub fn note(&self) -> Option<String> {
        let (starts, ends) = (self.lost_ends, self.lost_starts);
        (starts + ends > 0).then(|| {
            let (starts, ends) = (plural(starts as usize, "start"), plural(ends as usize, "end"));
            format!("{starts} and {ends} of scopes have no counterpart in the trace and were skipped.")
        })
    }
}
