//! What survives when a recording ends badly: kill -9, a full disk, a program that dies at once, missing rights. And that
//! no process survives.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use stepscope_model::{Capture, Dimension, DimensionStatus, Origin, Sample};
use stepscope_record::launch::{Grace, Launch, Launched, Output};
use stepscope_record::session::Reason;
use stepscope_record::{Options, RecordError, Recording, Until, finish, proc};
use stepscope_symbolize::Symbolizer;

/// The folder for a test that runs in its own process. Without this variable, that test does nothing.
const FOLDER: &str = "STEPSCOPE_TEST_FOLDER";

/// Uses a CPU until it is ended.
const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

fn busy() -> Launch {
    Launch::new(BUSY).output(Output::captured(10))
}

/// Starts recording. Where the kernel refuses, says so and returns `None`.
fn start(test: &str, launch: Launch, folder: &Path) -> Option<(Launched, Recording)> {
    match Recording::launch(launch, &Options::default(), folder) {
        Ok(started) => Some(started),
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn capture_in(folder: &Path) -> Capture {
    let capture = finish(folder, &mut Symbolizer::default()).unwrap();
    capture.check().unwrap();
    capture.load().unwrap();
    capture
}

/// Polls a condition until it holds. The deadline only guards against a hang.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs one of the ignored tests below in its own process; `before` is a command in front of it.
fn in_own_process(test: &str, folder: &Path, before: &[&str], binary: &Path) -> Command {
    let mut words = before.iter().map(|word| word.as_ref()).chain([binary.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", test, "--nocapture", "--include-ignored", "--test-threads=1"]);
    command.env(FOLDER, folder).stdin(Stdio::null());
    command
}

/// The folder given to a test that runs in its own process.
fn given_folder() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}

/// Whether a process is the program of [`BUSY`], and not one that is about to become it.
fn is_busy(pid: u32) -> bool {
    proc::command_line(pid).is_ok_and(|arguments| arguments == BUSY)
}

fn runs(pid: u32) -> bool {
    proc::stat(pid).is_ok_and(|stat| !stat.state.has_ended())
}

/// CPU time of a process, in the kernel's ticks.
fn cpu_ns(pid: u32) -> u64 {
    let ticks = proc::stat(pid).map_or(0, |stat| stat.user_ticks + stat.system_ticks);
    ticks * 1_000_000_000 / proc::ticks_per_second()
}

/// Processes that have this environment variable: all descendants of a test, in whatever session.
fn marked(folder: &Path) -> Vec<u32> {
    let mark = format!("{FOLDER}={}", folder.display());
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_mark = |&pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        pid != std::process::id() && environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
    };
    pids.filter(has_mark).collect()
}

#[test]
fn a_killed_recorder_loses_at_most_the_last_second() {
    let folder = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let mut recorder: Child =
        in_own_process("records_until_it_is_killed", folder.path(), &[], &this).stdout(Stdio::null()).spawn().unwrap();
    let log = folder.path().join(stepscope_model::disk::RAW_LOG_FILE);
    let size = || std::fs::metadata(&log).map_or(0, |log| log.len());
    let refused = folder.path().join("refused");
    wait_until("the log to grow", || size() > 0 || refused.exists());
    if refused.exists() {
        let why = std::fs::read_to_string(&refused).unwrap();
        println!("skipped: a_killed_recorder_loses_at_most_the_last_second: {why}");
        recorder.wait().unwrap();
        return;
    }
    // Judged by the program's CPU time, of which there is less the busier the machine is.
    let used_ns = || marked(folder.path()).into_iter().filter(|&pid| is_busy(pid)).map(cpu_ns).max().unwrap_or(0);
    wait_until("the program to use a CPU", || used_ns() >= 2_000_000_000);
    recorder.kill().unwrap();
    let used_ns = used_ns();
    recorder.wait().unwrap();
    let capture = capture_in(folder.path());
    let info = &capture.info;
    assert_eq!(info.origin, Origin::Recovered);
    // A killed recorder leaves no exact CPU times, so the samples stand for the CPU time that the log holds.
    let is_cpu = |sample: &&Sample| capture.event(sample.event).unit == "ns";
    let sampled_ns: u64 = capture.samples.iter().filter(is_cpu).map(|sample| sample.weight).sum();
    let missing_ms = used_ns.saturating_sub(sampled_ns) / 1_000_000;
    println!("the last {missing_ms} ms of the program's CPU time are missing");
    assert!(missing_ms <= 1000, "the last {missing_ms} ms of the program's CPU time are missing");
    // The log is complete up to there: a program that always runs is sampled from the start.
    let sampled_at: Vec<u64> = capture.samples.iter().filter_map(|sample| sample.time_ns).collect();
    assert!(sampled_at.len() > 200, "{} samples", sampled_at.len());
    let late_ns = sampled_at[0] - info.start_ns.unwrap();
    assert!(late_ns < 500_000_000, "the first sample is {late_ns} ns late");
    assert!(info.notes.iter().any(|note| note.contains("stopped before it could finish")), "{:?}", info.notes);
    assert!(info.command == BUSY, "{:?}", info.command);
    let conditions = info.conditions.as_ref().unwrap();
    assert_eq!((conditions.others_cpu_ns, conditions.stolen_ns), (None, None), "the machine was not read at the end");
    // No process is left: the keeper ends the program when its recorder is gone.
    wait_until("the program to end", || !marked(folder.path()).into_iter().any(runs));
}

#[test]
#[ignore = "run by another test, which kills it"]
fn records_until_it_is_killed() {
    let Some(folder) = given_folder() else { return };
    // SAFETY: a number is set. This process ends with the other test, should that be killed first.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    match Recording::launch(busy(), &Options::default(), &folder) {
        Ok(_recording) => std::thread::sleep(Duration::from_secs(60)),
        Err(error) => std::fs::write(folder.join("refused"), error.to_string()).unwrap(),
    }
}

#[test]
fn on_a_full_disk_the_log_so_far_is_kept_and_the_reason_given() {
    let test = "on_a_full_disk_the_log_so_far_is_kept_and_the_reason_given";
    let folder = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    // A mount namespace hides the small disk from everybody else.
    let mount = format!("mount -t tmpfs -o size=128k none {} && exec \"$@\"", folder.path().display());
    let before = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    if !Command::new("unshare").args(["--mount", "sh", "-c", &mount, "sh", "true"]).status().is_ok_and(|s| s.success())
    {
        println!("skipped: {test}: only root may mount a small disk");
        return;
    }
    let output = in_own_process("records_onto_little_space", folder.path(), &before, &this).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("kept"),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(marked(folder.path()), Vec::<u32>::new());
}

#[test]
fn at_a_file_size_limit_the_log_so_far_is_kept_and_the_reason_given() {
    let folder = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    // 128 or 256 KiB, as the shell counts in units of 512 bytes or of 1 KiB. The limit's signal would kill the recorder.
    let limit = ["sh", "-c", "trap '' XFSZ; ulimit -f 256; exec \"$@\"", "sh"];
    let output = in_own_process("records_onto_little_space", folder.path(), &limit, &this).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let is_reported = printed.contains("kept") || printed.contains("skipped: ");
    assert!(output.status.success() && is_reported, "{printed}{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", printed.lines().find(|line| line.contains("skipped: ")).unwrap_or(""));
}

#[test]
#[ignore = "run by other tests, with little space in the folder"]
fn records_onto_little_space() {
    let Some(folder) = given_folder() else { return };
    // Names that do not compress fill the space quickly.
    let script = "while :; do for i in 1 2 3 4 5 6 7 8; do (exec 2>/dev/null; : $(od -An -N64 -tx1 /dev/urandom)) & done; wait; done";
    let launch = Launch::new(["sh", "-c", script]).output(Output::captured(1));
    let Some((mut launched, recording)) = start("records_onto_little_space", launch, &folder) else { return };
    let reason = recording.wait(&Until { duration: Some(Duration::from_secs(240)), flag: None });
    let Reason::Failed(why) = &reason else { panic!("the disk is not full: {reason:?}") };
    assert!(why.contains("cannot be written") && why.contains("kept"), "{why}");
    assert!(why.contains("missing"), "{why}");
    recording.stop().unwrap();
    assert_eq!(launched.exit().unwrap(), None, "the program goes on");
    launched.stop(&Grace::default()).unwrap();
    // The tables need room, too. Without it the log stays, and can be finished where there is some.
    if let Err(error) = finish(&folder, &mut Symbolizer::default()) {
        assert!(error.to_string().contains("the recorded log is kept"), "{error}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("raw.log"), elsewhere.path().join("raw.log")).unwrap();
    let capture = capture_in(elsewhere.path());
    assert_eq!(capture.info.origin, Origin::Recovered);
    let notes = &capture.info.notes;
    assert!(!notes.iter().any(|note| note.contains("damaged")), "{notes:?}");
    assert!(capture.samples.len() > 20, "{} samples", capture.samples.len());
    println!("kept {} samples: {why}", capture.samples.len());
}

#[test]
fn a_program_that_dies_at_once_gives_a_complete_small_capture() {
    let test = "a_program_that_dies_at_once_gives_a_complete_small_capture";
    for (command, status) in [(&["true"][..], 0), (&["sh", "-c", "kill -9 $$"], 137)] {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::new(command).output(Output::captured(10));
        let Some((mut launched, recording)) = start(test, launch, folder.path()) else { return };
        assert_eq!(recording.wait(&Until { duration: None, flag: None }), Reason::Over);
        let exit = launched.wait_for(Duration::from_secs(120)).unwrap().unwrap();
        recording.note_exit(launched.pid(), &exit);
        recording.stop().unwrap();
        let capture = capture_in(folder.path());
        assert_eq!(capture.info.origin, Origin::Recorded);
        assert_eq!(capture.processes.len(), 1, "{:?}", capture.processes);
        assert_eq!(capture.processes[0].exit_status, Some(status));
        let thread = &capture.threads[0];
        assert!(thread.end_ns > thread.start_ns && thread.cpu_ns > Some(0), "{thread:?}");
    }
}

#[test]
fn a_command_that_does_not_exist_is_refused_and_leaves_no_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("capture");
    let launch = Launch::new(["stepscope-no-such-command"]).output(Output::captured(10));
    match Recording::launch(launch, &Options::default(), &folder).map(|_| ()) {
        Err(RecordError::Launch(error)) => {
            assert!(error.to_string().contains("stepscope-no-such-command"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!folder.exists());
}

#[test]
fn attaching_to_an_ended_process_is_an_error() {
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id();
    let attach = || {
        let folder = tempfile::tempdir().unwrap();
        Recording::attach(pid, &Options::default(), folder.path()).map(|_| ()).unwrap_err()
    };
    wait_until("the process to end", || !runs(pid));
    // A zombie, and then nothing.
    assert!(matches!(attach(), RecordError::Selection(_)), "{}", attach());
    ended.wait().unwrap();
    assert_eq!(attach().to_string(), format!("there is no process {pid} to attach to"));
}

#[test]
fn an_interrupted_recording_is_complete_and_the_attached_program_keeps_running() {
    let test = "an_interrupted_recording_is_complete_and_the_attached_program_keeps_running";
    let mut program = busy().prepare().unwrap().start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recording = match Recording::attach(program.pid(), &Options::default(), folder.path()) {
        Ok(recording) => recording,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let flag = AtomicBool::new(false);
    let reason = std::thread::scope(|scope| {
        scope.spawn(|| {
            let before_ns = cpu_ns(program.pid());
            wait_until("the program to use a CPU", || cpu_ns(program.pid()) >= before_ns + 500_000_000);
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        recording.wait(&Until { duration: Some(Duration::from_secs(240)), flag: Some(&flag) })
    });
    assert_eq!(reason, Reason::Flagged);
    recording.stop().unwrap();
    assert!(runs(program.pid()));
    program.stop(&Grace::default()).unwrap();
    let capture = capture_in(folder.path());
    assert_eq!(capture.info.origin, Origin::Recorded);
    assert!(capture.info.wall_ns().unwrap() >= 490_000_000);
    assert!(capture.samples.len() > 250, "{} samples", capture.samples.len());
    assert_eq!(capture.info.command, BUSY);
}

#[test]
fn without_rights_the_users_own_program_is_recorded_and_what_is_missing_is_named() {
    let test = "without_rights_the_users_own_program_is_recorded_and_what_is_missing_is_named";
    let skip = |why: &str| println!("skipped: {test}: {why}");
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim() != "2" {
        return skip("kernel.perf_event_paranoid is not 2, where this is tested");
    }
    // SAFETY: only asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        return records_without_rights_in(&tempfile::tempdir().unwrap().keep(), None);
    }
    // Everything that `nobody` needs must be open to it.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), open_to_all()).unwrap();
    let binary = folder.path().join("survival");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let mut victim = Command::new("sleep").arg("60").spawn().unwrap();
    let before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new(before[0]).args(&before[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        victim.kill().unwrap();
        victim.wait().unwrap();
        return skip("rights cannot be given up here (setpriv)");
    }
    let mut command = in_own_process("records_without_rights", folder.path(), &before, &binary);
    let output = command.env("STEPSCOPE_TEST_VICTIM", victim.id().to_string()).output().unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

fn open_to_all() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o777)
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn records_without_rights() {
    let Some(folder) = given_folder() else { return };
    let victim = std::env::var("STEPSCOPE_TEST_VICTIM").ok().and_then(|pid| pid.parse().ok());
    records_without_rights_in(&folder.join("capture"), victim);
}

fn records_without_rights_in(folder: &Path, victim: Option<u32>) {
    // Threads that live shorter than the sampling period are what such recordings miss: their number is known.
    let script = "i=0; while [ $i -lt 40 ]; do true | cat; i=$((i+1)); done; (ulimit -t 1; while :; do :; done)";
    let launch = Launch::new(["sh", "-c", script]).output(Output::captured(10));
    let Some((mut launched, recording)) = start("records_without_rights", launch, folder) else { return };
    recording.wait(&Until { duration: None, flag: None });
    let exit = launched.wait_for(Duration::from_secs(60)).unwrap().unwrap();
    recording.note_exit(launched.pid(), &exit);
    launched.stop(&Grace::default()).unwrap();
    recording.stop().unwrap();
    let capture = capture_in(folder);
    let lacks = |dimension| match capture.info.dimensions.get(&dimension) {
        Some(DimensionStatus::Partial { lacks }) => lacks.join(" "),
        other => panic!("{dimension}: {other:?}"),
    };
    assert!(lacks(Dimension::Cpu).contains("user space only"), "{}", lacks(Dimension::Cpu));
    assert!(lacks(Dimension::Offcpu).contains("Where threads block is sampled"), "{}", lacks(Dimension::Offcpu));
    assert!(lacks(Dimension::Sched).contains("Wakers, and the time"), "{}", lacks(Dimension::Sched));
    let losses = &capture.info.losses;
    let (exact, sampled) = (losses.cpu_time_ns.unwrap(), losses.sampled_ns.unwrap());
    let unsampled = losses.unsampled_thread_ns.unwrap();
    println!(
        "{} threads: {exact} ns, sampled {sampled}, in threads without a sample {unsampled}",
        capture.threads.len()
    );
    // The limit of one second counts ticks of the clock, so that it ends the loop earlier or later by some percent.
    let kernel = losses.kernel_cpu_ns.unwrap();
    assert!(kernel > 800_000_000 && unsampled > 0, "{kernel} {unsampled}");
    assert!(exact * 10 > kernel * 9, "{exact} of {kernel} ns");
    assert!(sampled * 10 > exact * 7, "{sampled} of {exact} ns sampled");
    // Every thread's life is known, sampled or not.
    assert!(capture.threads.len() >= 82, "{} threads", capture.threads.len());
    assert!(capture.threads.iter().all(|thread| thread.cpu_ns.is_some()));
    assert!(losses.truncated_stacks * 50 <= losses.samples, "{losses:?}");
    if let Some(pid) = victim {
        let other = tempfile::tempdir().unwrap();
        match Recording::attach(pid, &Options::default(), other.path()).map(|_| ()) {
            Err(error @ RecordError::Refused { .. }) => {
                assert!(error.to_string().contains("stepscope doctor"), "{error}");
            }
            result => panic!("{result:?}"),
        }
    }
}
