//! [`Inheritance`]: which threads have which events from the thread that started them.
//!
//! Events of single threads are inherited by the threads that these start. While the events of a running program are opened,
//! one kind and one thread after the other, its threads may start others: such a thread has the events that the one which started it
//! had by then, and no others. Without these, its time would be missing; opened twice, it would count twice. So each
//! event of a thread is asked for records of forks (`attr.task`), whose id is that of the event which is inherited.

use rustc_hash::FxHashMap;

use super::sample_layout::word;

/// Offset of the new thread's id in a record of a fork.
const TID_AT: usize = 8;

/// Which threads have which events from the thread that started them.
#[derive(Debug, Default)]
pub(super) struct Inheritance {
    /// By the kernel's number, which of the opened events it is.
    events: FxHashMap<u64, usize>,
    /// By thread, the kernel's numbers of the events that it inherited.
    inherited: FxHashMap<u32, Vec<u64>>,
}

impl Inheritance {
    /// An event is opened for a thread and a CPU.
    pub fn add(&mut self, id: u64, event: usize) {
        self.events.insert(id, event);
    }

    /// A record of a fork.
    pub fn note_fork(&mut self, body: &[u8]) {
        let id = body.len().checked_sub(8).and_then(|at| word(body, at));
        if let (Some(id), Some(tid)) = (id, word(body, TID_AT)) {
            self.inherited.entry(tid as u32).or_default().push(id);
        }
    }

    /// Whether a thread has the event from the one that started it.
    pub fn has(&self, thread: u32, event: usize) -> bool {
        self.inherited.get(&thread).is_some_and(|ids| ids.iter().any(|id| self.events.get(id) == Some(&event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_events_that_the_records_of_its_start_name() {
        let mut inheritance = Inheritance::default();
        // Process and parent, threads, time; then thread, time, CPU, id.
        let fork = |id: u64| -> Vec<u8> {
            [5 << 32 | 5, 6 << 32 | 9, 1_000, 6 << 32 | 5, 1_000, 0, id]
                .iter()
                .flat_map(|word: &u64| word.to_ne_bytes())
                .collect()
        };
        inheritance.note_fork(&fork(70));
        inheritance.note_fork(&fork(90));
        inheritance.note_fork(&fork(70)[..7]);
        assert!(!inheritance.has(9, 0), "what it inherited is unknown yet");
        inheritance.add(70, 0);
        inheritance.add(71, 1);
        assert!(inheritance.has(9, 0));
        assert!(!inheritance.has(9, 1) && !inheritance.has(6, 0));
    }
}
