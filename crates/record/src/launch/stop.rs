//! Ending a program and everything it started.

use std::fmt;
use std::time::{Duration, Instant};

use super::LaunchError;
use super::keeper::Keeper;
use crate::proc::{self, Member, ProcessTree};

/// How long to wait after each signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// After SIGINT: simulators write their logs and shut their servers down now.
    pub after_interrupt: Duration,
    /// After SIGTERM.
    pub after_terminate: Duration,
    /// After SIGKILL, which only a process in an uninterruptible wait (a dead network disk) or of another user's
    /// rights can outlive.
    pub after_kill: Duration,
}

impl Default for Grace {
    /// 5 s, 3 s, 5 s.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { after_interrupt: seconds(5), after_terminate: seconds(3), after_kill: seconds(5) }
    }
}

/// What it took to end a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopReport {
    /// Processes that ended after SIGINT, or that had ended already and were still to be collected.
    pub interrupted: Vec<Ended>,
    /// Processes that needed SIGTERM.
    pub terminated: Vec<Ended>,
    /// Processes that had to be killed; what they would have written is lost.
    pub killed: Vec<Ended>,
    /// Processes that are still there.
    pub survivors: Vec<Survivor>,
}

/// A process that ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A process that could not be ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Why, as far as is known.
    pub reason: &'static str,
}

impl fmt::Display for StopReport {
    /// One sentence for each part that is not empty; `nothing was running` if all are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ended: &[Ended]| ended.iter().map(|e| format!("{} ({})", e.name, e.pid)).collect::<Vec<_>>();
        let mut parts = Vec::new();
        for (ended, how) in [
            (&self.interrupted, "ended after SIGINT"),
            (&self.terminated, "needed SIGTERM"),
            (&self.killed, "had to be killed"),
        ] {
            if !ended.is_empty() {
                parts.push(format!("{how}: {}", list(ended).join(", ")));
            }
        }
        for survivor in &self.survivors {
            parts.push(format!("still there: {} ({}), {}", survivor.name, survivor.pid, survivor.reason));
        }
        f.write_str(&if parts.is_empty() { "nothing was running".to_owned() } else { parts.join("; ") })
    }
}

/// Whom a signal goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// The program's process group, as Ctrl-C in a terminal: processes that left it (daemons) are for their makers
    /// to end, who do that now.
    Group(u32),
    /// Everything of the tree.
    All,
}

pub(super) fn stop(keeper: &mut Keeper, grace: &Grace) -> Result<StopReport, LaunchError> {
    let mut tree = ProcessTree::below(keeper.keeper_pid());
    let mut report = StopReport::default();
    // The program was made by a keeper that has its group from the same fork, so its group is asked for, not assumed.
    let group = proc::stat(keeper.pid()).ok().filter(|_| keeper.exit().is_none()).map(|stat| stat.group);
    if let Some(group) = group {
        report.interrupted =
            signal_and_wait(keeper, &mut tree, libc::SIGINT, Whom::Group(group), grace.after_interrupt)?;
    }
    report.terminated = signal_and_wait(keeper, &mut tree, libc::SIGTERM, Whom::All, grace.after_terminate)?;
    if keeper.wait_over(Duration::ZERO)? {
        return Ok(report);
    }
    let before = living(&mut tree);
    keeper.kill_all();
    keeper.wait_over(grace.after_kill)?;
    let left = living(&mut tree);
    report.killed = before.iter().filter(|ended| !left.contains(ended)).cloned().collect();
    if !keeper.is_over() {
        report.survivors = tree.members().map(survivor).collect();
    }
    Ok(report)
}

/// Sends a signal to those processes, waits until none of them is left, and returns those that ended.
fn signal_and_wait(
    keeper: &mut Keeper,
    tree: &mut ProcessTree,
    signal: i32,
    whom: Whom,
    grace: Duration,
) -> Result<Vec<Ended>, LaunchError> {
    let deadline = Instant::now() + grace;
    let mut sent = Vec::new();
    let mut pause = Duration::from_millis(2);
    loop {
        if keeper.wait_over(Duration::ZERO)? {
            return Ok(sent);
        }
        tree.refresh();
        let mut left = false;
        for member in tree.members().filter(|member| !member.is_zombie() && whom.includes(member)) {
            left = true;
            let ended = Ended::from(member);
            // Each once: many programs take a second SIGINT as an order to end at once. A process that began since
            // the last look gets its own.
            if !sent.contains(&ended) {
                send(member, signal);
                sent.push(ended);
            }
        }
        if !left || Instant::now() >= deadline {
            let living = living(tree);
            sent.retain(|ended| !living.contains(ended));
            return Ok(sent);
        }
        keeper.wait_over(pause)?;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

impl Whom {
    fn includes(self, member: &Member) -> bool {
        match self {
            Whom::Group(group) => member.stat.group == group,
            Whom::All => true,
        }
    }
}

impl From<&Member> for Ended {
    fn from(member: &Member) -> Self {
        Self { pid: member.pid(), name: member.stat.name.clone() }
    }
}

fn living(tree: &mut ProcessTree) -> Vec<Ended> {
    tree.refresh();
    tree.members().filter(|member| !member.is_zombie()).map(Ended::from).collect()
}

fn survivor(member: &Member) -> Survivor {
    // SAFETY: signal 0 only asks whether one could be sent.
    let may_signal = unsafe { libc::kill(member.pid() as i32, 0) } == 0;
    let reason = match (may_signal, member.stat.state) {
        (false, _) => "it has rights that we have not: end it as root",
        (true, proc::State::Uninterruptible) => "it waits for a device or a file system that does not answer",
        (true, proc::State::Zombie) => "its parent has not asked for its status",
        (true, _) => "it did not end in time",
    };
    Survivor { pid: member.pid(), name: member.stat.name.clone(), reason }
}

/// Sends a signal to exactly this process: the descriptor holds on to it, then its start time is compared, so that a
/// pid that was used again meanwhile is not hit. Stopped processes are continued, or they could not react.
fn send(member: &Member, signal: i32) {
    let pid = member.pid() as i32;
    // SAFETY: system calls with numbers only; the descriptor is ours and closed.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        let is_same = || proc::stat(member.pid()).is_ok_and(|stat| stat.start_ticks == member.stat.start_ticks);
        if is_same() {
            for signal in [signal, libc::SIGCONT] {
                // Kernels before 5.3, and some containers, have no such descriptors.
                if fd < 0 {
                    libc::kill(pid, signal);
                } else {
                    libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, 0, 0);
                }
            }
        }
        if fd >= 0 {
            libc::close(fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Launch, Launched, LineWatcher, Output};
    use super::*;

    const SHORT: Grace = Grace {
        after_interrupt: Duration::from_millis(300),
        after_terminate: Duration::from_millis(300),
        after_kill: Duration::from_secs(20),
    };

    /// Set in the process that another test kills.
    const TO_BE_KILLED: &str = "STEPSCOPE_TEST_TO_BE_KILLED";

    /// A shell script that says `ready`, once it did.
    fn start(script: &str) -> Launched {
        let (tell, told) = std::sync::mpsc::channel();
        let watch: LineWatcher = Box::new(move |line| {
            if line == "ready" {
                let _ = tell.send(());
            }
        });
        let output = Output::Captured { keep_lines: 50, copy_to: None, watch: Some(watch) };
        let program = Launch::new(["bash", "-c", script]).output(output).prepare().unwrap().start().unwrap();
        told.recv_timeout(Duration::from_secs(30)).unwrap();
        program
    }

    /// The program's tree, once it has so many members. A tree that never has them must not hold up the tests.
    fn tree_of(program: &Launched, members: usize) -> ProcessTree {
        let mut tree = program.tree();
        soon(&format!("{members} processes"), || {
            tree.refresh();
            tree.members().count() >= members
        });
        tree
    }

    /// Looks again and again whether something has come about.
    fn soon(what: &str, mut has_come: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !has_come() {
            assert!(Instant::now() < deadline, "waited for {what} in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn names(ended: &[Ended]) -> Vec<&str> {
        let mut names: Vec<&str> = ended.iter().map(|ended| ended.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Stops, and asserts that nothing of the tree is left, not even the keeper.
    fn stop_all(program: &mut Launched) -> StopReport {
        let keeper = program.keeper.keeper_pid();
        let mut tree = program.tree();
        tree.refresh();
        let pids: Vec<u32> = tree.members().map(Member::pid).collect();
        let report = program.stop(&SHORT).unwrap();
        assert_eq!(report.survivors, []);
        assert!(program.all_ended().unwrap());
        for pid in pids.into_iter().chain([keeper]) {
            assert!(!proc::exists(pid), "{pid} is left: {report}");
        }
        report
    }

    #[test]
    fn a_program_that_obeys_ctrl_c_gets_nothing_worse() {
        // Without children: a shell that is just about to start one forgets an interrupt now and then.
        let mut program = start("trap 'echo bye; exit 3' INT; echo ready; while :; do :; done");
        let report = stop_all(&mut program);
        assert_eq!((names(&report.terminated), names(&report.killed)), (vec![], vec![]), "{report}");
        assert_eq!(program.exit().unwrap().unwrap().code, Some(3));
        assert_eq!(program.last_lines(), ["ready", "bye"]);
    }

    #[test]
    fn a_program_that_ignores_ctrl_c_is_terminated() {
        let mut program = start("trap '' INT; trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done");
        let report = stop_all(&mut program);
        assert!(names(&report.terminated).contains(&"bash"), "{report}");
        assert_eq!(names(&report.killed), Vec::<&str>::new());
        assert_eq!(program.exit().unwrap().unwrap().code, Some(4));
    }

    #[test]
    fn a_program_that_ignores_everything_is_killed_with_its_children() {
        let mut program = start("trap '' INT TERM HUP; sleep 60 & echo ready; while :; do wait; done");
        let report = stop_all(&mut program);
        assert_eq!(names(&report.killed), ["bash", "sleep"], "{report}");
        assert_eq!(program.exit().unwrap().unwrap().signal, Some(libc::SIGKILL));
    }

    #[test]
    fn a_daemon_in_its_own_session_whose_parents_have_ended_is_found() {
        let daemon = "trap '' INT TERM; echo ready; exec 1>&- 2>&-; sleep 60 & wait; sleep 60";
        let mut program = start(&format!("(setsid bash -c \"({daemon}) & \" &) & sleep 0.2; exit 5"));
        assert_eq!(program.wait_for(Duration::from_secs(30)).unwrap().unwrap().code, Some(5));
        assert!(!program.all_ended().unwrap());
        let report = stop_all(&mut program);
        assert_eq!(names(&report.killed), ["bash", "sleep"], "{report}");
    }

    #[test]
    fn a_stopped_program_is_continued_to_end() {
        let mut program = start("trap 'exit 6' TERM; trap '' INT; echo ready; while :; do kill -STOP $$; done");
        let report = stop_all(&mut program);
        assert_eq!(names(&report.terminated), ["bash"], "{report}");
        assert_eq!(program.exit().unwrap().unwrap().code, Some(6));
    }

    #[test]
    fn processes_that_fork_as_fast_as_they_can_do_not_escape() {
        // Each generation is born in its own session and outlives its parent; bounded, should the test itself fail.
        let storm = "trap '' INT TERM; n=$1; [ $n -le 0 ] && exec sleep 5; \
                     setsid bash \"$0\" $((n - 1)) & setsid bash \"$0\" $((n - 4)) & exit 0";
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("storm");
        std::fs::write(&script, storm).unwrap();
        let mut program = start(&format!("bash {} 16 & echo ready; sleep 60", script.display()));
        let keeper = program.keeper.keeper_pid();
        let report = program.stop(&SHORT).unwrap();
        assert_eq!(report.survivors, []);
        assert!(!proc::exists(keeper));
        let left = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            proc::command_line(pid).ok()?.iter().any(|argument| argument == script.to_str().unwrap()).then_some(pid)
        });
        assert_eq!(left.collect::<Vec<_>>(), Vec::<u32>::new());
    }

    #[test]
    fn zombies_of_a_careless_parent_go_with_it() {
        // bash collects its children; a shell replaced by sleep does not.
        let mut program = start("for i in 1 2 3; do true & done; echo ready; exec sleep 60");
        let report = stop_all(&mut program);
        assert_eq!((names(&report.terminated), names(&report.killed)), (vec![], vec![]), "{report}");
    }

    #[test]
    fn stopping_what_has_ended_does_nothing() {
        let mut program = start("echo ready");
        program.wait_for(Duration::from_secs(30)).unwrap().unwrap();
        assert_eq!(stop_all(&mut program).to_string(), "nothing was running");
    }

    #[test]
    fn a_dropped_program_is_ended_with_everything_it_started() {
        let program = start("trap '' INT TERM; setsid sleep 60 & echo ready; sleep 60; true");
        let tree = tree_of(&program, 3);
        let pids: Vec<u32> = tree.members().map(Member::pid).collect();
        drop(program);
        assert_eq!(pids.into_iter().filter(|&pid| proc::exists(pid)).count(), 0);
    }

    #[test]
    fn when_the_recorder_is_killed_the_program_ends_too() {
        // A process of its own stands for the recorder: this test's binary, running the test below.
        let this = std::env::current_exe().unwrap();
        let mut recorder = std::process::Command::new(this)
            .args(["--exact", "launch::stop::tests::prints_the_pids_of_a_program", "--nocapture", "--include-ignored"])
            .env(TO_BE_KILLED, "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = std::io::BufReader::new(recorder.stdout.take().unwrap());
        let mut lines = std::io::BufRead::lines(output).map_while(Result::ok);
        let pids = lines.find_map(|line| Some(line.split_once("pids: ")?.1.to_owned())).unwrap();
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), 4);
        // The keeper's own parent is gone; in a container without an init nobody collects it.
        let runs = |&pid: &u32| proc::stat(pid).is_ok_and(|stat| !stat.state.has_ended());
        soon("every process to end", || !pids.iter().any(runs));
    }

    #[test]
    #[ignore = "run by another test, which kills it"]
    fn prints_the_pids_of_a_program() {
        // Run by itself, as `--include-ignored` does, it has nobody to print for.
        if std::env::var_os(TO_BE_KILLED).is_none() {
            return;
        }
        // SAFETY: a number is set. Should the other test be killed first, this process goes with it.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let program = start("trap '' INT TERM; setsid sleep 60 & echo ready; sleep 60; true");
        let tree = tree_of(&program, 3);
        let pids = tree.members().map(Member::pid).chain([program.keeper.keeper_pid()]);
        println!("pids: {}", pids.map(|pid| pid.to_string()).collect::<Vec<_>>().join(" "));
        std::thread::sleep(Duration::from_secs(60));
    }
}
