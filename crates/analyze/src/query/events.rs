//! The role of an event, by its name and unit.
//!
//! Samples of different events are never added up: a capture of a hybrid CPU has `cpu_core/cycles/` and
//! `cpu_atom/cycles/`, and their cycles are not the same cycles.

use stepscope_model::{Capture, Event, EventId, Sample};

/// What samples of an event are evidence of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Time or cycles on a CPU.
    Cpu,
    /// Minor page faults: the page was in memory.
    MinorFaults,
    /// Major page faults: the page was read from a file.
    MajorFaults,
    /// Page faults, minor and major ones together.
    Faults,
    /// Cache misses.
    CacheMisses,
    /// Something else, or not said.
    Other,
}

/// What samples of this event are evidence of.
pub fn role(event: &Event) -> Role {
    let name = plain_name(&event.name);
    match name {
        "cpu-clock" | "task-clock" | "cycles" | "cpu-cycles" | "ref-cycles" => Role::Cpu,
        "minor-faults" | "min-flt" => Role::MinorFaults,
        "major-faults" | "maj-flt" => Role::MajorFaults,
        "page-faults" | "faults" => Role::Faults,
        "cache-misses" | "LLC-load-misses" | "LLC-misses" => Role::CacheMisses,
        _ if event.unit == "cycles" => Role::Cpu,
        _ if event.unit == "misses" => Role::CacheMisses,
        _ if event.unit == "faults" => Role::Faults,
        _ => Role::Other,
    }
}

/// The name without its unit on a hybrid CPU and without modifiers: `cycles` for `cpu_core/cycles/P` and `cycles:u`.
fn plain_name(name: &str) -> &str {
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
        Role::Other => 1,
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
    fn a_capture_without_events_has_no_primary_one() {
        assert_eq!(primary(&Capture::default()), None);
    }
}
