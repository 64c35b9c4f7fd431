//! The role of an event, by its name and unit.
//!
//! Samples of different events are never added up: a capture of a hybrid CPU has `cpu_core/cycles/` and
//! `cpu_atom/cycles/`, and their cycles are not the same cycles.

use stepscope_model::{Capture, Event, EventId, Sample};
use strum::IntoStaticStr;

/// What samples of an event are evidence of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Time or cycles on a CPU.
    Cpu,
    /// Minor page faults: the page was in memory.
    MinorFaults,
    /// Major page faults: the page was read from a file.
    MajorFaults,
    /// Page faults, minor and major ones together.
    Faults,
    /// Misses of the last-level cache.
    CacheMisses,
    /// Accesses of the last-level cache.
    CacheReferences,
    /// Accesses of the first-level data cache.
    DataReferences,
    /// Misses of the first-level caches.
    FirstLevelMisses,
    /// Instructions.
    Instructions,
    /// Branches.
    Branches,
    /// Branches that the CPU predicted wrongly.
    BranchMisses,
    /// Something else, or not said.
    Other,
}

/// Events of valgrind's simulated caches.
const SIMULATED: [&str; 17] = [
    "Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw", "I2mr", "D2mr", "D2mw", "Bc", "Bi", "Bcm", "Bim",
    "sysCount",
];

/// Whether an event is one of a simulation, not of a CPU.
pub fn is_simulated(event: &Event) -> bool {
    SIMULATED.contains(&event.name.as_str())
}

/// What samples of this event are evidence of.
pub fn role(event: &Event) -> Role {
    role_of(&event.name, &event.unit)
}

/// What an event of this name and unit is evidence of.
pub fn role_of(name: &str, unit: &str) -> Role {
    match plain_name(name) {
        "cpu-clock" | "task-clock" | "cpu" | "cycles" | "cpu-cycles" | "ref-cycles" => Role::Cpu,
        "minor-faults" | "min-flt" => Role::MinorFaults,
        "major-faults" | "maj-flt" => Role::MajorFaults,
        "page-faults" | "faults" => Role::Faults,
        "cache-misses" | "LLC-load-misses" | "LLC-store-misses" | "LLC-misses" => Role::CacheMisses,
        "ILmr" | "DLmr" | "DLmw" | "I2mr" | "D2mr" | "D2mw" => Role::CacheMisses,
        "cache-references" | "LLC-loads" | "LLC-stores" | "LLC-references" => Role::CacheReferences,
        "L1-dcache-loads" | "L1-dcache-stores" | "Dr" | "Dw" => Role::DataReferences,
        "L1-dcache-load-misses" | "L1-icache-load-misses" | "I1mr" | "D1mr" | "D1mw" => Role::FirstLevelMisses,
        "instructions" | "Ir" => Role::Instructions,
        "branches" | "branch-instructions" | "Bc" | "Bi" => Role::Branches,
        "branch-misses" | "Bcm" | "Bim" => Role::BranchMisses,
        other if ["TLB", "L1-", "branch", "stalled-"].iter().any(|word| other.contains(word)) => Role::Other,
        _ if unit == "cycles" => Role::Cpu,
        _ if unit == "misses" => Role::CacheMisses,
        _ if unit == "faults" => Role::Faults,
        _ => Role::Other,
    }
}

/// The events whose samples are the last-level cache misses of a capture, without one that another contains: `cache-misses` has
/// those of `LLC-load-misses`. Measured ones come before simulated ones.
pub fn cache_misses(capture: &Capture) -> Vec<EventId> {
    let all: Vec<EventId> = of_role(capture, Role::CacheMisses).collect();
    let only = |is: &dyn Fn(&Event) -> bool| -> Vec<EventId> {
        all.iter().copied().filter(|id| is(capture.event(*id))).collect()
    };
    let measured = only(&|event| !is_simulated(event));
    let choices = [
        only(&|event| plain_name(&event.name) == "cache-misses"),
        only(&|event| plain_name(&event.name).starts_with("LLC-")),
        measured,
    ];
    choices.into_iter().find(|events| !events.is_empty()).unwrap_or(all)
}

/// The name without its unit on a hybrid CPU and without modifiers: `cycles` for `cpu_core/cycles/P` and `cycles:u`.
pub(crate) fn plain_name(name: &str) -> &str {
    let name = match name.split('/').collect::<Vec<_>>()[..] {
        [_unit, event, _modifiers] => event,
        _ => name,
    };
    name.split(':').next().unwrap_or(name)
}

/// The event that stands for on-CPU cost: the event of CPU time with the most samples. Without one, an event of unknown
/// role; else any other. Ties go to the first one.
pub fn primary(capture: &Capture) -> Option<EventId> {
    let mut counts = vec![0; capture.info.events.len()];
    // There is nothing to choose from with one event.
    if counts.len() > 1 {
        count(&capture.samples, &mut counts);
    }
    primary_by(capture, &counts)
}

fn count(samples: &[Sample], counts: &mut [usize]) {
    for sample in samples {
        counts[sample.event.index()] += 1;
    }
}

fn primary_by(capture: &Capture, counts: &[usize]) -> Option<EventId> {
    let preference = |event: &Event| match role(event) {
        Role::Cpu => 2,
        Role::Other | Role::Instructions => 1,
        _ => 0,
    };
    let events = capture.info.events.iter().zip(counts).enumerate();
    let best =
        events.max_by_key(|(index, (event, samples))| (preference(event), **samples, std::cmp::Reverse(*index)))?;
    Some(EventId::from_index(best.0))
}

/// Number of samples of the primary event; page faults and the like do not count. Samples on disk are not kept in memory.
pub fn cpu_samples(capture: &Capture) -> usize {
    let mut counts = vec![0; capture.info.events.len()];
    let counted = capture.samples.stream(|samples| count(samples, &mut counts));
    counted.ok().and_then(|()| primary_by(capture, &counts)).map_or(0, |event| counts[event.index()])
}

/// Whether an event is time on a CPU, and not other time or bytes.
pub fn is_cpu_time(event: &Event) -> bool {
    event.unit == "ns" && role(event) == Role::Cpu
}

/// Whether weights of an event say nothing about CPUs: bytes and numbers of allocations.
pub fn is_memory(event: &Event) -> bool {
    const UNITS: [&str; 5] = ["bytes", "byte", "allocations", "objects", "blocks"];
    role(event) == Role::Other && UNITS.contains(&&*event.unit)
}

/// The events of a capture that are evidence of `role`.
pub fn of_role(capture: &Capture, wanted: Role) -> impl Iterator<Item = EventId> + '_ {
    let events = capture.info.events.iter().enumerate();
    events.filter(move |(_, event)| role(event) == wanted).map(|(index, _)| EventId::from_index(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::Drawing;

    #[test]
    fn names_are_understood_with_their_modifiers() {
        let of = |name: &str, unit: &str| role(&Event::weighed(name, unit));
        assert_eq!(of("cpu_core/cycles/P", "cycles"), Role::Cpu);
        assert_eq!(of("cycles:u", "cycles"), Role::Cpu);
        assert_eq!(of("cpu-clock", "ns"), Role::Cpu);
        assert_eq!(of("cache-misses:u", "misses"), Role::CacheMisses);
        assert_eq!(of("minor-faults", "faults"), Role::MinorFaults);
        assert_eq!(of("samples", "weight"), Role::Other);
        assert_eq!(of("branch-misses:u", "misses"), Role::BranchMisses);
        assert_eq!(of("cpu_atom/L1-dcache-load-misses/", "misses"), Role::FirstLevelMisses);
        assert_eq!(of("dTLB-load-misses", "misses"), Role::Other);
        assert_eq!(of("stalled-cycles-backend", "cycles"), Role::Other);
        assert_eq!(of("mem_load_retired.l3_miss", "misses"), Role::CacheMisses);
    }

    #[test]
    fn cpu_time_is_the_cost_even_beside_more_faults() {
        let capture = Drawing::new()
            .folded(Event::sampled("minor-faults", "faults"), "main;a 1\nmain;b 1\nmain;c 1")
            .folded(Event::sampled("cpu_atom/cycles/", "cycles"), "main;a 900")
            .folded(Event::sampled("cpu_core/cycles/", "cycles"), "main;a 2\nmain;b 3")
            .capture;
        let primary = primary(&capture).unwrap();
        assert_eq!(capture.event(primary).name, "cpu_core/cycles/");
    }

    #[test]
    fn an_event_that_contains_another_counts_alone() {
        let misses = |names: &[&str]| {
            let mut capture = Capture::default();
            let unit = |name: &str| if name == "Ir" { "instructions" } else { "misses" };
            for name in names {
                capture.add_event(Event::weighed(*name, unit(name)));
            }
            let found = cache_misses(&capture);
            found.into_iter().map(|id| capture.event(id).name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(misses(&["LLC-load-misses", "cache-misses:u", "branch-misses"]), "cache-misses:u");
        assert_eq!(
            misses(&["cpu_core/cache-misses/", "cpu_atom/cache-misses/"]),
            "cpu_core/cache-misses/ cpu_atom/cache-misses/"
        );
        assert_eq!(misses(&["Ir", "DLmr", "DLmw", "D1mr", "ILmr"]), "DLmr DLmw ILmr");
        assert_eq!(misses(&["DLmr", "LLC-load-misses", "LLC-store-misses"]), "LLC-load-misses LLC-store-misses");
    }

    #[test]
    fn a_capture_without_events_has_no_primary_one() {
        assert_eq!(primary(&Capture::default()), None);
    }
}
