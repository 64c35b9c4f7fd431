//! Captures of several machines become one, on the clock of the first.
//!
//! Processes keep their ids and say which machine they are of. Threads, samples, waits and all other rows stay what they were; only
//! their times are of another clock, so sums of counts, weights and CPU time do not change. CPUs are numbered on from one machine to
//! the next, because analyses take equal numbers for one CPU. Captures of one boot are of one machine, and share its CPUs.
//!
//! Messages join across machines by their numbers: see `messages`.

mod info;
mod messages;
mod times;

use std::collections::HashMap;

use stepscope_model::{Capture, CaptureInfo, ClockId, Merged, MergedMachine};

use crate::clocks::Aligned;
use crate::join::Joiner;
use messages::Messages;

/// The capture of one machine.
#[derive(Debug)]
pub struct Part {
    /// The name of the machine, which no other has.
    pub name: String,
    /// Where the capture comes from.
    pub source: String,
    /// The capture, with a window and in memory.
    pub capture: Capture,
    /// Its clock on the clock of the first part.
    pub aligned: Aligned,
}

/// Merges captures. The first one gives the clock.
pub fn merge(parts: Vec<Part>) -> Capture {
    let starts = parts.iter().map(|part| {
        let info = &part.capture.info;
        let first = info.recording_start_ns.into_iter().chain(info.start_ns).min().unwrap_or(0);
        part.aligned.map.to(first.into())
    });
    // A machine may have booted after another one was recorded, and a capture has no times before 0.
    let later_ns = -starts.min().unwrap_or(0).min(0);
    let (mut joiner, mut merged, mut messages) = (Joiner::default(), Merged::default(), Messages::default());
    let first_cpus = first_cpus(&parts);
    let mut infos = Vec::new();
    for (number, Part { name, source, mut capture, aligned }) in parts.into_iter().enumerate() {
        messages.add_machine(number as u8, &mut capture, aligned.alignment.error_ns);
        let to = |time_ns: u64| u64::try_from(aligned.map.to(time_ns.into()) + later_ns).unwrap_or(0);
        times::convert(&mut capture, to);
        let first_cpu = first_cpus[number];
        renumber_cpus(&mut capture, first_cpu);
        for process in &mut capture.processes {
            process.machine = Some(name.clone());
        }
        let threads = joiner.add_beside(&capture);
        messages.add_threads(number as u8, threads);
        let mut clock = aligned.alignment;
        clock.offset_ns = clock.offset_ns.saturating_add(i64::try_from(later_ns).unwrap_or(i64::MAX));
        merged.machines.push(MergedMachine {
            name,
            capture: source,
            machine: capture.info.machine.clone(),
            start_ns: capture.info.start_ns.unwrap_or(0),
            end_ns: capture.info.end_ns.unwrap_or(0),
            first_cpu,
            clock,
        });
        infos.push(capture.info);
    }
    let mut capture = joiner.finish();
    capture.samples.sort_by_key(|sample| sample.time_ns);
    capture.counters.sort_by_key(|counter| counter.time_ns);
    capture.allocations.sort_by_key(|row| row.end_ns);
    capture.allocation_bursts.sort_by_key(|row| row.end_ns);
    capture.flows.sort_by_key(|event| event.time_ns);
    (merged.early_messages, merged.impossible_messages) = messages.join(&mut capture.flows);
    let own = |info: &CaptureInfo| info.clocks.as_ref()?.own.clone();
    let twice = processes_twice(&capture, &infos.iter().map(own).collect::<Vec<_>>());
    info::join(&mut capture.info, infos, merged);
    if twice > 0 {
        capture.info.notes.push(format!(
            "Processes that are in two captures of one machine, so that their rows count twice: {twice}."
        ));
    }
    capture
}

/// Whether two captures were recorded in one boot of one machine, by what they say.
fn are_of_one_boot(one: &CaptureInfo, other: &CaptureInfo) -> bool {
    let boot = |info: &CaptureInfo| Some(info.clocks.as_ref()?.own.as_ref()?.boot_id.clone());
    boot(one).is_some_and(|id| boot(other) == Some(id))
}

/// The number that CPU 0 of each part gets.
fn first_cpus(parts: &[Part]) -> Vec<u32> {
    let count = |capture: &Capture| {
        let samples = capture.samples.iter().filter_map(|sample| sample.cpu);
        let seen = samples.chain(capture.waits.iter().filter_map(|wait| wait.cpu)).max();
        let known = capture.info.machine.as_ref().map_or(0, |machine| machine.cores);
        known.max(seen.map_or(0, |most| most.saturating_add(1)))
    };
    let info = |part: usize| &parts[part].capture.info;
    let is_same = |one: usize, other: usize| one == other || are_of_one_boot(info(one), info(other));
    let (mut firsts, mut next) = (Vec::<u32>::new(), 0_u32);
    for part in 0..parts.len() {
        if let Some(known) = (0..part).find(|&known| is_same(known, part)) {
            firsts.push(firsts[known]);
            continue;
        }
        firsts.push(next);
        let of_machine = (part..parts.len()).filter(|&other| is_same(part, other));
        let cpus = of_machine.map(|other| count(&parts[other].capture)).max().unwrap_or(0);
        next = next.saturating_add(cpus);
    }
    firsts
}

fn renumber_cpus(capture: &mut Capture, first: u32) {
    let renumber = |cpu: &mut Option<u32>| *cpu = cpu.map(|cpu| cpu.saturating_add(first));
    capture.samples.iter_mut().for_each(|sample| renumber(&mut sample.cpu));
    capture.waits.change_all(|wait| renumber(&mut wait.cpu));
}

/// Number of processes that are in several captures of one boot of one machine: with one id, at one time.
fn processes_twice(capture: &Capture, clocks: &[Option<ClockId>]) -> usize {
    let group = |machine: usize| {
        let of =
            |other: &Option<ClockId>| clocks[machine].as_ref().zip(other.as_ref()).is_some_and(|(a, b)| a.is_same(b));
        clocks.iter().position(of).unwrap_or(machine)
    };
    let mut lives: Vec<Option<(u64, u64)>> = vec![None; capture.processes.len()];
    for thread in &capture.threads {
        let (Some(process), Some(start), Some(end)) = (thread.process, thread.start_ns, thread.end_ns) else {
            continue;
        };
        let life = &mut lives[process.index()];
        *life = Some(life.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
    }
    let names: Vec<&Option<String>> = capture.processes.iter().map(|process| &process.machine).collect();
    let mut machines: Vec<&Option<String>> = names.clone();
    machines.dedup();
    // Machine, start and end.
    type Life = (usize, u64, u64);
    let mut seen: HashMap<(usize, u32), Vec<Life>> = HashMap::new();
    let mut twice = 0;
    for (index, process) in capture.processes.iter().enumerate() {
        let (Some((start, end)), Some(machine)) =
            (lives[index], machines.iter().position(|name| *name == names[index]))
        else {
            continue;
        };
        let others = seen.entry((group(machine), process.pid)).or_default();
        let is_twin = |&(other, first, last): &Life| other != machine && first < end && start < last;
        twice += usize::from(others.iter().any(is_twin));
        others.push((machine, start, end));
    }
    twice
}

#[cfg(test)]
mod tests;
