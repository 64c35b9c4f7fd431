//! The counters `machine_speed.*`: which CPUs are probed, when, and for which thread.

use std::collections::BTreeMap;
use std::time::Duration;

use stepscope_assemble::{Entry, ProcessRef, Sample, Sink, ThreadRef, Wait};
use stepscope_model::MACHINE_SPEED;

use super::speed_probes::{Probes, Reading};

/// A CPU is in use for this long after a recorded thread was seen on it.
const IN_USE: Duration = Duration::from_millis(100);

/// Steps before typical steps are known.
const LEAST_STEPS: u64 = 8;

/// A step is late once it takes this many times as long as steps usually do.
const LATE: u64 = 2;

/// What the entries of a log say about CPUs in use and about steps.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The process of each thread.
    processes: Vec<ProcessRef>,
    /// The thread last seen on each CPU, and when.
    threads: BTreeMap<u32, (ThreadRef, u64)>,
    latest_step_ns: u64,
    /// Moving average of the time between steps.
    step_ns: u64,
    steps: u64,
}

impl Seen {
    pub fn note(&mut self, entry: &Entry) {
        match *entry {
            Entry::Thread { process, .. } => self.processes.push(process),
            Entry::Sample(Sample { cpu: Some(cpu), thread, time_ns: Some(time_ns), .. })
            | Entry::Wait(Wait { cpu: Some(cpu), thread, end_ns: time_ns, .. }) => {
                self.threads.insert(cpu, (thread, time_ns));
            }
            Entry::StepStart { time_ns, .. } | Entry::StepMark { time_ns, .. } => self.note_step(time_ns),
            _ => {}
        }
    }

    fn note_step(&mut self, time_ns: u64) {
        if self.steps > 0 {
            let took = time_ns.saturating_sub(self.latest_step_ns);
            let usual = if self.steps == 1 { took } else { self.step_ns };
            self.step_ns = usual - usual / 8 + took / 8;
        }
        self.steps += 1;
        self.latest_step_ns = self.latest_step_ns.max(time_ns);
    }

    /// Whether the present step was late at this time, up to which entries are known.
    fn is_late(&self, now_ns: u64) -> bool {
        self.steps >= LEAST_STEPS && now_ns.saturating_sub(self.latest_step_ns) > self.step_ns.saturating_mul(LATE)
    }

    fn in_use(&self, now_ns: u64) -> impl Iterator<Item = u32> {
        let since = now_ns.saturating_sub(IN_USE.as_nanos() as u64);
        self.threads.iter().filter(move |(_, (_, time_ns))| *time_ns >= since).map(|(cpu, _)| *cpu)
    }

    /// The counters of a reading, for the thread last seen on its CPU.
    fn counters(&self, reading: &Reading) -> impl Iterator<Item = Entry> {
        let thread = self.threads.get(&reading.cpu).map(|(thread, _)| *thread);
        let process = thread.and_then(|thread| self.processes.get(thread.0 as usize).copied());
        let Reading { time_ns, speeds, .. } = *reading;
        let known = thread.zip(process);
        MACHINE_SPEED.into_iter().zip(speeds).filter_map(move |(name, speed)| {
            let ((thread, process), value) = known.zip(speed)?;
            Some(Entry::Counter { time_ns, process, thread: Some(thread), name: name.to_owned(), value })
        })
    }
}

/// Probes the CPUs that the recorded program uses.
#[derive(Debug, Default)]
pub(super) struct MachineSpeed(Option<Probes>);

impl MachineSpeed {
    pub fn new(wanted: bool) -> Self {
        Self(wanted.then(Probes::default))
    }

    /// Writes the readings since the last round, and chooses what to probe next. Entries up to `known_ns` were seen.
    pub fn round(&mut self, sink: &mut (impl Sink + AsRef<Seen>), known_ns: u64) {
        let Some(probes) = &mut self.0 else { return };
        for reading in probes.readings().collect::<Vec<_>>() {
            let counters: Vec<Entry> = sink.as_ref().counters(&reading).collect();
            counters.into_iter().for_each(|counter| sink.take(counter));
        }
        let seen = sink.as_ref();
        let late = seen.is_late(known_ns);
        probes.want(seen.in_use(known_ns).filter(|_| !late));
    }

    /// Probes nothing until the next round.
    pub fn rest(&mut self) {
        if let Some(probes) = &mut self.0 {
            probes.want(std::iter::empty());
        }
    }

    /// CPU time of the probes since the last call.
    pub fn take_cpu_ns(&self) -> u64 {
        self.0.as_ref().map_or(0, Probes::take_cpu_ns)
    }

    /// Notes of the capture: CPUs that cannot be probed.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let failures = self.0.as_ref().map(Probes::failures).unwrap_or_default();
        failures.into_iter().map(|(cpu, why)| format!("The machine's speed was not measured on CPU {cpu}: {why}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(time_ns: u64) -> Entry {
        Entry::StepStart { time_ns, thread: ThreadRef(0), sim_time_ns: None }
    }

    fn sample(cpu: u32, thread: u32, time_ns: u64) -> Entry {
        Entry::Sample(Sample {
            time_ns: Some(time_ns),
            thread: ThreadRef(thread),
            cpu: Some(cpu),
            stack: None,
            event: stepscope_assemble::EventRef(0),
            weight: 1,
        })
    }

    fn thread(process: u32) -> Entry {
        Entry::Thread { tid: 1, process: ProcessRef(process), start_ns: None, name: String::new() }
    }

    fn seen(entries: &[Entry]) -> Seen {
        let mut seen = Seen::default();
        entries.iter().for_each(|entry| seen.note(entry));
        seen
    }

    #[test]
    fn a_step_is_late_after_twice_the_usual_time() {
        let steps: Vec<Entry> = (0..10).map(|index| step(1_000 + index * 100)).collect();
        let all = seen(&steps);
        assert_eq!([all.is_late(1_950), all.is_late(2_100), all.is_late(2_101)], [false, false, true]);
        assert!(!seen(&steps[..5]).is_late(1_000_000), "too few steps to know");
    }

    #[test]
    fn readings_belong_to_the_thread_last_seen_on_their_cpu() {
        let seen = seen(&[thread(0), thread(1), sample(3, 0, 10), sample(3, 1, 20), sample(5, 0, 20)]);
        let reading = Reading { cpu: 3, time_ns: 30, speeds: [Some(7), None, Some(9)] };
        let of = |name: &str, value| Entry::Counter {
            time_ns: 30,
            process: ProcessRef(1),
            thread: Some(ThreadRef(1)),
            name: name.to_owned(),
            value,
        };
        let found: Vec<Entry> = seen.counters(&reading).collect();
        assert_eq!(found, [of("machine_speed.integer", 7), of("machine_speed.memory", 9)]);
        assert_eq!(seen.counters(&Reading { cpu: 4, ..reading }).count(), 0);
    }

    #[test]
    fn cpus_are_in_use_for_a_tenth_of_a_second_after_a_sample() {
        let seen = seen(&[thread(0), sample(0, 0, 1_000_000_000), sample(1, 0, 1_050_000_000)]);
        assert_eq!(seen.in_use(1_100_000_001).collect::<Vec<_>>(), [1]);
        assert_eq!(seen.in_use(1_100_000_000).collect::<Vec<_>>(), [0, 1]);
    }
}
