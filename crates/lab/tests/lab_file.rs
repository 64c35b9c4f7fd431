//! What lab files mean: defaults, overrides, relative paths, variants, selections. That no text makes the reader panic.
//! And that `docs/lab-file.md` tells the truth.

use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use stepscope_lab::folder_map::FolderMap;
use stepscope_lab::lab_file::{
    AbSettings, Allowed, CompareSettings, Driver, Inconclusive, LabFile, LabFileError, Limit, Limited, Limits, Pairs,
    Ready, RecordSettings, Source, StepSource, StopSettings, TrialFilter, TrialFilterError, Unit,
};
use stepscope_model::{Dimension, Phase};

const EVERY_KEY: &str = r#"
[project]
name = "Gazebo"
owned = { namespaces = ["gz::"], modules = ["libgz-*"], sources = ["src/**", "/opt/gz/**"] }

[record]
dimensions = ["cpu", "sched"]
frequency_hz = 499
speed_probe = false
python = false
phases = ["steady", "loading"]
loading = { timeout_s = 60 }
steady = { warmup_s = 2.5, duration_s = 10 }

[stop]
interrupt_s = 20

[scenario.shapes_static]
axis = "3000 static entities: framework overhead without physics work"
command = ["gz", "sim", "-s", "-r", "worlds/3k_shapes_static.sdf", ""]
cwd = "gazebo"
env = { GZ_PARTITION = "lab" }
ready = { log = "Loaded world" }
drivers = [["gz", "topic", "-e"], { command = ["./drive"], cwd = "tools", env = { SPEED = "2" } }]
step = { scope = "SimulationRunner::Step" }
record = { steady = { duration_s = 20 } }
stop = { terminate_s = 1 }
owned = { modules = ["libdart*"] }

[scenario.own_program]
command = ["./build/sim"]

[variant.before]

[variant.after]
env = { USE_FIX = "1", GZ_PARTITION = "fixed" }

[variant.debug]
command = ["build-debug/sim"]
cwd = "/tmp"
scenarios = ["own_program"]
"#;

fn parse(text: &str) -> LabFile {
    LabFile::parse(Path::new("/home/me/lab/stepscope.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn selection(scenarios: &[&str], variants: &[&str]) -> TrialFilter {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    TrialFilter { scenarios: owned(scenarios), variants: owned(variants) }
}

fn labels(lab: &LabFile, scenarios: &[&str], variants: &[&str]) -> Vec<String> {
    lab.trials(&selection(scenarios, variants)).unwrap().iter().map(|trial| trial.label()).collect()
}

#[test]
fn every_key_is_understood_and_paths_start_from_the_lab_file() {
    let lab = parse(EVERY_KEY);
    assert_eq!(lab.name, "Gazebo");
    assert_eq!(lab.owned.sources, ["src/**", "/opt/gz/**", "/home/me/lab/src/**"]);
    let shapes = &lab.scenarios[0];
    assert_eq!(shapes.name, "shapes_static");
    assert_eq!(shapes.axis.as_deref(), Some("3000 static entities: framework overhead without physics work"));
    assert_eq!(shapes.command, ["gz", "sim", "-s", "-r", "worlds/3k_shapes_static.sdf", ""]);
    assert_eq!(shapes.cwd, Path::new("/home/me/lab/gazebo"));
    assert_eq!(shapes.ready, Some(Ready::Log("Loaded world".into())));
    assert_eq!(shapes.step, Some(StepSource::Scope("SimulationRunner::Step".into())));
    assert_eq!(shapes.owned.modules, ["libdart*"]);
    assert_eq!(shapes.owned.namespaces, Vec::<String>::new());
    let topic = Driver { command: vec!["gz".into(), "topic".into(), "-e".into()], cwd: None, env: [].into() };
    let drive = Driver {
        command: vec!["/home/me/lab/./drive".into()],
        cwd: Some("/home/me/lab/tools".into()),
        env: [("SPEED".into(), "2".into())].into(),
    };
    assert_eq!(shapes.drivers, [topic, drive]);
    assert_eq!(lab.scenarios[1].command, ["/home/me/lab/./build/sim"]);
}

#[test]
fn a_scenario_overrides_single_keys_of_the_general_settings() {
    let lab = parse(EVERY_KEY);
    let expected = RecordSettings {
        simulates_caches: false,
        ros2: false,
        dimensions: vec![Dimension::Cpu, Dimension::Sched, Dimension::Steps],
        frequency_hz: 499,
        phases: vec![Phase::Loading, Phase::Steady],
        loading_timeout: Duration::from_secs(60),
        warmup: Duration::from_millis(2500),
        duration: Duration::from_secs(20),
        steps: None,
        speed_probe: false,
        python: Some(false),
    };
    assert_eq!(lab.scenarios[0].record, expected);
    assert_eq!(lab.scenarios[1].record.duration, Duration::from_secs(10));
    let stop = |interrupt, terminate| StopSettings {
        interrupt: Duration::from_secs(interrupt),
        terminate: Duration::from_secs(terminate),
    };
    assert_eq!(lab.scenarios[0].stop, stop(20, 1));
    assert_eq!(lab.scenarios[1].stop, stop(20, StopSettings::default().terminate.as_secs()));
}

#[test]
fn missing_keys_have_the_documented_defaults() {
    let lab = parse(r#"scenario.a = { command = ["a"], ready = { port = 1 } }"#);
    assert_eq!(lab.name, "lab");
    let scenario = &lab.scenarios[0];
    assert_eq!(scenario.record, RecordSettings::default());
    assert_eq!(scenario.stop, StopSettings::default());
    assert_eq!(scenario.cwd, Path::new("/home/me/lab"));
    assert!(scenario.owned.is_empty() && scenario.drivers.is_empty() && scenario.env.is_empty());
}

#[test]
fn a_scenario_without_a_ready_condition_has_no_loading_phase() {
    assert_eq!(parse(r#"scenario.a = { command = ["a"] }"#).scenarios[0].record.phases, [Phase::Steady]);
}

#[test]
fn each_condition_is_read() {
    let ready =
        |text: &str| parse(&format!("scenario.a = {{ command = ['a'], ready = {text} }}")).scenarios[0].ready.clone();
    assert_eq!(
        ready("{ log_regex = '^Loaded [0-9]+$' }"),
        Some(Ready::LogRegex(regex::Regex::new("^Loaded [0-9]+$").unwrap()))
    );
    assert_eq!(ready("{ port = 11345 }"), Some(Ready::Port(11345)));
    assert_eq!(ready("{ file = 'run/ready' }"), Some(Ready::File("/home/me/lab/run/ready".into())));
    assert_eq!(ready("{ steps = 10 }"), Some(Ready::Steps(10)));
    assert_eq!(ready("{ after_s = 40 }"), Some(Ready::After(Duration::from_secs(40))));
}

#[test]
fn each_scenario_has_each_variant_and_one_without_changes_names_the_base() {
    let lab = parse(EVERY_KEY);
    let all =
        ["shapes_static/before", "shapes_static/after", "own_program/before", "own_program/after", "own_program/debug"];
    assert_eq!(labels(&lab, &[], &[]), all);
    let trials = lab.trials(&selection(&[], &[])).unwrap();
    assert_eq!(trials[1].scenario.env["GZ_PARTITION"], "fixed");
    assert_eq!(trials[1].scenario.env["USE_FIX"], "1");
    assert_eq!(trials[1].folder(), Path::new("shapes_static/after"));
    assert_eq!(trials[4].scenario.command, ["/home/me/lab/build-debug/sim"]);
    assert_eq!(trials[4].scenario.cwd, Path::new("/tmp"));

    let unnamed = parse("scenario.a = { command = ['a'] }\nvariant.after = { env = { FIX = '1' } }");
    assert_eq!(labels(&unnamed, &[], &[]), ["a/base", "a/after"]);
    let without = parse("scenario.a = { command = ['a'] }");
    assert_eq!(labels(&without, &[], &[]), ["a"]);
    assert_eq!(without.trials(&TrialFilter::default()).unwrap()[0].folder(), Path::new("a/base"));
}

#[test]
fn scenarios_and_variants_are_selected_by_name_or_pattern_in_the_order_of_the_file() {
    let lab = parse(EVERY_KEY);
    assert_eq!(labels(&lab, &["own_program", "shapes*"], &["after"]), ["shapes_static/after", "own_program/after"]);
    let error =
        |scenarios: &[&str], variants: &[&str]| lab.trials(&selection(scenarios, variants)).unwrap_err().to_string();
    assert_eq!(
        error(&["shape_static"], &[]),
        "the lab file has no scenario `shape_static`; did you mean `shapes_static`?"
    );
    assert_eq!(error(&[], &["x"]), "the lab file has no variant `x`; it has `before`, `after`, `debug`");
    assert_eq!(error(&["[a"], &[]), "`[a` is not a pattern: unclosed character class; missing ']'");
    let nothing = "no selected scenario has a selected variant: see `scenarios` in [variant.debug]";
    assert_eq!(error(&["shapes*"], &["debug"]), nothing);
}

const COMPARING: &str = r#"
[scenario.a]
command = ["./build/sim", "build/a.sdf"]

[scenario.b]
command = ["./build/sim", "build/b.sdf"]
gate = { step.p99 = "off", "step.mean" = "+1%", wall = "+1s", inconclusive = "fail" }

[variant.before]

[variant.fix]
program = "build-fix/sim"

[variant.folder]
folders = { "build" = "../build-fix" }

[variant.main]
revision = "main"
build = ["cmake", "--build", "build"]
scenarios = ["a"]

[ab]
baseline = "before"
candidate = "fix"
runs = 5
warm = 1

[compare]
tolerance = "2.5%"

[gate]
cannot_tell = "pass"
rtf = "-3%"
step.p99 = "+5%"
"rss.peak" = "+20MB"
function."sim::Physics::*" = "+5%"
thread = { "physics" = "+2ms" }
"#;

#[test]
fn a_variant_may_have_another_program_another_folder_or_another_revision() {
    let lab = parse(COMPARING);
    let trials = lab.trials(&selection(&["a"], &[])).unwrap();
    let commands: Vec<&[String]> = trials.iter().map(|trial| trial.scenario.command.as_slice()).collect();
    assert_eq!(commands[0], ["/home/me/lab/./build/sim", "build/a.sdf"]);
    assert_eq!(commands[1], ["/home/me/lab/build-fix/sim", "build/a.sdf"]);
    assert_eq!(commands[2], ["/home/me/build-fix/sim", "/home/me/build-fix/a.sdf"]);
    assert_eq!(commands[3], commands[0], "it is moved when its checkout is there");
    let build = vec!["cmake".to_owned(), "--build".to_owned(), "build".to_owned()];
    let folder = "/home/me/lab".into();
    assert_eq!(trials[3].source, Some(Source { folder, revision: "main".to_owned(), build: vec![build] }));
    let moved = FolderMap::new([("/home/me/lab/build".into(), "/home/me/build-fix".into())]);
    assert_eq!(lab.variants[2].folders, moved);
    let several =
        parse("scenario.a = { command = ['a'] }\nvariant.b = { revision = 'v1', build = [['a', ''], ['b']] }");
    assert_eq!(several.variants[0].source.as_ref().unwrap().build, [vec!["a", ""], vec!["b"]]);
}

#[test]
fn allocations_and_system_calls_of_functions_have_limits_in_numbers() {
    let lab = parse(
        "scenario.a = { command = ['a'] }\n[gate.allocations]\n'sim::*' = '+5%'\n[gate.system_calls]\n'sim::Save' = '+2'",
    );
    let allocations = Limit { of: Limited::Allocations("sim::*".to_owned()), allowed: Allowed::Percent(5.0) };
    let two = Allowed::Amount { value: 2.0, unit: Unit::Plain };
    let calls = Limit { of: Limited::SystemCalls("sim::Save".to_owned()), allowed: two };
    assert_eq!(lab.limits.limits, [allocations, calls]);
}

#[test]
fn the_number_of_memory_errors_has_a_limit_of_its_own() {
    let lab = parse("scenario.a = { command = ['a'] }\n[gate]\nmemory_errors = 0");
    let none = Limit { of: Limited::Metric("memory_errors".to_owned()), allowed: Allowed::AtMost(0.0) };
    assert_eq!(lab.limits.limits, [none]);
}

#[test]
fn python_functions_are_shown_of_interpreters_of_all_programs_or_of_none() {
    let lab = |keys: &str| parse(&format!("scenario.a = {{ command = ['a'] }}\n[record]\n{keys}"));
    let python = |keys| lab(keys).scenarios[0].record.python;
    let asked = ["", "with = ['python']", "python = true", "python = false"].map(python);
    assert_eq!(asked, [None, Some(true), Some(true), Some(false)]);
}

#[test]
fn caches_are_simulated_beside_other_dimensions() {
    let lab = parse("scenario.a = { command = ['a'] }\n[record]\nwith = ['memcheck', 'sharing', 'cache-sim', 'ros2']");
    let record = &lab.scenarios[0].record;
    assert!(record.simulates_caches && record.ros2);
    assert!(record.dimensions.ends_with(&[Dimension::Memcheck, Dimension::Sharing]), "{:?}", record.dimensions);
    assert!(!parse("scenario.a = { command = ['a'] }").scenarios[0].record.simulates_caches);
}

#[test]
fn the_gate_of_a_scenario_is_the_general_one_with_its_own_limits_in_place() {
    let lab = parse(COMPARING);
    let percent = |of, percent| Limit { of, allowed: Allowed::Percent(percent) };
    let amount = |of, value, unit| Limit { of, allowed: Allowed::Amount { value, unit } };
    let function = || percent(Limited::Function("sim::Physics::*".to_owned()), 5.0);
    let thread = || amount(Limited::Thread("physics".to_owned()), 2e6, Unit::Nanoseconds);
    let memory = || amount(Limited::Metric("rss.peak".into()), 20e6, Unit::Bytes);
    let general = Limits {
        limits: vec![
            function(),
            thread(),
            percent(Limited::Metric("rtf".into()), 3.0),
            percent(Limited::Metric("step.p99".into()), 5.0),
            memory(),
        ],
        inconclusive: Inconclusive::Pass,
    };
    assert_eq!((&lab.limits, &lab.scenarios[0].limits), (&general, &general));
    let of_b = Limits {
        limits: vec![
            function(),
            thread(),
            percent(Limited::Metric("rtf".into()), 3.0),
            memory(),
            percent(Limited::Metric("step.mean".into()), 1.0),
            amount(Limited::Metric("wall".into()), 1e9, Unit::Nanoseconds),
        ],
        inconclusive: Inconclusive::Fail,
    };
    assert_eq!(lab.scenarios[1].limits, of_b);
    let without = parse("scenario.a = { command = ['a'] }");
    assert_eq!(without.limits, Limits { limits: Vec::new(), inconclusive: Inconclusive::Report });
}

#[test]
fn the_compared_variants_come_from_flags_the_lab_file_or_are_the_only_ones() {
    let lab = parse(COMPARING);
    assert_eq!(lab.ab, AbSettings { baseline: Some("before".into()), candidate: Some("fix".into()), runs: 5, warm: 1 });
    assert_eq!(lab.compare.tolerance_percent, 2.5);
    let chosen = |pairs: &Pairs| (pairs.baseline.clone(), pairs.candidate.clone(), pairs.pairs.len());
    let names = |a: &str, b: &str, count| (a.to_owned(), b.to_owned(), count);
    assert_eq!(chosen(&lab.pairs(None, None, &[]).unwrap()), names("before", "fix", 2));
    let with_main = lab.pairs(Some("folder"), Some("main"), &[]).unwrap();
    assert_eq!(chosen(&with_main), names("folder", "main", 1));
    assert_eq!(with_main.left_out, ["b"]);
    let itself = lab.pairs(Some("fix"), None, &[]).unwrap_err().to_string();
    assert_eq!(
        itself,
        "`fix` is both baseline and candidate: compare it with another variant, `before` or `folder` or `main`"
    );
    assert!(matches!(lab.pairs(None, Some("main"), &["b".into()]), Err(TrialFilterError::NoPair { .. })));
    let unknown = lab.pairs(None, Some("fox"), &[]).unwrap_err().to_string();
    assert_eq!(unknown, "the lab file has no variant `fox`; did you mean `fix`?");

    let only = parse("scenario.a = { command = ['a'] }\nvariant.fix = { program = 'b' }");
    assert_eq!(chosen(&only.pairs(None, None, &[]).unwrap()), names("base", "fix", 1));
    let none = parse("scenario.a = { command = ['a'] }").pairs(None, None, &[]).unwrap_err();
    assert_eq!(none, TrialFilterError::NoVariants);
    let several = parse("scenario.a = { command = ['a'] }\nvariant = { x = { cwd = 'x' }, y = { cwd = 'y' } }");
    let unsaid = several.pairs(None, None, &[]).unwrap_err().to_string();
    assert!(unsaid.contains("--candidate NAME") && unsaid.contains("`base`, `x`, `y`"), "{unsaid}");
}

#[test]
fn a_file_that_cannot_be_a_lab_file_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepscope.toml");
    assert!(matches!(LabFile::read(&path), Err(LabFileError::Unreadable { path: named, .. }) if named == path));
    fs::write(&path, b"axis = \"\xff\"").unwrap();
    assert!(matches!(LabFile::read(&path), Err(LabFileError::NotText { offset: 8, .. })));
    fs::File::create(&path).unwrap().set_len(5 << 30).unwrap();
    assert!(matches!(LabFile::read(&path), Err(LabFileError::TooLarge { bytes: 5_368_709_120, .. })));
    assert!(matches!(LabFile::read(folder.path()), Err(LabFileError::Unreadable { .. })));
    fs::write(&path, "scenario.a = { command = ['a'] }").unwrap();
    assert_eq!(LabFile::read(&path).unwrap().folder(), folder.path());
}

const PAGE: &str = include_str!("../../../docs/lab-file.md");

/// The blocks of the page that are lab files.
fn examples() -> Vec<&'static str> {
    PAGE.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn the_lab_files_of_the_documentation_are_lab_files_and_the_complete_one_has_the_defaults() {
    let [shortest, complete, comparing, names, categories, attaching] = examples()[..] else {
        panic!("{:?}", examples())
    };
    assert_eq!(labels(&parse(shortest), &[], &[]), ["shapes"]);
    assert_eq!(parse(&format!("{shortest}{names}")).naming.processes.len(), 2);
    assert_eq!(parse(&format!("{shortest}{categories}")).naming.categories.rules.len(), 3);
    let attaching = parse(attaching);
    assert_eq!(labels(&attaching, &[], &[]), ["robot/base", "robot/simulated", "launched/base"]);
    let trials = attaching.trials(&TrialFilter::default()).unwrap();
    let attach = trials[0].scenario.attach.clone().unwrap();
    assert_eq!((attach.names.len(), attach.cgroups), (2, vec!["/system.slice/robot.service".to_owned()]));
    let simulated = trials[1].scenario.attach.clone().unwrap();
    assert_eq!((simulated.names.len(), simulated.containers), (0, vec!["simulated-robot".to_owned()]));
    assert!(trials.iter().all(|trial| trial.scenario.record.phases == [Phase::Steady]));
    let complete = parse(complete);
    assert_eq!(complete.scenarios[0].record, RecordSettings::default());
    assert_eq!(complete.scenarios[0].stop, StopSettings::default());
    let trials = ["shapes_static/before", "shapes_static/after", "cameras/before", "cameras/after", "cameras/debug"];
    assert_eq!(labels(&complete, &[], &[]), trials);
    let comparing = parse(comparing);
    assert_eq!(comparing.pairs(None, None, &[]).unwrap().pairs.len(), 2);
    let chosen =
        AbSettings { baseline: Some("before".into()), candidate: Some("after".into()), ..AbSettings::default() };
    assert_eq!(
        (comparing.ab, comparing.compare.tolerance_percent),
        (chosen, CompareSettings::default().tolerance_percent)
    );
    assert_eq!((comparing.scenarios[0].limits.limits.len(), comparing.scenarios[1].limits.limits.len()), (4, 4));
    assert_eq!(comparing.limits.inconclusive, Inconclusive::default());
}

#[test]
fn own_metrics_steps_of_the_steady_phase_and_steps_of_a_variant_are_read() {
    let lab = parse(
        r#"
        scenario.a = { command = ["a"], step = "marks", record = { steady = { steps = 100 } } }
        variant.old = { step = { scope = "Update" } }
        metric.latency = { log = "latency: {value} ms" }
        metric.rate = { csv = "out.csv", column = "fps", unit = "1/s", better = "higher" }
        gate = { metric.latency.p99 = "+2ms", "metric.rate.mean" = "-5%" }
        "#,
    );
    let [latency, rate] = lab.scenarios[0].metrics.as_slice() else { panic!("{:?}", lab.scenarios[0].metrics) };
    assert_eq!((latency.unit.as_str(), latency.scale, rate.unit.as_str()), ("ns", 1e6, "1/s"));
    let limits: Vec<String> = lab.limits.limits.iter().map(|limit| format!("{} {}", limit.of, limit.text())).collect();
    assert_eq!(limits, ["metric.latency.p99 +2ms", "metric.rate.mean -5%"]);
    assert_eq!(lab.scenarios[0].record.steps, Some(100));
    let trials = lab.trials(&TrialFilter::default()).unwrap();
    assert_eq!(trials[1].scenario.step, Some(StepSource::Scope("Update".into())));
}

#[test]
fn every_key_and_dimension_is_documented() {
    let keys = EVERY_KEY.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let inner =
        ["namespaces", "modules", "sources", "timeout_s", "warmup_s", "duration_s", "log_regex", "port", "file"];
    let rest =
        ["steps", "after_s", "scope", "function", "module", "interrupt_s", "terminate_s", "drivers", "scenarios"];
    let comparing = [
        "program",
        "folders",
        "revision",
        "build",
        "baseline",
        "candidate",
        "runs",
        "warm",
        "tolerance",
        "inconclusive",
        "thread",
        "log",
        "csv",
        "counter",
        "unit",
        "better",
    ];
    let dimensions = Dimension::ALL.map(Dimension::name);
    let metrics = stepscope_analyze::metrics::NAMES;
    for key in keys.chain(inner).chain(rest).chain(comparing).chain(metrics).chain(dimensions) {
        let there = ["`KEY", "`loading.KEY", "`steady.KEY", "{ KEY = "]
            .iter()
            .any(|form| PAGE.contains(&form.replace("KEY", key)));
        assert!(there, "`{key}` is not in docs/lab-file.md");
    }
}

fn whatever(text: &str) {
    // Whatever it is: it is read or refused in words, and never panics.
    if let Err(error) = LabFile::parse(Path::new("stepscope.toml"), text) {
        assert!(!error.to_string().is_empty());
    }
}

/// A value of any kind, nested a little.
fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".to_owned()),
        any::<i64>().prop_map(|value| value.to_string()),
        prop_oneof![Just("nan"), Just("-inf"), Just("1e308"), Just("0x7fffffffffffffff"), Just("-0.0")]
            .prop_map(str::to_owned),
        Just("1979-05-27T07:32:00Z".to_owned()),
        "[a-z*\\[(/\u{fc}]{0,6}".prop_map(|text| format!("'{text}'")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let keys = prop_oneof![Just("log"), Just("port"), Just("command"), Just("env"), Just("timeout_s"), Just("x")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            (keys, inner).prop_map(|(key, value)| format!("{{ {key} = {value} }}")),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        whatever(&text);
    }

    #[test]
    fn a_lab_file_with_bytes_cut_out_or_doubled_does_not_make_the_reader_panic(
        from in 0..EVERY_KEY.len(), length in 0..40usize, copies in 0..3usize
    ) {
        let (head, rest) = EVERY_KEY.split_at(from);
        let (piece, tail) = rest.split_at(length.min(rest.len()));
        whatever(&format!("{head}{}{tail}", piece.repeat(copies)));
    }

    #[test]
    fn any_value_under_any_key_is_read_or_refused(
        key in prop::sample::select(vec![
            "project", "record", "stop", "scenario", "variant", "scenario.a", "project.owned", "record.dimensions",
            "record.frequency_hz", "record.phases", "record.loading", "record.steady", "scenario.a.command",
            "scenario.a.cwd", "scenario.a.env", "scenario.a.ready", "scenario.a.drivers", "scenario.a.step",
            "scenario.a.record", "scenario.a.owned.namespaces", "scenario.a.ready.log_regex", "variant.b.scenarios",
            "record.steady.duration_s", "stop.interrupt_s", "gate", "gate.rtf", "gate.step", "gate.function", "gate.x.y.z",
            "gate.inconclusive", "gate.cannot_tell", "scenario.a.gate", "ab", "ab.runs", "ab.baseline", "compare.tolerance", "variant.b.folders",
            "variant.b.program", "variant.b.revision", "variant.b.build",
        ]),
        value in any_value(),
    ) {
        whatever(&format!("{key} = {value}\n"));
    }
}
