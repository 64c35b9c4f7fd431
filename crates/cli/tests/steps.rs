//! Steps and scopes of the bundled simulator, which marks its own: what is slow in it is known, so what is found can be
//! compared.

mod common;

use std::path::Path;

use serde_json::Value;
use stepscope_model::disk;

use common::{json, simulator, stepscope, text};

/// Records a world for some seconds, from when it is ready. Gives the simulator's last line.
fn record(at: &Path, simulator: &Path, world: &[&str], options: &[&str]) -> String {
    let mut arguments = vec!["record", "-o", "c", "--ready", "log=world ready", "--duration", "5s"];
    arguments.extend(options);
    arguments.extend(["--", simulator.to_str().unwrap(), "run"]);
    arguments.extend(world);
    let recorded = stepscope(at, &arguments);
    let (out, err) = (text(&recorded.stdout), text(&recorded.stderr));
    assert!(recorded.status.success(), "{out}{err}");
    let said = format!("{out}\n{err}");
    let last = said.lines().find(|line| line.starts_with("ground: done ")).unwrap_or_else(|| panic!("{said}"));
    last.to_owned()
}

/// The value of `name=` in the simulator's last line.
fn field(line: &str, name: &str) -> f64 {
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {line}"))
}

/// A table of a view.
fn table(at: &Path, view: &str, name: &str) -> Value {
    let shown = json(&stepscope(at, &["show", "c", "--view", view, "--owned", "ground::*", "--format", "json"]));
    let tables = shown["tables"].as_array().cloned().unwrap_or_else(|| vec![shown.clone()]);
    let names: Vec<String> = tables.iter().map(|table| table["table"].to_string()).collect();
    let found = tables.into_iter().find(|table| table["table"] == name);
    found.unwrap_or_else(|| panic!("{name} in {names:?}"))
}

fn row<'t>(table: &'t Value, column: &str, value: &str) -> &'t Value {
    let rows = table["rows"].as_array().unwrap();
    rows.iter().find(|row| row[column] == value).unwrap_or_else(|| panic!("no row of {value} in {} rows", rows.len()))
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} in {row}"))
}

/// The background load: the share of the CPU that other processes used meanwhile.
fn others(at: &Path) -> f64 {
    let info = disk::read_info(&at.join("c")).unwrap();
    let others_ns = info.conditions.as_ref().and_then(|conditions| conditions.others_cpu_ns).unwrap();
    let capacity_ns = info.wall_ns().unwrap() * u64::from(info.machine.as_ref().unwrap().cores);
    others_ns as f64 / capacity_ns as f64
}

/// Whether wake-ups were recorded; without them, wakers are unknown.
fn has_wake_ups(at: &Path, test: &str) -> bool {
    let dimensions = table(at, "dimensions", "dimensions");
    let sched = row(&dimensions, "dimension", "sched");
    if sched["status"] != "recorded" {
        println!("skipped: {test}: wake-ups cannot be recorded here ({})", sched["detail"]);
        return false;
    }
    true
}

#[test]
fn slow_steps_show_the_true_cost_of_a_texture_decoded_in_every_fiftieth_step() {
    let name = "slow_steps_show_the_true_cost_of_a_texture_decoded_in_every_fiftieth_step";
    let Some(simulator) = simulator(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let world = ["--world", "marina", "--n", "128", "--robots", "30", "--slow", "lazy-texture"];
    let done = record(at, &simulator, &world, &[]);
    let true_ns = 1e9 * field(&done, "decode_cpu_s") / field(&done, "decodes");

    let functions = table(at, "slow-steps", "slow_steps");
    let first = &functions["rows"][0];
    assert_eq!(first["function"], "ground::textures::decode_texture", "{first}");
    assert_eq!(first["verdict"], "more");
    let error = number(first, "difference") / true_ns - 1.0;
    assert!(error.abs() < 0.1, "{first} instead of {true_ns} ns");

    // One simulated millisecond a step.
    let loops = table(at, "steps", "loops");
    let (rate, rtf) = (number(&loops["rows"][0], "rate"), number(&loops["rows"][0], "rtf"));
    assert!((rtf / (rate / 1e3) - 1.0).abs() < 0.02, "{rtf} at {rate} steps a second");

    let scopes = table(at, "scopes", "scopes");
    let update = row(&scopes, "scope", "Physics::Update");
    assert!((number(update, "calls_per_step") - 1.0).abs() < 0.01, "{update}");

    let drawn = stepscope(at, &["flamegraph", "c", "--slow-steps", "--owned", "ground::*"]);
    let svg = text(&drawn.stdout);
    assert!(roxmltree::Document::parse(&svg).is_ok(), "{}", text(&drawn.stderr));
    assert!(svg.contains("class=\"more3\"") && svg.contains("decode_texture"));
}

#[test]
fn an_overloaded_worker_is_on_the_critical_path_and_idle_workers_have_slack() {
    let name = "an_overloaded_worker_is_on_the_critical_path_and_idle_workers_have_slack";
    let Some(simulator) = simulator(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    record(at, &simulator, &["--world", "sensors", "--n", "1000", "--robots", "60", "--slow", "imbalance"], &[]);
    if !has_wake_ups(at, name) {
        return;
    }
    let threads = table(at, "critical-path", "critical_path_threads");
    let first = &threads["rows"][0];
    // The scene and the measurement units have the first two threads, three workers share the lidars.
    assert_eq!(first["thread"], "PostUpdate2", "{first}");
    for idle in ["PostUpdate3", "PostUpdate4"] {
        let path = number(row(&threads, "thread", idle), "path");
        assert!(path < 0.2 * number(first, "path"), "{idle}: {path} ns, beside {first}");
    }
    let functions = table(at, "critical-path", "critical_path");
    let scan = row(&functions, "function", "ground::systems::lidar::Lidars::scan");
    let gain = number(scan, "gain_bound") / number(scan, "cpu_inclusive");
    // On a busy machine, the path goes through other threads that wait for a CPU meanwhile.
    let others = others(at);
    let least = 0.6 * (1.0 - others);
    assert!((least..=1.05).contains(&gain), "steps wait for most of its time, background load {others}: {scan}");
}

#[test]
fn the_gain_bound_of_a_busy_thread_off_the_path_is_the_time_it_held_up() {
    let name = "the_gain_bound_of_a_busy_thread_off_the_path_is_the_time_it_held_up";
    let Some(simulator) = simulator(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let log = at.join("log");
    let world = ["--n", "100", "--robots", "150", "--log", log.to_str().unwrap(), "--log-in-background"];
    record(at, &simulator, &world, &[]);
    if !has_wake_ups(at, name) {
        return;
    }
    let functions = table(at, "critical-path", "critical_path");
    let write = row(&functions, "function", "ground::systems::state_log::write_changes");
    let cpu = number(write, "cpu_inclusive");
    assert!(cpu > 20_000.0, "the writer is busy: {write}");
    // No step runs in it, but a step may wait for the CPU that the writer holds.
    assert!(number(write, "path") < 0.02 * cpu, "{write}");
    let (gain, held_up) = (number(write, "gain_bound"), number(write, "held_up"));
    assert!(held_up <= cpu && gain - held_up < 0.02 * cpu, "{write}");
}

#[test]
fn steps_by_function_and_steps_by_marks_are_the_same_steps() {
    let name = "steps_by_function_and_steps_by_marks_are_the_same_steps";
    let Some(simulator) = simulator(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    record(at, &simulator, &["--n", "300", "--robots", "40"], &["--step-function", "ground_step"]);
    let dimensions = table(at, "dimensions", "dimensions");
    let steps = row(&dimensions, "dimension", "steps");
    if steps["status"] != "recorded" {
        println!("skipped: {name}: {}", steps["detail"]);
        return;
    }
    let counted = number(&table(at, "steps", "loops")["rows"][0], "steps");
    let scopes = table(at, "scopes", "scopes");
    let updates = number(row(&scopes, "scope", "Physics::Update"), "calls");
    // Marks are read from some milliseconds after the first probe on.
    assert!((updates / counted - 1.0).abs() < 0.02, "{counted} calls of the function, {updates} scopes in it");
}

/// A shell script that runs a program that opens a library, whose `world_step` it then calls every 2 ms. False without a compiler.
fn scripted_plugin(at: &Path) -> bool {
    let sources = [
        ("world.c", "int steps; void world_step(void) { for (volatile int i = 0; i < 20000; ++i) {} ++steps; }"),
        (
            "host.c",
            "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n\
             int main(void) {\n\
                 void (*step)(void) = (void (*)(void))dlsym(dlopen(\"./libworld.so\", RTLD_NOW), \"world_step\");\n\
                 puts(\"ready\"); fflush(stdout);\n\
                 for (int i = 0; i < 10000; ++i) { step(); usleep(2000); }\n\
             }",
        ),
        ("run.sh", "#!/bin/sh\nexec ./host\n"),
    ];
    sources.iter().for_each(|(name, source)| std::fs::write(at.join(name), source).unwrap());
    let run = |program: &str, arguments: &[&str]| {
        let status = std::process::Command::new(program).args(arguments).current_dir(at).status();
        status.is_ok_and(|status| status.success())
    };
    run("cc", &["-shared", "-fPIC", "-g", "world.c", "-o", "libworld.so"])
        && run("cc", &["host.c", "-o", "host", "-ldl"])
        && run("chmod", &["+x", "run.sh"])
}

#[test]
fn a_step_function_of_a_plugin_behind_a_script_is_found_while_the_program_runs() {
    let name = "a_step_function_of_a_plugin_behind_a_script_is_found_while_the_program_runs";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    if !scripted_plugin(at) {
        println!("skipped: {name}: no C compiler");
        return;
    }
    let recorded = stepscope(at, &["record", "-o", "c", "-d", "2s", "--step-function", "world_step", "./run.sh"]);
    let said = text(&recorded.stderr);
    assert!(recorded.status.success(), "{said}");
    assert!(said.contains("run.sh: not a readable ELF file"), "{said}");
    let dimensions = table(at, "dimensions", "dimensions");
    let steps = row(&dimensions, "dimension", "steps");
    if steps["status"] != "recorded" {
        println!("skipped: {name}: {}", steps["detail"]);
        assert!(said.contains("warning: Steps are not recorded"), "{said}");
        return;
    }
    assert!(said.contains("steps: calls of world_step in ") && said.contains("/libworld.so"), "{said}");
    assert!(number(&table(at, "steps", "loops")["rows"][0], "steps") > 10.0);

    let lab = "[record]\nsteady = { steps = 20, duration_s = 20 }\n\
               [scenario.plugin]\ncommand = [\"./run.sh\"]\nready = { steps = 5 }\nstep = { function = \"world_step\" }\n";
    std::fs::write(at.join("stepscope.toml"), lab).unwrap();
    let run = stepscope(at, &["run", "-o", "runs"]);
    let said = text(&run.stderr);
    assert!(run.status.success() && said.contains("ready after") && said.contains("calls of world_step"), "{said}");
    let missing = stepscope(at, &["record", "-o", "m", "-d", "500ms", "--step-function", "wrold_stpe", "./run.sh"]);
    let said = text(&missing.stderr);
    assert!(missing.status.success() && said.contains("warning: Steps are not recorded: "), "{said}");
    assert!(said.contains(" files that the program mapped later holds it either"), "{said}");
}

/// Two thousand steps, most of whose time is in `World.step`; other methods have its name, too.
const PYTHON_WORLD: &str = "
import time

class Wheel:
    def step(self):
        return sum(range(2000))

class World:
    def __init__(self):
        self.wheels = [Wheel() for _ in range(20)]

    def step(self):
        for wheel in self.wheels:
            wheel.step()

def main():
    world = World()
    for _ in range(3000):
        world.step()
        time.sleep(0.001)

main()
";

#[test]
fn a_python_function_is_found_as_step_by_name_and_by_its_steady_rate() {
    let name = "a_python_function_is_found_as_step_by_name_and_by_its_steady_rate";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("world.py"), PYTHON_WORLD).unwrap();
    let program = ["--", "python3", "world.py"];
    let run = |arguments: &[&str]| stepscope(at, &[arguments, &program].concat());
    let recorded = run(&["record", "-o", "c", "--step", "World.step"]);
    let said = text(&recorded.stderr);
    if !recorded.status.success() {
        println!("skipped: {name}: {said}");
        return;
    }
    let dimensions = table(at, "dimensions", "dimensions");
    let steps = row(&dimensions, "dimension", "steps");
    if steps["status"] != "recorded" {
        println!("skipped: {name}: {}", steps["detail"]);
        return;
    }
    assert!(said.contains("steps: calls of World.step in ") && said.contains("world.py"), "{said}");
    // Those of the first tenth of the time are over when the function is found.
    let steps = number(&table(at, "steps", "loops")["rows"][0], "steps");
    assert!((1_500.0..3_000.0).contains(&steps), "{steps}");
    // The probe's instruction stands in the function's code, and its callers are known all the same.
    let hotspots = table(at, "hotspots", "hotspots");
    let inclusive = |function: &str| {
        let function = format!("py::{function}:{}", at.join("world.py").display());
        number(row(&hotspots, "function", &function), "inclusive")
    };
    let (main, step) = (inclusive("main"), inclusive("World.step"));
    assert!(step > 0.0 && main >= step, "{main} {step}");

    let suggested = run(&["record", "--suggest-steps", "--format", "json"]);
    let found: Value = serde_json::from_slice(&suggested.stdout).unwrap();
    let best = &found["rows"][0];
    assert!(best["function"].as_str().unwrap().starts_with("py::World.step:"), "{best}");
    assert!(number(best, "rate") > 10.0, "{best}");
    assert!(text(&suggested.stdout).contains("--step World.step"), "{found}");
}
