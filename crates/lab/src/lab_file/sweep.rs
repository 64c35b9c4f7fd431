//! `[sweep]`: the sizes at which scenarios are run, and what they replace in commands, environments and files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The axis of CPU sets.
pub const CORES: &str = "cores";

/// `[sweep]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSettings {
    /// The axis of sizes, such as `n`.
    pub size: Option<SizeAxis>,
    /// Numbers of CPUs that the program may use. Empty: not restricted.
    pub cores: Vec<u32>,
    /// Files made from templates, by the name of their placeholder.
    pub files: BTreeMap<String, PathBuf>,
    /// Runs of each point.
    pub runs: u32,
    /// Longest time of the whole sweep.
    pub budget: Option<Duration>,
    /// A scenario's sweep ends early if its prediction at twice the largest size is within this many percent.
    pub precision_percent: f64,
    /// Folder of the files that are made.
    pub folder: PathBuf,
}

/// An axis whose values replace `{name}`.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeAxis {
    /// Its name.
    pub name: String,
    /// Its values, ascending.
    pub values: Vec<f64>,
}

/// A point of a sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    size: Option<(String, f64)>,
    /// Number of CPUs that the program may use.
    pub cores: Option<u32>,
    files: Vec<MadeFile>,
}

/// A file made from a template.
#[derive(Debug, Clone, PartialEq)]
struct MadeFile {
    placeholder: String,
    template: PathBuf,
    path: PathBuf,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self {
            size: None,
            cores: Vec::new(),
            files: BTreeMap::new(),
            runs: 5,
            budget: None,
            precision_percent: 10.0,
            folder: PathBuf::new(),
        }
    }
}

impl SweepSettings {
    /// Whether it has no axis.
    pub fn is_empty(&self) -> bool {
        self.size.is_none() && self.cores.is_empty()
    }

    /// Every point, by size, then by CPUs.
    pub fn points(&self) -> Vec<Point> {
        let sizes: Vec<Option<f64>> = match &self.size {
            Some(axis) => axis.values.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let cores: Vec<Option<u32>> = match self.cores.as_slice() {
            [] => vec![None],
            cores => cores.iter().copied().map(Some).collect(),
        };
        sizes.iter().flat_map(|&size| cores.iter().map(move |&cores| self.point(size, cores))).collect()
    }

    /// The smallest size on all CPUs: what scenarios run at outside of a sweep.
    pub(super) fn first(&self) -> Option<Point> {
        let axis = self.size.as_ref()?;
        Some(self.point(axis.values.first().copied(), None))
    }

    fn point(&self, size: Option<f64>, cores: Option<u32>) -> Point {
        let size = self.size.as_ref().zip(size).map(|(axis, value)| (axis.name.clone(), value));
        let folder = match &size {
            Some((name, value)) => self.folder.join(format!("{name}={value}")),
            None => self.folder.clone(),
        };
        let made = |(placeholder, template): (&String, &PathBuf)| {
            let name = template.file_name().unwrap_or_default().to_string_lossy();
            let path = folder.join(name.strip_suffix(".in").unwrap_or(&name));
            MadeFile { placeholder: placeholder.clone(), template: template.clone(), path }
        };
        Point { files: self.files.iter().map(made).collect(), size, cores }
    }
}

impl Point {
    /// Its values by axis.
    pub fn axes(&self) -> BTreeMap<String, f64> {
        let cores = self.cores.map(|cores| (CORES.to_owned(), f64::from(cores)));
        self.size.iter().cloned().chain(cores).collect()
    }

    /// Its name in folders and tables: `n=500+cores=2`.
    pub fn name(&self) -> String {
        let size = self.size.iter().map(|(name, value)| format!("{name}={value}"));
        let cores = self.cores.map(|cores| format!("{CORES}={cores}"));
        size.chain(cores).collect::<Vec<_>>().join("+")
    }

    /// A text with its values and files in place of the placeholders.
    pub(super) fn replaced(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for file in &self.files {
            text = text.replace(&format!("{{{}}}", file.placeholder), &file.path.to_string_lossy());
        }
        for (axis, value) in self.axes() {
            text = text.replace(&format!("{{{axis}}}"), &value.to_string());
        }
        text
    }

    /// Writes its files, each from its template.
    ///
    /// # Errors
    /// If a template cannot be read, or a file cannot be written; with the path.
    pub fn write_files(&self) -> Result<(), String> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("{path}: {error}")
        };
        for file in &self.files {
            let text = fs::read_to_string(&file.template).map_err(failed(&file.template))?;
            fs::create_dir_all(file.path.parent().unwrap_or(Path::new("/"))).map_err(failed(&file.path))?;
            fs::write(&file.path, self.replaced(&text)).map_err(failed(&file.path))?;
        }
        Ok(())
    }
}
