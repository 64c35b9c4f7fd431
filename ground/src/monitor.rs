//! A monitor of processes and their connections, like that of a launcher of robot software.
//!
//! A step is a tick: read the state of every process, count its connections, and write a table row per process.

mod connections;
mod processes;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use crate::account;
use crate::folder::TemporaryFolder;
use crate::random::StateHash;
use crate::simulation::Simulation;
use crate::switches::{Switch, Switches};
use connections::{Connections, Sockets, count_connections};
use processes::{ProcStat, Processes, parse_proc_stat};

/// Time between ticks, s.
const STEP_S: f64 = 2.0;

/// TCP sockets held open, and as many UDP sockets.
const SOCKETS: usize = 20;

/// Starts `size` processes to monitor.
///
/// # Errors
/// If they cannot be started, or no sockets are available.
pub fn load(size: u32, switches: &Switches) -> io::Result<Box<dyn Simulation>> {
    Ok(Box::new(Monitor::start(size, switches)?))
}

struct Monitor {
    processes: Processes,
    sockets: Sockets,
    table: BufWriter<File>,
    folder: TemporaryFolder,
    switches: Switches,
    seen: StateHash,
}

impl Monitor {
    fn start(size: u32, switches: &Switches) -> io::Result<Self> {
        let folder = TemporaryFolder::new("monitor")?;
        Ok(Self {
            sockets: Sockets::open(SOCKETS)?,
            processes: Processes::start(size)?,
            table: BufWriter::new(File::create(folder.path().join("processes.csv"))?),
            folder,
            switches: switches.clone(),
            seen: StateHash::default(),
        })
    }

    /// Reads the state of every process once.
    fn tick(&mut self, step: u64) -> io::Result<()> {
        let pids: Vec<u32> = self.processes.pids().collect();
        let stats = refresh_processes(&pids)?;
        let connections = self.connections(&pids)?;
        for ((pid, stat), connections) in pids.iter().zip(&stats).zip(&connections) {
            connections.iter().for_each(|count| self.seen.add(*count as u64));
            self.seen.add(u64::from(stat.threads) << 1 | u64::from(stat.parent == std::process::id()));
            write_csv(&mut self.table, step, *pid, stat, connections)?;
        }
        Ok(())
    }

    /// The connections that each process sees. All share a network namespace, so the fast code reads those of one process.
    #[inline(never)]
    fn connections(&self, pids: &[u32]) -> io::Result<Vec<Connections>> {
        let _timed = account::scope("ground::monitor::Monitor::connections");
        if self.switches.is_slow(Switch::ProcPerPid) {
            return pids.iter().map(|pid| count_connections(*pid, &self.sockets)).collect();
        }
        let Some(first) = pids.first() else { return Ok(Vec::new()) };
        let connections = count_connections(*first, &self.sockets)?;
        Ok(vec![connections; pids.len()])
    }
}

#[inline(never)]
fn refresh_processes(pids: &[u32]) -> io::Result<Vec<ProcStat>> {
    let _timed = account::scope("ground::monitor::refresh_processes");
    pids.iter().map(|pid| parse_proc_stat(*pid)).collect()
}

fn write_csv(
    out: &mut impl Write,
    step: u64,
    pid: u32,
    stat: &ProcStat,
    [tcp, tcp6, udp, udp6]: &Connections,
) -> io::Result<()> {
    let ProcStat { command, cpu_ticks, threads, .. } = stat;
    writeln!(out, "{step},{pid},{command},{cpu_ticks},{threads},{tcp},{tcp6},{udp},{udp6}")
}

impl Simulation for Monitor {
    fn name(&self) -> String {
        format!("monitor_{}", self.processes.pids().count())
    }

    fn step(&mut self, step: u64) {
        self.tick(step).expect("the processes run until the end, and the temporary folder is writable");
    }

    fn step_s(&self) -> f64 {
        STEP_S
    }

    fn state_hash(&self) -> u64 {
        self.seen.get()
    }

    fn close(&mut self) {
        if let Err(error) = self.table.flush() {
            eprintln!("ground: the table of processes is incomplete: {error}");
        }
        self.processes.end();
        self.folder.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_after(steps: u64, size: u32, switches: &Switches) -> u64 {
        let mut world = load(size, switches).unwrap();
        (0..steps).for_each(|step| world.step(step));
        world.close();
        world.state_hash()
    }

    #[test]
    fn every_process_is_seen_with_the_same_connections_however_they_are_counted() {
        for size in [0, 1, 6] {
            let fast = state_after(3, size, &Switches::default());
            assert_eq!(state_after(3, size, &Switches::only(Switch::ProcPerPid)), fast, "{size} processes");
        }
        assert_ne!(state_after(1, 2, &Switches::default()), state_after(1, 3, &Switches::default()));
    }
}
