//! The examples in `examples/`, for real: built, run for a second each, and known heavy functions found in them.
//! Those whose simulator is not installed are skipped by name; each example's README says how to install it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use stepscope_record::abilities::Abilities;

/// An example, one of its scenarios, and what must be found there.
struct Example {
    folder: &'static str,
    scenario: &'static str,
    /// Is there if the simulator is installed; relative paths start from the example's folder.
    needs: &'static str,
    /// What is owned: a column, and how its values begin.
    owned: (&'static str, &'static str),
    /// Functions and the least inclusive share of the steady phase, in percent, that each has on any machine.
    heavy: &'static [(&'static str, f64)],
}

fn stepscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stepscope")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = stepscope(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(table: &Value) -> &[Value] {
    table["rows"].as_array().unwrap()
}

impl Example {
    /// Why it cannot be run here, if it cannot.
    fn obstacle(&self) -> Option<String> {
        if !Abilities::probe().can_record() {
            return Some("this user may not record here".to_owned());
        }
        let needed = self.source().join(self.needs);
        (!needed.exists()).then(|| format!("{} is not there; see examples/{}/README.md", self.needs, self.folder))
    }

    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(self.folder).canonicalize().unwrap()
    }

    /// The example in a folder of its own, with a lab file whose phases are short.
    fn shortened(&self, folder: &Path) -> PathBuf {
        for entry in fs::read_dir(self.source()).unwrap() {
            let entry = entry.unwrap();
            symlink(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        let lab = folder.join("stepscope.toml");
        let text = fs::read_to_string(&lab).unwrap();
        let long = "steady = { warmup_s = 1, duration_s = 5 }";
        assert!(text.contains(long), "the lab files of examples say how long their steady phase is");
        fs::remove_file(&lab).unwrap();
        fs::write(&lab, text.replace(long, "steady = { warmup_s = 0.2, duration_s = 1.5 }")).unwrap();
        lab
    }

    fn run(&self, name: &str) {
        if let Some(obstacle) = self.obstacle() {
            println!("skipped: {name}: {obstacle}");
            return;
        }
        let build = Command::new("sh").arg(self.source().join("build.sh")).output().unwrap();
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));

        let folder = tempfile::tempdir().unwrap();
        let lab = self.shortened(folder.path());
        let runs = folder.path().join("runs");
        let output = stepscope(&["run", lab.to_str().unwrap(), self.scenario, "-o", runs.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let run = runs.join("latest");
        assert!(fs::metadata(run.join("report.html")).unwrap().len() > 0);
        let info: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
        let trial = &info["trials"][0];
        assert_eq!(trial["result"]["outcome"], "recorded", "{trial}");
        assert_eq!(trial["captured"], serde_json::json!(["loading", "steady"]));
        let captures = run.join(self.scenario).join("base");
        self.check_whole(&captures.join("steady"));
        self.check_heavy(&captures.join("steady"));
        self.check_rank(&run);
        self.check_steps(&run, &captures.join("steady"));
    }

    /// Stacks reach their roots, and samples account for the CPU time that the kernel counted: closely, but on a busy
    /// machine a second and a half holds few samples.
    fn check_whole(&self, capture: &Path) {
        let info: Value = serde_json::from_slice(&fs::read(capture.join("capture.json")).unwrap()).unwrap();
        let losses = &info["losses"];
        let number = |name: &str| losses[name].as_f64().unwrap_or_else(|| panic!("{name} in {losses}"));
        let coverage = number("sampled_ns") / number("cpu_time_ns");
        assert!((0.8..1.2).contains(&coverage), "{losses}");
        // On a machine that is busy with other work, memory that a stack goes on in is read later, and more often too late.
        assert!(number("truncated_stacks") <= 0.05 * number("samples"), "{losses}");
    }

    fn check_heavy(&self, capture: &Path) {
        let table = json(&["show", capture.to_str().unwrap(), "--view", "hotspots"]);
        for &(function, least) in self.heavy {
            let row = rows(&table).iter().find(|row| row["function"] == function);
            let share = row.and_then(|row| row["inclusive_share"].as_f64());
            assert!(share.is_some_and(|share| share >= least), "{function} has {share:?} %");
        }
    }

    /// Where steps can be recorded, they were, and costs are by the step.
    fn check_steps(&self, run: &Path, capture: &Path) {
        let info: Value = serde_json::from_slice(&fs::read(capture.join("capture.json")).unwrap()).unwrap();
        let status = &info["dimensions"]["steps"];
        if status["status"] == "missing" {
            println!("skipped: steps of {}: {}", self.folder, status["reason"]);
            return;
        }
        let table = json(&["rank", run.to_str().unwrap()]);
        let cost = table["columns"].as_array().unwrap().iter().find(|column| column["name"] == "cost").unwrap();
        assert_eq!(cost["unit"], "ns/step", "{status}");
    }

    /// Only owned functions are ranked, by what they cost, and nearly all cost is under one of them.
    fn check_rank(&self, run: &Path) {
        let table = json(&["rank", run.to_str().unwrap()]);
        let (column, prefix) = self.owned;
        assert!(rows(&table).len() > 10, "{table}");
        for row in rows(&table) {
            assert!(row[column].as_str().is_some_and(|owner| owner.starts_with(prefix)), "{row}");
        }
        let total: f64 = rows(&table).iter().map(|row| row["share"].as_f64().unwrap()).sum();
        assert!((90.0..100.1).contains(&total), "{total} %");
    }
}

#[test]
fn the_collisions_and_constraints_of_dart_are_found() {
    let example = Example {
        folder: "dart",
        scenario: "dynamic_100",
        needs: "/usr/include/dart/collision/ode/OdeCollisionDetector.hpp",
        owned: ("function", "dart::"),
        heavy: &[
            ("main", 95.0),
            ("dart::simulation::World::step", 95.0),
            ("dart::constraint::BoxedLcpConstraintSolver::solveConstrainedGroup", 30.0),
            ("dart::collision::OdeCollisionDetector::collide", 3.0),
            ("dart::dynamics::BodyNode::getSkeleton", 5.0),
            ("dxHashSpace::collide", 1.0),
        ],
    };
    example.run("the_collisions_and_constraints_of_dart_are_found");
}

#[test]
fn the_events_of_ns3_are_found() {
    let example = Example {
        folder: "ns3-wifi",
        scenario: "stations_8",
        needs: "/usr/include/ns3/core-module.h",
        owned: ("function", "ns3::"),
        heavy: &[
            ("main", 95.0),
            ("ns3::DefaultSimulatorImpl::ProcessOneEvent", 90.0),
            ("ns3::MapScheduler::Insert", 1.0),
            ("ns3::PhyEntity::EndOfMpdu", 5.0),
            ("ns3::OnOffApplication::SendPacket", 10.0),
        ],
    };
    example.run("the_events_of_ns3_are_found");
}

#[test]
fn callees_of_a_mujoco_step_are_found_below_python() {
    let example = Example {
        folder: "mujoco",
        scenario: "bodies_750",
        needs: "venv/bin/python3",
        owned: ("module", "libmujoco.so"),
        heavy: &[
            ("mj_step", 90.0),
            ("mj_fwdPosition", 15.0),
            ("mj_fwdConstraint", 15.0),
            ("mj_collision", 3.0),
            ("mj_solPrimal", 10.0),
        ],
    };
    example.run("callees_of_a_mujoco_step_are_found_below_python");
}
