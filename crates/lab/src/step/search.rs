//! A step function that is searched while the program runs: in libraries that it opens itself, behind a script, or in Python.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stepscope_record::proc::ProcessTree;
use stepscope_record::{RecordError, StepPoint};

use super::{StepError, StepFunction, libraries};

/// Time between two looks at the files of the program.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The search for a step function in the files that the processes of a program map.
#[derive(Debug)]
pub struct StepSearch {
    function: StepFunction,
    searched: BTreeSet<PathBuf>,
    began: Instant,
    looked: Option<Instant>,
    /// The last look at Python functions.
    looked_at_python: Option<Instant>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Not found in the files searched so far, with the reason of the first of them.
    Searching(StepError),
    Observed,
    /// Found, but its calls cannot be observed; or several functions have the name.
    Failed(String),
}

impl StepSearch {
    /// The search for a function that was not found before the launch, for this reason.
    pub fn new(function: StepFunction, missing: StepError) -> Self {
        let (searched, began) = (BTreeSet::new(), Instant::now());
        Self { function, searched, began, looked: None, looked_at_python: None, state: State::Searching(missing) }
    }

    /// Searches the files that were mapped since the last look. Calls `observe` once, when the function is found; gives its
    /// place then.
    pub fn look(
        &mut self,
        tree: &mut ProcessTree,
        observe: impl FnOnce(StepPoint) -> Result<(), RecordError>,
    ) -> Option<StepPoint> {
        let is_early = self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY);
        if is_early || !matches!(self.state, State::Searching(_)) {
            return None;
        }
        self.looked = Some(Instant::now());
        tree.refresh();
        let mapped = tree.members().flat_map(|member| {
            let pid = member.pid();
            libraries::of_process(pid).into_iter().filter_map(move |path| as_we_see(pid, &path))
        });
        let new: Vec<PathBuf> = mapped.filter(|path| self.searched.insert(path.clone())).collect();
        match self.function.find_mapped(&new).or_else(|| self.find_in_python(tree))? {
            Ok(point) => match observe(point.clone()) {
                Ok(()) => {
                    self.state = State::Observed;
                    return Some(point);
                }
                Err(error) => self.state = State::Failed(error.to_string()),
            },
            Err(error) => self.state = State::Failed(error.to_string()),
        }
        None
    }

    /// The start of each step in a Python function that a process has called by now.
    ///
    /// All names are read again each time, so this looks ever more seldom: a function is found when the program has run a tenth longer
    /// than until its first call.
    fn find_in_python(&mut self, tree: &ProcessTree) -> Option<Result<StepPoint, StepError>> {
        let is_early = |looked: Instant| looked.elapsed() * 10 < looked.duration_since(self.began);
        if self.function.module.is_some() || self.looked_at_python.is_some_and(is_early) {
            return None;
        }
        self.looked_at_python = Some(Instant::now());
        tree.members().find_map(|member| self.function.find_in_python(member.pid()))
    }

    /// Why steps are not recorded, if they are not.
    pub fn failure(&self) -> Option<String> {
        match &self.state {
            State::Observed => None,
            State::Failed(reason) => Some(reason.clone()),
            State::Searching(missing) => Some(format!(
                "{missing}; none of the {} that the program mapped later holds it either",
                stepscope_model::quantity::plural(self.searched.len(), "file")
            )),
        }
    }
}

/// The path of another process's file, as we can open it: the program may have other mounts. `None` if it is gone.
fn as_we_see(pid: u32, path: &Path) -> Option<PathBuf> {
    let theirs = Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").ok()?);
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let file = identity(&theirs)?;
    Some(if identity(path) == Some(file) { path.to_owned() } else { theirs })
}
