//! What others did on the machine while something was recorded.

use std::time::Duration;

use stepscope_model::{Conditions, Dimension};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Label, Options, RecordError, Recording, finish, proc};
use stepscope_symbolize::Symbolizer;

const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

/// What `/proc/stat` and `/proc/PID/stat` may differ by, counting in ticks of 10 ms on each processor.
const COARSE_NS: u64 = 80_000_000;

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
    recording.begin_next(&second, Label::default()).unwrap();
    let before_second = cpu_ns(other.pid());
    std::thread::sleep(Duration::from_millis(700));
    let others_in_second = cpu_ns(other.pid()) - before_second;
    recording.stop().unwrap();
    for launched in [&mut program, &mut other] {
        launched.stop(&Grace::default()).unwrap();
    }

    let processors = std::thread::available_parallelism().unwrap().get() as u64;
    for (folder, others) in [(first, others_in_first), (second, others_in_second)] {
        let info = finish(&folder, &mut Symbolizer::default()).unwrap().info;
        let Conditions { others_cpu_ns, stolen_ns, .. } = info.conditions.clone().unwrap();
        let (found, recorded) = (others_cpu_ns.unwrap(), info.losses.cpu_time_ns.unwrap());
        assert!(recorded > 0 && others > 0 && stolen_ns.is_some());
        assert!(found + COARSE_NS >= others, "{found} ns of others, of which one alone had {others}");
        let capacity = info.wall_ns().unwrap() * processors;
        assert!(found + recorded <= capacity + COARSE_NS, "{found} + {recorded} ns of {capacity}");
        assert_eq!(info.build, None, "of a shell nothing is said");
    }
}
