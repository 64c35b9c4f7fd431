//! Units of perf events, by name.

use stepscope_model::{Dimension, Event};

/// Units by words of an event's name; the first match counts.
const UNITS: &[(&str, &str)] = &[
    ("cpu-clock", "ns"),
    ("task-clock", "ns"),
    ("misses", "misses"),
    ("miss", "misses"),
    ("cycles", "cycles"),
    ("instructions", "instructions"),
    ("branches", "branches"),
    ("references", "references"),
    ("faults", "faults"),
    ("switches", "switches"),
    ("cs", "switches"),
    ("migrations", "migrations"),
];

/// The unit of an event's periods: `ns`, `cycles`, `misses`, ...; `events` for tracepoints, whose period is 1; `weight`
/// if unknown.
pub fn unit(event: &str) -> &'static str {
    // Strip a PMU before the name (`cpu_core/cycles/`) and modifiers after it (`cycles:u`).
    let word = match event.split_once('/') {
        Some((_, word)) => word.split(['/', ',']).next().unwrap_or(word),
        None => event,
    };
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    if let Some((_, unit)) = UNITS.iter().find(|(known, _)| is_named(name, known)) {
        return unit;
    }
    let is_tracepoint = !event.contains('/') && rest.len() > 3;
    if is_tracepoint { "events" } else { "weight" }
}

/// Whether a name is `known` or ends in it: `cycles` matches `cpu-cycles` and `bus-cycles`, `faults` matches
/// `page-faults`.
fn is_named(name: &str, known: &str) -> bool {
    name.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with(['-', '_', '.']))
}

/// The event with this name. Each of its rows is one sample, weighted by period.
pub fn event(name: &str) -> Event {
    Event::sampled(name, unit(name))
}

/// The dimension of an event's samples, if they belong to one.
pub fn dimension(event: &Event) -> Option<Dimension> {
    match event.unit.as_str() {
        "ns" | "cycles" => Some(Dimension::Cpu),
        "faults" => Some(Dimension::Faults),
        "misses" if !event.name.contains("branch") => Some(Dimension::Cache),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_dimension_of_their_unit() {
        assert_eq!(dimension(&event("cpu-clock:u")), Some(Dimension::Cpu));
        assert_eq!(dimension(&event("cycles")), Some(Dimension::Cpu));
        assert_eq!(dimension(&event("LLC-load-misses")), Some(Dimension::Cache));
        assert_eq!(dimension(&event("branch-misses")), None);
        assert_eq!(dimension(&event("page-faults")), Some(Dimension::Faults));
        assert_eq!(dimension(&event("sched:sched_switch")), None);
    }

    #[test]
    fn units_ignore_pmus_and_modifiers() {
        for (event, expected) in [
            ("cpu-clock", "ns"),
            ("cpu-clock:u", "ns"),
            ("task-clock:pppH", "ns"),
            ("cycles", "cycles"),
            ("cycles:P", "cycles"),
            ("cpu_core/cycles/", "cycles"),
            ("cpu_atom/cpu-cycles/u", "cycles"),
            ("cpu/event=0x3c,umask=0x0/", "weight"),
            ("cache-misses:u", "misses"),
            ("LLC-load-misses", "misses"),
            ("mem_load_retired.l3_miss", "misses"),
            ("instructions", "instructions"),
            ("page-faults", "faults"),
            ("minor-faults", "faults"),
            ("context-switches", "switches"),
            ("sched:sched_switch", "events"),
            ("probe_sim:step", "events"),
            ("dummy:u", "weight"),
        ] {
            assert_eq!(unit(event), expected, "{event}");
        }
    }
}
