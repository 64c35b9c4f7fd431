//! Which processes belong to a program.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::files::Files;
use super::stat::numbers;
use super::{Stat, all_pids};

/// A process and everything it started, kept up to date by [`refresh`](Self::refresh).
///
/// What belongs to a program is decided by *descent*, not by process group or session: a shell gives every pipeline
/// its own group and a daemon its own session, and both are still what the program costs. Descent has one hole: when
/// a process ends, its children are handed to the nearest *subreaper* above it, which is usually init, and then no
/// longer descend from the program. Three things close it:
///
/// - a program that was launched by [`launch`](crate::launch) has a keeper above it that is a subreaper, so that
///   orphans stay below the keeper however often they fork ([`below`](Self::below));
/// - a process that was once seen in the tree stays in it, whatever its parent is later;
/// - a recorder that sees fork records says so ([`add`](Self::add)).
///
/// Only a process attached to, whose child forks twice between two refreshes without fork records being read, can
/// lose a descendant. Following sessions instead would gain that one and take in the user's whole terminal.
///
/// A process is known by its pid *and* start time, so that a pid used again is not taken for the process before.
#[derive(Debug)]
pub struct ProcessTree {
    root: u32,
    with_root: bool,
    members: BTreeMap<u32, Member>,
    newest_pid: Option<u32>,
    files: Files,
}

/// A process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What `/proc/PID/stat` said at the last refresh.
    pub stat: Stat,
}

impl Member {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.stat.pid
    }

    /// Whether it has ended with all its threads, and its parent has not asked for its status.
    pub fn is_zombie(&self) -> bool {
        self.stat.process_has_ended()
    }
}

impl ProcessTree {
    /// The tree of a process, itself included.
    pub fn of(pid: u32) -> Self {
        Self::new(pid, true)
    }

    /// The descendants of a process, without itself: for a keeper that only holds the tree together.
    pub fn below(pid: u32) -> Self {
        Self::new(pid, false)
    }

    fn new(root: u32, with_root: bool) -> Self {
        Self { root, with_root, members: BTreeMap::new(), newest_pid: None, files: Files::default() }
    }

    /// Takes a process into the tree of which it is known otherwise (from a fork record) that it belongs there.
    pub fn add(&mut self, pid: u32) {
        if !self.members.contains_key(&pid) && self.admit(pid) {
            self.newest_pid = None;
        }
    }

    /// The processes found by the last refresh, by pid; zombies included.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Whether the process was found by the last refresh.
    pub fn contains(&self, pid: u32) -> bool {
        self.members.contains_key(&pid)
    }

    /// Whether no process, not even a zombie, was left at the last refresh.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The state of a process now, if it is still the same process and has not ended.
    pub(super) fn read_again(&mut self, before: &Stat) -> Option<Stat> {
        self.stat(before.pid).filter(|now| now.start_ticks == before.start_ticks && !now.process_has_ended())
    }

    /// Reads the processes' state again, drops those that are gone, and finds new ones.
    ///
    /// Costs one small file a process, and one a thread only if any process or thread of the machine began since
    /// the last time. Returns whether that was so.
    pub fn refresh(&mut self) -> bool {
        let newest_pid = self.files.newest_pid();
        let members: Vec<(u32, u64)> = self.members.values().map(|m| (m.pid(), m.stat.start_ticks)).collect();
        for (pid, start_ticks) in members {
            match self.stat(pid).filter(|stat| stat.start_ticks == start_ticks) {
                Some(stat) => self.members.insert(pid, Member { stat }),
                None => self.members.remove(&pid),
            };
        }
        if newest_pid.is_some() && newest_pid == self.newest_pid {
            return false;
        }
        // Set before looking, so that what begins meanwhile is looked for the next time.
        self.newest_pid = newest_pid;
        self.find_new();
        true
    }

    fn find_new(&mut self) {
        let threads = self.members.values().map(|member| member.stat.threads).sum();
        let kinship = Kinship::read(threads, &mut self.files);
        let mut unvisited: Vec<u32> = self.members.keys().copied().collect();
        if !self.members.contains_key(&self.root) {
            unvisited.push(self.root);
            if self.with_root {
                self.admit(self.root);
            }
        }
        while let Some(pid) = unvisited.pop() {
            for child in kinship.children(pid, &mut self.files) {
                if !self.members.contains_key(&child) && self.admit(child) {
                    unvisited.push(child);
                }
            }
        }
    }

    fn admit(&mut self, pid: u32) -> bool {
        let stat = self.stat(pid);
        stat.map(|stat| self.members.insert(pid, Member { stat })).is_some()
    }

    fn stat(&mut self, pid: u32) -> Option<Stat> {
        Stat::parse(self.files.of_process(pid, "stat").ok()?)
    }
}

/// Who is whose child.
enum Kinship {
    /// The kernel lists the children of each thread (`CONFIG_PROC_CHILDREN`): only the tree is read.
    Listed,
    /// It does not, or the tree has many threads: the parent of every process of the machine was read.
    Scanned(HashMap<u32, Vec<u32>>),
}

impl Kinship {
    /// The kernel's lists cost a file for each of the tree's `threads`, the scan one for each process of the machine.
    fn read(threads: u64, files: &mut Files) -> Self {
        let pids: Vec<u32> = all_pids().collect();
        if threads <= pids.len() as u64 && Path::new("/proc/thread-self/children").exists() {
            return Kinship::Listed;
        }
        let mut by_parent: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in pids {
            if let Some(stat) = files.of_process(pid, "stat").ok().and_then(Stat::parse) {
                by_parent.entry(stat.parent).or_default().push(pid);
            }
        }
        Kinship::Scanned(by_parent)
    }

    /// Children of all threads of a process; empty if it is gone.
    fn children(&self, pid: u32, files: &mut Files) -> Vec<u32> {
        if let Kinship::Scanned(by_parent) = self {
            return by_parent.get(&pid).cloned().unwrap_or_default();
        }
        let mut children = Vec::new();
        for tid in super::numbered_entries(pid, "task").unwrap_or_default() {
            children.extend(files.of_thread(pid, tid, "children").map(numbers).into_iter().flatten());
        }
        children
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Shell(Child);

    impl Shell {
        fn run(script: &str) -> Self {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
            Self(command.spawn().unwrap())
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let mut tree = ProcessTree::of(self.0.id());
            tree.refresh();
            for member in tree.members() {
                // SAFETY: kill has no memory effects; the pids are those of our own descendants.
                unsafe { libc::kill(member.pid() as i32, libc::SIGKILL) };
            }
            let _ = self.0.wait();
        }
    }

    /// Names of the tree's processes once there are `count`.
    fn names(tree: &mut ProcessTree, count: usize) -> Vec<String> {
        while {
            tree.refresh();
            tree.members().filter(|member| member.stat.name == "sleep").count() < count
        } {
            std::thread::yield_now();
        }
        let mut names: Vec<String> = tree.members().map(|member| member.stat.name.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_tree_has_the_children_of_children_and_those_of_other_sessions() {
        let shell = Shell::run("sleep 60 & setsid sh -c 'sleep 60; true' & wait");
        let mut tree = ProcessTree::of(shell.0.id());
        assert_eq!(names(&mut tree, 2), ["sh", "sh", "sleep", "sleep"]);
        let mut below = ProcessTree::below(shell.0.id());
        assert_eq!(names(&mut below, 2), ["sh", "sleep", "sleep"]);
    }

    #[test]
    fn children_of_threads_other_than_the_main_thread_belong_to_the_tree() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            sender.send(child.id()).unwrap();
            child.wait().unwrap();
        });
        let pid = receiver.recv().unwrap();
        let mut tree = ProcessTree::below(std::process::id());
        tree.refresh();
        assert!(tree.members().any(|member| member.pid() == pid));
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        thread.join().unwrap();
        tree.refresh();
        assert!(!tree.members().any(|member| member.pid() == pid));
    }

    #[test]
    fn a_process_once_seen_stays_in_the_tree_when_its_parent_ends() {
        let shell = Shell::run("sh -c 'sleep 61 & read wait' < /dev/zero & sleep 60; true");
        let mut tree = ProcessTree::of(shell.0.id());
        names(&mut tree, 2);
        let find = |tree: &ProcessTree, name: &str, parent: u32| {
            let mut members = tree.members();
            members.find(|m| m.stat.name == name && m.stat.parent == parent).map(Member::pid)
        };
        let middle = find(&tree, "sh", shell.0.id()).unwrap();
        let orphan = find(&tree, "sleep", middle).unwrap();
        // SAFETY: a process that this test started; its parent shell has not waited for it.
        unsafe { libc::kill(middle as i32, libc::SIGKILL) };
        while tree.members().any(|m| m.pid() == middle && !m.is_zombie()) {
            tree.refresh();
        }
        assert!(tree.members().any(|m| m.pid() == orphan && m.stat.parent != middle));
    }

    #[test]
    fn a_pid_that_was_used_again_by_another_process_is_not_in_the_tree() {
        let shell = Shell::run("sleep 60");
        let mut tree = ProcessTree::of(std::process::id());
        tree.add(shell.0.id());
        tree.members.get_mut(&shell.0.id()).unwrap().stat.start_ticks -= 1;
        tree.newest_pid = tree.files.newest_pid();
        if !tree.refresh() {
            assert!(!tree.members.contains_key(&shell.0.id()), "nothing of the machine began since");
        }
    }

    #[test]
    fn without_lists_of_children_the_tree_is_found_by_parents() {
        let shell = Shell::run("sleep 60 & wait");
        let mut tree = ProcessTree::of(shell.0.id());
        names(&mut tree, 1);
        let listed = Kinship::Listed.children(shell.0.id(), &mut tree.files);
        let mut by_parent = HashMap::new();
        for pid in all_pids() {
            if let Ok(stat) = super::super::stat(pid) {
                by_parent.entry(stat.parent).or_insert_with(Vec::new).push(pid);
            }
        }
        assert_eq!(Kinship::Scanned(by_parent).children(shell.0.id(), &mut tree.files), listed);
        assert_eq!(listed.len(), 1);
    }
}
