//! `stepscope gate` as continuous integration runs it: limits and captures in, an exit code and files out.

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use roxmltree::Document;
use stepscope_model::{Capture, CaptureInfo, Phase, Step, Thread, disk};

use common::{command, stepscope, text};

const LAB: &str = "\
[scenario.shapes]
command = [\"true\"]

[gate]
\"step.mean\" = \"+5%\"
";

/// Writes a run of 50 steps for each of `step_us`, the duration of its steps in microseconds.
fn write_side(folder: &Path, scenario: &str, step_us: &[u64]) {
    for (run, us) in step_us.iter().enumerate() {
        let ns = us * 1_000;
        let mut capture = Capture::of(CaptureInfo {
            scenario: Some(scenario.to_owned()),
            phase: Some(Phase::Steady),
            repetition: Some(run as u32 + 1),
            start_ns: Some(0),
            end_ns: Some(51 * ns),
            ..CaptureInfo::default()
        });
        let thread = capture.add_thread(Thread { tid: 1, name: "main".into(), ..Thread::default() });
        capture.steps = (0..50)
            .map(|index| Step {
                index,
                start_ns: index * ns,
                end_ns: (index + 1) * ns,
                sim_time_ns: Some((index + 1) * 1_000_000),
                thread,
            })
            .collect();
        disk::write(&capture, &folder.join(format!("{scenario}/{run}"))).unwrap();
    }
}

const BEFORE: [u64; 8] = [1000, 1012, 995, 1007, 990, 1004, 998, 1009];

/// The runs before, `percent` slower.
fn slower(percent: u64) -> Vec<u64> {
    BEFORE.iter().rev().map(|us| us * (100 + percent) / 100).collect()
}

/// A folder with a lab file, runs before and runs after.
fn prepared(lab: &str, after: &[u64]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stepscope.toml"), lab).unwrap();
    write_side(&folder.path().join("before"), "shapes", &BEFORE);
    write_side(&folder.path().join("after"), "shapes", after);
    folder
}

fn gate(folder: &Path, more: &[&str]) -> Output {
    let arguments = [&["gate", "--baseline", "before", "--candidate", "after"], more].concat();
    stepscope(folder, &arguments)
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// The row of this metric in what `--format json` printed.
fn judged(output: &Output, metric: &str) -> serde_json::Value {
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = table["rows"].as_array().unwrap();
    rows.iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("{table}")).clone()
}

#[test]
fn the_same_program_passes() {
    let folder = prepared(LAB, &slower(0));
    let output = gate(folder.path(), &["--format", "json"]);
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
    let row = judged(&output, "step.mean");
    assert_eq!((&row["result"], &row["allowed"]), (&"pass".into(), &"+5%".into()));
    assert!((row["ratio"].as_f64().unwrap() - 1.0).abs() < 0.002, "{row}");
}

#[test]
fn a_change_beyond_the_limit_is_a_regression_in_every_output() {
    let folder = prepared(LAB, &slower(20));
    let output = gate(folder.path(), &["--markdown", "gate.md", "--junit", "gate.xml"]);
    assert_eq!(code(&output), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("Gate: regression: the limit is broken\n"), "{}", text(&output.stdout));
    let markdown = fs::read_to_string(folder.path().join("gate.md")).unwrap();
    assert!(markdown.starts_with("**Gate: regression: the limit is broken (shapes/steady)**\n"), "{markdown}");
    assert!(
        markdown.contains("| 1.00 ms | 1.20 ms | 1.20 [1.1") && markdown.contains("| **regression** |"),
        "{markdown}"
    );
    let xml = fs::read_to_string(folder.path().join("gate.xml")).unwrap();
    let document = Document::parse(&xml).unwrap();
    let case = document.descendants().find(|node| node.has_tag_name("testcase")).unwrap();
    assert_eq!((case.attribute("name"), case.attribute("classname")), (Some("step.mean +5%"), Some("shapes/steady")));
    let failure = case.children().find(|node| node.has_tag_name("failure")).unwrap().attribute("message").unwrap();
    assert!(failure.starts_with("step.mean 1.00 ms → 1.20 ms: ×1.20 [1.1"), "{failure}");
    assert!(failure.ends_with(", allowed +5%"), "{failure}");
}

#[test]
fn an_improvement_passes_and_a_small_change_within_the_limit_too() {
    assert_eq!(code(&gate(prepared(LAB, &BEFORE.map(|us| us / 2)).path(), &[])), Some(0));
    assert_eq!(code(&gate(prepared(LAB, &slower(3)).path(), &[])), Some(0), "it changed, and is tolerated");
}

#[test]
fn a_metric_that_should_rise_is_limited_from_below() {
    let lab = LAB.replace("\"step.mean\" = \"+5%\"", "rtf = \"-3%\"");
    assert_eq!(code(&gate(prepared(&lab, &slower(20)).path(), &[])), Some(1), "steps take longer: less real time");
    assert_eq!(code(&gate(prepared(&lab, &BEFORE.map(|us| us / 2)).path(), &[])), Some(0));
}

/// Runs so different from each other that a change of 5 % is inconclusive.
const NOISY: [u64; 8] = [1000, 1900, 700, 1200, 500, 1500, 1300, 900];

#[test]
fn an_inconclusive_result_has_its_own_exit_code_unless_the_user_says_how_it_counts() {
    let folder = prepared(LAB, &NOISY);
    let output = gate(folder.path(), &["--format", "json", "--junit", "gate.xml"]);
    assert_eq!(code(&output), Some(2), "{}", text(&output.stderr));
    let row = judged(&output, "step.mean");
    assert_eq!(row["result"], "inconclusive");
    assert_eq!(row["reason"], "the limit lies inside the interval");
    let outcome = |name: &str| {
        let xml = fs::read_to_string(folder.path().join(name)).unwrap();
        let document = Document::parse(&xml).unwrap();
        let case = document.descendants().find(|node| node.has_tag_name("testcase")).unwrap();
        let element = case.children().find(|node| node.is_element()).unwrap();
        element.tag_name().name().to_owned()
    };
    assert_eq!(outcome("gate.xml"), "skipped");
    assert_eq!(code(&gate(folder.path(), &["--inconclusive", "pass"])), Some(0));
    assert_eq!(code(&gate(folder.path(), &["--cannot-tell", "fail", "--junit", "fail.xml"])), Some(1));
    assert_eq!(outcome("fail.xml"), "error");
    let of_lab = LAB.replace("[gate]", "[gate]\ncannot_tell = \"fail\"");
    assert_eq!(code(&gate(prepared(&of_lab, &NOISY).path(), &[])), Some(1), "as the lab file says");
}

#[test]
fn a_metric_that_was_not_measured_is_inconclusive() {
    let lab = format!("{LAB}[gate.function]\n\"gz::Step\" = \"+5%\"\n");
    let output = gate(prepared(&lab, &slower(0)).path(), &["--format", "json"]);
    assert_eq!(code(&output), Some(2), "{}", text(&output.stderr));
    let row = judged(&output, "function gz::Step");
    assert_eq!(row["reason"], "no function of either side fits `gz::Step`");
    assert_eq!(row["before"], serde_json::Value::Null);
}

#[test]
fn with_one_run_per_side_metrics_of_the_whole_run_are_inconclusive() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stepscope.toml"), LAB).unwrap();
    write_side(&folder.path().join("before"), "shapes", &[1000]);
    write_side(&folder.path().join("after"), "shapes", &[2000]);
    let output = gate(folder.path(), &["--format", "json"]);
    assert_eq!(code(&output), Some(2), "{}", text(&output.stderr));
    let row = judged(&output, "step.mean");
    assert_eq!((&row["ratio"], &row["ratio_low"]), (&2.0.into(), &serde_json::Value::Null));
    assert_eq!(row["reason"], "how much runs differ is not known");
    assert_eq!((&row["before"], &row["after"]), (&1e6.into(), &2e6.into()));
}

#[test]
fn differences_that_were_allowed_are_noted_in_every_output() {
    let folder = prepared(LAB, &slower(0));
    for run in 0..8 {
        let path = folder.path().join(format!("after/shapes/{run}"));
        let mut capture = disk::read(&path).unwrap();
        capture.info.scenario = Some("marina".to_owned());
        disk::write(&capture, &path).unwrap();
    }
    let refused = gate(folder.path(), &[]);
    assert_eq!(code(&refused), Some(3), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--across-scenarios"), "{}", text(&refused.stderr));
    let allowed = gate(
        folder.path(),
        &["--across-scenarios", "--format", "json", "--markdown", "gate.md", "--junit", "gate.xml"],
    );
    assert_eq!(code(&allowed), Some(0), "{}", text(&allowed.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for output in [text(&allowed.stdout), read("gate.md"), read("gate.xml")] {
        assert!(output.contains("Compared as you asked"), "{output}");
    }
}

#[test]
fn a_scenario_that_one_side_lacks_does_not_pass() {
    let folder = prepared(LAB, &slower(0));
    write_side(&folder.path().join("before"), "marina", &BEFORE);
    let output = gate(folder.path(), &["--format", "json"]);
    assert_eq!(code(&output), Some(2), "{}", text(&output.stderr));
    let reason = judged(&output, "all")["reason"].clone();
    assert!(reason.as_str().unwrap().starts_with("Not compared: marina."), "{reason}");
}

#[test]
fn rows_without_a_verdict_have_their_own_look() {
    let folder = prepared(LAB, &slower(0));
    let fails = |arguments: &[&str], reported: &str| {
        let output = stepscope(folder.path(), arguments);
        assert_eq!(code(&output), Some(3), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(reported), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
    };
    fails(&["gate"], "--baseline RUN --candidate RUN");
    fails(&["gate", "--baseline", "before"], "--candidate");
    fails(&["gate", "--no-such-flag"], "--no-such-flag");
    fails(&["gate", "--baseline", "before", "--candidate", "nowhere"], "nowhere");
    fails(&["gate", "before"], "stepscope ab");
    fs::write(folder.path().join("unlimited.toml"), LAB.split("[gate]").next().unwrap()).unwrap();
    fails(
        &["gate", "unlimited.toml", "--baseline", "before", "--candidate", "after"],
        "sets no limit on anything compared here. Add one under [gate]",
    );
    fs::write(folder.path().join("wrong.toml"), LAB.replace("+5%", "-5%")).unwrap();
    fails(&["gate", "wrong.toml", "--baseline", "before", "--candidate", "after"], "step.mean");
    for run in 0..8 {
        fs::write(folder.path().join(format!("after/shapes/{run}/steps.parquet")), "no parquet").unwrap();
    }
    fails(&["gate", "--baseline", "before", "--candidate", "after"], "steps.parquet");
    let help = stepscope(folder.path(), &["gate", "--help"]);
    assert_eq!(code(&help), Some(0));
    assert!(text(&help.stdout).contains("3 the gate could not be judged"));
}

#[test]
fn a_closed_output_pipe_does_not_change_the_verdict() {
    let folder = prepared(LAB, &slower(20));
    for more in [&["--format", "table"], &["--markdown", "-"]] {
        let arguments = [&["gate", "--baseline", "before", "--candidate", "after"], more.as_slice()].concat();
        let mut child = command(folder.path(), &arguments).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), text(&output.stderr).as_str()), (Some(1), ""), "{more:?}");
    }
}

/// A run in turns, whose captures are those of `before` and `after` moved to where a run has them.
fn in_turns(folder: &Path, sides: [&[u64]; 2]) {
    let run = folder.join("run");
    let mut trials = Vec::new();
    for (variant, step_us) in ["before", "after"].into_iter().zip(sides) {
        write_side(&folder.join("made"), variant, step_us);
        for repetition in 1..=step_us.len() {
            let place = run.join(format!("shapes/{variant}/{repetition:02}/steady"));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            let mut capture = disk::read(&folder.join(format!("made/{variant}/{}", repetition - 1))).unwrap();
            capture.info.scenario = Some("shapes".to_owned());
            capture.info.variant = Some(variant.to_owned());
            disk::write(&capture, &place).unwrap();
            trials.push(serde_json::json!({
                "scenario": "shapes", "variant": variant, "repetition": repetition, "command": ["true"], "cwd": "/",
                "result": {"outcome": "recorded"}, "captured": ["steady"],
            }));
        }
    }
    let info = serde_json::json!({
        "schema": 1, "tool": "stepscope", "name": "gate", "started_at": "2026-01-01T00:00:00Z", "trials": trials,
        "ab": {"baseline": "before", "candidate": "after", "runs": 8, "seed": 1, "order": {"shapes": "ABBAABBAABBAABBA"}},
    });
    fs::write(run.join("run.json"), info.to_string()).unwrap();
    fs::write(run.join("stepscope.toml"), LAB).unwrap();
}

#[test]
fn an_alternating_run_has_its_sides_and_limits() {
    let judged = |sides: [&[u64]; 2]| {
        let folder = tempfile::tempdir().unwrap();
        in_turns(folder.path(), sides);
        let output = stepscope(folder.path(), &["gate", "run", "--format", "json"]);
        (code(&output), judged(&output, "step.mean")["result"].clone())
    };
    // In the order of names `after` would come first, and a regression look like an improvement.
    assert_eq!(judged([&BEFORE, &slower(20)]), (Some(1), "regression".into()));
    assert_eq!(judged([&slower(20), &BEFORE]), (Some(0), "pass".into()));
}

#[test]
fn a_scenario_can_have_its_own_limits() {
    let lab = LAB.replace("[gate]", "[scenario.shapes.gate]\n\"step.mean\" = \"+30%\"\n\n[gate]");
    assert_eq!(code(&gate(prepared(&lab, &slower(20)).path(), &[])), Some(0));
}

#[test]
fn a_summary_on_standard_output_replaces_the_table() {
    let output = gate(prepared(LAB, &slower(0)).path(), &["--markdown", "-"]);
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("**Gate: pass: the limit is kept (shapes/steady)**\n"),
        "{}",
        text(&output.stdout)
    );
    assert!(!text(&output.stdout).contains("\nGate:"));
}

/// A file of callgrind with these instructions in `main`.
fn write_callgrind(path: &Path, instructions: u64) {
    let text = format!(
        "# callgrind format\nversion: 1\ncmd: ./sim\nevents: Ir\n\nob=/usr/bin/sim\nfl=sim.c\nfn=main\n7 {instructions}\n\ntotals: {instructions}\n"
    );
    fs::write(path, text).unwrap();
}

/// `gate` of two simulations a side, the second ones with ten instructions more.
fn gate_of_simulations(limit: &str, before: u64, after: u64) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stepscope.toml"), format!("[scenario.x]\ncommand = [\"true\"]\n[gate]\n{limit}\n"))
        .unwrap();
    for (name, instructions) in [("b1", before), ("b2", before + 10), ("a1", after), ("a2", after + 10)] {
        write_callgrind(&folder.path().join(name), instructions);
    }
    let sides = ["gate", "--lab", "stepscope.toml", "--baseline", "b1,b2", "--candidate", "a1,a2", "--format", "json"];
    stepscope(folder.path(), &sides)
}

#[test]
fn simulated_instructions_are_judged_by_few_runs() {
    let output = gate_of_simulations("instructions = \"+5%\"", 1_000_000, 1_100_000);
    assert_eq!(code(&output), Some(1), "{}", text(&output.stderr));
    let row = judged(&output, "instructions");
    assert_eq!((row["before"].as_f64(), row["after"].as_f64()), (Some(1_000_005.0), Some(1_100_005.0)));
    assert_eq!(code(&gate_of_simulations("instructions = \"+5%\"", 1_000_000, 1_040_000)), Some(0));
}

#[test]
fn an_exact_count_can_be_limited_itself() {
    assert_eq!(code(&gate_of_simulations("instructions = 1100000", 9_000_000, 1_090_000)), Some(0));
    assert_eq!(code(&gate_of_simulations("instructions = 1100000", 1_000, 1_100_000)), Some(1));
}
