//! The events of a `perf.data` file: names, units, and meaning of their samples.

use linux_perf_event_reader::SampleFormat;
use stepscope_assemble::{EventRef, EventRole, Switches};
use stepscope_model::Event;

use super::file::Attribute;
use crate::import::perf_event;

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;

/// `PERF_COUNT_HW_*`
const HARDWARE_NAMES: &[&str] = &[
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// `PERF_COUNT_SW_*`
const SOFTWARE_NAMES: &[&str] = &[
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

const DUMMY: u64 = 9;

/// Offsets in `sched:sched_switch` and `sched:sched_waking`. The fields before them have not changed since 2009
/// (`include/trace/events/sched.h`); they follow 8 bytes that all tracepoints share.
const SWITCH: EventRole = EventRole::Switch { tid_at: 24, state_at: 32, next_tid_at: 56 };
const WAKING: EventRole = EventRole::Waking { pid_at: 24 };

/// The kernel's name of an event, from its numbers.
fn kernel_name(attribute: &Attribute) -> Option<&'static str> {
    // The upper half is the type of core on CPUs with two types.
    let config = attribute.config & 0xffff_ffff;
    let names = match attribute.kind {
        HARDWARE => HARDWARE_NAMES,
        SOFTWARE => SOFTWARE_NAMES,
        _ => return None,
    };
    names.get(usize::try_from(config).ok()?).copied()
}

/// The event of the samples.
fn event(attribute: &Attribute) -> Event {
    let kernel_name = kernel_name(attribute);
    let given = attribute.name.clone().filter(|name| !name.is_empty());
    let name = given.or_else(|| kernel_name.map(str::to_owned));
    let name = name.unwrap_or_else(|| match attribute.kind {
        TRACEPOINT => format!("tracepoint {}", attribute.config),
        kind => format!("event {kind} {:#x}", attribute.config),
    });
    if weight(attribute).is_none() {
        return Event::sampled(name, "samples");
    }
    let unit = match (perf_event::unit(&name), kernel_name, attribute.kind) {
        ("weight", Some(kernel_name), _) => perf_event::unit(kernel_name),
        ("weight", None, TRACEPOINT) => "events",
        (unit, ..) => unit,
    };
    Event::sampled(name, unit)
}

/// Weight of samples that do not state it. `None` if their weights differ.
fn weight(attribute: &Attribute) -> Option<u64> {
    let has_period = attribute.parse_info.sample_format.contains(SampleFormat::PERIOD);
    attribute.period.or(has_period.then_some(1))
}

/// Whether it is one of these tracepoints, recorded on every hit. A sampled one (`-F`) is incomplete; its samples stay
/// samples.
fn is_each(attribute: &Attribute, names: &[&str]) -> bool {
    let is_named = attribute.name.as_deref().is_some_and(|name| names.contains(&name));
    attribute.kind == TRACEPOINT && attribute.period == Some(1) && is_named
}

fn is_switch(attribute: &Attribute) -> bool {
    is_each(attribute, &["sched:sched_switch"])
}

fn is_waking(attribute: &Attribute) -> bool {
    is_each(attribute, &["sched:sched_waking", "sched:sched_wakeup"])
}

/// What is known about context switches.
pub(super) fn switches(attributes: &[Attribute]) -> Switches {
    if !attributes.iter().any(|attribute| attribute.records_switches() || is_switch(attribute)) {
        return Switches::Unrecorded;
    }
    if attributes.iter().any(is_waking) { Switches::WithWakeUps } else { Switches::Recorded }
}

/// Meaning of an event's samples. Scheduler tracepoints become waits if switches are known; others are sampled.
pub(super) fn meaning(
    attribute: &Attribute,
    switches: Switches,
    add_event: impl FnOnce(Event) -> EventRef,
) -> EventRole {
    const CONTEXT_SWITCHES: &str = "context-switches";
    let every_switch = kernel_name(attribute) == Some(CONTEXT_SWITCHES) && attribute.period == Some(1);
    match switches {
        _ if attribute.kind == SOFTWARE && attribute.config == DUMMY => EventRole::SideBand,
        Switches::Recorded | Switches::WithWakeUps if is_switch(attribute) => SWITCH,
        Switches::WithWakeUps if is_waking(attribute) => WAKING,
        Switches::Recorded | Switches::WithWakeUps if every_switch => EventRole::SwitchStack,
        _ => EventRole::Sampled { event: add_event(event(attribute)), weight: weight(attribute).unwrap_or(1) },
    }
}

/// Notes on unused parts of the events.
pub(super) fn notes(attributes: &[Attribute]) -> Vec<String> {
    let has_branches = |attribute: &Attribute| attribute.parse_info.sample_format.contains(SampleFormat::BRANCH_STACK);
    let has_branches = attributes.iter().any(has_branches);
    let note = "Branch records (LBR) are ignored: stacks of --call-graph lbr are only as deep as the kernel's frame-pointer \
                unwinding. Record with --call-graph dwarf, or with stepscope record.";
    has_branches.then(|| note.to_owned()).into_iter().collect()
}
