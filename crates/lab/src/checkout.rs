//! The files of another revision: a git worktree, built, and removed after use.
//!
//! Worktrees are in `.git/stepscope/`: on the repository's disk, writable, and never tracked. Each has the name of the
//! process that made it. Worktrees of processes that no longer exist are removed before the next one is made.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stepscope_model::{Build, Capture};
use stepscope_record::launch::{Exit, Grace, Launch, LaunchError, Launched, Output};
use stepscope_record::proc;

use crate::event::Event;
use crate::execution::Context;
use crate::exit::how_it_ended;
use crate::folder_map::FolderMap;
use crate::lab_file::{Source, Trial};
use crate::outcome::{Failure, Outcome, Stage};
use crate::output::OutputFile;
use crate::revision::{Checkout, WorkingTree};

/// Folder of worktrees in `.git`.
const FOLDER: &str = "stepscope";

/// Lines shown of a failed build.
const LAST_LINES: usize = 20;

/// Time between looks at a running build.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Variables that make git work on another repository than the lab file's. Git sets them for hooks.
const OF_GIT: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX"];

/// Why a revision could not be checked out or built.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// There is no git.
    #[error(
        "cannot run git ({0}): a variant with a `revision` needs it; install git, or build the revision yourself and use `folders`"
    )]
    NoGit(io::Error),
    /// The lab file is not in a repository.
    #[error("{} is in no git repository ({reason}); `revision` needs the lab file in one", folder.display())]
    NoRepository {
        /// The lab file's folder.
        folder: PathBuf,
        /// Git's message.
        reason: String,
    },
    /// No commit has this name.
    #[error("`{revision}` is not a revision of {}: `git -C {0} log --all --oneline` lists them, `git fetch` gets those of the server", repository.display())]
    NoRevision {
        /// The requested revision.
        revision: String,
        /// The repository.
        repository: PathBuf,
    },
    /// The revision lacks the lab file's folder.
    #[error("{commit} has no folder {}: the lab file's folder must be in the revision, as its build commands run there", folder.display())]
    NoFolder {
        /// The commit.
        commit: String,
        /// The lab file's folder, from the repository's root.
        folder: PathBuf,
    },
    /// Git failed.
    #[error("git {action} failed: {reason}")]
    Git {
        /// The attempted action.
        action: &'static str,
        /// Git's message.
        reason: String,
    },
    /// A build command cannot be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A build command failed.
    #[error("`{command}` {how}; its output is in {}", log.display())]
    Build {
        /// The command.
        command: String,
        /// `exited with status 2`.
        how: String,
        /// Exit code, or 128 + signal.
        status: i32,
        /// Its output.
        log: PathBuf,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// A file or folder cannot be created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The user interrupted it.
    #[error("interrupted while building {0}")]
    Interrupted(String),
}

impl CheckoutError {
    /// The outcome of trials that need these files.
    pub fn outcome(&self) -> Outcome {
        let (status, last_lines) = match self {
            CheckoutError::Interrupted(_) => return Outcome::Interrupted,
            CheckoutError::Build { status, last_lines, .. } => (Some(*status), last_lines.clone()),
            _ => (None, Vec::new()),
        };
        Outcome::Failed(Failure { stage: Stage::Build, reason: self.to_string(), status, last_lines })
    }
}

impl Checkout {
    /// The repository's paths and those of the checkout in their place.
    fn moved(&self) -> FolderMap {
        FolderMap::new([(self.repository.clone(), self.tree.clone())])
    }

    /// Notes the revision in a capture. Paths of sources become those in the repository, because the worktree is removed
    /// and ownership patterns must match on both sides.
    pub(crate) fn label(&self, capture: &mut Capture) {
        let mut moved: HashMap<Arc<str>, Option<Arc<str>>> = HashMap::new();
        for index in 0..capture.frames.len() {
            let Some(file) = &capture.frames[index].file else { continue };
            let there = moved.entry(file.clone()).or_insert_with(|| {
                let inside = Path::new(&**file).strip_prefix(&self.tree).ok()?;
                Some(self.repository.join(inside).to_string_lossy().into())
            });
            if let Some(path) = there {
                capture.frames[index].file = Some(path.clone());
            }
        }
        let build = capture.info.build.take().unwrap_or(Build { kind: None, told_by: None, revision: None });
        let (tree, repository) = (self.tree.to_string_lossy(), self.repository.to_string_lossy());
        let told_by = build.told_by.map(|told_by| told_by.replace(&*tree, &repository));
        capture.info.build = Some(Build { told_by, revision: Some(self.commit.clone()), ..build });
        capture.info.notes.push(format!(
            "The program was built from commit {} in a separate checkout; source paths are shown as in {}.",
            self.commit, repository
        ));
    }
}

/// The checkouts of a run, removed on drop.
#[derive(Debug, Default)]
pub struct Checkouts {
    made: Vec<Prepared>,
    /// Failed checkouts, which are not tried again.
    failed: Vec<(Source, Arc<CheckoutError>)>,
}

#[derive(Debug)]
struct Prepared {
    source: Source,
    checkout: Checkout,
    _worktree: Worktree,
}

impl Checkouts {
    /// Makes a trial use the files of its revision, which are checked out and built once. The output of the build goes to
    /// `build-VARIANT.log` in `logs`. Trials without a revision do not change.
    ///
    /// # Errors
    /// [`CheckoutError`]
    pub fn prepare(
        &mut self,
        trial: &mut Trial,
        logs: &Path,
        context: &mut Context<'_>,
    ) -> Result<(), Arc<CheckoutError>> {
        let Some(source) = trial.source.clone() else { return Ok(()) };
        if trial.checkout.is_some() {
            return Ok(());
        }
        if let Some((_, error)) = self.failed.iter().find(|(failed, _)| *failed == source) {
            return Err(error.clone());
        }
        if !self.made.iter().any(|made| made.source == source) {
            match make(source.clone(), trial.variant_name(), logs, context) {
                Ok(made) => self.made.push(made),
                Err(error) => {
                    let error = Arc::new(error);
                    self.failed.push((source, error.clone()));
                    return Err(error);
                }
            }
        }
        let made = self.made.iter().find(|made| made.source == source).expect("it was just made");
        trial.scenario.relocate(&made.checkout.moved());
        trial.checkout = Some(made.checkout.clone());
        Ok(())
    }
}

fn make(source: Source, variant: &str, logs: &Path, context: &mut Context<'_>) -> Result<Prepared, CheckoutError> {
    let repository = root_of(&source.folder)?;
    let commit = commit_of(&repository, &source.revision)?;
    let inside = inside(&repository, &source.folder);
    let worktree = Worktree::add(&repository, &commit, variant)?;
    let folder = worktree.path.join(&inside);
    if !folder.is_dir() {
        return Err(CheckoutError::NoFolder { commit, folder: inside });
    }
    // Paths in the lab file begin with the lab file's folder, including links.
    let repository = lexical_root(&source.folder, &inside).unwrap_or(repository);
    let checkout = Checkout { commit, tree: worktree.path.clone(), repository };
    for (index, command) in source.build.iter().enumerate() {
        let log = logs.join(match index {
            0 => format!("build-{variant}.log"),
            index => format!("build-{variant}-{}.log", index + 1),
        });
        build(command, &checkout, &source.folder, &folder, &log, variant, context)?;
    }
    Ok(Prepared { source, checkout, _worktree: worktree })
}

/// The lab file's folder, relative to the root.
fn inside(repository: &Path, folder: &Path) -> PathBuf {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    real.strip_prefix(repository).map(Path::to_owned).unwrap_or_default()
}

/// `folder` without `inside` at its end.
fn lexical_root(folder: &Path, inside: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().nth(inside.components().count())?;
    (root.join(inside) == folder).then(|| root.to_owned())
}

fn build(
    command: &[String],
    checkout: &Checkout,
    lab_folder: &Path,
    folder: &Path,
    log: &Path,
    variant: &str,
    context: &mut Context<'_>,
) -> Result<(), CheckoutError> {
    context.listener.notify(&Event::Building { variant, command, log });
    let mut words = command.to_owned();
    checkout.moved().command(&mut words, lab_folder, folder);
    let launch = Launch::new(&words).directory(folder).output(Output::File(log.to_owned()));
    let launch = OF_GIT.iter().fold(launch, |launch, name| launch.without_env(*name));
    let mut launched = launch.prepare()?.start()?;
    let exit = await_end(&mut launched, context)?.ok_or_else(|| CheckoutError::Interrupted(variant.to_owned()))?;
    if exit.status() == 0 {
        return Ok(());
    }
    Err(CheckoutError::Build {
        command: words.join(" "),
        how: how_it_ended(&exit),
        status: exit.status(),
        log: log.to_owned(),
        last_lines: OutputFile::new(log).last_lines(LAST_LINES),
    })
}

/// How a build command ended; `None` if the user interrupted it. Its remaining processes are terminated in both cases.
fn await_end(launched: &mut Launched, context: &Context<'_>) -> Result<Option<Exit>, CheckoutError> {
    let exit = loop {
        if let Some(exit) = launched.exit()? {
            break Some(exit);
        }
        if context.interrupt.load(Ordering::Relaxed) {
            break None;
        }
        drop(launched.wait_for(LOOK_EVERY));
    };
    launched.stop(&Grace::default())?;
    Ok(exit)
}

/// A worktree, removed on drop.
#[derive(Debug)]
struct Worktree {
    repository: PathBuf,
    path: PathBuf,
}

impl Worktree {
    fn add(repository: &Path, commit: &str, variant: &str) -> Result<Self, CheckoutError> {
        let folder = folder_of_worktrees(repository)?;
        remove_leftovers(repository, &folder);
        fs::create_dir_all(&folder).map_err(|source| CheckoutError::Io { path: folder.clone(), source })?;
        let (pid, start) = us();
        let name = |number: u32| folder.join(format!("{pid}-{start}-{number}-{variant}"));
        let path = (1..).map(name).find(|path| !path.exists()).expect("there are more numbers than worktrees");
        // Created before git starts, so that the remains of a failed checkout are removed too.
        let worktree = Self { repository: repository.to_owned(), path };
        let path = worktree.path.to_str().ok_or_else(|| CheckoutError::Git {
            action: "worktree add",
            reason: format!("the path {} is not UTF-8", worktree.path.display()),
        })?;
        git(repository, "worktree add", &["worktree", "add", "--quiet", "--detach", path, commit])?;
        if worktree.path.join(".gitmodules").exists() {
            let update = ["submodule", "update", "--quiet", "--init", "--recursive"];
            git(&worktree.path, "submodule update", &update)?;
        }
        Ok(worktree)
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        remove(&self.repository, &self.path);
    }
}

/// Removes a worktree and git's record of it. The next run tries again if that fails.
fn remove(repository: &Path, path: &Path) {
    let text = path.to_string_lossy();
    let _ = git(repository, "worktree remove", &["worktree", "remove", "--force", "--force", &text]);
    let _ = fs::remove_dir_all(path);
    let _ = git(repository, "worktree prune", &["worktree", "prune"]);
    // Fails unless the folder is empty.
    if let Some(folder) = path.parent() {
        let _ = fs::remove_dir(folder);
    }
}

/// Removes the worktrees of processes that no longer exist.
fn remove_leftovers(repository: &Path, folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let mut parts = name.to_str().unwrap_or_default().split('-').map(str::parse::<u64>);
        let (Some(Ok(pid)), Some(Ok(start))) = (parts.next(), parts.next()) else { continue };
        let lives = u32::try_from(pid).is_ok_and(|pid| proc::stat(pid).is_ok_and(|stat| stat.start_ticks == start));
        if !lives {
            remove(repository, &entry.path());
        }
    }
}

/// This process: its id and start time, because ids are reused.
fn us() -> (u32, u64) {
    let pid = std::process::id();
    (pid, proc::stat(pid).map_or(0, |stat| stat.start_ticks))
}

fn folder_of_worktrees(repository: &Path) -> Result<PathBuf, CheckoutError> {
    let common = git(repository, "rev-parse", &["rev-parse", "--git-common-dir"])?;
    let common = repository.join(common);
    Ok(common.canonicalize().unwrap_or(common).join(FOLDER))
}

fn root_of(folder: &Path) -> Result<PathBuf, CheckoutError> {
    let root = git(folder, "rev-parse", &["rev-parse", "--show-toplevel"]).map_err(|error| match error {
        CheckoutError::Git { reason, .. } => CheckoutError::NoRepository { folder: folder.to_owned(), reason },
        other => other,
    })?;
    Ok(PathBuf::from(root))
}

fn commit_of(repository: &Path, revision: &str) -> Result<String, CheckoutError> {
    let wanted = format!("{revision}^{{commit}}");
    git(repository, "rev-parse", &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).map_err(|error| {
        match error {
            CheckoutError::Git { .. } => {
                CheckoutError::NoRevision { revision: revision.to_owned(), repository: repository.to_owned() }
            }
            other => other,
        }
    })
}

/// The output of git, without the line end.
fn git(folder: &Path, action: &'static str, arguments: &[&str]) -> Result<String, CheckoutError> {
    let mut command = Command::new("git");
    // Reading a repository must not lock it for the user.
    command.arg("--no-optional-locks").arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).env("LC_ALL", "C");
    // Ctrl-C must not reach git: an incomplete worktree is harder to remove.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    for name in OF_GIT {
        command.env_remove(name);
    }
    let output = command.output().map_err(CheckoutError::NoGit)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = text(&output.stderr);
    let reason = if said.is_empty() { output.status.to_string() } else { said };
    Err(CheckoutError::Git { action, reason })
}

impl WorkingTree {
    /// The working tree that contains `folder`; `None` without one, or without git.
    pub fn of(folder: &Path) -> Option<Self> {
        let revision = git(folder, "rev-parse", &["rev-parse", "--verify", "--quiet", "HEAD"]).ok()?;
        let status = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=untracked"];
        let changed_files = git(folder, "status", &status).ok()?.lines().count();
        Some(Self { revision, changed_files })
    }
}
