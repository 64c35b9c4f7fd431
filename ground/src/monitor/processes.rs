//! The monitored processes: real ones that wait for input that never comes.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::connections::read_file;

/// Idle processes, which end when this is dropped.
pub struct Processes {
    children: Vec<Child>,
}

impl Processes {
    /// Starts them.
    ///
    /// # Errors
    /// If the system cannot; the message says what was tried.
    pub fn start(count: u32) -> io::Result<Self> {
        let mut processes = Self { children: Vec::new() };
        for _ in 0..count {
            // In process groups of their own, so that a signal to this program's group does not end them first.
            let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn();
            let child = child.map_err(|error| io::Error::new(error.kind(), format!("cannot start `cat`: {error}")))?;
            processes.children.push(child);
        }
        Ok(processes)
    }

    /// Their ids.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.children.iter().map(Child::id)
    }

    /// Ends them, and waits until they have.
    pub fn end(&mut self) {
        for mut child in self.children.drain(..) {
            // Closing its input ends it.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

/// Fields of `/proc/<pid>/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcStat {
    /// Name of its program, at most 15 bytes.
    pub command: String,
    /// Process that started it.
    pub parent: u32,
    /// CPU time, in clock ticks.
    pub cpu_ticks: u64,
    /// Number of threads.
    pub threads: u32,
}

/// Reads `/proc/<pid>/stat`.
///
/// # Errors
/// If there is no such process.
#[inline(never)]
pub fn parse_proc_stat(pid: u32) -> io::Result<ProcStat> {
    let path = format!("/proc/{pid}/stat");
    let text = read_file(&path)?;
    parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path} has an unknown format")))
}

fn parse(text: &str) -> Option<ProcStat> {
    // The command is in parentheses and may contain any character, also parentheses.
    let (before, after) = text.rsplit_once(") ")?;
    let (_, command) = before.split_once('(')?;
    // proc_pid_stat(5) numbers fields from 1; the third is the first after the command.
    let field = |number: usize| after.split_ascii_whitespace().nth(number - 3)?.parse::<u64>().ok();
    let cpu_ticks = field(14)? + field(15)?;
    let (parent, threads) = (u32::try_from(field(4)?).ok()?, u32::try_from(field(20)?).ok()?);
    Some(ProcStat { command: command.to_owned(), parent, cpu_ticks, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_may_contain_parentheses() {
        let line = "77 (a) b (c) S 5 77 77 0 -1 4194304 101 0 0 0 12 30 0 0 20 0 3 0 990 230 10 0 0\n";
        let stat = ProcStat { command: "a) b (c".into(), parent: 5, cpu_ticks: 42, threads: 3 };
        assert_eq!(parse(line), Some(stat));
        assert_eq!(parse("77 (a) S 5"), None);
    }

    #[test]
    fn processes_run_until_they_are_ended() {
        let mut processes = Processes::start(3).unwrap();
        let pids: Vec<u32> = processes.pids().collect();
        assert!(pids.iter().all(|pid| parse_proc_stat(*pid).unwrap().parent == std::process::id()));
        processes.end();
        assert!(pids.iter().all(|pid| parse_proc_stat(*pid).is_err()));
    }
}
