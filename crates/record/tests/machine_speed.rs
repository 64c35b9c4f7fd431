//! The speed of the machine, measured beside a recording.

use std::time::{Duration, Instant};

use stepscope_model::{Dimension, MACHINE_SPEED};
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Options, RecordError, Recording, finish, proc};
use stepscope_symbolize::Symbolizer;

const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

#[test]
fn a_capture_has_the_speed_of_the_cpus_of_its_threads_within_the_allowed_cost() {
    let folder = tempfile::tempdir().unwrap();
    let capture_folder = folder.path().join("capture");
    let options = Options { dimensions: [Dimension::Cpu].into(), speed_probe: true, ..Options::default() };
    let launch = Launch::new(BUSY).output(Output::Null);
    let start = Instant::now();
    let (mut program, recording) = match Recording::launch(launch, &options, &capture_folder) {
        Ok(started) => started,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: the speed of the machine: the kernel refuses to record {what}: {source}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let used_ticks = || proc::stat(program.pid()).map_or(0, |stat| stat.user_ticks);
    while used_ticks() * 2 < proc::ticks_per_second() {
        assert!(start.elapsed() < Duration::from_secs(120), "the program got no CPU time");
        std::thread::sleep(Duration::from_millis(10));
    }
    recording.stop().unwrap();
    let elapsed = start.elapsed();
    program.stop(&Grace::default()).unwrap();

    let capture = finish(&capture_folder, &mut Symbolizer::default()).unwrap();
    let speeds: Vec<_> = capture.counters.iter().filter(|one| MACHINE_SPEED.contains(&&*one.name)).collect();
    assert!(!speeds.is_empty());
    for one in &speeds {
        assert!(one.value > 0 && one.thread.is_some() && one.process.is_some(), "{one:?}");
    }
    let cost = capture.info.recording_cost.unwrap();
    assert!(cost.speed_probe_cpu_ns > 0 && cost.speed_probe_cpu_ns <= cost.cpu_ns);
    // Half a percent of each CPU, and the first probe of each.
    let cpus = stepscope_record::launch::allowed_cpus().unwrap().len() as u128;
    let most = elapsed.as_nanos() * cpus / 200 + cpus * 2_000_000;
    assert!(u128::from(cost.speed_probe_cpu_ns) <= most, "{} ns of {elapsed:?}", cost.speed_probe_cpu_ns);
}
