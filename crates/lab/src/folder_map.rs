//! One folder in place of another: a second build folder, or another checkout of the same repository.
//!
//! A scenario names its files in many places: program, arguments, directory, environment, drivers, the file of its step
//! function. To run it with the files of another folder, every path that lies in the first folder is taken from the
//! second. What is a path is decided by these rules, which are documented for users in `docs/lab-file.md`:
//!
//! - a text without `/` is none: `build` may be the name of a target;
//! - a relative one starts from the directory that the program runs in. Where that directory moves too, it is left as
//!   it is, if it leads to the right place from there;
//! - in `--option=PATH` and `NAME=PATH` the part after the first `=` is looked at, and in values of variables each part
//!   between colons, as in `LD_LIBRARY_PATH`.

use std::path::{Component, Path, PathBuf};

use crate::lab_file::{Driver, Ready, Scenario, StepSource};

/// Folders that others stand in for. Where several hold a path, the innermost one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderMap {
    folders: Vec<(PathBuf, PathBuf)>,
}

impl FolderMap {
    /// Each pair is a folder and the one in its place, both absolute.
    pub fn new(folders: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Self {
        let mut folders: Vec<(PathBuf, PathBuf)> =
            folders.into_iter().map(|(from, to)| (normal(&from), normal(&to))).collect();
        folders.sort_by_key(|(from, _)| std::cmp::Reverse(from.components().count()));
        Self { folders }
    }

    /// Whether nothing is moved.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Where an absolute path has gone, if it lies in a folder that is moved.
    pub fn path(&self, path: &Path) -> Option<PathBuf> {
        let path = normal(path);
        self.folders.iter().find_map(|(from, to)| {
            let inside = path.strip_prefix(from).ok()?;
            Some(if inside.as_os_str().is_empty() { to.clone() } else { to.join(inside) })
        })
    }

    /// Lets a scenario take its files from where they have gone.
    pub fn scenario(&self, scenario: &mut Scenario) {
        if self.is_empty() {
            return;
        }
        let old = scenario.cwd.clone();
        self.replace(&mut scenario.cwd);
        self.command(&mut scenario.command, &old, &scenario.cwd);
        for value in scenario.env.values_mut() {
            *value = self.parts(value, &old, &scenario.cwd);
        }
        for driver in &mut scenario.drivers {
            self.driver(driver, &old, &scenario.cwd);
        }
        if let Some(StepSource::Function(function)) = &mut scenario.step {
            function.module.iter_mut().for_each(|module| self.replace(module));
        }
        if let Some(Ready::File(path)) = &mut scenario.ready {
            self.replace(path);
        }
    }

    fn driver(&self, driver: &mut Driver, old: &Path, new: &Path) {
        let old = driver.cwd.clone().unwrap_or_else(|| old.to_owned());
        driver.cwd.iter_mut().for_each(|cwd| self.replace(cwd));
        let new = driver.cwd.clone().unwrap_or_else(|| new.to_owned());
        self.command(&mut driver.command, &old, &new);
        for value in driver.env.values_mut() {
            *value = self.parts(value, &old, &new);
        }
    }

    fn replace(&self, path: &mut PathBuf) {
        if let Some(moved) = self.path(path) {
            *path = moved;
        }
    }

    /// A command that ran in `old`, changed to run in `new`.
    pub(crate) fn command(&self, command: &mut [String], old: &Path, new: &Path) {
        for word in command {
            let moved = self.text(word, old, new).or_else(|| {
                let (name, path) = word.split_once('=')?;
                Some(format!("{name}={}", self.text(path, old, new)?))
            });
            if let Some(moved) = moved {
                *word = moved;
            }
        }
    }

    fn parts(&self, value: &str, old: &Path, new: &Path) -> String {
        let parts = value.split(':').map(|part| self.text(part, old, new).unwrap_or_else(|| part.to_owned()));
        parts.collect::<Vec<_>>().join(":")
    }

    /// What stands for a text that is a path: `None` if it may stay.
    fn text(&self, text: &str, old: &Path, new: &Path) -> Option<String> {
        if !text.contains('/') {
            return None;
        }
        let meant = normal(&old.join(text));
        let moved = self.path(&meant);
        let wanted = moved.as_ref().unwrap_or(&meant);
        if normal(&new.join(text)) == *wanted {
            return None;
        }
        // What only looks like a path, such as an address, does not lead anywhere.
        let leads = moved.is_some() || meant.exists();
        leads.then(|| wanted.to_str().map(str::to_owned))?
    }
}

/// The path without `.` and `..`, as it is written: links are not followed, for files that are not there yet.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
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
        moved(&[("/home/me/lab/build", "/home/me/lab/build-fix")]).scenario(&mut scenario);
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
        moved(&[("/home/me/lab/build", "/elsewhere")]).scenario(&mut scenario);
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
        FolderMap::new([(outside.path().join("repo"), PathBuf::from("/tree"))]).scenario(scenario);
        let data = outside.path().join("data.sdf").display().to_string();
        assert_eq!(scenario.command, ["python3", "worlds/a.sdf", "../src/b", &data, "x/y"]);
        assert_eq!(scenario.cwd, Path::new("/tree/lab"));
    }

    #[test]
    fn of_folders_in_each_other_the_inner_one_counts() {
        let both = moved(&[("/repo", "/tree"), ("/repo/build", "/fast")]);
        assert_eq!(both.path(Path::new("/repo/build/../build/sim")), Some("/fast/sim".into()));
        assert_eq!(both.path(Path::new("/repo/src")), Some("/tree/src".into()));
        assert_eq!(both.path(Path::new("/repo")), Some("/tree".into()));
        assert_eq!(both.path(Path::new("/other")), None);
    }
}
