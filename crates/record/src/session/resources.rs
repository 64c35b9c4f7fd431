//! Processes' resources, from `/proc` to the log.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use stepscope_assemble::{Assembler, Entry, Sink};

use crate::clock;
use crate::live::LiveTarget;
use crate::proc::{ProcessTree, Reading, ResourceSampler};

/// Most readings kept for processes without a start record. They wait one round, unless that record was lost.
const MOST_WAITING_READINGS: usize = 100_000;

/// How long a part of a reading takes. The rings of each CPU have room for many times that.
const LONGEST_PART: Duration = Duration::from_millis(10);

/// Processes' resources over time.
pub(super) struct Resources {
    sampler: ResourceSampler,
    /// Those that are not logged yet.
    waiting: Vec<Reading>,
    /// The last of each, with its time, for a capture that begins later.
    last: BTreeMap<(u32, Option<u32>, &'static str), (u64, i64)>,
    /// Whether some processes are read and others are not.
    is_reading: bool,
    rest: Rest,
}

/// The pause between two readings of everything, so that they take a fixed share of a CPU.
struct Rest {
    /// CPU time of this reading so far.
    cost: Duration,
    until: Instant,
}

impl Rest {
    /// The share of one CPU that reading may take in the long run.
    const SHARE: f64 = 0.02;

    fn was_read(&mut self, cpu_ns: u64, continues: bool) {
        self.cost += Duration::from_nanos(cpu_ns);
        if !continues {
            self.until = Instant::now() + std::mem::take(&mut self.cost).div_f64(Self::SHARE);
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl Resources {
    pub fn new(tree: ProcessTree) -> Self {
        Self {
            sampler: ResourceSampler::new(tree),
            waiting: Vec::new(),
            last: BTreeMap::new(),
            is_reading: false,
            rest: Rest { cost: Duration::ZERO, until: Instant::now() },
        }
    }

    /// What could not be read.
    pub fn lacks(&self) -> Vec<String> {
        self.sampler.lacks()
    }

    /// Reads all processes. A value is logged once, when it changes, at the time of its reading: but not before the present log
    /// started. A child that has not executed the program yet is not read: it is a copy of the recorder.
    ///
    /// Returns whether all are read. The rest of thousands of threads is for the next call: a call takes [`LONGEST_PART`].
    pub fn read(&mut self, assembler: &Assembler<LiveTarget>, log_start_ns: u64, sink: &mut impl Sink) -> bool {
        if assembler.expects_exec() {
            return true;
        }
        if !self.is_reading {
            assembler.pids().for_each(|pid| self.sampler.tree_mut().add(pid));
        }
        let before_ns = clock::thread_cpu_ns();
        let Self { sampler, waiting, last, .. } = self;
        self.is_reading = !sampler.sample_for(LONGEST_PART, waiting);
        self.rest.was_read(clock::thread_cpu_ns().saturating_sub(before_ns), self.is_reading);
        // Where `/proc` is ahead of the rings, a value waits until its process is known.
        waiting.retain(|reading| {
            let of = (reading.pid, reading.tid, reading.quantity.name());
            let Some(counter) = counter(assembler, log_start_ns.max(reading.time_ns), of, reading.value) else {
                return sampler.tree().contains(reading.pid);
            };
            last.insert(of, (reading.time_ns, reading.value));
            sink.take(counter);
            false
        });
        waiting.truncate(MOST_WAITING_READINGS);
        last.retain(|(pid, ..), _| assembler.process_ref(*pid).is_some());
        !self.is_reading
    }

    /// Lets the next reading start from the first process, so that no value is older than it.
    pub fn start_again(&mut self) {
        self.is_reading = false;
        self.sampler.start_again();
    }

    /// Whether some processes are read and others are not.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Whether the pause after the last reading was long enough for what that cost.
    pub fn is_due(&self) -> bool {
        self.rest.is_over()
    }

    /// Logs the last values again, for a capture that begins now. Those that were read since keep their time.
    pub fn repeat(&self, now_ns: u64, assembler: &Assembler<LiveTarget>, sink: &mut impl Sink) {
        for (&of, &(time_ns, value)) in &self.last {
            if let Some(counter) = counter(assembler, now_ns.max(time_ns), of, value) {
                sink.take(counter);
            }
        }
    }
}

/// The entry of a value, if its process and thread are known.
fn counter(
    assembler: &Assembler<LiveTarget>,
    time_ns: u64,
    (pid, tid, name): (u32, Option<u32>, &'static str),
    value: i64,
) -> Option<Entry> {
    let process = assembler.process_ref(pid)?;
    let thread = match tid {
        Some(tid) => Some(assembler.thread_ref(tid)?),
        None => None,
    };
    Some(Entry::Counter { time_ns, process, thread, name: name.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use stepscope_assemble::{Follow, InitialProcess, InitialState, InitialThread, Switches};

    use super::*;
    use crate::proc::Quantity;

    #[derive(Default)]
    struct Times(Vec<(String, u64)>);

    impl Sink for Times {
        fn take(&mut self, entry: Entry) {
            if let Entry::Counter { time_ns, name, .. } = entry {
                self.0.push((name, time_ns));
            }
        }
    }

    #[test]
    fn a_child_is_not_read_before_it_executes_the_program() {
        let pid = std::process::id();
        let mut resources = Resources::new(ProcessTree::of(pid));
        let mut assembler = Assembler::new(LiveTarget::default(), Follow::Tree, Switches::Recorded, None);
        assembler.expect_exec(pid, 1);
        resources.read(&assembler, 0, &mut Times::default());
        assert_eq!(resources.waiting, []);
        assembler.end_process(pid, 1, &mut Times::default());
        resources.read(&assembler, 0, &mut Times::default());
        assert_ne!(resources.waiting, [], "nothing is expected any more");
    }

    #[test]
    fn a_dear_reading_is_followed_by_a_long_pause() {
        let mut rest = Rest { cost: Duration::ZERO, until: Instant::now() };
        assert!(rest.is_over());
        rest.was_read(50_000_000, true);
        assert!(rest.is_over(), "the reading goes on");
        rest.was_read(50_000_000, false);
        let pause = rest.until - Instant::now();
        assert!(pause > Duration::from_secs(4) && pause <= Duration::from_secs(5), "{pause:?}");
    }

    #[test]
    fn a_reading_that_waited_for_its_process_has_the_time_when_it_was_read() {
        let pid = std::process::id();
        let mut resources = Resources::new(ProcessTree::of(pid));
        let mut assembler =
            Assembler::new(LiveTarget::default(), Follow::Tree, Switches::Recorded, Some(clock::now_ns()));
        let mut logged = Times::default();
        resources.read(&assembler, 0, &mut logged);
        let known_ns = clock::now_ns();
        assert_eq!(logged.0, [], "its process is not known");
        let threads = vec![InitialThread { tid: pid, name: String::new(), state: InitialState::Runnable }];
        let process = InitialProcess { pid, parent_pid: None, threads, mappings: Vec::new() };
        assembler.add_running(&process, &mut logged);
        resources.read(&assembler, 0, &mut logged);
        let first = |name: &str| logged.0.iter().find(|(logged, _)| logged == name).unwrap().1;
        assert!(first("threads") < known_ns && first("rss_bytes") < known_ns);
        let mut next = Times::default();
        resources.waiting.push(Reading { time_ns: 5, pid, tid: None, quantity: Quantity::Rss, value: 7 });
        resources.read(&assembler, known_ns, &mut next);
        assert_eq!(next.0[0], ("rss_bytes".to_owned(), known_ns), "not before the log started");
    }
}
