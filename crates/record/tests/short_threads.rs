//! Threads that live a few sampling periods have their share, and those that start while a recorder attaches are seen, whatever the rights.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use stepscope_model::{Sample, Thread};
use stepscope_record::launch::Launch;
use stepscope_record::{Options, RecordError, Recording, Until, proc};

mod recorded;

use recorded::nobody;

#[test]
fn threads_of_two_milliseconds_have_their_share() {
    let Some(programs) = recorded::programs() else { return println!("skipped: g++ is missing") };
    have_their_share(&programs.join("short"));
}

#[test]
fn threads_of_two_milliseconds_have_their_share_without_rights() {
    nobody::run("threads_of_two_milliseconds_have_their_share_without_rights", "short_as_nobody", "short", &[]);
}

#[test]
fn threads_that_start_while_a_recorder_without_rights_attaches_are_recorded() {
    let test = "threads_that_start_while_a_recorder_without_rights_attaches_are_recorded";
    nobody::run(test, "starting_as_nobody", "starting", &[]);
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn short_as_nobody() {
    if let Some(program) = nobody::program() {
        have_their_share(Path::new(&program));
    }
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn starting_as_nobody() {
    const THREADS: usize = 120;
    let Some(program) = nobody::program() else { return };
    let mut program = Command::new(program).arg(THREADS.to_string()).spawn().unwrap();
    let threads = |pid: u32| proc::threads(pid).unwrap_or_default();
    while threads(program.id()).len() < 5 {
        std::thread::yield_now();
    }
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::attach(program.id(), &Options::default(), folder.path());
    if let Ok(recording) = &recording {
        while threads(program.id()).len() < THREADS {
            recording.wait(&Until { duration: Some(Duration::from_millis(20)), flag: None });
        }
        // The kernel's account of each thread is read twice a second, later if the recorder waits for a CPU.
        recording.wait(&Until { duration: Some(Duration::from_millis(1500)), flag: None });
    }
    let tids = threads(program.id());
    program.kill().unwrap();
    program.wait().unwrap();
    match recording {
        Ok(recording) => recording.stop().unwrap(),
        Err(RecordError::Refused { what, .. }) => return println!("skipped: attaching as nobody: {what} is refused"),
        Err(error) => panic!("{error}"),
    };
    let capture = recorded::captured(folder.path());
    assert_eq!(tids.len(), THREADS);
    let has_run = |tid: &u32| {
        let thread = capture.threads.iter().position(|thread| thread.tid == *tid);
        thread.is_some_and(|thread| {
            capture.waits.iter().any(|wait| wait.thread.index() == thread && wait.end_ns < wait.start_ns + 200_000_000)
        })
    };
    let missing: Vec<&u32> = tids.iter().filter(|tid| !has_run(tid)).collect();
    assert!(missing.is_empty(), "{} of {THREADS} threads have no waits", missing.len());
    let losses = &capture.info.losses;
    let (known, kernel) = (losses.cpu_time_ns.unwrap(), losses.kernel_cpu_ns.unwrap());
    println!("{known} ns of CPU time by switches, {kernel} by the kernel: {losses:?}");
    // On a busy machine a recorder without rights waits for a CPU itself, and loses records.
    let most = known + losses.unknown_cpu_ns.unwrap_or(0);
    let agrees = known <= kernel + kernel / 4 && most + kernel / 4 >= kernel;
    assert!(agrees, "{known} to {most} ns by switches, {kernel} by the kernel");
}

fn have_their_share(program: &Path) {
    let launch = Launch::new([program.as_os_str(), "2000".as_ref(), "700".as_ref()]);
    let Some((capture, lines)) = recorded::record_command_with("have_their_share", launch, &Options::default()) else {
        return;
    };
    let truth: Vec<f64> = lines[0].split(' ').map(|ns| ns.parse().unwrap()).collect();
    let is_cpu = |sample: &Sample| &*capture.event(sample.event).name == "cpu-clock";
    let sampled_ns = |function: &str| -> f64 {
        let is_in = |sample: &Sample| {
            let name = |frame| capture.function(frame).split('(').next();
            capture.frames_of(sample.stack).any(|frame| name(frame) == Some(function))
        };
        capture.samples.iter().filter(|sample| is_cpu(sample) && is_in(sample)).map(|sample| sample.weight as f64).sum()
    };
    let (in_thread, in_main) = (sampled_ns("in_thread"), sampled_ns("in_main"));
    let share = |part: f64, other: f64| part * 100.0 / (part + other);
    let (found, true_share) = (share(in_thread, in_main), share(truth[0], truth[1]));
    let losses = &capture.info.losses;
    println!(
        "found {found:.1} %, true {true_share:.1} %, estimated {:?} ns of {:?}",
        losses.estimated_sample_ns, losses.sampled_ns
    );
    // Where the kernel is not sampled, its work at the start and the end of a thread counts for the thread's function.
    let is_short = |thread: &&Thread| capture.processes[0].pid != thread.tid;
    let threads_ns: u64 = capture.threads.iter().filter(is_short).filter_map(|thread| thread.cpu_ns).sum();
    let most = share(threads_ns as f64, truth[1]);
    // Each burns 2 ms by its own clock.
    let lacks_time = |thread: &&Thread| is_short(thread) && thread.cpu_ns.is_none_or(|ns| ns < 1_900_000);
    let lacking = capture.threads.iter().filter(lacks_time).count();
    assert!(
        lacking == 0 || losses.lost_records > 0,
        "{lacking} of {} threads lack time: {losses:?}",
        capture.threads.len()
    );
    assert!(true_share - 3.0 < found && found < most + 3.0, "found {found} %, true {true_share} to {most} %");
    // Where a hypervisor took the CPU for a while, timers of the machine stopped, and samples keep their weights.
    let weight: u64 = capture.samples.iter().filter(|sample| is_cpu(sample)).map(|sample| sample.weight).sum();
    let exact = losses.cpu_time_ns.unwrap();
    assert!((exact - exact / 10..=exact + exact / 100).contains(&weight), "samples stand for {weight} of {exact} ns");
}
