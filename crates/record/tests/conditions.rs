//! What others did on the machine while something was recorded.

use std::time::{Duration, Instant};

use stepscope_model::{Conditions, Dimension};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Label, Options, RecordError, Recording, finish, proc};
use stepscope_symbolize::Symbolizer;

const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

/// What `/proc/stat` and `/proc/PID/stat` may differ by, counting in ticks of 10 ms on each processor.
const COARSE_NS: u64 = 80_000_000;

/// What the kernel has counted at an instant. Where the hypervisor holds a processor up, ticks are lost: `/proc/stat`
/// then counts less than the wall clock, while a process's exact clock (and so `/proc/PID/stat`) goes on.
struct Counted {
    at: Instant,
    ticks_ns: u64,
    /// All of the machine's, also where this process may not use them all.
    processors: u64,
}

impl Counted {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let fields = stat.lines().next().unwrap().split_ascii_whitespace().skip(1).take(8);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
        let processors = stat.lines().skip(1).filter(|line| line.starts_with("cpu")).count() as u64;
        Self { at: Instant::now(), ticks_ns: ticks * 1_000_000_000 / proc::ticks_per_second(), processors }
    }

    /// The time of all processors since then, and how much of it no tick counted.
    fn capacity_and_lost(&self) -> (u64, u64) {
        let now = Self::now();
        let capacity = now.at.duration_since(self.at).as_nanos() as u64 * now.processors;
        (capacity, capacity.saturating_sub(now.ticks_ns - self.ticks_ns))
    }
}

fn cpu_ns(pid: u32) -> u64 {
    let stat = proc::stat(pid).unwrap();
    (stat.user_ticks + stat.system_ticks) * 1_000_000_000 / proc::ticks_per_second()
}

#[test]
fn each_capture_knows_what_others_had_of_the_processors_in_its_window() {
    let test = "each_capture_knows_what_others_had_of_the_processors_in_its_window";
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let launch = |command: &[&str]| Launch::new(command.iter().copied()).output(Output::Null);
    let options = Options { dimensions: [Dimension::Cpu, Dimension::Sched].into(), ..Options::default() };
    let from_first = Counted::now();
    let (mut program, recording) = match Recording::launch(launch(&BUSY), &options, &first) {
        Ok(started) => started,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut other = launch(&BUSY).prepare().unwrap().start().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let others_in_first = cpu_ns(other.pid());
    let from_second = Counted::now();
    recording.begin_next(&second, Label::default()).unwrap();
    let first_window = from_first.capacity_and_lost();
    let before_second = cpu_ns(other.pid());
    std::thread::sleep(Duration::from_millis(700));
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
            "{found} ns of others and {lost} that no tick counted, of which one alone had {others}"
        );
        assert!(found + recorded <= capacity + COARSE_NS, "{found} + {recorded} ns of {capacity}");
        assert_eq!(info.build, None, "of a shell nothing is said");
    }
}
