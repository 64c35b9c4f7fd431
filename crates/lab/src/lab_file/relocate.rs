//! [`Scenario::relocate`]: a scenario with the files of another build folder or checkout.

use std::path::Path;

use super::settings::{Driver, Ready, Scenario, StepSource};
use crate::folder_map::FolderMap;

impl Scenario {
    /// Replaces every path in one of these folders.
    pub fn relocate(&mut self, folders: &FolderMap) {
        if folders.is_empty() {
            return;
        }
        let old = self.cwd.clone();
        folders.replace(&mut self.cwd);
        folders.command(&mut self.command, &old, &self.cwd);
        for value in self.env.values_mut() {
            *value = folders.parts(value, &old, &self.cwd);
        }
        for driver in &mut self.drivers {
            driver.relocate(folders, &old, &self.cwd);
        }
        if let Some(StepSource::Function(function)) = &mut self.step {
            function.module.iter_mut().for_each(|module| folders.replace(module));
        }
        if let Some(Ready::File(path)) = &mut self.ready {
            folders.replace(path);
        }
    }
}

impl Driver {
    /// The same for a driver of a scenario that ran in `old` and now runs in `new`.
    fn relocate(&mut self, folders: &FolderMap, old: &Path, new: &Path) {
        let old = self.cwd.clone().unwrap_or_else(|| old.to_owned());
        self.cwd.iter_mut().for_each(|cwd| folders.replace(cwd));
        let new = self.cwd.clone().unwrap_or_else(|| new.to_owned());
        folders.command(&mut self.command, &old, &new);
        for value in self.env.values_mut() {
            *value = folders.parts(value, &old, &new);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::lab_file::LabFile;

    fn moved(folders: &[(&str, &str)]) -> FolderMap {
        FolderMap::new(folders.iter().map(|(from, to)| (PathBuf::from(from), PathBuf::from(to))))
    }

    fn scenario(text: &str) -> Scenario {
        let lab = LabFile::parse(Path::new("/home/me/lab/stepscope.toml"), text).unwrap_or_else(|e| panic!("{e}"));
        lab.scenarios.into_iter().next().unwrap()
    }

    #[test]
    fn every_path_that_lies_in_the_folder_is_taken_from_the_other() {
        let mut scenario = scenario(
            r#"
            [scenario.a]
            command = ["./build/sim", "build/worlds/a.sdf", "--plugin=build/p.so", "build", "http://build/x", "-v"]
            env = { LD_LIBRARY_PATH = "/opt/lib:/home/me/lab/build/lib", MODE = "build" }
            drivers = [{ command = ["./build/drive"], cwd = "build/tools", env = { OUT = "/home/me/lab/build/o" } }]
            step = { function = "Step", module = "build/libsim.so" }
            ready = { file = "build/ready" }
            "#,
        );
        scenario.relocate(&moved(&[("/home/me/lab/build", "/home/me/lab/build-fix")]));
        let fix = "/home/me/lab/build-fix";
        let expected = [
            &format!("{fix}/sim"),
            &format!("{fix}/worlds/a.sdf"),
            &format!("--plugin={fix}/p.so"),
            "build",
            "http://build/x",
            "-v",
        ];
        assert_eq!(scenario.command, expected);
        assert_eq!(scenario.cwd, Path::new("/home/me/lab"));
        assert_eq!(scenario.env["LD_LIBRARY_PATH"], format!("/opt/lib:{fix}/lib"));
        assert_eq!(scenario.env["MODE"], "build");
        let driver = &scenario.drivers[0];
        assert_eq!(driver.command, [format!("{fix}/drive")]);
        assert_eq!(driver.cwd.as_deref(), Some(Path::new(&format!("{fix}/tools"))));
        assert_eq!(driver.env["OUT"], format!("{fix}/o"));
        let Some(StepSource::Function(step)) = &scenario.step else { panic!("{:?}", scenario.step) };
        assert_eq!(step.module.as_deref(), Some(Path::new(&format!("{fix}/libsim.so"))));
        assert_eq!(scenario.ready, Some(Ready::File(format!("{fix}/ready").into())));
    }

    #[test]
    fn a_folder_whose_name_only_begins_alike_is_another() {
        let mut scenario = scenario(r#"scenario.a = { command = ["./build-debug/sim"] }"#);
        scenario.relocate(&moved(&[("/home/me/lab/build", "/elsewhere")]));
        assert_eq!(scenario.command, ["/home/me/lab/./build-debug/sim"]);
    }

    #[test]
    fn relative_paths_stay_where_the_directory_moves_with_them_unless_they_lead_out_of_what_is_moved() {
        let outside = tempfile::tempdir().unwrap();
        let lab = outside.path().join("repo/lab");
        std::fs::create_dir_all(&lab).unwrap();
        std::fs::write(outside.path().join("data.sdf"), "").unwrap();
        let text = r#"scenario.a = { command = ["python3", "worlds/a.sdf", "../src/b", "../../data.sdf", "x/y"] }"#;
        let mut lab_file = LabFile::parse(&lab.join("stepscope.toml"), text).unwrap();
        let scenario = &mut lab_file.scenarios[0];
        scenario.relocate(&FolderMap::new([(outside.path().join("repo"), PathBuf::from("/tree"))]));
        let data = outside.path().join("data.sdf").display().to_string();
        assert_eq!(scenario.command, ["python3", "worlds/a.sdf", "../src/b", &data, "x/y"]);
        assert_eq!(scenario.cwd, Path::new("/tree/lab"));
    }
}
