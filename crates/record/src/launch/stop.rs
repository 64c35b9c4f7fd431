//! Ending a program and everything it started.

use std::fmt;
use std::time::{Duration, Instant};

use super::LaunchError;
use super::keeper::Keeper;
use crate::proc::{self, Member, ProcessTree};

/// How long to wait after each signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// After SIGINT: time for a simulator to write its logs and shut down its servers.
    pub after_interrupt: Duration,
    /// After SIGTERM.
    pub after_terminate: Duration,
    /// After SIGKILL. Only a process of another user, or one in an uninterruptible wait (a dead network disk), can
    /// outlive it.
    pub after_kill: Duration,
}

impl Default for Grace {
    /// 5 s, 3 s, 5 s.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { after_interrupt: seconds(5), after_terminate: seconds(3), after_kill: seconds(5) }
    }
}

/// How the processes of a program were ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopReport {
    /// Processes that ended after SIGINT.
    pub interrupted: Vec<StoppedProcess>,
    /// Processes that needed SIGTERM.
    pub terminated: Vec<StoppedProcess>,
    /// Processes that needed SIGKILL; their unwritten data is lost.
    pub killed: Vec<StoppedProcess>,
    /// Processes that still exist.
    pub survivors: Vec<Survivor>,
}

/// A process that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoppedProcess {
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
    /// Why, as far as known.
    pub reason: &'static str,
}

impl fmt::Display for StopReport {
    /// One clause for each part that is not empty; `nothing was running` if all are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |processes: &[StoppedProcess]| {
            let names: Vec<_> = processes.iter().map(|process| format!("{} ({})", process.name, process.pid)).collect();
            names.join(", ")
        };
        let mut parts = Vec::new();
        for (processes, how) in [
            (&self.interrupted, "ended after SIGINT"),
            (&self.terminated, "needed SIGTERM"),
            (&self.killed, "needed SIGKILL"),
        ] {
            if !processes.is_empty() {
                parts.push(format!("{how}: {}", list(processes)));
            }
        }
        for survivor in &self.survivors {
            parts.push(format!("still running: {} ({}), {}", survivor.name, survivor.pid, survivor.reason));
        }
        f.write_str(&if parts.is_empty() { "nothing was running".to_owned() } else { parts.join("; ") })
    }
}

/// The processes that a signal goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The program's process group, as with Ctrl-C in a terminal. A process that left the group (a daemon) must be
    /// ended by the process that started it, in reaction to the signal.
    Group(u32),
    /// The whole tree.
    All,
}

pub(super) fn stop(keeper: &mut Keeper, grace: &Grace) -> Result<StopReport, LaunchError> {
    let mut tree = ProcessTree::below(keeper.keeper_pid());
    let mut report = StopReport::default();
    // Ask for the group: with inherited terminal input, the program has the group of the recorder.
    let group = proc::stat(keeper.pid()).ok().filter(|_| keeper.exit().is_none()).map(|stat| stat.group);
    if let Some(group) = group {
        report.interrupted =
            signal_and_wait(keeper, &mut tree, libc::SIGINT, Target::Group(group), grace.after_interrupt)?;
    }
    report.terminated = signal_and_wait(keeper, &mut tree, libc::SIGTERM, Target::All, grace.after_terminate)?;
    if keeper.wait_all_ended(Duration::ZERO)? {
        return Ok(report);
    }
    let before = living(&mut tree);
    keeper.kill_all();
    keeper.wait_all_ended(grace.after_kill)?;
    let left = living(&mut tree);
    report.killed = before.iter().filter(|process| !left.contains(process)).cloned().collect();
    if !keeper.all_ended() {
        report.survivors = tree.members().map(survivor).collect();
    }
    Ok(report)
}

/// Sends a signal to the target, waits until none of it is left, and returns the processes that ended.
fn signal_and_wait(
    keeper: &mut Keeper,
    tree: &mut ProcessTree,
    signal: i32,
    target: Target,
    grace: Duration,
) -> Result<Vec<StoppedProcess>, LaunchError> {
    let deadline = Instant::now() + grace;
    let mut sent = Vec::new();
    let mut pause = Duration::from_millis(2);
    loop {
        if keeper.wait_all_ended(Duration::ZERO)? {
            return Ok(sent);
        }
        tree.refresh();
        let mut left = false;
        for member in tree.members().filter(|member| !member.is_zombie() && target.includes(member)) {
            left = true;
            let process = StoppedProcess::from(member);
            // One signal per process: many programs exit without cleanup at a second SIGINT. A process that started
            // since the last refresh gets its own.
            if !sent.contains(&process) {
                send(member, &[signal, libc::SIGCONT]);
                sent.push(process);
            } else if member.stat.state == proc::State::Stopped {
                // It stopped itself again before it handled the signal.
                send(member, &[libc::SIGCONT]);
            }
        }
        if !left || Instant::now() >= deadline {
            let living = living(tree);
            sent.retain(|process| !living.contains(process));
            return Ok(sent);
        }
        keeper.wait_all_ended(pause)?;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

impl Target {
    fn includes(self, member: &Member) -> bool {
        match self {
            Target::Group(group) => member.stat.group == group,
            Target::All => true,
        }
    }
}

impl From<&Member> for StoppedProcess {
    fn from(member: &Member) -> Self {
        Self { pid: member.pid(), name: member.stat.name.clone() }
    }
}

fn living(tree: &mut ProcessTree) -> Vec<StoppedProcess> {
    tree.refresh();
    tree.members().filter(|member| !member.is_zombie()).map(StoppedProcess::from).collect()
}

fn survivor(member: &Member) -> Survivor {
    // SAFETY: signal 0 only checks whether a signal could be sent.
    let may_signal = unsafe { libc::kill(member.pid() as i32, 0) } == 0;
    let reason = match (may_signal, member.stat.state) {
        (false, _) => "it runs as another user: end it as root",
        (true, proc::State::Uninterruptible) => "it waits for a device or file system that does not respond",
        (true, proc::State::Zombie) => "its parent has not collected its exit status",
        (true, _) => "it did not end in time",
    };
    Survivor { pid: member.pid(), name: member.stat.name.clone(), reason }
}

/// Sends signals to exactly this process. The descriptor pins it, then its start time is compared, so a reused pid is
/// not hit. SIGCONT lets a stopped process react to the signal before it.
fn send(member: &Member, signals: &[i32]) {
    let pid = member.pid() as i32;
    // SAFETY: system calls with numbers only; the descriptor is ours and closed.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        let is_same = || proc::stat(member.pid()).is_ok_and(|stat| stat.start_ticks == member.stat.start_ticks);
        if is_same() {
            for &signal in signals {
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

    /// Guards against a hang; no test waits this long.
    const GUARD: Duration = Duration::from_secs(120);

    /// Grace for a program that reacts to the last signal but none before: that one has all the time it needs, on any
    /// machine, and the signals before it are only waited for briefly.
    fn grace_until(signal: i32) -> Grace {
        let before = Duration::from_millis(50);
        let after = |own| if signal == own { GUARD } else { before };
        Grace { after_interrupt: after(libc::SIGINT), after_terminate: after(libc::SIGTERM), after_kill: GUARD }
    }

    /// Set in the process that another test kills.
    const TO_BE_KILLED: &str = "STEPSCOPE_TEST_TO_BE_KILLED";

    /// A shell script that has printed `ready`.
    fn start(script: &str) -> Launched {
        let (sender, receiver) = std::sync::mpsc::channel();
        let watch: LineWatcher = Box::new(move |line| {
            if line == "ready" {
                let _ = sender.send(());
            }
        });
        let output = Output::Captured { keep_lines: 50, copy_to: None, watch: Some(watch) };
        let program = Launch::new(["bash", "-c", script]).output(output).prepare().unwrap().start().unwrap();
        receiver.recv_timeout(GUARD).unwrap();
        program
    }

    /// The program's tree, once its processes have these names; `name!` is a zombie.
    fn tree_of(program: &Launched, names: &[&str]) -> ProcessTree {
        let mut tree = program.tree();
        wait_until(&format!("processes {names:?}"), || {
            tree.refresh();
            let name = |member: &Member| member.stat.name.clone() + if member.is_zombie() { "!" } else { "" };
            let mut found: Vec<String> = tree.members().map(name).collect();
            found.sort_unstable();
            found == names
        });
        tree
    }

    /// Polls a condition until it holds.
    fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + GUARD;
        while !holds() {
            assert!(Instant::now() < deadline, "waited for {what} in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn names(processes: &[StoppedProcess]) -> Vec<&str> {
        let mut names: Vec<&str> = processes.iter().map(|process| process.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Stops with patience for this signal, and asserts that nothing of the tree is left, not even the keeper.
    fn stop_by(signal: i32, program: &mut Launched) -> StopReport {
        let keeper = program.keeper.keeper_pid();
        let mut tree = program.tree();
        tree.refresh();
        let pids: Vec<u32> = tree.members().map(Member::pid).collect();
        let report = program.stop(&grace_until(signal)).unwrap();
        assert_eq!(report.survivors, []);
        assert!(program.all_ended().unwrap());
        for pid in pids.into_iter().chain([keeper]) {
            assert!(!proc::exists(pid), "{pid} is left: {report}");
        }
        report
    }

    #[test]
    fn a_program_that_ends_on_ctrl_c_gets_no_stronger_signal() {
        // Without children: a shell that is about to start one sometimes forgets an interrupt.
        let mut program = start("trap 'echo bye; exit 3' INT; echo ready; while :; do :; done");
        let report = stop_by(libc::SIGINT, &mut program);
        assert_eq!((names(&report.terminated), names(&report.killed)), (vec![], vec![]), "{report}");
        assert_eq!(program.exit().unwrap().unwrap().code, Some(3));
        assert_eq!(program.last_lines(), ["ready", "bye"]);
    }

    #[test]
    fn a_program_that_ignores_ctrl_c_is_terminated() {
        let mut program = start("trap '' INT; trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done");
        let report = stop_by(libc::SIGTERM, &mut program);
        assert!(names(&report.terminated).contains(&"bash"), "{report}");
        assert_eq!(names(&report.killed), Vec::<&str>::new());
        assert_eq!(program.exit().unwrap().unwrap().code, Some(4));
    }

    #[test]
    fn a_program_that_ignores_everything_is_killed_with_its_children() {
        let mut program = start("trap '' INT TERM HUP; sleep 600 & echo ready; while :; do wait; done");
        tree_of(&program, &["bash", "sleep"]);
        let report = stop_by(libc::SIGKILL, &mut program);
        assert_eq!(names(&report.killed), ["bash", "sleep"], "{report}");
        assert_eq!(program.exit().unwrap().unwrap().signal, Some(libc::SIGKILL));
    }

    #[test]
    fn a_daemon_in_its_own_session_whose_parents_have_ended_is_found() {
        let daemon = "trap '' INT TERM; echo ready; exec 1>&- 2>&-; sleep 600 & wait; sleep 600";
        let mut program = start(&format!("(setsid bash -c \"({daemon}) & \" &) & exit 5"));
        assert_eq!(program.wait_for(GUARD).unwrap().unwrap().code, Some(5));
        assert!(!program.all_ended().unwrap());
        tree_of(&program, &["bash", "sleep"]);
        let report = stop_by(libc::SIGKILL, &mut program);
        assert_eq!(names(&report.killed), ["bash", "sleep"], "{report}");
    }

    #[test]
    fn a_program_that_stops_itself_is_continued_until_it_ends() {
        let mut program = start("trap 'exit 6' TERM; trap '' INT; echo ready; while :; do kill -STOP $$; done");
        let report = stop_by(libc::SIGTERM, &mut program);
        assert_eq!(names(&report.terminated), ["bash"], "{report}");
        assert_eq!(program.exit().unwrap().unwrap().code, Some(6));
    }

    #[test]
    fn processes_that_fork_as_fast_as_they_can_do_not_escape() {
        // Each generation is born in its own session and outlives its parent. Bounded, in case the test itself fails.
        let storm = "trap '' INT TERM; n=$1; [ $n -le 0 ] && exec sleep 5; \
                     setsid bash \"$0\" $((n - 1)) & setsid bash \"$0\" $((n - 4)) & exit 0";
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("storm");
        std::fs::write(&script, storm).unwrap();
        let mut program = start(&format!("bash {} 16 & echo ready; sleep 600", script.display()));
        let keeper = program.keeper.keeper_pid();
        let report = program.stop(&grace_until(libc::SIGKILL)).unwrap();
        assert_eq!(report.survivors, []);
        assert!(!proc::exists(keeper));
        let left = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            proc::command_line(pid).ok()?.iter().any(|argument| argument == script.to_str().unwrap()).then_some(pid)
        });
        assert_eq!(left.collect::<Vec<_>>(), Vec::<u32>::new());
    }

    #[test]
    fn zombies_disappear_with_a_parent_that_does_not_wait_for_them() {
        // bash collects its children; sleep does not. So they end once their parent has become sleep.
        let child = "until read name < /proc/$$/comm && [ $name = sleep ]; do :; done";
        let mut program = start(&format!("for i in 1 2 3; do {{ {child}; }} & done; echo ready; exec sleep 600"));
        tree_of(&program, &["bash!", "bash!", "bash!", "sleep"]);
        let report = stop_by(libc::SIGINT, &mut program);
        assert_eq!((names(&report.interrupted), names(&report.terminated)), (vec!["sleep"], vec![]), "{report}");
        assert_eq!(names(&report.killed), Vec::<&str>::new());
    }

    #[test]
    fn stopping_an_ended_program_does_nothing() {
        let mut program = start("echo ready");
        program.wait_for(GUARD).unwrap().unwrap();
        assert_eq!(stop_by(libc::SIGINT, &mut program).to_string(), "nothing was running");
    }

    #[test]
    fn a_dropped_program_is_killed_with_everything_it_started() {
        let program = start("trap '' INT TERM; setsid sleep 600 & echo ready; sleep 600; true");
        let tree = tree_of(&program, &["bash", "sleep", "sleep"]);
        let pids: Vec<u32> = tree.members().map(Member::pid).collect();
        drop(program);
        assert_eq!(pids.into_iter().filter(|&pid| proc::exists(pid)).count(), 0);
    }

    #[test]
    fn the_program_ends_when_its_recorder_is_killed() {
        // Another process stands for the recorder: this test binary, running the test below.
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
        // The keeper's own parent is gone; in a container without an init, nobody collects the keeper.
        let runs = |&pid: &u32| proc::stat(pid).is_ok_and(|stat| !stat.state.has_ended());
        wait_until("every process to end", || !pids.iter().any(runs));
    }

    #[test]
    #[ignore = "run by another test, which kills it"]
    fn prints_the_pids_of_a_program() {
        // Without the other test (`--include-ignored`), there is nobody to print for.
        if std::env::var_os(TO_BE_KILLED).is_none() {
            return;
        }
        // SAFETY: a number is set. This process ends with the other test, should that be killed first.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let program = start("trap '' INT TERM; setsid sleep 600 & echo ready; sleep 600; true");
        let tree = tree_of(&program, &["bash", "sleep", "sleep"]);
        let pids = tree.members().map(Member::pid).chain([program.keeper.keeper_pid()]);
        println!("pids: {}", pids.map(|pid| pid.to_string()).collect::<Vec<_>>().join(" "));
        std::thread::sleep(GUARD);
    }
}
