//! Starts and ends of intervals on threads become scopes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_assemble::{Builder, Entry, MarkNameRef, MarkThreadRef, Sink};
use stepscope_model::quantity::plural;

use super::Caller;

/// Most open scopes of a thread. A trace with more has lost their ends.
const MOST_OPEN: usize = 1 << 12;

#[derive(Default)]
pub struct Scopes {
    names: FxHashMap<Arc<str>, MarkNameRef>,
    threads: FxHashMap<(u32, u32), Stack>,
    /// Ends without a start.
    lost_starts: u64,
    /// Starts without an end.
    lost_ends: u64,
}

struct Stack {
    id: MarkThreadRef,
    open: Vec<Open>,
}

struct Open {
    /// What the end has, too: a callback, the address of a function.
    key: u64,
    name: MarkNameRef,
    start_ns: u64,
}

impl Scopes {
    fn name(&mut self, name: Arc<str>, sink: &mut Builder) -> MarkNameRef {
        let next = MarkNameRef(self.names.len() as u32);
        *self.names.entry(name).or_insert_with_key(|name| {
            sink.take(Entry::MarkName { name: name.to_string() });
            next
        })
    }

    fn stack(&mut self, caller: Caller, time_ns: u64, sink: &mut Builder) -> &mut Stack {
        let id = MarkThreadRef(self.threads.len() as u32);
        self.threads.entry((caller.pid, caller.tid)).or_insert_with(|| {
            sink.take(Entry::MarkThread { pid: caller.pid, tid: caller.tid, time_ns });
            Stack { id, open: Vec::new() }
        })
    }

    /// A scope of which both times are known.
    pub fn whole(&mut self, caller: Caller, name: Arc<str>, start_ns: u64, end_ns: u64, sink: &mut Builder) {
        let name = self.name(name, sink);
        let thread = self.stack(caller, start_ns, sink).id;
        sink.take(Entry::Scope { thread, name, start_ns, end_ns: end_ns.max(start_ns) });
    }

    /// A reading on a thread.
    pub fn count(&mut self, caller: Caller, name: Arc<str>, time_ns: u64, value: i64, sink: &mut Builder) {
        let name = self.name(name, sink);
        let thread = self.stack(caller, time_ns, sink).id;
        sink.take(Entry::MarkedCounter { thread, name, time_ns, value });
    }

    pub fn begin(&mut self, caller: Caller, key: u64, name: Arc<str>, time_ns: u64, sink: &mut Builder) {
        let name = self.name(name, sink);
        let stack = self.stack(caller, time_ns, sink);
        let is_full = stack.open.len() >= MOST_OPEN;
        if is_full {
            stack.open.remove(0);
        }
        stack.open.push(Open { key, name, start_ns: time_ns });
        self.lost_ends += u64::from(is_full);
    }

    /// Ends the innermost scope with this key; without one, the innermost scope.
    pub fn end(&mut self, caller: Caller, key: Option<u64>, time_ns: u64, sink: &mut Builder) {
        let stack = self.threads.get_mut(&(caller.pid, caller.tid));
        let found = stack.and_then(|stack| {
            let at = stack.open.iter().rposition(|open| key.is_none_or(|key| open.key == key))?;
            Some((stack, at))
        });
        let Some((stack, at)) = found else {
            self.lost_starts += 1;
            return;
        };
        // The ends of those inside are lost.
        self.lost_ends += (stack.open.len() - at - 1) as u64;
        let thread = stack.id;
        if let Some(Open { name, start_ns, .. }) = stack.open.drain(at..).next() {
            sink.take(Entry::Scope { thread, name, start_ns, end_ns: time_ns.max(start_ns) });
        }
    }

    /// Starts and ends without their counterpart.
    pub fn note(&self) -> Option<String> {
        let open: u64 = self.threads.values().map(|stack| stack.open.len() as u64).sum();
        let (starts, ends) = (self.lost_ends + open, self.lost_starts);
        (starts + ends > 0).then(|| {
            let (starts, ends) = (plural(starts as usize, "start"), plural(ends as usize, "end"));
            format!("{starts} and {ends} of scopes have no counterpart in the trace and were skipped.")
        })
    }
}
