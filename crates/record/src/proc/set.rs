//! Which processes are observed: chosen by id, name, cgroup, descent or container.

mod cgroups;
mod containers;

use std::collections::{BTreeMap, HashMap};

use glob::Pattern;
use stepscope_model::command_line::{file_name, script};

use super::files::Files;
use super::{Stat, strings};
use cgroups::Cgroup;
pub use containers::ContainerError;

/// A program's name is looked at again until the process is this old: it starts with the name of the process that forked it.
const SETTLED_AFTER_S: u64 = 10;

/// Which processes to observe. A process belongs to the set if any of these matches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSelection {
    /// Processes by id, without their children.
    pub pids: Vec<u32>,
    /// Processes by id, with all that descend from them now and later.
    pub trees: Vec<u32>,
    /// Globs over names of programs: the kernel's name of the process, the file name of its program, or that of the script that
    /// its interpreter runs.
    pub names: Vec<Pattern>,
    /// Names count only for descendants of this process, without itself; everywhere if `None`.
    pub names_below: Option<u32>,
    /// Control groups with those below them: a path as in `/proc/PID/cgroup`, or below `/sys/fs/cgroup`.
    pub cgroups: Vec<String>,
    /// Containers by name, id or the start of an id.
    pub containers: Vec<String>,
}

/// Why a selection cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// A process that was named by its id does not exist.
    #[error("there is no process {pid} to attach to")]
    NoProcess {
        /// The id.
        pid: u32,
    },
    /// No process matches.
    #[error("no running process matches {what}; `ps -e` lists the processes")]
    NoMatch {
        /// What was asked for.
        what: String,
    },
    /// There is no such control group.
    #[error("there is no cgroup {path}; the cgroup of a process is in /proc/PID/cgroup")]
    NoCgroup {
        /// What was asked for.
        path: String,
    },
    /// The container was not found.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// Nothing was selected.
    #[error("name the processes: --pid, --tree, --name, --cgroup or --container")]
    Empty,
}

impl ProcessSelection {
    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The processes of a tree.
    pub fn tree(pid: u32) -> Self {
        Self { trees: vec![pid], ..Self::default() }
    }

    /// The selection as flags of the command line.
    pub fn arguments(&self) -> Vec<String> {
        fn flags<T: ToString>(flag: &str, values: &[T]) -> Vec<String> {
            values.iter().flat_map(|value| [format!("--{flag}"), value.to_string()]).collect()
        }
        let names: Vec<String> = self.names.iter().map(|name| name.as_str().to_owned()).collect();
        [
            flags("pid", &self.pids),
            flags("tree", &self.trees),
            flags("name", &names),
            flags("cgroup", &self.cgroups),
            flags("container", &self.containers),
        ]
        .concat()
    }

    /// The same, as one text.
    pub fn describe(&self) -> String {
        self.arguments().join(" ")
    }
}

/// The processes that a [`ProcessSelection`] matches, kept up to date by [`refresh`](Self::refresh).
///
/// A process that matched once stays in the set until it ends. Membership by descent, name or id is decided when a process is
/// first listed, and by name again while it is young. So a refresh reads no file of a process that is known: where nothing was
/// started on the machine, it reads `/proc/loadavg`, and the lists of the selected control groups.
///
/// A grandchild is missed if its parent starts and ends between two refreshes.
#[derive(Debug)]
pub struct ProcessSet {
    selection: ProcessSelection,
    cgroups: Vec<Cgroup>,
    members: BTreeMap<u32, Membership>,
    /// Processes that were listed, and are not in the set. Those whose name may still change are `Young`.
    others: HashMap<u32, Other>,
    newest_pid: Option<u32>,
    files: Files,
}

/// A process of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// Its start, in ticks since boot: with the pid, its identity.
    pub start_ticks: u64,
    /// Whether its children belong to the set.
    with_children: bool,
}

/// A process outside of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// It may still run another program.
    Young,
    /// It is not looked at again.
    Settled,
}

/// What is needed to decide about a process.
struct Candidate {
    pid: u32,
    parent: u32,
    start_ticks: u64,
}

impl ProcessSet {
    /// The processes that match now. This process is never among them, unless it is named by its id.
    ///
    /// # Errors
    /// [`SelectionError`] if nothing matches, or something that was named does not exist.
    pub fn open(selection: ProcessSelection) -> Result<Self, SelectionError> {
        if selection.is_empty() {
            return Err(SelectionError::Empty);
        }
        if let Some(&pid) = selection.pids.iter().chain(&selection.trees).find(|&&pid| super::has_ended(pid)) {
            return Err(SelectionError::NoProcess { pid });
        }
        let mut cgroups = Vec::new();
        for path in &selection.cgroups {
            cgroups.push(Cgroup::open(path).ok_or_else(|| SelectionError::NoCgroup { path: path.clone() })?);
        }
        for container in &selection.containers {
            cgroups.extend(containers::cgroups_of(container)?);
        }
        let (members, others) = (BTreeMap::new(), HashMap::new());
        let mut set = Self { selection, cgroups, members, others, newest_pid: None, files: Files::default() };
        set.refresh();
        if set.members.is_empty() {
            return Err(SelectionError::NoMatch { what: set.selection.describe() });
        }
        Ok(set)
    }

    /// The processes of the set at the last refresh, by pid.
    pub fn members(&self) -> impl Iterator<Item = (u32, Membership)> {
        self.members.iter().map(|(&pid, &membership)| (pid, membership))
    }

    /// The ids of these processes.
    pub fn pids(&self) -> Vec<u32> {
        self.members.keys().copied().collect()
    }

    /// What is selected.
    pub fn selection(&self) -> &ProcessSelection {
        &self.selection
    }

    /// Forgets a process that has ended, so that another one with its id is looked at.
    pub fn remove(&mut self, pid: u32) {
        self.members.remove(&pid);
        self.others.remove(&pid);
        self.newest_pid = None;
    }

    /// Finds processes that match and were not in the set. Returns whether any process was started since the last time.
    pub fn refresh(&mut self) -> bool {
        for index in 0..self.cgroups.len() {
            for pid in self.cgroups[index].pids() {
                if !self.members.contains_key(&pid)
                    && let Some(candidate) = self.candidate(pid)
                {
                    self.admit(&candidate, false);
                }
            }
        }
        let newest_pid = self.files.newest_pid();
        let has_new = newest_pid.is_none() || newest_pid != self.newest_pid;
        if has_new {
            // Before the list is read, so that what starts meanwhile is found the next time.
            self.newest_pid = newest_pid;
        }
        let lists =
            !(self.selection.names.is_empty() && self.selection.pids.is_empty() && self.selection.trees.is_empty());
        let is_young = self.others.values().any(|other| *other == Other::Young);
        if lists && (has_new || is_young) {
            self.find_new(has_new);
        }
        has_new
    }

    fn find_new(&mut self, has_new: bool) {
        let mut unknown: Vec<u32> =
            self.others.iter().filter(|(_, o)| **o == Other::Young).map(|(pid, _)| *pid).collect();
        if has_new {
            let listed: Vec<u32> = super::all_pids().collect();
            let mut sorted = listed.clone();
            sorted.sort_unstable();
            self.others.retain(|pid, _| sorted.binary_search(pid).is_ok());
            let is_known = |pid: &u32| self.members.contains_key(pid) || self.others.contains_key(pid);
            unknown.extend(listed.into_iter().filter(|pid| !is_known(pid)));
        }
        let mut candidates: Vec<Candidate> = unknown.iter().filter_map(|&pid| self.candidate(pid)).collect();
        // A child may be listed before its parent, so those that are left are looked at until no more are found.
        loop {
            let before = candidates.len();
            candidates.retain(|candidate| {
                let matched = self.matches(candidate);
                if let Some(with_children) = matched {
                    self.admit(candidate, with_children);
                }
                matched.is_none()
            });
            if candidates.len() == before {
                break;
            }
        }
        let settled_before = uptime_ticks().saturating_sub(SETTLED_AFTER_S * super::ticks_per_second());
        for candidate in candidates {
            let is_settled = self.selection.names.is_empty() || candidate.start_ticks < settled_before;
            self.others.insert(candidate.pid, if is_settled { Other::Settled } else { Other::Young });
        }
    }

    /// Whether a process belongs to the set, and if so whether its children do.
    fn matches(&mut self, candidate: &Candidate) -> Option<bool> {
        let Candidate { pid, parent, .. } = *candidate;
        if self.selection.trees.contains(&pid) || self.members.get(&parent).is_some_and(|parent| parent.with_children) {
            return Some(true);
        }
        let is_own = pid == std::process::id();
        (self.selection.pids.contains(&pid) || !is_own && self.has_name(pid)).then_some(false)
    }

    fn admit(&mut self, candidate: &Candidate, with_children: bool) {
        self.others.remove(&candidate.pid);
        self.members.insert(candidate.pid, Membership { start_ticks: candidate.start_ticks, with_children });
    }

    fn candidate(&mut self, pid: u32) -> Option<Candidate> {
        let stat = Stat::parse_numbers(self.files.of_process(pid, "stat").ok()?)?;
        (!stat.process_has_ended()).then_some(Candidate { pid, parent: stat.parent, start_ticks: stat.start_ticks })
    }

    fn has_name(&mut self, pid: u32) -> bool {
        let below = self.selection.names_below;
        self.is_named(pid) && below.is_none_or(|ancestor| self.descends_from(pid, ancestor))
    }

    fn descends_from(&mut self, pid: u32, ancestor: u32) -> bool {
        let mut parents = std::iter::successors(Some(pid), |&pid| self.candidate(pid).map(|process| process.parent));
        parents.by_ref().skip(1).take_while(|&pid| pid != 0).any(|pid| pid == ancestor)
    }

    fn is_named(&mut self, pid: u32) -> bool {
        let names = &self.selection.names;
        if names.is_empty() {
            return false;
        }
        let matches = |name: &str| names.iter().any(|pattern| pattern.matches(name));
        let comm = self.files.of_process(pid, "comm").unwrap_or_default().trim_ascii_end();
        if matches(&String::from_utf8_lossy(comm)) {
            return true;
        }
        let arguments = strings(self.files.of_process(pid, "cmdline").unwrap_or_default());
        arguments.first().is_some_and(|program| matches(file_name(program))) || script(&arguments).is_some_and(matches)
    }
}

/// Ticks since boot.
fn uptime_ticks() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * super::ticks_per_second()
}

#[cfg(test)]
mod tests;
