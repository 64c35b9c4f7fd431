//! Drives the program as a user does: arguments in, text and exit codes out.

mod common;

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use stepscope_model::{Capture, Event, Process, Sample, Thread, ThreadId, disk};

use common::{json, row, stepscope, text, with_input};

/// Two threads; `find` is called by owned code and by code of others.
const FOLDED: &str = "\
sim;main;gz::Run;gz::Scan;std::map<gz::X, int>::find 60
sim;main;gz::Run;gz::Write 25
sim;main;other::Load;std::map<gz::X, int>::find 10
worker;std::function<bool  5
";

#[test]
fn folded_stacks_on_standard_input_are_shown_as_hot_spots_attributed_to_the_nearest_owned_caller() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["show", "-", "--owned", "gz::*", "--format", "json"];
    let table = json(&with_input(folder.path(), &arguments, FOLDED));
    assert_eq!(table["table"], "hotspots");
    let find = row(&table, "std::map<gz::X, int>::find");
    assert_eq!((&find["owned"], &find["self"], &find["attributed"]), (&Value::Bool(false), &70.into(), &0.into()));
    assert_eq!(row(&table, "gz::Scan")["attributed"], 60);
    assert_eq!(row(&table, "gz::Run")["inclusive"], 85);
    assert_eq!(row(&table, "std::function<bool ")["self"], 5);
    assert_eq!(find["count"], Value::Null, "folded counts may be periods");
}

#[test]
fn an_imported_capture_gives_the_same_tables_and_stacks_as_the_file_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), FOLDED).unwrap();
    let imported = stepscope(folder.path(), &["import", "cpu.folded"]);
    assert_eq!(text(&imported.stdout), "cpu.capture\n");
    let of = |source| json(&stepscope(folder.path(), &["show", source, "--format", "json"]))["rows"].clone();
    assert_eq!(of("cpu.capture"), of("cpu.folded"));
    let exported = stepscope(folder.path(), &["export", "cpu.capture", "--format", "folded"]);
    let mut lines: Vec<&str> = FOLDED.lines().collect();
    let written = text(&exported.stdout);
    let mut again: Vec<&str> = written.lines().collect();
    lines.sort_unstable();
    again.sort_unstable();
    assert_eq!(again, lines);
}

#[test]
fn without_a_source_the_newest_capture_in_the_folder_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [["show"].as_slice(), &["diagnose"], &["explain", "gz::Run"], &["flamegraph"], &["view"]] {
        let nothing = stepscope(folder.path(), arguments);
        assert_eq!(nothing.status.code(), Some(2), "{arguments:?}");
        assert!(text(&nothing.stderr).contains("this folder has none"), "{arguments:?}: {}", text(&nothing.stderr));
    }
    for (name, stack) in [("old", "main;gz::Old 1"), ("new", "main;gz::New 1")] {
        fs::write(folder.path().join(format!("{name}.folded")), stack).unwrap();
        assert!(stepscope(folder.path(), &["import", &format!("{name}.folded")]).status.success());
        let info =
            fs::File::options().append(true).open(folder.path().join(format!("{name}.capture/capture.json"))).unwrap();
        let seconds = if name == "old" { 1_000 } else { 2_000 };
        info.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }
    for arguments in [["show"].as_slice(), &["diagnose"], &["explain", "gz::New"], &["flamegraph"], &["rank"]] {
        let shown = stepscope(folder.path(), arguments);
        assert!(text(&shown.stdout).contains("gz::New"), "{arguments:?}: {}", text(&shown.stderr));
        assert!(text(&shown.stderr).contains("reading new.capture, the newest here\n"), "{arguments:?}");
    }
}

#[test]
fn a_second_import_overwrites_the_first_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), FOLDED).unwrap();
    assert!(stepscope(folder.path(), &["import", "cpu.folded"]).status.success());
    let second = stepscope(folder.path(), &["import", "cpu.folded"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("--force"));
    assert!(stepscope(folder.path(), &["import", "cpu.folded", "--force"]).status.success());
}

#[test]
fn force_replaces_a_capture_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("cpu.folded"), FOLDED).unwrap();
    assert!(stepscope(folder.path(), &["import", "cpu.folded", "-o", "real"]).status.success());
    fs::write(at("real/notes.txt"), "mine").unwrap();
    fs::set_permissions(at("real"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("real", at("link")).unwrap();
    fs::write(at("bad"), "nothing that can be read").unwrap();
    let import = |file: &str, output: &str| stepscope(folder.path(), &["import", file, "-o", output, "--force"]);

    assert_eq!(import("bad", "link").status.code(), Some(1));
    assert!(at("real/capture.json").exists(), "a file that cannot be read costs no capture");
    #[cfg(feature = "record")]
    {
        let missing = ["record", "-o", "real", "--force", "--", "/no/such/program"];
        assert!(!stepscope(folder.path(), &missing).status.success());
        let attach = ["record", "--pid", "999999999", "-o", "real", "--force"];
        assert_eq!(stepscope(folder.path(), &attach).status.code(), Some(1));
        assert!(at("real/capture.json").exists(), "a process that does not run costs no capture");
    }
    assert!(import("cpu.folded", "link").status.success());
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(fs::metadata(at("real")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_to_string(at("real/notes.txt")).unwrap(), "mine");
    fs::remove_file(at("real/capture.json")).unwrap();
    assert_eq!(import("cpu.folded", "real").status.code(), Some(2));
    assert_eq!(import("cpu.folded", "cpu.folded").status.code(), Some(2));
}

/// Subcommands that write a file, up to its name.
const WRITERS: [&[&str]; 7] = [
    &["report", "cpu.folded", "-o"],
    &["flamegraph", "cpu.folded", "-o"],
    &["flamegraph", "cpu.folded", "--format", "folded", "-o"],
    &["export", "cpu.folded", "--format", "speedscope", "-o"],
    &["compare", "cpu.folded", "cpu.folded", "-o"],
    &["gate", "cpu.folded", "cpu.folded", "--markdown"],
    &["gate", "cpu.folded", "cpu.folded", "--junit"],
];

#[test]
fn no_subcommand_replaces_a_device() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), FOLDED).unwrap();
    fs::write(folder.path().join("stepscope.toml"), "[gate]\ncost = \"+5%\"\n").unwrap();
    let device = folder.path().join("device");
    // A node of ours with the number of /dev/null.
    let made =
        Command::new("mknod").arg(&device).args(["c", "1", "3"]).output().is_ok_and(|made| made.status.success());
    if !made || fs::write(&device, "").is_err() {
        println!("skipped: no_subcommand_replaces_a_device: needs the right to make and open devices");
        return;
    }
    for writer in WRITERS {
        let output = stepscope(folder.path(), &[writer, &["device"]].concat());
        assert!(output.status.code().is_some_and(|code| code <= 3), "{writer:?}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).starts_with("stepscope:"), "{writer:?}: {}", text(&output.stderr));
        assert!(fs::metadata(&device).unwrap().file_type().is_char_device(), "{writer:?}");
    }
    for writer in [&["import", "cpu.folded", "--force", "-o"][..], &["man", "-o"]] {
        assert_ne!(stepscope(folder.path(), &[writer, &["device"]].concat()).status.code(), Some(0), "{writer:?}");
        assert!(fs::metadata(&device).unwrap().file_type().is_char_device(), "{writer:?}");
    }
}

#[test]
fn output_to_dev_stdout_is_the_output_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), FOLDED).unwrap();
    let folded = ["flamegraph", "cpu.folded", "--format", "folded", "-o"];
    let plain = stepscope(folder.path(), &folded[..4]).stdout;
    assert_eq!(stepscope(folder.path(), &[&folded[..], &["/dev/stdout"]].concat()).stdout, plain);
    // A regular file: what was in it before, and what comes after, stay.
    let script = "{ echo before; $0 \"$@\"; echo after; } > both";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_stepscope")]).args(folded).arg("/dev/stdout");
    assert!(shell.current_dir(folder.path()).status().unwrap().success());
    let both = fs::read_to_string(folder.path().join("both")).unwrap();
    assert_eq!(both, format!("before\n{}after\n", text(&plain)));
    let page = stepscope(folder.path(), &["report", "cpu.folded", "-o", "/dev/stdout"]).stdout;
    assert!(text(&page).trim_end().ends_with("</html>"), "no path after the page");
}

#[test]
fn a_missing_folder_of_symbols_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), FOLDED).unwrap();
    for (command, flag) in
        [("import", "--sysroot"), ("export", "--symbols"), ("show", "--sysroot"), ("flamegraph", "--symbols")]
    {
        let mut arguments = vec![command, "cpu.folded", flag, "nowhere"];
        if command == "export" {
            arguments.extend(["--format", "folded"]);
        }
        let reported = stepscope(folder.path(), &arguments);
        assert_eq!(reported.status.code(), Some(2), "{command}");
        assert!(
            text(&reported.stderr).contains("nowhere: no such folder; --symbols and --sysroot take folders"),
            "{command}"
        );
    }
    let shown = stepscope(folder.path(), &["show", "cpu.folded", "--symbols", ".", "--sysroot", "/"]);
    assert!(shown.status.success());
}

#[test]
fn the_rank_is_in_the_order_of_the_cost_that_owned_code_decides() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.folded"), FOLDED).unwrap();
    let table = json(&stepscope(folder.path(), &["rank", "cpu.folded", "--owned", "gz::*", "--format", "json"]));
    let rows = table["rows"].as_array().unwrap();
    let functions: Vec<&str> = rows.iter().map(|row| row["function"].as_str().unwrap()).collect();
    assert_eq!(functions, ["gz::Scan", "gz::Write"], "the wrapper spent nothing itself, and has no row");
}

#[test]
fn a_diagnosis_without_findings_is_what_costs_most_and_says_once_that_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let stacks = "main;gz::Run;gz::Solve 50\nmain;gz::Run;gz::Move 50\n";
    let shown = text(&with_input(folder.path(), &["diagnose", "-"], stacks).stdout);
    assert_eq!(shown.matches("No known kind of defect").count(), 1, "{shown}");
    assert!(shown.contains("gz::Solve") && !shown.contains("(no rows)"), "{shown}");
}

#[test]
fn a_flame_graph_is_one_file_that_holds_every_name_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let svg = text(&with_input(folder.path(), &["flamegraph", "-"], FOLDED).stdout);
    let document = roxmltree::Document::parse(&svg).expect("names are escaped, so that it is well-formed");
    assert_eq!(document.root_element().tag_name().name(), "svg");
    let texts: String = document.descendants().filter_map(|node| node.text()).collect();
    for name in ["gz::Scan", "std::map<gz::X, int>::find", "std::function<bool "] {
        assert!(texts.contains(name), "{name}");
    }
}

#[test]
fn wrong_input_gets_advice_and_a_documented_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty.folded"), "").unwrap();
    for (arguments, code, says) in [
        (&["show", "nowhere"][..], 1, "no such capture"),
        (&["show", "."], 1, "holds no capture.json"),
        (&["show", "empty.folded"], 1, "is empty"),
        (&["show", "-", "--thread", "nobody"], 1, "there are"),
        (&["show", "-", "--format", "xml"], 2, "not an output format"),
        (&["show", "-", "--time", "5..2"], 2, "ends before it starts"),
        (&["show", "-", "--sort", "nothing"], 2, "no column"),
        #[cfg(feature = "record")]
        (&["record"], 2, "COMMAND"),
        #[cfg(feature = "record")]
        (&["record", "-o", "c", "--", "./no-such-program"], 1, "no-such-program"),
        (&["recover", "."], 2, "raw.log"),
        (&["import", "."], 2, "folder"),
        (&["export", "-"], 2, "--format"),
    ] {
        let output = with_input(folder.path(), arguments, FOLDED);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(!folder.path().join("c").exists(), "a program that cannot be run leaves nothing behind");
}

#[test]
fn malformed_lines_are_reported_and_the_others_kept() {
    let folder = tempfile::tempdir().unwrap();
    let shown = with_input(folder.path(), &["show", "-", "--format", "tsv"], "a;b 1\nbroken line\n");
    assert!(text(&shown.stdout).contains("\nb\t"), "{}", text(&shown.stdout));
    assert!(text(&shown.stderr).contains("1 malformed record"), "{}", text(&shown.stderr));
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let many: String = (0..50_000).map(|n| format!("sim;f{n} 1\n")).collect();
    fs::write(folder.path().join("many.folded"), many).unwrap();
    let command = format!("{} show many.folded --format tsv | head -1", env!("CARGO_BIN_EXE_stepscope"));
    let output =
        Command::new("bash").args(["-o", "pipefail", "-c", &command]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("function\t"));
}

#[cfg(feature = "record")]
#[test]
fn the_doctor_names_every_dimension_and_looks_at_binaries() {
    let folder = tempfile::tempdir().unwrap();
    let examined = stepscope(folder.path(), &["doctor", "--format", "json", env!("CARGO_BIN_EXE_stepscope")]);
    let tables: Value = serde_json::from_slice(&examined.stdout).unwrap();
    let dimensions = tables["tables"][0]["rows"].as_array().unwrap();
    for name in ["cpu", "offcpu", "sched", "faults", "resources", "steps", "heap"] {
        let row = dimensions.iter().find(|row| row["dimension"] == name).unwrap();
        assert!(["available", "partial", "missing"].contains(&row["status"].as_str().unwrap()), "{row}");
    }
    let can_record = dimensions.iter().any(|row| row["dimension"] == "cpu" && row["status"] != "missing");
    assert_eq!(examined.status.success(), can_record);
    let binary = tables["tables"][1]["rows"].as_array().unwrap();
    let of = |property: &str| binary.iter().find(|row| row["property"] == property).unwrap()["value"].clone();
    assert_eq!(of("unwind tables"), ".eh_frame with index");
    let script = folder.path().join("simulate.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let script = stepscope(folder.path(), &["doctor", "simulate.sh"]);
    assert!(!script.status.success() && text(&script.stderr).contains("/bin/sh"), "{}", text(&script.stderr));
}

#[cfg(feature = "record")]
#[test]
fn the_doctor_shows_every_remedy_in_full_on_narrow_terminals() {
    use std::os::unix::fs::PermissionsExt as _;
    let test = "the_doctor_shows_every_remedy_in_full_on_narrow_terminals";
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("stepscope");
    fs::copy(env!("CARGO_BIN_EXE_stepscope"), &program).unwrap();
    // Without rights there are remedies to show.
    let run = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(arguments);
        command.stdin(std::process::Stdio::null()).output().map(|output| text(&output.stdout)).unwrap_or_default()
    };
    let path = program.to_str().unwrap();
    let Ok(tables) = serde_json::from_str::<Value>(&run(&[path, "doctor", "--format", "json"])) else {
        return println!("skipped: {test}: rights cannot be given up here (setpriv)");
    };
    let rows = tables["rows"].as_array().or_else(|| tables["tables"][0]["rows"].as_array()).unwrap();
    let texts = rows.iter().flat_map(|row| [row["detail"].as_str(), row["remedy"].as_str()]).flatten();
    let words: Vec<&str> = texts.flat_map(str::split_whitespace).collect();
    assert!(!words.is_empty());
    for columns in [100, 80] {
        let printed = run(&["script", "-qec", &format!("stty cols {columns}; exec {path} doctor"), "/dev/null"]);
        if !printed.contains("dimension") {
            return println!("skipped: {test}: no pseudo-terminal (script): {printed}");
        }
        // Cells wrap at spaces only, so each word stands whole on some line.
        let shown: std::collections::BTreeSet<&str> = printed.split_whitespace().collect();
        let cut: Vec<&&str> = words.iter().filter(|word| !shown.contains(**word)).collect();
        assert!(cut.is_empty(), "{cut:?} at {columns} columns: {printed}");
    }
}

#[test]
fn help_of_every_subcommand_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    let help = text(&stepscope(folder.path(), &["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Lines that continue a description are indented deeper.
    let command = |line: &'_ str| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')).map(str::to_owned);
    let commands: Vec<String> =
        commands.filter_map(command).filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    assert!(commands.len() >= 12, "{help}");
    for command in commands {
        assert!(stepscope(folder.path(), &[&command, "--help"]).status.success() || command == "help", "{command}");
    }
}

#[test]
fn completions_and_manual_pages_are_written() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = stepscope(folder.path(), &["completions", shell]);
        assert!(script.status.success() && text(&script.stdout).contains("slow-steps"), "{shell}");
    }
    assert!(text(&stepscope(folder.path(), &["man"]).stdout).contains("stepscope"));
    assert!(stepscope(folder.path(), &["man", "-o", "man1"]).status.success());
    for page in ["stepscope.1", "stepscope-show.1", "stepscope-gate.1"] {
        assert!(folder.path().join("man1").join(page).is_file(), "{page}");
    }
}

#[test]
fn colours_are_chosen_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let coloured =
        |when: &str| with_input(folder.path(), &["show", "-", "--color", when], FOLDED).stdout.contains(&0x1b);
    assert!(coloured("always"));
    assert!(!coloured("never") && !coloured("auto"));
}

/// A run whose lab file has these process names, with a capture of three processes of one program.
fn run_with_process_names(folder: &Path, rules: &str) {
    let mut capture = Capture::default();
    for (pid, arguments) in [(10, "lidar_driver --port 1"), (11, "/opt/node -n mapper"), (12, "/opt/node -n planner")] {
        let process = Process {
            pid,
            command_line: format!("/opt/node {arguments}"),
            executable: "/opt/node".into(),
            ..Process::default()
        };
        let process = capture.add_process(process);
        capture.add_thread(Thread {
            tid: pid,
            process: Some(process),
            name: "node".into(),
            start_ns: Some(0),
            end_ns: Some(9),
            ..Thread::default()
        });
    }
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    for thread in (0..3).map(ThreadId::from_index) {
        capture.samples.push(Sample { time_ns: Some(5), thread, cpu: None, stack: None, event, weight: 1 });
    }
    fs::create_dir_all(folder.join("s/base")).unwrap();
    disk::write(&capture, &folder.join("s/base/steady")).unwrap();
    let lab = format!("[scenario.s]\ncommand = [\"sim\"]\n[process_names]\n{rules}\n");
    fs::write(folder.join("stepscope.toml"), lab).unwrap();
}

#[test]
fn process_names_of_the_lab_file_are_in_tables_filters_and_timelines() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run_with_process_names(at, "\"*lidar_driver*\" = \"lidar\"\n\"*planner\" = \"brain\"");
    let capture = "s/base/steady";
    let threads = json(&stepscope(at, &["show", capture, "--view", "threads", "--format", "json"]));
    let mut shown: Vec<&str> =
        threads["rows"].as_array().unwrap().iter().map(|row| row["process"].as_str().unwrap()).collect();
    shown.sort_unstable();
    assert_eq!(shown, ["brain", "lidar", "node"]);
    let one = stepscope(at, &["show", capture, "--view", "threads", "--process", "brain", "--format", "json"]);
    assert_eq!(json(&one)["rows"].as_array().unwrap().len(), 1);
    let trace = json(&stepscope(at, &["export", capture, "--format", "chrome"]));
    let is_name = |event: &&Value| event["name"] == "process_name";
    let events = trace["traceEvents"].as_array().unwrap().iter().filter(is_name);
    assert_eq!(
        events.map(|event| event["args"]["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["lidar", "node", "brain"]
    );
    let profile = json(&stepscope(at, &["export", capture, "--format", "firefox"]));
    let names = profile["threads"].as_array().unwrap().iter().map(|thread| thread["processName"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["lidar", "node", "brain"]);
}

#[test]
fn files_without_a_unit_are_ranked_separately_until_the_user_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("cpu.folded"), "sim;main;gz::Scan 60\nsim;main;gz::Write 40\n").unwrap();
    fs::write(at.join("misses.folded"), "sim;main;gz::Scan 1\nsim;main;gz::Write 99\n").unwrap();
    let rank = |options: &[&str]| {
        let output = stepscope(at, &[&["rank", "cpu.folded", "misses.folded", "--owned", "gz::*"], options].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let apart = rank(&["--by", "score"]);
    assert!(
        apart.contains("Rank by score: cpu.folded\n") && apart.contains("Rank by score: misses.folded\n"),
        "{apart}"
    );
    assert!(apart.contains("Ranked apart: it is unknown whether these files count the same."), "{apart}");
    let alike = rank(&["--unit", "samples", "--by", "score", "--format", "json"]);
    let table: Value = serde_json::from_str(&alike).unwrap();
    assert!(row(&table, "gz::Scan")["share.cpu.folded"].is_number() || table["rows"][0]["scenarios"] == 2, "{alike}");
    let misses = rank(&["--unit", "misses", "--by", "score"]);
    assert!(!misses.contains("cpu 40/40"), "{misses}");
    let report = stepscope(at, &["report", "cpu.folded", "misses.folded", "--owned", "gz::*", "-o", "-"]);
    let page = text(&report.stdout);
    assert!(page.contains("Rank of cpu.folded") && page.contains("Rank of misses.folded"), "{}", text(&report.stderr));
}

#[test]
fn captures_of_unknown_phase_are_not_ranked_as_a_phase() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["steady", "loading"] {
        fs::write(at.join(format!("{name}.folded")), "sim;main;gz::Scan 60\n").unwrap();
    }
    let sources = ["rank", "steady.folded", "loading.folded", "--unit", "samples", "--phase", "loading"];
    let table = json(&stepscope(at, &[&sources[..], &["--format", "json"]].concat()));
    assert_eq!(table["rows"].as_array().unwrap().len(), 0, "{table}");
    let notes = table["notes"].to_string();
    assert!(notes.contains("Not ranked here: 2 captures of unknown phase."), "{notes}");
}
