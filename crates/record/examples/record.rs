//! Records a command, or a process by its id, and says what was found. A stand-in for `stepscope record` in tests.
//!
//! `cargo run -p stepscope-record --example record -- FOLDER [--pid PID] [--seconds S] [--single-waits] [-- COMMAND...]`

use std::path::PathBuf;
use std::time::Duration;

use stepscope_model::Capture;
use stepscope_record::launch::{Grace, Launch};
use stepscope_record::{Options, Recording, Until, finish};
use stepscope_symbolize::Symbolizer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("name a folder")?);
    let (mut pid, mut seconds, mut command) = (None, None, Vec::new());
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--pid" => pid = Some(arguments.next().ok_or("--pid takes a process id")?.parse::<u32>()?),
            "--seconds" => seconds = Some(arguments.next().ok_or("--seconds takes a number")?.parse::<f64>()?),
            "--single-waits" => options.aggregate_waits = false,
            "--recover" => {
                summarise(&finish(&folder, &mut Symbolizer::default())?);
                return Ok(());
            }
            _ => command.extend(arguments.by_ref()),
        }
    }
    let until = Until { duration: seconds.map(Duration::from_secs_f64), flag: None };
    if let Some(pid) = pid {
        let recording = Recording::attach(pid, &options, &folder)?;
        eprintln!("{:?}", recording.wait(&until));
        eprintln!("{:?}", recording.stop()?);
    } else {
        let (mut launched, recording) = Recording::launch(Launch::new(command), &options, &folder)?;
        eprintln!("{:?}", recording.wait(&until));
        launched.stop(&Grace::default())?;
        eprintln!("{:?}", recording.stop()?);
    }
    summarise(&finish(&folder, &mut Symbolizer::default())?);
    Ok(())
}

fn summarise(capture: &Capture) {
    capture.check().expect("a capture that we made is sound");
    println!("{:#?}", capture.info);
    for process in &capture.processes {
        println!("{process:?}");
    }
    for (index, thread) in capture.threads.iter().enumerate() {
        let waits = capture.waits.iter().filter(|wait| wait.thread.index() == index);
        let off_ns: u64 = waits.map(|wait| wait.end_ns - wait.start_ns).sum();
        let lifetime_ns = thread.end_ns.unwrap_or(0).saturating_sub(thread.start_ns.unwrap_or(0));
        let cpu_ns = thread.cpu_ns.unwrap_or(0);
        println!(
            "{} {} lifetime {lifetime_ns} running {cpu_ns} off {off_ns} missing {}",
            thread.tid,
            thread.name,
            lifetime_ns as i64 - (cpu_ns + off_ns) as i64
        );
    }
    let mut folded = std::collections::BTreeMap::new();
    for sample in &capture.samples {
        let mut names: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        names.reverse();
        let (count, weight) =
            folded.entry((capture.event(sample.event).name.clone(), names.join(";"))).or_insert((0, 0));
        (*count, *weight) = (*count + 1, *weight + sample.weight);
    }
    let mut folded: Vec<_> = folded.into_iter().collect();
    folded.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((event, stack), (count, weight)) in folded.iter().take(40) {
        println!("{event} {stack} {count} {weight}");
    }
    let mut longest: Vec<_> = capture.waits.iter().collect();
    longest.sort_by_key(|wait| std::cmp::Reverse(wait.end_ns - wait.start_ns));
    for wait in longest.iter().take(8) {
        let names: Vec<&str> = capture.frames_of(wait.stack).map(|frame| capture.function(frame)).collect();
        let waker = wait.waker.map(|waker| capture.threads[waker.index()].name.clone());
        let by: Vec<&str> = capture.frames_of(wait.waker_stack).map(|frame| capture.function(frame)).collect();
        println!(
            "{:?} {} ns, runnable {:?}, at {}, woken by {waker:?} at {}",
            wait.state,
            wait.end_ns - wait.start_ns,
            wait.runnable_ns,
            names.join(" < "),
            by.join(" < ")
        );
    }
    println!("{} samples, {} waits, {} stacks", capture.samples.len(), capture.waits.len(), capture.stacks.len());
}
