//! [`Scenario::fill_in`]: a scenario at a point of a sweep.

use std::path::PathBuf;

use super::settings::{Ready, Scenario};
use super::sweep::{Point, SweepSettings};

impl Scenario {
    /// Replaces the placeholders in commands, environments, drivers, directories and the ready condition.
    pub(super) fn fill_in(&mut self, point: &Point) {
        let text = |text: &mut String| *text = point.replaced(text);
        let path = |path: &mut PathBuf| {
            if let Some(text) = path.to_str() {
                *path = PathBuf::from(point.replaced(text));
            }
        };
        self.command.iter_mut().for_each(text);
        self.env.values_mut().for_each(text);
        path(&mut self.cwd);
        for driver in &mut self.drivers {
            driver.command.iter_mut().for_each(text);
            driver.env.values_mut().for_each(text);
            driver.cwd.iter_mut().for_each(path);
        }
        match &mut self.ready {
            Some(Ready::Log(line)) => text(line),
            Some(Ready::File(file)) => path(file),
            _ => {}
        }
    }
}

impl SweepSettings {
    /// Whether the axes change this scenario.
    pub fn applies_to(&self, scenario: &Scenario) -> bool {
        if self.size.is_none() {
            return !self.cores.is_empty();
        }
        let mut replaced = scenario.clone();
        self.first().iter().for_each(|first| replaced.fill_in(first));
        replaced.command != scenario.command
            || replaced.env != scenario.env
            || replaced.drivers != scenario.drivers
            || replaced.cwd != scenario.cwd
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::lab_file::{LabFile, TrialFilter};

    fn lab(text: &str) -> LabFile {
        LabFile::parse(Path::new("/lab/stepscope.toml"), text).unwrap_or_else(|error| panic!("{error}"))
    }

    const LAB: &str = r#"
        [sweep]
        n = [1000, 500]
        cores = [2, 1]
        files = { world = "worlds/w.sdf.in" }
        [scenario.crowd]
        command = ["sim", "--n={n}", "{world}"]
        env = { OMP_NUM_THREADS = "{cores}" }
        ready = { log = "{n} entities" }
    "#;

    #[test]
    fn a_point_replaces_its_values_and_files_wherever_they_stand() {
        let lab = lab(LAB);
        let points = lab.sweep.points();
        let names: Vec<String> = points.iter().map(Point::name).collect();
        assert_eq!(names, ["n=500+cores=1", "n=500+cores=2", "n=1000+cores=1", "n=1000+cores=2"]);
        let trial = lab.trials_as_written(&TrialFilter::default()).unwrap()[0].at(&points[3]);
        assert_eq!(trial.scenario.command, ["sim", "--n=1000", "/lab/.stepscope/sweep/n=1000/w.sdf"]);
        assert_eq!(trial.scenario.env["OMP_NUM_THREADS"], "2");
        assert_eq!(trial.scenario.ready, Some(Ready::Log("1000 entities".into())));
        assert_eq!(trial.label(), "crowd/n=1000+cores=2");
        assert_eq!(trial.point.axes(), BTreeMap::from([("n".to_owned(), 1000.0), ("cores".to_owned(), 2.0)]));
    }

    #[test]
    fn outside_of_a_sweep_a_scenario_runs_at_the_smallest_size_on_all_cpus() {
        let trials = lab(LAB).trials(&TrialFilter::default()).unwrap();
        assert_eq!(trials[0].scenario.command[1], "--n=500");
        assert_eq!((trials[0].label().as_str(), trials[0].point.cores), ("crowd", None));
    }

    #[test]
    fn a_file_is_made_from_its_template() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("w.sdf.in"), "<count>{n}</count>").unwrap();
        let text = LAB.replace("worlds/w.sdf.in", "w.sdf.in");
        let lab = LabFile::parse(&folder.path().join("stepscope.toml"), &text).unwrap();
        lab.sweep.points()[0].write_files().unwrap();
        let made = folder.path().join(".stepscope/sweep/n=500/w.sdf");
        assert_eq!(fs::read_to_string(made).unwrap(), "<count>500</count>");
    }
}
