//! The background load during a recording.

use std::time::{Duration, Instant};

use stepscope_model::{Conditions, Dimension};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Label, Options, RecordError, Recording, finish, proc};
use stepscope_symbolize::Symbolizer;

const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

/// By how much `/proc/stat` and `/proc/PID/stat` may differ: both count in ticks of 10 ms per CPU.
const COARSE_NS: u64 = 80_000_000;

/// The kernel's count of CPU time. When the hypervisor pauses a CPU, ticks are lost: `/proc/stat` then counts less than
/// the wall clock, while a process's exact clock (and so `/proc/PID/stat`) continues.
struct TickCount {
    at: Instant,
    ticks_ns: u64,
    /// All CPUs of the machine, including those that this process may not use.
    cpus: u64,
}

impl TickCount {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let fields = stat.lines().next().unwrap().split_ascii_whitespace().skip(1).take(8);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
        let cpus = stat.lines().skip(1).filter(|line| line.starts_with("cpu")).count() as u64;
        Self { at: Instant::now(), ticks_ns: ticks * 1_000_000_000 / proc::ticks_per_second(), cpus }
    }

    /// The time of all CPUs since this count, and how much of it no tick counted.
    fn capacity_and_lost(&self) -> (u64, u64) {
        let now = Self::now();
        let capacity = now.at.duration_since(self.at).as_nanos() as u64 * now.cpus;
        (capacity, capacity.saturating_sub(now.ticks_ns - self.ticks_ns))
    }
}

fn cpu_ns(pid: u32) -> u64 {
    let stat = proc::stat(pid).unwrap();
    (stat.user_ticks + stat.system_ticks) * 1_000_000_000 / proc::ticks_per_second()
}

/// Waits until each process has used another 300 ms of CPU time.
fn wait_for_cpu(pids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(120);
    for (pid, before_ns) in pids.iter().map(|&pid| (pid, cpu_ns(pid))).collect::<Vec<_>>() {
        while cpu_ns(pid) < before_ns + 300_000_000 {
            assert!(Instant::now() < deadline, "process {pid} got no CPU time");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn each_capture_has_the_background_load_of_its_own_window() {
    let test = "each_capture_has_the_background_load_of_its_own_window";
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let launch = |command: &[&str]| Launch::new(command.iter().copied()).output(Output::Null);
    let options = Options { dimensions: [Dimension::Cpu, Dimension::Sched].into(), ..Options::default() };
    let from_first = TickCount::now();
    let (mut program, recording) = match Recording::launch(launch(&BUSY), &options, &first) {
        Ok(started) => started,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut other = launch(&BUSY).prepare().unwrap().start().unwrap();
    // Not a bare sleep: on a busy machine it might not have run yet.
    wait_for_cpu(&[program.pid(), other.pid()]);
    let others_in_first = cpu_ns(other.pid());
    let from_second = TickCount::now();
    recording.begin_next(&second, Label::default()).unwrap();
    let first_window = from_first.capacity_and_lost();
    let before_second = cpu_ns(other.pid());
    wait_for_cpu(&[program.pid(), other.pid()]);
    let others_in_second = cpu_ns(other.pid()) - before_second;
    recording.stop().unwrap();
    let second_window = from_second.capacity_and_lost();
    for launched in [&mut program, &mut other] {
        launched.stop(&Grace::default()).unwrap();
    }

    let windows = [(first, others_in_first, first_window), (second, others_in_second, second_window)];
    for (folder, others, (capacity, lost)) in windows {
        let info = finish(&folder, &mut Symbolizer::default()).unwrap().info;
        let Conditions { others_cpu_ns, stolen_ns, .. } = info.conditions.clone().unwrap();
        let (found, recorded) = (others_cpu_ns.unwrap(), info.losses.cpu_time_ns.unwrap());
        assert!(recorded > 0 && others > 0 && stolen_ns.is_some());
        assert!(
            found + lost + COARSE_NS >= others,
            "{found} ns of background load, {lost} ns not counted; one process alone used {others} ns"
        );
        assert!(found + recorded <= capacity + COARSE_NS, "{found} + {recorded} ns of {capacity}");
        assert_eq!(info.build, None, "the build of a shell is unknown");
    }
}
