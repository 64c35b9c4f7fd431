//! The last seconds, or everything so far, as a capture.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use stepscope_model::{Capture, Losses, disk};
use stepscope_symbolize::Symbolizer;

use crate::shared::{Held, Shared};

/// For how long rows may wait for the names of their stacks before they are left out of what is saved.
const NAMING: Duration = Duration::from_secs(60);
/// Time between two looks whether they have them.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Saves the last seconds, as far as they are held; without a number, everything since the start. Gives a sentence.
pub(crate) fn save(shared: &Shared, seconds: Option<f64>) -> Result<String, String> {
    let _goes_on = shared.saves.start();
    let (until_ns, start_ns) = {
        let held = shared.held();
        if held.growing.capture().threads.is_empty() {
            return Err("There is nothing to save yet.".to_owned());
        }
        (held.growing.last_ns().unwrap_or(0), held.start_ns())
    };
    let at_s = until_ns.saturating_sub(start_ns) as f64 / 1e9;
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    let saved = match seconds {
        Some(seconds) => {
            let until_ns = named_until(shared, until_ns);
            let from_ns = shared.held().window.start_ns();
            let range = from_ns.max(until_ns.saturating_sub((seconds * 1e9) as u64))..until_ns.max(from_ns);
            let length_s = (range.end - range.start) as f64 / 1e9;
            let capture = excerpt(&shared.held(), range);
            new_folder(&shared.folder, at_s)
                .and_then(|folder| write(&capture, &folder).map(|()| folder))
                .map(|folder| format!("The last {length_s:.1} s are in {}.", folder.display()))
        }
        None => new_folder(&shared.folder, at_s)
            .and_then(|folder| copy(&shared.folder, &folder).map(|()| folder))
            .map(|folder| format!("The first {at_s:.1} s are in {}.", folder.display())),
    };
    saved.map_err(|why| format!("Nothing was saved: {why}."))
}

/// Waits until all rows up to this time have names. Gives the time up to which they have.
fn named_until(shared: &Shared, until_ns: u64) -> u64 {
    let since = Instant::now();
    loop {
        let nameless_ns = shared.held().growing.nameless_since().filter(|since_ns| *since_ns < until_ns);
        match nameless_ns {
            None => return until_ns,
            Some(nameless_ns) if since.elapsed() > NAMING || shared.saves.are_last() => return nameless_ns,
            Some(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Makes a folder beside the recording's, named after the moment. Two saves at a time have two.
fn new_folder(recording: &Path, at_s: f64) -> Result<PathBuf, String> {
    let name = recording.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".capture").unwrap_or(&name);
    for number in 1_u32.. {
        let folder = match number {
            1 => recording.with_file_name(format!("{name}-at-{at_s:.0}s.capture")),
            _ => recording.with_file_name(format!("{name}-at-{at_s:.0}s-{number}.capture")),
        };
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", folder.display())),
        }
    }
    unreachable!("numbers do not end")
}

fn write(capture: &Capture, folder: &Path) -> Result<(), String> {
    disk::write(capture, folder).map_err(|error| error.to_string())
}

/// The rows of a range of time, as a capture. Waits that began before are cut, steps and scopes left out.
fn excerpt(held: &Held, range: Range<u64>) -> Capture {
    let mut capture = held.cut(range.clone());
    let start_ns = held.start_ns();
    let is_inside = |time_ns: u64| range.contains(&time_ns) || time_ns == range.end;
    capture.samples.retain(|sample| sample.time_ns.is_some_and(is_inside));
    capture.steps.retain(|step| step.start_ns >= range.start && step.end_ns <= range.end);
    capture.scopes.retain(|scope| scope.start_ns >= range.start && scope.end_ns <= range.end);
    capture.counters.retain(|counter| is_inside(counter.time_ns));
    let mut off_cpu_ns = vec![0_u64; capture.threads.len()];
    let waits = capture.waits.iter().filter(|wait| wait.end_ns > range.start && wait.start_ns < range.end);
    let waits = waits.map(|mut wait| {
        wait.start_ns = wait.start_ns.max(range.start);
        wait.runnable_ns = wait.runnable_ns.map(|ns| ns.min(wait.end_ns - wait.start_ns));
        off_cpu_ns[wait.thread.index()] += wait.end_ns - wait.start_ns;
        wait
    });
    capture.waits = waits.collect::<Vec<_>>().into();
    for (thread, off_cpu_ns) in capture.threads.iter_mut().zip(off_cpu_ns) {
        let life_ns = thread.start_ns.zip(thread.end_ns).map(|(start_ns, end_ns)| end_ns - start_ns);
        thread.cpu_ns = thread.cpu_ns.and(life_ns).map(|ns| ns.saturating_sub(off_cpu_ns));
        thread.runnable_ns = None;
    }
    let info = &mut capture.info;
    let seconds = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e9;
    info.notes.push(format!(
        "These are {:.1} s to {:.1} s of a recording that went on. Each sample weighs what its timer says.",
        seconds(range.start),
        seconds(range.end)
    ));
    info.notes.extend(moments(held, &range));
    if info.losses.lost_records > 0 {
        let lost = info.losses.lost_records;
        info.notes.push(format!("The whole recording had lost {lost} records by then."));
    }
    let thinned = info.losses.offcpu_stack_period;
    info.losses = Losses { samples: capture.samples.len() as u64, offcpu_stack_period: thinned, ..Losses::default() };
    (info.start_ns, info.end_ns, info.recording_start_ns) = (Some(range.start), Some(range.end), None);
    capture
}

/// Notes of the moments that were marked.
fn moments(held: &Held, range: &Range<u64>) -> Vec<String> {
    let start_ns = held.start_ns();
    let within = |time: f64| range.contains(&(start_ns.saturating_add(time as u64)));
    let since = |time: f64| (time - range.start.saturating_sub(start_ns) as f64) / 1e9;
    let moments = held.state.moments.iter().filter(|moment| within(moment.time));
    moments.map(|moment| format!("Marked at {:.2} s: {}.", since(moment.time), moment.text)).collect()
}

/// The recording so far: its log is copied, and a capture made of it.
fn copy(recording: &Path, folder: &Path) -> Result<(), String> {
    let copied = copy_log(recording, folder);
    if copied.is_err() {
        let _ = disk::remove(folder);
        let _ = std::fs::remove_dir(folder);
    }
    copied
}

fn copy_log(recording: &Path, folder: &Path) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut log = File::open(recording.join(disk::RAW_LOG_FILE)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "the recording ended, and its own capture has everything".to_owned(),
        _ => text(&error),
    })?;
    let mut copied = disk::create_log(folder).map_err(|error| text(&error))?;
    io::copy(&mut log, &mut copied).map_err(|error| text(&error))?;
    let mut capture = stepscope_record::finish(folder, &mut Symbolizer::default()).map_err(|error| text(&error))?;
    capture.info.notes.retain(|note| !note.starts_with("The recorder was stopped before"));
    capture.info.notes.push("The recording went on after this capture was saved.".to_owned());
    disk::write(&capture, folder).map_err(|error| text(&error))?;
    disk::remove_log(folder).map_err(|error| text(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saves_of_one_moment_have_folders_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let recording = folder.path().join("sim.capture");
        let saves = thread::scope(|scope| {
            let save = || scope.spawn(|| new_folder(&recording, 3.2).expect("a folder"));
            let mut made: Vec<PathBuf> =
                [(); 8].map(|()| save()).into_iter().map(|save| save.join().unwrap()).collect();
            made.sort();
            made.dedup();
            made
        });
        assert_eq!(saves.len(), 8);
        assert!(saves.contains(&folder.path().join("sim-at-3s.capture")));
    }
}
