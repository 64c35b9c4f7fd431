use stepscope_model::{CaptureInfo, Event, Losses, WaitState};

use super::*;
use crate::entry::{self, Entry, EventRef, FrameRef, ProcessRef, Sink, StackRef, ThreadRef};
use crate::{Builder, NoSymbols};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const PERIOD_NS: u64 = 1_003_009;
/// Functions, by number.
const FUNCTIONS: u32 = 3;

/// A recording as its log has it. Threads start at 0.
struct Drawn {
    entries: Vec<Entry>,
    threads: u32,
}

impl Drawn {
    fn new(origin: Origin, per_thread: bool) -> Self {
        let info = CaptureInfo { origin, start_ns: Some(0), ..CaptureInfo::default() };
        let event = Event { per_thread, ..Event::sampled("cpu-clock", "ns") };
        let executable = "/bin/a".to_owned();
        let mut entries = vec![
            Entry::Start(Box::new(info)),
            Entry::Event(event),
            Entry::Process { pid: 10, parent_pid: None, start_ns: Some(0) },
            Entry::Image { process: ProcessRef(0), executable, command_line: Vec::new() },
        ];
        for function in 0..FUNCTIONS {
            entries.push(Entry::Frame { module: None, offset: function.into() });
            entries.push(Entry::Stack { parent: None, frame: FrameRef(function) });
        }
        Self { entries, threads: 0 }
    }

    fn of_machine() -> Self {
        Self::new(Origin::Recorded, false)
    }

    fn of_threads() -> Self {
        Self::new(Origin::Recorded, true)
    }

    /// A thread that runs for these times, each on another CPU and after 1 us off it. Gives a sample of each function here.
    fn thread(mut self, name: &str, runs_us: &[u64], functions: &[u32]) -> Self {
        let mut thread = self.start_thread(name);
        for (cpu, us) in (0..).zip(runs_us) {
            thread.wait(US, cpu);
            thread.run(us * US);
        }
        functions.iter().for_each(|&function| thread.sample(thread.now_ns, function));
        thread.end();
        self
    }

    fn start_thread(&mut self, name: &str) -> DrawnThread<'_> {
        let (thread, tid) = (ThreadRef(self.threads), 11 + self.threads);
        self.entries.push(Entry::Thread { tid, process: ProcessRef(0), start_ns: Some(0), name: name.into() });
        self.threads += 1;
        DrawnThread { entries: &mut self.entries, thread, now_ns: 0, cpu_ns: 0 }
    }

    fn built(mut self) -> Capture {
        self.entries.push(Entry::RecordingEnd(Box::default()));
        let mut builder = Builder::default();
        self.entries.into_iter().for_each(|entry| builder.take(entry));
        builder.build(&mut NoSymbols)
    }

    /// Thread, function and weight in us of each sample.
    fn weighed(self) -> (Vec<String>, Losses) {
        let capture = self.built();
        let draw = |sample: Sample| {
            let frame = capture.frames_of(sample.stack).next().unwrap();
            let function = capture.function(frame).replace("[unmapped 0x", "f").replace("0]", "0").replace("1]", "1");
            format!("{} {function} {}", sample.thread.index(), sample.weight / US)
        };
        let mut drawn: Vec<String> = capture.samples.iter().map(|sample| draw(*sample)).collect();
        drawn.sort();
        (drawn, capture.info.losses.clone())
    }
}

/// A thread, up to now.
struct DrawnThread<'a> {
    entries: &'a mut Vec<Entry>,
    thread: ThreadRef,
    now_ns: u64,
    cpu_ns: u64,
}

impl DrawnThread<'_> {
    fn run(&mut self, ns: u64) {
        self.now_ns += ns;
        self.cpu_ns += ns;
    }

    fn wait(&mut self, ns: u64, cpu: u32) {
        self.entries.push(Entry::Wait(entry::Wait {
            start_ns: self.now_ns,
            end_ns: self.now_ns + ns,
            thread: self.thread,
            stack: None,
            state: WaitState::Preempted,
            runnable_ns: None,
            cpu: Some(cpu),
            waker: None,
            waker_stack: None,
            count: 1,
        }));
        self.now_ns += ns;
    }

    fn sample(&mut self, time_ns: u64, function: u32) {
        self.entries.push(Entry::Sample(entry::Sample {
            time_ns: Some(time_ns),
            thread: self.thread,
            cpu: Some(0),
            stack: Some(StackRef(function)),
            event: EventRef(0),
            weight: PERIOD_NS,
        }));
    }

    fn end(&mut self) {
        let (time_ns, cpu_ns) = (Some(self.now_ns), Some(self.cpu_ns));
        self.entries.push(Entry::ThreadEnd { thread: self.thread, time_ns, cpu_ns, runnable_ns: None });
    }
}

/// A sequence of numbers below 1 that looks random (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }

    fn between(&mut self, least_ns: u64, most_ns: u64) -> u64 {
        least_ns + (self.next() * (most_ns - least_ns) as f64) as u64
    }
}

/// When a thread ran: times of the clock at which it was switched in, and how long it ran until and after.
struct Schedule(Vec<(u64, u64, u64)>);

impl Schedule {
    /// A thread that runs for up to 4 ms at a time, on a busy machine.
    fn busy(random: &mut Random) -> Self {
        let (mut now_ns, mut ran_ns, mut runs) = (0, 0, Vec::new());
        while ran_ns < 1_200 * MS {
            let run_ns = random.between(MS, 4 * MS);
            runs.push((now_ns, ran_ns, run_ns));
            ran_ns += run_ns;
            now_ns += run_ns + random.between(MS, 8 * MS);
        }
        Self(runs)
    }

    /// A thread that is never switched out.
    fn quiet(_: &mut Random) -> Self {
        Self(vec![(0, 0, 1_200 * MS)])
    }

    fn ran_ns(&self) -> u64 {
        self.0.iter().map(|run| run.2).sum()
    }

    /// Samples of both timers: the number of the run, the time in it, and the running time before it.
    fn samples(&self, random: &mut Random) -> Vec<(usize, u64, u64)> {
        let phases = [616, 381].map(|hz| (MS * 1_000 / hz, (random.next() * 1e6) as u64));
        let mut samples = Vec::new();
        for (number, &(start_ns, before_ns, run_ns)) in self.0.iter().enumerate() {
            for (period_ns, phase_ns) in phases {
                let first_ns = (start_ns + period_ns - phase_ns).next_multiple_of(period_ns) - (period_ns - phase_ns);
                let in_run = (first_ns..start_ns + run_ns).step_by(period_ns as usize);
                samples.extend(in_run.map(|time_ns| (number, time_ns - start_ns, before_ns)));
            }
        }
        samples.sort_unstable();
        samples
    }
}

/// Mean, and root of the mean square, of a share's errors in points.
#[derive(Debug)]
struct Error {
    mean: f64,
    rms: f64,
}

impl Error {
    fn of(errors: &[f64]) -> Self {
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / errors.len() as f64;
        Self {
            mean: mean(&mut errors.iter().copied()),
            rms: mean(&mut errors.iter().map(|error| error * error)).sqrt(),
        }
    }
}

/// Errors of a function's share with equal weights, with the time since the previous sample, and with blocks.
///
/// `runs` says whether the function runs, by the time since the switch and the running time in all.
fn errors(schedule: fn(&mut Random) -> Schedule, runs: impl Fn(u64, u64) -> bool) -> [Error; 3] {
    let mut random = Random(1);
    let mut errors = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..40 {
        let schedule = schedule(&mut random);
        let samples = schedule.samples(&mut random);
        let ran_ns = schedule.ran_ns() as f64;
        let is_in = |&(_, in_run_ns, before_ns): &(usize, u64, u64)| runs(in_run_ns, before_ns + in_run_ns);
        let looks = schedule.0.iter().flat_map(|run| (0..run.2).step_by(10_000).map(|in_run| (0, in_run, run.1)));
        let truth = looks.clone().filter(is_in).count() as f64 / looks.count() as f64;
        let equal = samples.iter().filter(|sample| is_in(sample)).count() as f64 / samples.len() as f64;
        let (mut since_ns, mut gaps_ns) = (0, 0);
        for sample in &samples {
            let at_ns = sample.1 + sample.2;
            gaps_ns += if is_in(sample) { at_ns - since_ns } else { 0 };
            since_ns = at_ns;
        }
        let mut drawn = Drawn::of_machine();
        let mut thread = drawn.start_thread("a");
        let mut next = samples.iter().peekable();
        for (number, &(start_ns, _, run_ns)) in schedule.0.iter().enumerate() {
            thread.wait(start_ns - thread.now_ns, 0);
            while let Some(sample) = next.next_if(|sample| sample.0 == number) {
                thread.sample(start_ns + sample.1, is_in(sample).into());
            }
            thread.run(run_ns);
        }
        thread.end();
        let capture = drawn.built();
        let weight = |sample: &Sample| sample.weight as f64;
        let total: f64 = capture.samples.iter().map(weight).sum();
        assert!((total / ran_ns - 1.0).abs() < 1e-3, "weights are {total} ns of {ran_ns}");
        let blocks: f64 = capture.samples.iter().filter(|sample| sample.stack == Some(StackId(1))).map(weight).sum();
        for (errors, share) in errors.iter_mut().zip([equal, gaps_ns as f64 / ran_ns, blocks / ran_ns]) {
            errors.push(100.0 * (share - truth));
        }
    }
    errors.map(|errors| Error::of(&errors))
}

#[test]
fn blocks_are_best_where_functions_follow_each_other() {
    let [equal, since_previous, blocks] = errors(Schedule::busy, |_, ran_ns| ran_ns > 600 * MS);
    println!("equal {equal:?}, since previous {since_previous:?}, blocks {blocks:?}");
    assert!(equal.rms > 0.3 && blocks.rms < 0.15, "equal {equal:?}, blocks {blocks:?}");
}

#[test]
fn blocks_are_no_worse_than_equal_weights_for_a_loop_of_the_period() {
    for (schedule, least) in [(Schedule::busy as fn(&mut Random) -> Schedule, 1.0), (Schedule::quiet, 5.0)] {
        let [equal, since_previous, blocks] = errors(schedule, |_, ran_ns| ran_ns % 1_003_009 < 300_000);
        println!("equal {equal:?}, since previous {since_previous:?}, blocks {blocks:?}");
        assert!(blocks.rms < equal.rms * 1.1, "equal {equal:?}, blocks {blocks:?}");
        assert!(since_previous.rms > equal.rms.max(least), "equal {equal:?}, since previous {since_previous:?}");
    }
}

#[test]
fn code_after_a_wake_up_has_its_share() {
    let [equal, since_previous, blocks] = errors(Schedule::busy, |in_run_ns, _| in_run_ns < 200_000);
    println!("equal {equal:?}, since previous {since_previous:?}, blocks {blocks:?}");
    assert!(since_previous.mean < -1.5, "{since_previous:?}");
    assert!(blocks.mean.abs() < 0.4, "{blocks:?}");
}

#[test]
fn samples_of_timers_of_threads_share_the_exact_time_of_their_thread() {
    let (weighed, losses) = Drawn::of_threads().thread("a", &[10_000; 3], &[0; 20]).weighed();
    assert_eq!(weighed, ["0 f0 1500"; 20]);
    assert_eq!((losses.sampled_ns, losses.not_sampled_ns), (Some(20 * PERIOD_NS), None));
    assert_eq!(losses.estimated_sample_ns, Some(30 * MS - 20 * PERIOD_NS));
}

#[test]
fn few_samples_do_not_stand_for_a_thread_in_the_kernel() {
    let (weighed, losses) = Drawn::of_threads().thread("a", &[90_000], &[0, 0]).weighed();
    assert_eq!(weighed, ["0 [not sampled] 87993", "0 f0 1003", "0 f0 1003"]);
    assert_eq!(losses.not_sampled_ns, Some(90 * MS - 2 * PERIOD_NS));
}

#[test]
fn short_threads_without_samples_count_for_threads_of_their_name_and_length() {
    let drawn = Drawn::of_threads()
        .thread("long", &[40_000], &[1; 40])
        .thread("long", &[1_000], &[])
        .thread("short", &[2_000], &[0])
        .thread("short", &[1_500], &[])
        .thread("short", &[5_000], &[]);
    let (weighed, losses) = drawn.weighed();
    assert!(weighed.contains(&"1 [not sampled] 1000".to_owned()), "{weighed:?}");
    assert!(weighed.contains(&"2 f0 8500".to_owned()), "{weighed:?}");
    assert_eq!(losses.not_sampled_ns, Some(1_000 * US));
    let sum_us: u64 = weighed.iter().map(|row| row.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert!(sum_us.abs_diff(49_500) < 50, "{sum_us}");
}

#[test]
fn threads_with_few_samples_share_their_time_by_name() {
    let mut drawn = Drawn::of_machine();
    for number in 0..20 {
        // Timers of the machine hit every second one.
        drawn = drawn.thread("short", &[500], if number % 2 == 0 { &[0] } else { &[] });
    }
    let (weighed, losses) = drawn.thread("other", &[2_000], &[1]).weighed();
    assert_eq!(weighed.iter().filter(|row| row.ends_with(" f0 1000")).count(), 10, "{weighed:?}");
    assert!(weighed.contains(&"20 f1 2000".to_owned()), "{weighed:?}");
    assert_eq!((losses.estimated_sample_ns, losses.not_sampled_ns), (None, None));
}

#[test]
fn a_lost_switch_makes_no_sample_heavy() {
    // 10 samples, and 500 ms after them in which it was off the CPU.
    let (weighed, _) = Drawn::of_machine().thread("a", &[10_000, 500_000], &[0; 10]).weighed();
    assert_eq!(weighed, ["0 f0 1003"; 10]);
}

#[test]
fn imports_keep_their_weights() {
    let origin = Origin::Imported { format: "perf.data".into(), file: "-".into() };
    let (weighed, _) = Drawn::new(origin, false).thread("a", &[20_000], &[0; 10]).weighed();
    assert_eq!(weighed, ["0 f0 1003"; 10]);
}

#[test]
fn threads_without_exact_time_keep_their_weights() {
    let mut drawn = Drawn::of_threads();
    let mut thread = drawn.start_thread("a");
    thread.run(9 * MS);
    thread.sample(3 * MS, 0);
    thread.entries.push(Entry::ThreadEnd { thread: ThreadRef(0), time_ns: None, cpu_ns: None, runnable_ns: None });
    assert_eq!(drawn.weighed().0, ["0 f0 1003"]);
}
