use std::process::{Child, Command, Stdio};

use super::*;

struct Shell(Child);

impl Shell {
    fn run(script: &str) -> Self {
        let mut command = Command::new("sh");
        Self(command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let Ok(mut set) = ProcessSet::open(ProcessSelection::tree(self.0.id())) else { return };
        set.refresh();
        for pid in set.pids() {
            // SAFETY: kill has no memory effects; the pids are those of our own descendants.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}

fn open(selection: ProcessSelection) -> ProcessSet {
    ProcessSet::open(selection).unwrap()
}

/// Refreshes until the set has this many processes.
fn await_members(set: &mut ProcessSet, count: usize) -> Vec<u32> {
    while set.members.len() < count {
        set.refresh();
        std::thread::yield_now();
    }
    set.pids()
}

fn named(glob: &str) -> ProcessSelection {
    ProcessSelection { names: vec![Pattern::new(glob).unwrap()], ..ProcessSelection::default() }
}

#[test]
fn a_tree_has_children_that_come_later_and_an_id_alone_has_none() {
    let shell = Shell::run("sleep 60 & sh -c 'sleep 0.1; sleep 60 & wait' & wait");
    let mut tree = open(ProcessSelection::tree(shell.0.id()));
    await_members(&mut tree, 4);
    let mut alone = open(ProcessSelection { pids: vec![shell.0.id()], ..ProcessSelection::default() });
    alone.refresh();
    assert_eq!(alone.pids(), [shell.0.id()]);
}

#[test]
fn a_process_that_comes_later_is_found_by_name_although_it_was_forked_under_another() {
    let name = format!("sco{}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(&name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    assert!(matches!(ProcessSet::open(named(&name)), Err(SelectionError::NoMatch { .. })));
    let first = Shell::run(&format!("exec {} 60", program.display()));
    let mut set = loop {
        if let Ok(set) = ProcessSet::open(named(&name)) {
            break set;
        }
    };
    assert_eq!(set.pids(), [first.0.id()]);
    // Seen as `sh` before it runs the program.
    let second = Shell::run(&format!("sleep 0.3; exec {} 60", program.display()));
    let mut expected = [first.0.id(), second.0.id()];
    expected.sort_unstable();
    assert_eq!(await_members(&mut set, 2), expected);
}

#[test]
fn an_ended_process_is_forgotten_and_its_id_is_looked_at_again() {
    let shell = Shell::run("exec sleep 60");
    let pid = shell.0.id();
    let mut set = open(ProcessSelection { pids: vec![pid], ..ProcessSelection::default() });
    set.remove(pid);
    assert!(set.pids().is_empty());
    set.refresh();
    assert_eq!(set.pids(), [pid], "it still runs");
    drop(shell);
    set.remove(pid);
    set.refresh();
    assert!(set.pids().is_empty());
}

#[test]
fn selections_that_match_nothing_say_what_was_looked_for() {
    let error = |selection| ProcessSet::open(selection).unwrap_err().to_string();
    assert_eq!(error(ProcessSelection::tree(u32::MAX)), "there is no process 4294967295 to attach to");
    assert!(error(named("no-such-*")).starts_with("no running process matches --name no-such-*;"));
    let cgroup = ProcessSelection { cgroups: vec!["/no/such".into()], ..ProcessSelection::default() };
    assert!(error(cgroup).starts_with("there is no cgroup /no/such;"));
    assert!(error(ProcessSelection::default()).starts_with("name the processes"));
}

#[test]
fn a_cgroup_has_the_processes_that_the_kernel_lists_in_it() {
    // Our own, of whichever hierarchy is mounted.
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let Some(path) = paths.into_iter().find(|path| Cgroup::open(path).is_some()) else {
        return eprintln!("skipped: a_cgroup_has_the_processes_that_the_kernel_lists_in_it: no cgroup is mounted");
    };
    let set = open(ProcessSelection { cgroups: vec![path.to_owned()], ..ProcessSelection::default() });
    let listed = Cgroup::open(path).unwrap().pids();
    assert!(!listed.is_empty());
    // Processes come and go while both are read, so this one decides.
    assert_eq!(set.pids().contains(&std::process::id()), listed.contains(&std::process::id()));
    assert!(Cgroup::open("/../../etc").is_none());
}
