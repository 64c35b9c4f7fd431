//! The description of a merged capture.

use std::collections::BTreeMap;

use stepscope_model::quantity::{duration, plural};
use stepscope_model::{
    AlignmentMethod, CaptureInfo, Conditions, Dimension, DimensionStatus, Machine, Merged, MergedMachine, Origin,
};

use super::are_of_one_boot;
use crate::join::{join_losses, sum_of_costs};

/// Describes the merged capture, which has its events already. The first part names program and scenario.
pub(super) fn join(joined: &mut CaptureInfo, parts: Vec<CaptureInfo>, merged: Merged) {
    let events = std::mem::take(&mut joined.events);
    let notes = notes(&parts, &merged);
    let first_to_start = parts.iter().min_by_key(|part| part.start_ns);
    let mut info = CaptureInfo {
        events,
        started_at: first_to_start.and_then(|part| part.started_at.clone()),
        start_ns: parts.iter().filter_map(|part| part.start_ns).min(),
        end_ns: parts.iter().filter_map(|part| part.end_ns).max(),
        recording_start_ns: parts.iter().filter_map(|part| part.recording_start_ns).min(),
        clocks: None,
        dimensions: dimensions(&parts, &merged.machines),
        machine: machine(&parts),
        conditions: conditions(&parts),
        recording_cost: parts.iter().filter_map(|part| part.recording_cost).reduce(sum_of_costs),
        build: parts[0].build.clone().filter(|build| parts.iter().all(|part| part.build.as_ref() == Some(build))),
        found_step: parts.iter().find_map(|part| part.found_step.clone()),
        notes,
        ..parts[0].clone()
    };
    for part in &parts[1..] {
        join_losses(&mut info.losses, &part.losses);
        if part.origin == Origin::Recovered {
            info.origin = Origin::Recovered;
        }
        for metric in &part.own_metrics {
            if info.own_metrics.iter().all(|known| known.name != metric.name) {
                info.own_metrics.push(metric.clone());
            }
        }
        part.environment.iter().for_each(|(name, value)| {
            info.environment.entry(name.clone()).or_insert_with(|| value.clone());
        });
    }
    // Machines have different code, unlike segments.
    info.losses.unnamed_addresses = parts.iter().fold(0, |sum, part| sum.saturating_add(part.losses.unnamed_addresses));
    info.merged = Some(merged);
    *joined = info;
}

/// All machines together: what relates CPU time to a capacity needs the CPUs of all.
fn machine(parts: &[CaptureInfo]) -> Option<Machine> {
    let is_known = |at: usize| (0..at).any(|other| are_of_one_boot(&parts[at], &parts[other]));
    let distinct = parts.iter().enumerate().filter(|(at, _)| !is_known(*at));
    let machines: Vec<&Machine> = distinct.filter_map(|(_, part)| part.machine.as_ref()).collect();
    let first = *machines.first()?;
    let joined = |of: fn(&Machine) -> &str| {
        let mut texts: Vec<&str> = machines.iter().map(|machine| of(machine)).collect();
        texts.dedup();
        texts.join(" + ")
    };
    let equal = |of: fn(&Machine) -> &Option<String>| {
        of(first).clone().filter(|_| machines.iter().all(|machine| of(machine) == of(first)))
    };
    Some(Machine {
        host: joined(|machine| &machine.host),
        cpu: joined(|machine| &machine.cpu),
        cores: machines.iter().fold(0, |sum, machine| sum.saturating_add(machine.cores)),
        memory_bytes: machines.iter().fold(0, |sum, machine| sum.saturating_add(machine.memory_bytes)),
        kernel: joined(|machine| &machine.kernel),
        architecture: joined(|machine| &machine.architecture),
        governor: equal(|machine| &machine.governor),
        virtualization: equal(|machine| &machine.virtualization),
        pmu: machines.iter().all(|machine| machine.pmu),
        load_milli: machines.iter().fold(0, |sum, machine| sum.saturating_add(machine.load_milli)),
    })
}

/// Times of all machines together. Temperatures and governors are of one machine, and left out.
fn conditions(parts: &[CaptureInfo]) -> Option<Conditions> {
    let all: Option<Vec<&Conditions>> = parts.iter().map(|part| part.conditions.as_ref()).collect();
    let sum = |of: fn(&Conditions) -> Option<u64>| {
        all.as_ref()?.iter().try_fold(0_u64, |sum, one| Some(sum.saturating_add(of(one)?)))
    };
    let (others_cpu_ns, stolen_ns) = (sum(|one| one.others_cpu_ns), sum(|one| one.stolen_ns));
    all.as_ref().map(|_| Conditions { others_cpu_ns, stolen_ns, ..Conditions::default() })
}

/// A dimension that one machine lacks is partial, and says so.
fn dimensions(parts: &[CaptureInfo], machines: &[MergedMachine]) -> BTreeMap<Dimension, DimensionStatus> {
    let mut asked: Vec<Dimension> = parts.iter().flat_map(|part| part.dimensions.keys().copied()).collect();
    asked.sort_unstable();
    asked.dedup();
    let status = |dimension: &Dimension| {
        let each = || parts.iter().zip(machines).map(|(part, machine)| (&machine.name, part.dimensions.get(dimension)));
        let is_missing =
            |status: Option<&DimensionStatus>| matches!(status, None | Some(DimensionStatus::Missing { .. }));
        if each().all(|(_, status)| is_missing(status)) {
            return each().find_map(|(_, status)| status.cloned()).expect("some part was asked for it");
        }
        let lacks: Vec<String> = each()
            .flat_map(|(name, status)| match status {
                Some(DimensionStatus::Recorded) => Vec::new(),
                Some(DimensionStatus::Partial { lacks }) => {
                    lacks.iter().map(|lack| format!("{name}: {lack}")).collect()
                }
                Some(DimensionStatus::Missing { reason, .. }) => vec![format!("{name}: not recorded: {reason}")],
                None => vec![format!("{name}: not asked for.")],
            })
            .collect();
        match lacks.is_empty() {
            true => DimensionStatus::Recorded,
            false => DimensionStatus::Partial { lacks },
        }
    };
    asked.iter().map(|dimension| (*dimension, status(dimension))).collect()
}

fn notes(parts: &[CaptureInfo], merged: &Merged) -> Vec<String> {
    let machines = &merged.machines;
    let mut notes: Vec<String> = machines.iter().skip(1).map(|machine| clock_note(machine, &machines[0])).collect();
    let apart = machines.iter().skip(1).filter(|machine| {
        machines.iter().all(|other| {
            std::ptr::eq(*machine, other) || machine.end_ns <= other.start_ns || other.end_ns <= machine.start_ns
        })
    });
    for machine in apart {
        notes.push(format!(
            "The recording of {} has no time in common with the others: was it recorded at another time?",
            machine.name
        ));
    }
    let others = machines.iter().skip(1).filter(|machine| machine.first_cpu > 0);
    let mut cpus = others.map(|machine| format!("{} on of {}", machine.first_cpu, machine.name));
    if let Some(first) = cpus.next() {
        let all: Vec<String> = std::iter::once(first).chain(cpus).collect();
        notes.push(format!("CPUs are numbered from 0 on of {}, from {}.", machines[0].name, all.join(", from ")));
    }
    for (part, machine) in parts.iter().zip(machines) {
        notes.extend(part.notes.iter().map(|note| format!("{}: {note}", machine.name)));
    }
    notes
}

/// How the clock of a machine was aligned, in a sentence.
fn clock_note(machine: &MergedMachine, first: &MergedMachine) -> String {
    let (clock, name, first) = (&machine.clock, &machine.name, &first.name);
    let error = duration(clock.error_ns);
    match clock.method {
        AlignmentMethod::Reference | AlignmentMethod::SameClock => {
            format!("{name} and {first} were recorded in one boot of one machine: their clock is the same.")
        }
        AlignmentMethod::Exchange => format!(
            "The clock of {name} was aligned to that of {first} by {} (shortest round trip {}): its times are right to {error}. It \
             was {:.2} ppm {}.",
            plural(clock.exchanges as usize, "exchange"),
            duration(clock.round_trip_ns.unwrap_or(0)),
            clock.drift_ppm.abs(),
            if clock.drift_ppm < 0.0 { "faster" } else { "slower" },
        ),
        AlignmentMethod::WallClock => format!(
            "The clock of {name} was aligned to that of {first} by the wall clocks. By the word of NTP or PTP, its times are right to \
             {error}; that was not measured."
        ),
        AlignmentMethod::GivenError => format!(
            "The clock of {name} was aligned to that of {first} by the wall clocks. Its times are right to {error} if these agreed as \
             was given; that was not measured."
        ),
    }
}
