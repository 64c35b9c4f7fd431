//! The kinds of recording. Each makes random choices, and returns what it did or which invariant is broken.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_model::{Capture, Origin, disk};

use crate::invariants::{self, Account};
use crate::workbench::{Ended, Running, Trial};

/// A trial that broke no invariant.
pub enum Verdict {
    Held(String),
    Skipped(String),
}

/// Which invariant is broken, by how much.
type Outcome = Result<Verdict, String>;

pub struct Kind {
    pub name: &'static str,
    pub needs_root: bool,
    pub run: fn(&mut Trial) -> Outcome,
}

const fn for_all(name: &'static str, run: fn(&mut Trial) -> Outcome) -> Kind {
    Kind { name, needs_root: false, run }
}

const fn for_root(name: &'static str, run: fn(&mut Trial) -> Outcome) -> Kind {
    Kind { name, needs_root: true, run }
}

pub const TRIALS: &[Kind] = &[
    for_all("launch", launch),
    for_all("interrupt", interrupt),
    for_all("attach and detach", attach_and_detach),
    for_all("two recorders of one program", two_recorders_of_one_program),
    for_all("two recorders of two programs", two_recorders_of_two_programs),
    for_all("kill the program", kill_the_program),
    for_all("kill the recorder", kill_the_recorder),
    for_all("damage the log", damage_the_log),
    for_all("segments", segments),
    for_root("full disk", full_disk),
    for_root("container", container),
    for_root("attach to a container", attach_to_a_container),
];

const LOADS: &[&str] = &["brief", "busy", "forks", "switches", "naps", "memory", "deep", "everything"];

fn a_load(trial: &mut Trial) -> &'static str {
    trial.random.choice(LOADS).expect("there are some")
}

fn ms(trial: &mut Trial, range: std::ops::Range<u64>) -> String {
    trial.random.u64(range).to_string()
}

/// Starts recording the load. The capture is named after the recorder.
fn record(trial: &Trial, name: &str, options: &[&str], load: &str, ms: &str) -> Running {
    let program = trial.workbench.load.to_string_lossy().into_owned();
    let words = [&["record", "-o", name], options, &["--", &program, load, ms]].concat();
    trial.stepscope(&format!("{name}-recorder"), &words)
}

/// Starts the load by itself, and waits until it is at work.
fn start_load(trial: &Trial, load: &str, ms: &str) -> Result<Running, String> {
    let running = trial.start("program", &[&trial.workbench.load.to_string_lossy(), load, ms]);
    trial.wait_until("the load to start", || trial.loads().contains(&running.pid()))?;
    Ok(running)
}

fn attach(trial: &Trial, name: &str, pid: u32, options: &[&str]) -> Running {
    let pid = pid.to_string();
    let words = [&["record", "-o", name, "--pid", &pid][..], options].concat();
    trial.stepscope(&format!("{name}-recorder"), &words)
}

/// Requires what must hold of a recorder that finished, and of its capture.
fn finished(trial: &mut Trial, name: &str, recorder: &Ended) -> Result<Capture, String> {
    let folder = trial.folder().join(name);
    let capture = invariants::of_capture(&folder).map_err(|broken| format!("{broken}\n{}", recorder.err))?;
    if capture.info.origin != Origin::Recorded {
        return Err(format!("{name} is {:?}: {}", capture.info.origin, recorder.err));
    }
    if folder.join(disk::RAW_LOG_FILE).exists() {
        return Err(format!("{name} still has its log"));
    }
    invariants::memory_is_bounded(recorder, &capture)?;
    invariants::blocked_time_has_stacks(&capture)?;
    invariants::is_readable(trial, name)?;
    Ok(capture)
}

fn described(capture: &Capture) -> String {
    let losses = &capture.info.losses;
    let percent = |part: Option<u64>, whole: Option<u64>| match (part, whole) {
        (Some(part), Some(whole)) if whole > 0 => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
        _ => "?".to_owned(),
    };
    format!(
        "{} samples, {} waits, {} threads; sampled {} of the CPU time, which is {} of the kernel's; {} lost",
        capture.samples.len(),
        capture.waits.len(),
        capture.threads.len(),
        percent(losses.sampled_ns, losses.cpu_time_ns),
        percent(losses.cpu_time_ns, losses.kernel_cpu_ns),
        losses.lost_records
    )
}

/// A program from its first instruction to its end.
fn launch(trial: &mut Trial) -> Outcome {
    let (load, length) = (a_load(trial), ms(trial, 200..1500));
    let recorder = record(trial, "c", &[], load, &length).succeed()?;
    let capture = finished(trial, "c", &recorder)?;
    let account = Account::of(&recorder).ok_or_else(|| format!("the load did not finish: {}", recorder.err))?;
    invariants::counts_match(&capture, account)?;
    Ok(Verdict::Held(format!("{load} for {length} ms: {}", described(&capture))))
}

/// Ctrl-C, or the end of the duration, at a random moment.
fn interrupt(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let capture = if trial.random.bool() {
        let length = format!("{}ms", ms(trial, 100..1000));
        let recorder = record(trial, "c", &["-d", &length], load, "0").end()?;
        finished(trial, "c", &recorder)?
    } else {
        let recorder = record(trial, "c", &[], load, "0");
        trial.wait_until("the load to start", || !trial.loads().is_empty())?;
        trial.wait_a_while(1000);
        recorder.signal(if trial.random.bool() { libc::SIGINT } else { libc::SIGTERM });
        let recorder = recorder.end()?;
        finished(trial, "c", &recorder)?
    };
    Ok(Verdict::Held(format!("{load}: {}", described(&capture))))
}

/// A running program, which goes on afterwards, one to three times.
fn attach_and_detach(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let mut program = start_load(trial, load, "0")?;
    let mut said = String::new();
    for turn in 0..trial.random.u8(1..=3) {
        let name = format!("c{turn}");
        let recorder = if trial.random.bool() {
            let length = format!("{}ms", ms(trial, 50..800));
            attach(trial, &name, program.pid(), &["-d", &length])
        } else {
            let recorder = attach(trial, &name, program.pid(), &[]);
            let folder = trial.folder().join(&name);
            trial.wait_until("the capture's folder", || folder.exists())?;
            trial.wait_a_while(800);
            recorder.signal(libc::SIGINT);
            recorder
        };
        let recorder = recorder.end()?;
        if program.has_ended() {
            return Err(format!("the program that was attached to has ended: {:?}", program.end()?.err));
        }
        let capture = finished(trial, &name, &recorder)?;
        said = described(&capture);
    }
    program.signal(libc::SIGKILL);
    program.end()?;
    Ok(Verdict::Held(format!("{load}: {said}")))
}

/// Two recorders that overlap. Neither may take anything from the other.
fn two_recorders_of_one_program(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let program = start_load(trial, load, "0")?;
    let first_length = format!("{}ms", ms(trial, 300..1200));
    let first = attach(trial, "first", program.pid(), &["-d", &first_length]);
    trial.wait_a_while(500);
    let second_length = format!("{}ms", ms(trial, 300..1200));
    let second = attach(trial, "second", program.pid(), &["-d", &second_length]);
    let (first, second) = (first.succeed()?, second.succeed()?);
    program.signal(libc::SIGKILL);
    program.end()?;
    let first = finished(trial, "first", &first).map_err(|broken| format!("first: {broken}"))?;
    let second = finished(trial, "second", &second).map_err(|broken| format!("second: {broken}"))?;
    Ok(Verdict::Held(format!("{load}: {} | {}", described(&first), described(&second))))
}

fn two_recorders_of_two_programs(trial: &mut Trial) -> Outcome {
    let loads = [a_load(trial), a_load(trial)];
    let length = ms(trial, 300..1200);
    let first = record(trial, "first", &[], loads[0], &length);
    trial.wait_a_while(300);
    let second = record(trial, "second", &[], loads[1], &length);
    let mut said = Vec::new();
    for (name, recorder) in [("first", first), ("second", second)] {
        let recorder = recorder.succeed()?;
        let capture = finished(trial, name, &recorder).map_err(|broken| format!("{name}: {broken}"))?;
        let account = Account::of(&recorder).ok_or_else(|| format!("the load did not finish: {}", recorder.err))?;
        invariants::counts_match(&capture, account).map_err(|broken| format!("{name}: {broken}"))?;
        said.push(described(&capture));
    }
    Ok(Verdict::Held(format!("{} and {}: {}", loads[0], loads[1], said.join(" | "))))
}

/// `kill -9` of the program. The recording ends with it, and is whole.
fn kill_the_program(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let recorder = record(trial, "c", &[], load, "0");
    trial.wait_until("the load to start", || !trial.loads().is_empty())?;
    trial.wait_a_while(800);
    // Also its children, if it has some: the recording lasts until the last of them has ended.
    trial.wait_until("the load to end", || {
        let loads = trial.loads();
        // SAFETY: sends a signal to processes of this trial.
        loads.iter().for_each(|&pid| unsafe { _ = libc::kill(pid as i32, libc::SIGKILL) });
        loads.is_empty()
    })?;
    let recorder = recorder.end()?;
    let capture = finished(trial, "c", &recorder)?;
    if capture.processes.first().and_then(|process| process.exit_status) != Some(128 + libc::SIGKILL) {
        return Err(format!("no exit status of SIGKILL: {:?}", capture.processes.first()));
    }
    Ok(Verdict::Held(format!("{load}: {}", described(&capture))))
}

/// Kills a recorder at a random moment. Returns the folder of its log, unless it has none yet or has finished.
fn killed_recorder(trial: &mut Trial, load: &str) -> Result<Option<PathBuf>, String> {
    let length = ms(trial, 0..1200);
    let recorder = record(trial, "c", &[], load, &length);
    trial.wait_a_while(2000);
    recorder.signal(libc::SIGKILL);
    recorder.end()?;
    trial.wait_until("the program of a killed recorder to end", || trial.processes().is_empty())?;
    let folder = trial.folder().join("c");
    let has_log = fs::metadata(folder.join(disk::RAW_LOG_FILE)).is_ok_and(|log| log.len() > 0);
    Ok((has_log && !disk::is_capture(&folder)).then_some(folder))
}

/// `kill -9` of the recorder, while it records or finishes. Its program ends with it, and what it wrote comes back.
fn kill_the_recorder(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let Some(folder) = killed_recorder(trial, load)? else {
        return Ok(Verdict::Held(format!("{load}: killed before the recording or after it")));
    };
    // Killed while it finished, its log is complete, and so is the capture.
    let recovered = trial.stepscope("recover", &["recover", "c"]).succeed()?;
    let capture = invariants::of_capture(&folder)?;
    if recovered.err.contains("damaged") {
        return Err(format!("the log of a killed recorder is called damaged: {}", recovered.err));
    }
    invariants::memory_is_bounded(&recovered, &capture)?;
    invariants::is_readable(trial, "c")?;
    Ok(Verdict::Held(format!("{load}: {}", described(&capture))))
}

/// Flips bits in a log, or cuts it. What is good comes back, and the damage is named.
fn damage_the_log(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let Some(folder) = killed_recorder(trial, load)? else {
        return Ok(Verdict::Held(format!("{load}: killed before the recording or after it")));
    };
    let log = fs::read(folder.join(disk::RAW_LOG_FILE)).map_err(|error| error.to_string())?;
    let mut said = String::new();
    for turn in 0..4 {
        let name = format!("damaged-{turn}");
        let damaged = trial.folder().join(&name);
        fs::create_dir(&damaged).unwrap();
        let (bytes, how) = damage(trial, &log);
        fs::write(damaged.join(disk::RAW_LOG_FILE), bytes).unwrap();
        open(&damaged);
        let recovered = trial.stepscope("recover", &["recover", &name]).end()?;
        said = format!("{load}, {} bytes, {how}: {}", log.len(), recovered.err.trim().replace('\n', "; "));
        match recovered.status.code() {
            Some(0) if recovered.err.is_empty() => return Err(format!("{said}: no word about the damage")),
            Some(0) => {
                let capture = invariants::of_capture(&damaged).map_err(|broken| format!("{said}: {broken}"))?;
                if !recovered.err.contains("note: ") {
                    return Err(format!("{said}: no note about the damage"));
                }
                invariants::memory_is_bounded(&recovered, &capture)?;
                invariants::is_readable(trial, &name).map_err(|broken| format!("{said}: {broken}"))?;
            }
            Some(1) if !recovered.err.is_empty() => {}
            _ => return Err(format!("{said}: {}", recovered.status)),
        }
    }
    Ok(Verdict::Held(said))
}

fn open(folder: &Path) {
    let all = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
    fs::set_permissions(folder, all).unwrap();
}

fn damage(trial: &mut Trial, log: &[u8]) -> (Vec<u8>, String) {
    let mut bytes = log.to_vec();
    let at = trial.random.usize(..bytes.len());
    match trial.random.u8(..4) {
        0 => {
            bytes.truncate(at);
            (bytes, format!("cut at {at}"))
        }
        1 => {
            let end = (at + trial.random.usize(1..4096)).min(bytes.len());
            bytes.drain(at..end);
            (bytes, format!("without bytes {at} to {end}"))
        }
        2 => {
            let end = (at + trial.random.usize(1..4096)).min(bytes.len());
            bytes[at..end].fill(0);
            (bytes, format!("bytes {at} to {end} are zero"))
        }
        _ => {
            let flips = trial.random.usize(1..20);
            for _ in 0..flips {
                let at = trial.random.usize(..bytes.len());
                bytes[at] ^= 1 << trial.random.u8(..8);
            }
            (bytes, format!("{flips} bits flipped"))
        }
    }
}

/// A recording in segments, to its end, until Ctrl-C or `kill -9`. Each segment is a capture, and together they are the whole.
fn segments(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let keeps = trial.random.bool();
    let options = if keeps { &["--segment", "1s", "--keep", "1"][..] } else { &["--segment", "1s"] };
    let length = ms(trial, 500..3_500);
    let recorder = record(trial, "c", options, load, &length);
    let folder = trial.folder().join("c");
    let end = trial.random.u8(..3);
    if end > 0 {
        trial.wait_until("the load to start", || !trial.loads().is_empty())?;
        trial.wait_a_while(3_500);
        recorder.signal(if end == 1 { libc::SIGINT } else { libc::SIGKILL });
    }
    let recorder = recorder.end()?;
    trial.wait_until("all processes to end", || trial.processes().is_empty())?;
    let is_empty = |segment: &PathBuf| fs::metadata(segment.join(disk::RAW_LOG_FILE)).is_ok_and(|log| log.len() == 0);
    let all = disk::segments(&folder);
    if end == 2 && (all.is_empty() || all.iter().any(is_empty)) {
        return Ok(Verdict::Held(format!("{load}: killed before the recording, or while a segment was started")));
    }
    let unfinished = all.iter().filter(|segment| !disk::is_capture(segment)).count();
    let count = all.len();
    if count > 2 && keeps && end < 2 {
        return Err(format!("{count} segments are kept: {}", recorder.err));
    }
    if unfinished > 0 {
        if end < 2 {
            return Err(format!("{unfinished} of {count} segments are not finished: {}", recorder.err));
        }
        trial.stepscope("recover", &["recover", "c"]).succeed()?;
    }
    let whole = invariants::of_segments(&folder).map_err(|broken| format!("{load}: {broken}\n{}", recorder.err))?;
    if let (0, false, Some(account)) = (end, keeps, Account::of(&recorder)) {
        invariants::counts_match(&whole, account)?;
    }
    invariants::is_readable(trial, "c")?;
    Ok(Verdict::Held(format!("{load}, {count} segments, {unfinished} recovered: {}", described(&whole))))
}

/// A disk that fills up while recording. The program goes on to its end, and what was written comes back.
fn full_disk(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let kilobytes = trial.random.u32(16..400);
    let length = ms(trial, 500..2500);
    let [stepscope, program] =
        [&trial.workbench.stepscope, &trial.workbench.load].map(|path| path.display().to_string());
    // The mount is gone with the shell; what was kept is copied out of it.
    let script = format!(
        "mkdir small kept && mount -t tmpfs -o size={kilobytes}k none small || exit 77
        {stepscope} record -o small/c -- {program} {load} {length}; echo record $?
        cp -r small/c kept/ && {{ test -e kept/c/capture.json || {stepscope} recover kept/c; }}; echo recover $?"
    );
    let shell = trial.start("full-disk", &["unshare", "--mount", "sh", "-c", &script]).end()?;
    if !shell.out.contains("record ") {
        return Ok(Verdict::Skipped(format!("no small disk could be mounted: {}", shell.err)));
    }
    let broken = |what: &str| format!("{load} on {kilobytes} KiB: {what}: {} {}", shell.out, shell.err);
    if shell.err.contains("damaged") {
        return Err(broken("the log is called damaged"));
    }
    if shell.out.contains("recover 0") {
        let capture = invariants::of_capture(&trial.folder().join("kept/c")).map_err(|what| broken(&what))?;
        if Account::of(&shell).is_none() {
            return Err(broken("the program did not reach its end"));
        }
        // The log may be whole, if only the tables had no room.
        if shell.out.contains("record 0") && capture.info.origin != Origin::Recorded {
            return Err(broken("the capture lacks something, and the exit code does not say so"));
        }
        return Ok(Verdict::Held(format!("{load} on {kilobytes} KiB: {}", described(&capture))));
    }
    // Too small for the first chunk of the log.
    let is_said = shell.err.contains("No space left on device");
    if is_said {
        Ok(Verdict::Held(format!("{load} on {kilobytes} KiB: nothing")))
    } else {
        Err(broken("no reason is given"))
    }
}

/// How containers separate the program from its recorder.
const CONTAINERS: &[&str] = &["-m", "-p -f", "-m -p -f --mount-proc", "-m -p -f -u -i -n"];

/// A script that runs the load in namespaces of its own, from a file that exists only there if they have mounts.
fn contained(trial: &mut Trial, load: &str, ms: &str) -> (String, String) {
    let namespaces = trial.random.choice(CONTAINERS).expect("there are some");
    let program = trial.workbench.load.display();
    let inside = match namespaces.contains("-m") {
        true => format!("mount -t tmpfs none inside && cp {program} inside/load && exec inside/load {load} {ms}"),
        false => format!("exec {program} {load} {ms}"),
    };
    fs::create_dir_all(trial.folder().join("inside")).unwrap();
    ((*namespaces).to_owned(), format!("exec unshare {namespaces} sh -c '{inside}'"))
}

/// The load's own code has names, although its file may exist in its container only.
fn has_names(capture: &Capture, namespaces: &str) -> Result<(), String> {
    let (mut named, mut unnamed) = (0, 0);
    for sample in invariants::cpu_samples(capture) {
        for frame in capture.frames_of(sample.stack) {
            let module = capture.frames[frame.index()].module;
            if module.is_some_and(|module| capture.modules[module.index()].path.ends_with("/load")) {
                *(if capture.function(frame).starts_with("load+0x") { &mut unnamed } else { &mut named }) += 1;
            }
        }
    }
    if unnamed > 0 {
        return Err(format!("unshare {namespaces}: {unnamed} frames of the load have no name, {named} have one"));
    }
    Ok(())
}

fn container(trial: &mut Trial) -> Outcome {
    let (load, length) = (a_load(trial), ms(trial, 300..1500));
    let (namespaces, script) = contained(trial, load, &length);
    let recorder = trial.stepscope("c-recorder", &["record", "-o", "c", "--", "sh", "-c", &script]).end()?;
    if recorder.err.contains("unshare: ") {
        return Ok(Verdict::Skipped(format!("unshare {namespaces}: {}", recorder.err)));
    }
    let capture = finished(trial, "c", &recorder)?;
    has_names(&capture, &namespaces)?;
    Ok(Verdict::Held(format!("{load} in unshare {namespaces}: {}", described(&capture))))
}

fn attach_to_a_container(trial: &mut Trial) -> Outcome {
    let load = a_load(trial);
    let (namespaces, script) = contained(trial, load, "0");
    let mut program = trial.start("program", &["sh", "-c", &script]);
    let mut has_ended = false;
    trial.wait_until("the load to start", || {
        has_ended = program.has_ended();
        has_ended || !trial.loads().is_empty()
    })?;
    if has_ended {
        return Ok(Verdict::Skipped(format!("unshare {namespaces}: {}", program.end()?.err)));
    }
    let pid = trial.loads()[0];
    let length = format!("{}ms", ms(trial, 300..1000));
    let recorder = attach(trial, "c", pid, &["-d", &length]).succeed()?;
    trial.wait_until("the load to end", || {
        let loads = trial.loads();
        // SAFETY: sends a signal to processes of this trial.
        loads.iter().for_each(|&pid| unsafe { _ = libc::kill(pid as i32, libc::SIGKILL) });
        loads.is_empty()
    })?;
    program.end()?;
    let capture = finished(trial, "c", &recorder)?;
    has_names(&capture, &namespaces)?;
    Ok(Verdict::Held(format!("{load} in unshare {namespaces}: {}", described(&capture))))
}
