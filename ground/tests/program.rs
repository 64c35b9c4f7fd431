//! The program as its users drive it.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const GROUND: &str = env!("CARGO_BIN_EXE_ground");

/// A fresh path that no other test uses.
fn path(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn output(args: &[&str]) -> (ExitStatus, String, String) {
    let output = Command::new(GROUND).args(args).output().expect("the program was built with this test");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints text");
    (output.status, text(output.stdout), text(output.stderr))
}

fn spawn(args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(GROUND).args(args).stdout(Stdio::piped()).spawn().expect("as above");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    (child, out)
}

fn line(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).expect("the program prints text");
    line
}

/// The value of `name=` in a line of the program.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let prefix = format!("{name}=");
    line.split_whitespace().find_map(|word| word.strip_prefix(&prefix)).unwrap_or_else(|| panic!("{name} in {line}"))
}

#[test]
fn a_run_says_when_it_is_ready_and_ends_with_what_it_did() {
    let ready = path("ready");
    let (status, out, err) =
        output(&["run", "--n", "30", "--robots", "4", "--steps", "40", "--ready-file", ready.to_str().unwrap()]);
    assert!(status.success(), "{err}");
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].starts_with("ground: world ready name=shapes_static_30 "), "{}", lines[0]);
    let last = lines[lines.len() - 1];
    assert!(last.starts_with("ground: done "), "{last}");
    assert_eq!((field(last, "steps"), field(last, "sim_time_s"), field(last, "slow")), ("40", "0.040", "none"));
    assert!(ready.exists());
}

#[test]
fn a_world_written_to_a_file_runs_as_the_one_made_in_memory() {
    let (_, sdf, _) = output(&["world", "--n", "30", "--robots", "4"]);
    let file = path("world.sdf");
    std::fs::write(&file, sdf).unwrap();
    let (_, from_file, _) = output(&["run", "--sdf", file.to_str().unwrap(), "--steps", "40", "--slow", "all"]);
    let (_, from_memory, _) = output(&["run", "--n", "30", "--robots", "4", "--steps", "40"]);
    let state = |out: &str| field(out.lines().last().unwrap(), "state").to_owned();
    assert_eq!(state(&from_file), state(&from_memory));
}

#[test]
fn a_system_in_python_runs_when_its_world_is_loaded_whether_or_not_the_interpreter_was_ready() {
    if let Err(error) = ground::python::initialize_interpreter() {
        println!(
            "skipped: a_system_in_python_runs_when_its_world_is_loaded_whether_or_not_the_interpreter_was_ready: {error}"
        );
        return;
    }
    let file = path("python.sdf");
    let system = |script: &str| {
        let plugin = format!("<plugin name='ground::systems::PythonSystem'><script>{script}</script></plugin>");
        format!("<sdf><world name='w'><model name='m'>{plugin}</model></world></sdf>")
    };
    for slow in ["", "interp-init"] {
        std::fs::write(&file, system("import json; assert json.loads('3') == 3")).unwrap();
        let run = ["run", "--sdf", file.to_str().unwrap(), "--steps", "1", "--slow", slow];
        let (status, _, err) = output(&run);
        assert!(status.success() && err.is_empty(), "{err}");
        std::fs::write(&file, system("assert 3 == 4")).unwrap();
        let (status, _, err) = output(&run);
        assert!(!status.success(), "the script ends in an exception");
        assert!(err.contains("cannot run a system of the world that is written in Python"), "{err}");
    }
}

/// What a world did in steps 3000 to 3100, or 3 to 5 of a monitor, exactly.
fn counted(world: &str, more: &[&str], slow: &str) -> impl Fn(&str) -> u64 {
    let file = path(&format!("{world}-{slow}.json"));
    let (warm, last) = if world == "monitor" { ("3", "5") } else { ("3000", "3100") };
    let run = ["run", "--world", world, "--warm-steps", warm, "--steps", last, "--slow", slow, "--allocations"];
    let (status, _, err) = output(&[&run, more, &["--account", file.to_str().unwrap()]].concat());
    assert!(status.success(), "{err}");
    let account: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    move |name| account["steady"]["counts"][name].as_u64().unwrap_or(0)
}

#[test]
fn a_record_that_is_written_slowly_opens_its_file_and_writes_it_once() {
    let slow = counted("stats", &["--n", "40", "--records", "20"], "reopen");
    assert_eq!((slow("file_opens"), slow("file_writes")), (20 * 100, 20 * 100));
    let fast = counted("stats", &["--n", "40", "--records", "20"], "");
    assert_eq!(fast("file_opens"), 0);
    assert!(fast("file_writes") < 100, "{}", fast("file_writes"));
}

#[test]
fn a_string_made_for_a_look_up_is_one_allocation() {
    let slow = counted("stats", &["--n", "40"], "string-temp");
    let fast = counted("stats", &["--n", "40"], "");
    assert!(slow("look_ups") > 1000, "{}", slow("look_ups"));
    assert_eq!(slow("look_ups"), fast("look_ups"));
    assert_eq!(slow("allocations") - fast("allocations"), slow("look_ups"));
}

#[test]
fn a_tick_of_the_monitor_opens_a_file_a_process_and_four_tables_or_four_for_each() {
    let slow = counted("monitor", &["--n", "3"], "proc-per-pid");
    assert_eq!(slow("file_opens") - slow("tables_read_again"), 2 * (3 + 3 * 4));
    let fast = counted("monitor", &["--n", "3"], "");
    assert_eq!(fast("file_opens") - fast("tables_read_again"), 2 * (3 + 4));
}

#[test]
fn signals_end_a_run_with_its_last_line() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (mut child, mut out) = spawn(&["run", "--n", "10", "--robots", "2"]);
        assert!(line(&mut out).starts_with("ground: world ready"));
        // SAFETY: the child was started here and not yet waited for, so the id is its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(rest.lines().last().unwrap().starts_with("ground: done steps="), "{rest}");
    }
}

#[test]
fn a_subscriber_gets_the_scene_and_then_poses() {
    let (mut simulator, mut out) = spawn(&["run", "--n", "10", "--robots", "2", "--port", "0"]);
    let ready = line(&mut out);
    let (mut echo, mut received) = spawn(&["echo", "--port", field(&ready, "port")]);
    assert_eq!(line(&mut received), "<model name='ground_plane'>\n");
    let poses = loop {
        let line = line(&mut received);
        assert_ne!(line, "", "the simulator publishes until it ends");
        if line.starts_with("poses ") {
            break line;
        }
    };
    assert_eq!(field(&poses, "count"), "2", "the robots move, the shapes do not");
    echo.kill().unwrap();
    simulator.kill().unwrap();
    echo.wait().unwrap();
    simulator.wait().unwrap();
}

#[test]
fn the_log_holds_every_step_of_every_robot() {
    let log = path("log");
    let (status, _, err) =
        output(&["run", "--n", "0", "--robots", "3", "--steps", "20", "--log", log.to_str().unwrap()]);
    assert!(status.success(), "{err}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().next(), Some("step entity x y z qx qy qz qw"));
    let last_step = text.lines().filter(|line| line.starts_with("19 ")).count();
    assert_eq!(last_step, 3);
}

#[test]
fn mistakes_are_refused_with_advice() {
    let (status, _, err) = output(&["run", "--sdf", "no/such.sdf"]);
    assert!(!status.success());
    assert!(err.contains("no/such.sdf") && err.contains("ground world --n 100 > FILE"), "{err}");
    let (status, _, err) = output(&["run", "--slow", "everything"]);
    assert!(!status.success());
    assert!(err.contains("there is no switch `everything`; there are full-scan, pose-map"), "{err}");
    let (status, _, err) = output(&["run", "--static", "--dynamic"]);
    assert!(!status.success());
    assert!(err.contains("cannot be used with"), "{err}");
}

#[test]
fn the_list_names_every_switch() {
    let (status, out, _) = output(&["list"]);
    assert!(status.success());
    for pathology in ground::catalogue::pathologies() {
        assert!(out.contains(&pathology.name()) && out.contains(pathology.function), "{}", pathology.name());
    }
}

#[test]
fn the_step_marker_is_exported_by_the_program() {
    let program = std::fs::read(GROUND).unwrap();
    let names = dynamic_symbol_names(&program).expect("the program is a 64-bit little-endian ELF file");
    let name = b"\0ground_step\0";
    assert!(names.windows(name.len()).any(|window| window == name));
}

/// The bytes of `.dynstr`, of a 64-bit little-endian ELF file.
fn dynamic_symbol_names(elf: &[u8]) -> Option<&[u8]> {
    let number = |at: usize, size: usize| -> Option<usize> {
        let bytes = elf.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (sections, entry_size, count) = (number(0x28, 8)?, number(0x3a, 2)?, number(0x3c, 2)?);
    let section = |index: usize| sections + index * entry_size;
    let dynsym = (0..count).map(section).find(|at| number(at + 4, 4) == Some(11))?;
    let strings = section(number(dynsym + 0x28, 4)?);
    let (offset, size) = (number(strings + 0x18, 8)?, number(strings + 0x20, 8)?);
    elf.get(offset..offset + size)
}

#[test]
fn a_log_is_the_same_whoever_writes_it() {
    let [own, behind] = ["own.log", "behind.log"].map(path);
    for (file, more) in [(&own, None), (&behind, Some("--log-in-background"))] {
        let run = ["run", "--n", "10", "--robots", "4", "--steps", "60", "--log", file.to_str().unwrap()];
        let (status, _, err) = output(&run.into_iter().chain(more).collect::<Vec<_>>());
        assert!(status.success(), "{err}");
    }
    let [own, behind] = [own, behind].map(|file| std::fs::read_to_string(file).unwrap());
    assert!(own.lines().count() > 200);
    assert_eq!(own, behind);
}
