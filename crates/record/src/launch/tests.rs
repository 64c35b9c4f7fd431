//! Programs that are launched, observed and refused.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::*;
use crate::proc;

/// Guards against a hang; no test waits this long.
const GUARD: Duration = Duration::from_secs(120);

fn shell(script: &str) -> Launch {
    Launch::new(["sh", "-c", script]).output(Output::captured(100))
}

fn run(launch: Launch) -> (i32, Vec<String>) {
    let mut program = launch.prepare().unwrap().start().unwrap();
    let exit = program.wait_for(GUARD).unwrap().unwrap();
    (exit.status(), program.last_lines())
}

fn lines(script: &str) -> Vec<String> {
    run(shell(script)).1
}

#[test]
fn a_program_waits_before_its_exec_which_keeps_its_pid() {
    let prepared = shell("echo $$; exit 7").prepare().unwrap();
    let pid = prepared.pid();
    let ours = std::env::current_exe().unwrap();
    assert_eq!(proc::executable(pid).unwrap(), ours);
    let mut program = prepared.start().unwrap();
    assert_eq!(program.wait_for(GUARD).unwrap().unwrap().status(), 7);
    assert_eq!(program.last_lines(), [pid.to_string()]);
    assert!(program.wait_for(GUARD).unwrap().is_some(), "the exit stays known");
}

#[test]
fn a_prepared_program_that_is_dropped_never_runs_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let witness = directory.path().join("ran");
    let prepared = Launch::new([OsString::from("touch"), witness.clone().into()]).prepare().unwrap();
    let (pid, keeper) = (prepared.pid(), prepared.keeper.keeper_pid());
    drop(prepared);
    assert!(!witness.exists() && !proc::exists(pid) && !proc::exists(keeper));
}

#[test]
fn death_by_a_signal_differs_from_an_exit_code() {
    let mut program = shell("kill -SEGV $$").prepare().unwrap().start().unwrap();
    let exit = program.wait_for(GUARD).unwrap().unwrap();
    assert_eq!((exit.code, exit.signal, exit.status()), (None, Some(libc::SIGSEGV), 139));
}

#[test]
fn the_usage_of_a_program_includes_the_children_it_waited_for() {
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let mut program = shell(&format!("sh -c '{script}'; true")).prepare().unwrap().start().unwrap();
    let usage = program.wait_for(GUARD).unwrap().unwrap().usage;
    assert!(usage.user_ns > 10_000_000, "{usage:?}");
    assert!(usage.peak_rss_bytes > 500_000 && usage.minor_faults > 50, "{usage:?}");
}

#[test]
fn environment_directory_and_arguments_arrive_as_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let launch = Launch::new(["sh", "-c", "pwd; echo \"$0|$1|$A|${HOME-none}\"", "a b", "\"'*"])
        .env("A", "1\n2=3")
        .without_env("HOME")
        .directory(&path)
        .output(Output::captured(9));
    let (status, lines) = run(launch);
    assert_eq!((status, lines.join("\n")), (0, format!("{}\na b|\"'*|1\n2=3|none", path.display())));
}

#[test]
fn standard_input_is_empty_by_default() {
    assert_eq!(lines("cat; echo end"), ["end"]);
}

#[test]
fn output_and_errors_go_to_one_file_in_order() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "old contents that are longer than the new").unwrap();
    let launch = shell("echo a; echo b >&2; echo c").output(Output::File(file.path().into()));
    assert_eq!(run(launch), (0, vec![]));
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "a\nb\nc\n");
}

#[test]
fn a_program_has_its_own_process_group_and_default_signals() {
    let lines = lines("echo $$; ps -o pgid= -p $$; exec grep -E 'SigBlk|SigIgn' /proc/self/status");
    assert_eq!(lines[1].trim(), lines[0]);
    // The caller of the tests may ignore signals (nohup); those stay ignored, except for the two of the keyboard, which a shell ignores
    // for what runs in the background.
    let ours = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = ours.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    let bit = |signal: libc::c_int| 1_u64 << (signal - 1);
    assert_ne!(ignored & bit(libc::SIGPIPE), 0, "Rust programs ignore it");
    let reset = bit(libc::SIGPIPE) | bit(libc::SIGINT) | bit(libc::SIGQUIT);
    assert_eq!(lines[2..], ["SigBlk:\t0000000000000000".to_owned(), format!("SigIgn:\t{:016x}", ignored & !reset)]);
}

/// The output of a test of this module that runs in its own process, because descriptors, signals and the environment
/// are shared by all tests of a process.
fn in_own_process(test: &str, environment: &[(&str, &str)]) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("launch::tests::{test}"), "--nocapture", "--include-ignored"]);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_inherits_no_descriptors_but_those_the_user_opened_for_it() {
    let printed = in_own_process("prints_the_descriptors_of_a_program", &[]);
    assert!(printed.contains("descriptors are as expected"), "{printed}");
}

#[test]
#[ignore = "run by another test, in its own process"]
fn prints_the_descriptors_of_a_program() {
    let given = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: duplicates without the close-on-exec flag, as a shell's `3< FILE` does.
    let fd = unsafe { libc::fcntl(given.as_raw_fd(), libc::F_DUPFD, 600) };
    let (_one, _other) = (shell("sleep 60").prepare().unwrap(), shell("sleep 60").prepare().unwrap());
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    // SAFETY: only reads a flag.
    let stays = |fd: &RawFd| matches!(unsafe { libc::fcntl(*fd, libc::F_GETFD) }, 0);
    let mut expected: Vec<RawFd> = numbers.filter(stays).collect();
    expected.sort_unstable();
    assert!(expected.contains(&fd));
    let mut found: Vec<RawFd> = lines("ls /proc/$$/fd; true").iter().map(|fd| fd.parse().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    println!("descriptors are as expected");
}

#[test]
fn the_output_of_many_programs_is_read_at_the_same_time() {
    let programs: Vec<Launched> = std::thread::scope(|scope| {
        let start = |i: usize| move || shell(&format!("echo {i}; exec sleep 600")).prepare().unwrap();
        let prepared: Vec<_> = (0..8).map(|i| scope.spawn(start(i))).collect();
        prepared.into_iter().map(|thread| thread.join().unwrap().start().unwrap()).collect()
    });
    for (i, mut program) in programs.into_iter().enumerate() {
        // Interrupted earlier, the shell would print nothing.
        let deadline = std::time::Instant::now() + GUARD;
        while program.last_lines().is_empty() {
            assert!(std::time::Instant::now() < deadline, "program {i} printed nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        let report = program.stop(&Grace { after_interrupt: GUARD, ..Grace::default() }).unwrap();
        assert_eq!((report.interrupted.len(), report.killed.len()), (1, 0), "{report}");
        assert_eq!(program.exit().unwrap().unwrap().signal, Some(libc::SIGINT));
        assert_eq!(program.last_lines(), [i.to_string()]);
    }
}

fn refusal(launch: Launch) -> String {
    match launch.prepare().and_then(Prepared::start) {
        Ok(_) => panic!("it ran"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_refused_program_gets_a_reason_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let script = |name: &str, mode, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        refusal(Launch::new([path]))
    };
    assert_eq!(
        refusal(Launch::new(["no-such-simulator"])),
        "cannot run `no-such-simulator`: not found in PATH: install it, or give its path"
    );
    assert!(refusal(Launch::new(["/no/such/simulator"])).contains("no such file: /no/such/simulator"));
    assert!(refusal(Launch::new(["/etc"])).contains("/etc is a directory"));
    assert!(refusal(Launch::new(Vec::<String>::new())).contains("no command given"));
    assert!(refusal(Launch::new(["sh", "a\0b"])).contains("NUL"));
    assert!(refusal(Launch::new(["sh"]).directory("/no/such/place")).contains("/no/such/place"));
    assert!(script("plain", 0o644, "#!/bin/sh\n").contains("chmod +x"));
    assert!(script("interpreter", 0o755, "#!/no/such/python3 -u\n").contains("`/no/such/python3`"));
    assert!(script("none", 0o755, "echo hello\n").contains("add `#!/bin/sh`"));
    let output = Output::File("/no/such/place/log".into());
    assert!(refusal(Launch::new(["true"]).output(output)).contains("/no/such/place/log"));
}

#[test]
fn a_watcher_sees_lines_while_the_program_runs() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let watch: LineWatcher = Box::new(move |line| sender.send(line.to_owned()).unwrap());
    let output = Output::Captured { keep_lines: 5, copy_to: None, watch: Some(watch) };
    let program = shell("echo ready; exec sleep 60").output(output).prepare().unwrap().start().unwrap();
    assert_eq!(receiver.recv_timeout(GUARD).unwrap(), "ready");
    drop(program);
    assert_eq!(receiver.iter().count(), 0);
}

#[test]
fn under_sudo_a_program_has_only_the_rights_of_the_calling_user() {
    // SAFETY: geteuid only returns a number.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: under_sudo_a_program_has_only_the_rights_of_the_calling_user: not root");
        return;
    }
    let printed = in_own_process("prints_the_rights_of_a_program", &[("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
    assert!(printed.contains("rights: 65534 65534 65534 nobody"), "{printed}");
    assert!(printed.contains("rights as the recorder: 0 "), "{printed}");
}

#[test]
#[ignore = "run by another test, which sets the variables of sudo"]
fn prints_the_rights_of_a_program() {
    println!("rights: {}", lines("cd /; echo $(id -u) $(id -g) $(id -G) $USER").join(" "));
    let (_, ours) = run(shell("echo $(id -u) $(id -G)").run_as(RunAs::Recorder));
    println!("rights as the recorder: {} ", ours[0].split(' ').next().unwrap());
}
