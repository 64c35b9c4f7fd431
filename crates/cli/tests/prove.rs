//! `stepscope prove`, with the bundled simulator: that what it measures is measured, not how well this machine does.

mod common;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use common::{json, simulator, stepscope, text};

fn rows<'a>(tables: &'a Value, name: &str) -> &'a Vec<Value> {
    let tables = tables["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["table"] == name).unwrap_or_else(|| panic!("no table {name}"));
    table["rows"].as_array().unwrap()
}

#[test]
fn a_known_pathology_is_found_by_name_by_hash_and_by_address() {
    let test = "a_known_pathology_is_found_by_name_by_hash_and_by_address";
    let Some(ground) = simulator(test) else { return };
    if Command::new("objcopy").arg("--version").output().is_err() {
        println!("skipped: {test}: objcopy (binutils) is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let ground = ground.to_str().unwrap();
    let builds = "plain,renamed,stripped";
    let asked = ["prove", ground, "--switch", "full-scan", "--runs", "1", "--seconds", "0.4", "--build", builds];
    let proved = stepscope(at, &[&asked[..], &["--format", "json"]].concat());
    let reported = text(&proved.stderr);
    // A busy machine may miss the accuracy that is asked for; then the exit code is 1 and everything is printed all the same.
    let printed: Value = serde_json::from_slice(&proved.stdout).unwrap_or_else(|error| panic!("{error}: {reported}"));
    assert!(!reported.contains("not measured"), "{reported}");

    let switches = rows(&printed, "prove_switches");
    let builds: Vec<&str> = switches.iter().map(|row| row["build"].as_str().unwrap()).collect();
    assert_eq!(builds, ["plain", "renamed", "stripped"]);
    for row in switches {
        let [share, gain, predicted] = ["share", "gain", "predicted"].map(|column| row[column].as_f64().unwrap());
        assert!(share > 40.0 && gain > 30.0 && predicted > 30.0, "{row}");
    }
    assert_eq!(switches[0]["place"], 1, "{}", switches[0]);
    let shares = rows(&printed, "prove_shares");
    let scan = "ground::ecs::EntityComponentManager::each_no_cache";
    let scored = |build: &str| shares.iter().filter(|row| row["build"] == build && row["function"] == scan).count();
    assert_eq!(["plain", "renamed", "stripped"].map(scored), [2, 2, 2], "alone and among all, not in the fast setting");
    let counts = rows(&printed, "prove_counts");
    for row in counts.iter().filter(|row| !row["recorded"].is_null()) {
        assert_eq!(row["holds"], true, "{row}");
    }
    let of_poses = "allocations under ground::physics::Physics::write_changed_world_poses";
    assert!(counts.iter().any(|row| row["what"] == of_poses), "{counts:?}");
    let score = rows(&printed, "prove");
    assert!(score.iter().any(|row| row["what"] == "counts exact" && row["holds"] == true), "{score:?}");

    kept(at, &printed);
    scored_again(at, &printed);
}

/// What was printed is in the run's folder, the score in the history, and the recordings can be opened.
fn kept(at: &Path, printed: &Value) {
    let run = at.join("stepscope-runs/latest");
    let page: Value = serde_json::from_slice(&std::fs::read(run.join("prove.json")).unwrap()).unwrap();
    assert_eq!(&page, printed);
    let history = json(&stepscope(at, &["prove", "--history", "--format", "json"]));
    assert_eq!(history["rows"].as_array().unwrap().len(), rows(printed, "prove").len());
    let rank = json(&stepscope(at, &["rank", "stepscope-runs/latest/full-scan/alone/01/steady", "--format", "json"]));
    let first = rank["rows"][0]["function"].as_str().unwrap();
    assert!(first.starts_with("ground::ecs::"), "the run's lab file says what is owned: {first}");
}

/// What was kept scores as it did, but for builds whose names are made when they run, and adds nothing to the history.
fn scored_again(at: &Path, printed: &Value) {
    let history = || std::fs::read(at.join(".stepscope/prove.jsonl")).unwrap();
    let before = history();
    let again = stepscope(at, &["prove", "--again", "stepscope-runs/latest", "--format", "json"]);
    let reported = text(&again.stderr);
    for build in ["renamed", "stripped"] {
        assert!(reported.contains(&format!("not measured: the {build} build")), "{reported}");
    }
    assert_eq!(again.status.code(), Some(1), "{reported}");
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    for table in ["prove_switches", "prove_gains", "prove_shares", "prove_silence", "prove_counts"] {
        let plain = |rows: &[Value]| -> Vec<Value> {
            rows.iter().filter(|row| row.get("build").is_none_or(|build| build == "plain")).cloned().collect()
        };
        assert_eq!(rows(&again, table), &plain(rows(printed, table)), "{table}");
    }
    assert_eq!(history(), before);
    std::fs::rename(at.join("stepscope-runs/latest/accounts/full-scan-fast-timed-1.json"), at.join("aside")).unwrap();
    let part = stepscope(at, &["prove", "--again", "stepscope-runs/latest", "--format", "json"]);
    assert!(text(&part.stderr).contains("not measured: full-scan: not all of its settings"), "{}", text(&part.stderr));
    assert!(rows(&serde_json::from_slice(&part.stdout).unwrap(), "prove_switches").is_empty());
    let other = stepscope(at, &["prove", "--again", "stepscope-runs/latest", "--switch", "pose-map"]);
    assert!(
        text(&other.stderr).contains("there is no switch `pose-map`; there are full-scan"),
        "{}",
        text(&other.stderr)
    );
    let none = stepscope(at, &["prove", "--again", "stepscope-runs/latest/full-scan"]);
    assert!(text(&none.stderr).contains("not a run of `stepscope prove`"), "{}", text(&none.stderr));
}

#[test]
fn a_program_without_a_catalogue_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (program, reason) in [("/no/such/program", "cannot run /no/such/program"), ("/bin/true", "its catalogue")] {
        let asked = stepscope(folder.path(), &["prove", program]);
        assert_eq!(asked.status.code(), Some(1));
        assert!(text(&asked.stderr).contains(reason), "{}", text(&asked.stderr));
    }
    let Some(ground) = simulator("a_program_without_a_catalogue_is_refused_with_the_reason") else { return };
    let asked = stepscope(folder.path(), &["prove", ground.to_str().unwrap(), "--switch", "fullscan"]);
    assert!(text(&asked.stderr).contains("there is no switch `fullscan`; there are full-scan, "));
}
