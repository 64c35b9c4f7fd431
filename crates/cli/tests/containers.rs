//! A container with pid, mount, network and user namespaces of its own, recorded from outside by its name.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use common::{row, stepscope, text};

/// A running container; it is removed when dropped.
struct Container(String);

impl Container {
    /// Starts the program as the only file of a container. `None`, with the reason, where that is impossible.
    fn start(folder: &Path) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containers/planner.c");
        fs::create_dir_all(folder.join("root/proc")).unwrap();
        for name in ["dev", "sys"] {
            fs::create_dir_all(folder.join("root").join(name)).unwrap();
        }
        let compiled = Command::new("gcc")
            .args(["-static", "-O2", "-g", "-o"])
            .arg(folder.join("root/planner"))
            .arg(source)
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            return Err("no gcc with static libraries".to_owned());
        }
        let runc =
            |arguments: &[&str]| Command::new("runc").args(arguments).current_dir(folder).stdin(Stdio::null()).output();
        let spec = runc(&["spec"]).map_err(|_| "no runc".to_owned())?;
        assert!(spec.status.success(), "{}", text(&spec.stderr));
        let mut config: Value = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
        config["root"]["path"] = "root".into();
        config["process"]["terminal"] = false.into();
        config["process"]["args"] = json!(["/planner"]);
        config["linux"]["namespaces"].as_array_mut().unwrap().push(json!({ "type": "user" }));
        for mappings in ["uidMappings", "gidMappings"] {
            config["linux"][mappings] = json!([{ "containerID": 0, "hostID": 100_000, "size": 65_536 }]);
        }
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let name = format!("stepscope-test-{}", std::process::id());
        let started = Command::new("runc")
            .args(["run", "-d", &name])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("errors")).unwrap())
            .status();
        match started {
            Ok(status) if status.success() => Ok(Self(name)),
            _ => {
                Err(format!("runc starts no container: {}", fs::read_to_string(folder.join("errors")).unwrap().trim()))
            }
        }
    }

    fn is_running(&self) -> bool {
        let state = Command::new("runc").args(["state", &self.0]).output().unwrap();
        serde_json::from_slice::<Value>(&state.stdout).unwrap()["status"] == "running"
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Command::new("runc").args(["delete", "-f", &self.0]).output();
    }
}

#[test]
fn a_container_is_recorded_by_its_name_with_names_of_its_functions_and_goes_on() {
    const NAME: &str = "a_container_is_recorded_by_its_name_with_names_of_its_functions_and_goes_on";
    if !stepscope(Path::new("/"), &["doctor"]).status.success() {
        return println!("skipped: {NAME}: nothing can be recorded on this machine (see stepscope doctor)");
    }
    let folder = tempfile::tempdir().unwrap();
    // The container's root must reach its files.
    let _ = Command::new("chmod").arg("755").arg(folder.path()).status();
    let container = match Container::start(folder.path()) {
        Ok(container) => container,
        Err(reason) => return println!("skipped: {NAME}: {reason}"),
    };
    let at = folder.path();
    let recorded = stepscope(at, &["record", "--container", &container.0, "--duration", "1s", "-o", "c"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    assert!(container.is_running());
    let table = common::json(&stepscope(at, &["show", "c", "--view", "hotspots", "--format", "json"]));
    let plan = row(&table, "plan_route");
    assert!(plan["self_share"].as_f64().unwrap() > 50.0, "{plan}");
    let threads = common::json(&stepscope(at, &["show", "c", "--view", "threads", "--format", "json"]));
    assert_eq!(threads["rows"].as_array().unwrap().len(), 2, "{threads}");
}
