//! Where the rows of a trace go as soon as they are complete: into memory, or into the tables of a folder.

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use stepscope_assemble::{Builder, Entry, Sink, Symbols};
use stepscope_model::disk::{DiskError, LongTables};
use stepscope_model::{Capture, Counter, FlowEvent, ProcessId, Scope, ThreadId, Wait};

/// Scopes that wait for their names before they are written.
const MOST_NAMELESS: usize = 1 << 17;
/// Texts that are shared.
const MOST_TEXTS: usize = 1 << 16;

/// The capture of a trace while it grows.
#[derive(Default)]
pub struct Output {
    builder: Builder,
    folder: Option<PathBuf>,
    tables: Option<LongTables>,
    error: Option<DiskError>,
    /// Scopes before this time are left out.
    pub start_ns: u64,
    /// Whether scopes get other names later, and wait for that.
    pub names_come_later: bool,
    texts: FxHashSet<Arc<str>>,
    /// By some bits of their places.
    recent: [Option<Recent>; 32],
    waits: Vec<Wait>,
    scopes: Vec<Scope>,
    counters: Vec<Counter>,
    flows: Vec<FlowEvent>,
}

/// A text that was shared.
struct Recent {
    text: Arc<str>,
    /// The first of those that are equal, if it is another one.
    first: Option<Arc<str>>,
}

impl Sink for Output {
    fn take(&mut self, entry: Entry) {
        self.builder.take(entry);
    }
}

impl Output {
    /// Rows go to tables in this folder; without one, they stay in memory.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// Processes and threads so far.
    pub fn capture(&self) -> &Capture {
        self.builder.capture()
    }

    /// Of texts that are equal, the first.
    #[inline]
    pub fn shared(&mut self, text: Arc<str>) -> Arc<str> {
        // Mixed, so that texts that were made one after the other are apart.
        let place = (text.as_ptr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 59;
        match &self.recent[place] {
            Some(recent) if Arc::ptr_eq(&recent.text, &text) => recent.first.clone().unwrap_or(text),
            _ => self.find(text, place),
        }
    }

    fn find(&mut self, text: Arc<str>, place: usize) -> Arc<str> {
        let first = match self.texts.get(&text) {
            Some(first) => first.clone(),
            None => {
                // Names that are all different need not be shared.
                if self.texts.len() >= MOST_TEXTS {
                    self.texts.clear();
                }
                self.texts.insert(text.clone());
                text.clone()
            }
        };
        let other = (!Arc::ptr_eq(&first, &text)).then(|| first.clone());
        self.recent[place] = Some(Recent { text, first: other });
        first
    }

    /// Gives a row to the tables. After an error, rows are dropped: the error is what the import gives.
    fn write(&mut self, add: impl FnOnce(&mut LongTables, &Capture) -> Result<(), DiskError>) {
        let capture = self.builder.capture();
        if self.error.is_some() {
            return;
        }
        let tables = match (&mut self.tables, &self.folder) {
            (Some(tables), _) => tables,
            (none, Some(folder)) => match LongTables::create(folder, capture) {
                Ok(tables) => none.insert(tables),
                Err(error) => return self.error = Some(error),
            },
            (None, None) => return,
        };
        self.error = add(tables, capture).err();
    }

    pub fn wait(&mut self, wait: &stepscope_assemble::Wait) {
        let &stepscope_assemble::Wait { start_ns, end_ns, thread, state, runnable_ns, cpu, waker, count, .. } = wait;
        let (thread, waker) = (ThreadId(thread.0), waker.map(|waker| ThreadId(waker.0)));
        // Traces have no stacks.
        let (stack, waker_stack) = (None, None);
        let wait = Wait { start_ns, end_ns, thread, stack, state, runnable_ns, cpu, waker, waker_stack, count };
        match self.folder {
            Some(_) => self.write(|tables, capture| tables.add_wait(capture, wait)),
            None => self.waits.push(wait),
        }
    }

    pub fn scope(&mut self, scope: Scope) {
        if scope.start_ns < self.start_ns {
            return;
        }
        match self.folder {
            Some(_) if !self.names_come_later => self.write(|tables, capture| tables.add_scope(capture, scope)),
            _ => self.scopes.push(scope),
        }
    }

    pub fn counter(
        &mut self,
        process: Option<ProcessId>,
        thread: Option<ThreadId>,
        name: Arc<str>,
        time_ns: u64,
        value: i64,
    ) {
        let counter = Counter { time_ns, process, thread, name: self.shared(name), value };
        match self.folder {
            Some(_) => self.write(|tables, capture| tables.add_counter(capture, counter)),
            None => self.counters.push(counter),
        }
    }

    pub fn flow(&mut self, event: FlowEvent) {
        match self.folder {
            Some(_) => self.write(|tables, capture| tables.add_flow(capture, event)),
            None => self.flows.push(event),
        }
    }

    /// Whether many scopes wait for their names.
    pub fn wants_names(&self) -> bool {
        self.scopes.len() >= MOST_NAMELESS && self.folder.is_some()
    }

    /// The scopes in memory, for their names.
    pub fn nameless(&mut self) -> &mut [Scope] {
        &mut self.scopes
    }

    /// The scopes in memory have their names.
    pub fn named(&mut self) {
        if self.folder.is_some() {
            for scope in std::mem::take(&mut self.scopes) {
                self.write(|tables, capture| tables.add_scope(capture, scope));
            }
        }
    }

    /// Makes the capture.
    pub fn finish(mut self, symbols: &mut impl Symbols) -> Result<Capture, DiskError> {
        self.named();
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut capture = self.builder.build(symbols);
        if let Some(tables) = self.tables {
            tables.finish(&mut capture)?;
            return Ok(capture);
        }
        capture.waits = self.waits.into();
        capture.waits.sort();
        self.scopes.sort_by_key(|scope| scope.thread);
        capture.scopes = self.scopes.into();
        let order = |scope: &Scope| (scope.thread, scope.start_ns);
        if !capture.scopes.is_sorted_by_key(order) {
            capture.scopes.sort_by_key(|scope| (order(scope), std::cmp::Reverse(scope.end_ns), scope.depth));
        }
        capture.counters = self.counters.into();
        self.flows.sort_by_key(|event| event.time_ns);
        capture.flows = self.flows.into();
        Ok(capture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_texts_the_first_is_shared_however_often_each_comes() {
        let mut output = Output::default();
        let texts: Vec<Arc<str>> = (0..100).map(|at| format!("callback {}", at % 50).into()).collect();
        for _ in 0..3 {
            for (at, text) in texts.iter().enumerate() {
                assert!(Arc::ptr_eq(&output.shared(text.clone()), &texts[at % 50]), "{at}");
            }
        }
    }
}
