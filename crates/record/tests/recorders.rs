//! Several recorders of one program at the same time: each capture is whole.

mod recorded;

use std::process::{Child, Command};
use std::time::Duration;

use recorded::{captured, nobody, programs};
use stepscope_model::Capture;
use stepscope_record::{Options, RecordError, Recording, Until};

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes the stack at every switch, however busy the machine is.
fn every_stack() -> Options {
    Options { max_switch_stacks_hz: u64::MAX, ..Options::default() }
}

fn has(capture: &Capture, stack: Option<stepscope_model::StackId>, function: &str) -> bool {
    capture.frames_of(stack).any(|frame| capture.function(frame).contains(function))
}

fn wait_for(recordings: &[&Recording], waits: u64) {
    let more: Vec<u64> = recordings.iter().map(|recording| recording.progress().waits + waits).collect();
    while recordings.iter().zip(&more).any(|(recording, &waits)| recording.progress().waits < waits) {
        recordings[0].wait(&Until { duration: Some(Duration::from_millis(50)), flag: None });
    }
}

#[test]
fn two_recorders_of_one_program_both_have_its_stacks() {
    let test = "two_recorders_of_one_program_both_have_its_stacks";
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return;
    };
    let program = Running(Command::new(programs.join("naps")).spawn().unwrap());
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let attach = |folder: &tempfile::TempDir| match Recording::attach(program.0.id(), &every_stack(), folder.path()) {
        Ok(recording) => Some(recording),
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            None
        }
        Err(error) => panic!("{error}"),
    };
    let Some(first) = attach(&folders[0]) else { return };
    wait_for(&[&first], 100);
    let Some(second) = attach(&folders[1]) else { return };
    wait_for(&[&first, &second], 300);
    second.stop().unwrap();
    wait_for(&[&first], 100);
    first.stop().unwrap();
    for (name, folder) in ["first", "second"].into_iter().zip(&folders) {
        let capture = captured(folder.path());
        assert_eq!(capture.info.losses.lost_records, 0, "{name}");
        // The first wait began before the recording, and the last one has not ended.
        let waits = capture.waits.slice(1..capture.waits.len() - 1);
        let asleep = waits.filter(|wait| wait.runnable_ns != Some(wait.end_ns - wait.start_ns));
        let (mut napping, mut elsewhere) = (0, 0);
        for wait in asleep {
            *(if has(&capture, wait.stack, "nap") { &mut napping } else { &mut elsewhere }) += 1;
        }
        println!("{name}: {napping} naps with their stack, {elsewhere} waits elsewhere");
        assert!(napping >= 250 && elsewhere * 100 <= napping, "{name}: {napping} naps, {elsewhere} elsewhere");
        let faults = capture.samples.iter().filter(|sample| &*capture.event(sample.event).name == "minor-faults");
        let (mut touching, mut all) = (0, 0);
        for fault in faults {
            all += 1;
            touching += u32::from(has(&capture, fault.stack, "touch"));
        }
        println!("{name}: {touching} of {all} page faults in the function that causes them");
        assert!(all > 0 && touching * 100 >= all * 90, "{name}: {touching} of {all}");
    }
}

#[test]
fn the_rings_of_a_user_without_rights_take_the_memory_that_it_may_lock() {
    nobody::run("the_rings_of_a_user_without_rights_take_the_memory_that_it_may_lock", "rings_as_nobody", "short", &[]);
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn rings_as_nobody() {
    if nobody::program().is_none() {
        return;
    }
    let found = stepscope_record::abilities::Findings::gather();
    let (Some(locked), Some(kib)) = (found.memlock_bytes, found.perf_mlock_kib) else {
        return println!("skipped: the rings of a user without rights: locked memory has no limit here");
    };
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    // The limits of the user and of the process add up.
    let allowed = locked / cpus + (kib << 10);
    let ring = found.ring_bytes as u64;
    // A ring is a power of two, and others of this user may have some of it.
    assert!(ring >= 8 << 20 || ring * 4 > allowed, "{ring} bytes for each CPU, {allowed} are allowed");
}
