//! [`CounterGroups`]: counted events of the recorded threads, and of what they start.
//!
//! The events of a group are counted at the same times, so that their ratios are right also if groups take turns on the CPU's counters.
//! The kernel says how long each group was asked for (*enabled*) and how long it had counters (*running*); counts are scaled up by their
//! ratio. Inherited events add the counts of threads and processes that the recorded ones start.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, FromRawFd as _};

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::{ioctls, perf_event_open};
use stepscope_assemble::CountedEvent;

use super::core_units::CoreUnit;
use super::{Kernel, Scope};

/// An event to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedSpec {
    pub name: String,
    pub unit: &'static str,
    pub kind: u32,
    pub config: u64,
}

/// Bits of the unit's number in the configuration of a generic event (`PERF_PMU_TYPE_SHIFT`).
const UNIT_SHIFT: u32 = 32;

/// A generic event of a unit. With one unit, the kernel chooses it.
pub(super) fn generic(kind: u32, config: u64, unit: Option<&CoreUnit>) -> (u32, u64) {
    (kind, config | unit.map_or(0, |unit| u64::from(unit.kind) << UNIT_SHIFT))
}

/// The groups of a unit: each fits the counters of common CPUs.
fn groups_of(unit: &CoreUnit, is_only: bool) -> Vec<Vec<CountedSpec>> {
    let named = |name: &str| if is_only { name.to_owned() } else { format!("{}/{name}/", unit.name) };
    let hardware = |name: &str, unit_of: &'static str, config: u32| {
        let (kind, config) = generic(sys::PERF_TYPE_HARDWARE, config.into(), (!is_only).then_some(unit));
        CountedSpec { name: named(name), unit: unit_of, kind, config }
    };
    let last_level = |name: &str, unit_of: &'static str, result: u32| {
        let config = sys::PERF_COUNT_HW_CACHE_LL | sys::PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16;
        let (kind, config) = generic(sys::PERF_TYPE_HW_CACHE, config.into(), (!is_only).then_some(unit));
        CountedSpec { name: named(name), unit: unit_of, kind, config }
    };
    let mut groups = vec![
        vec![
            hardware("cycles", "cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
            hardware("instructions", "instructions", sys::PERF_COUNT_HW_INSTRUCTIONS),
            hardware("branches", "branches", sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
            hardware("branch-misses", "misses", sys::PERF_COUNT_HW_BRANCH_MISSES),
        ],
        vec![
            hardware("cache-references", "references", sys::PERF_COUNT_HW_CACHE_REFERENCES),
            hardware("cache-misses", "misses", sys::PERF_COUNT_HW_CACHE_MISSES),
        ],
        vec![
            last_level("LLC-loads", "references", sys::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
            last_level("LLC-load-misses", "misses", sys::PERF_COUNT_HW_CACHE_RESULT_MISS),
        ],
    ];
    // The kernel wants `slots` first.
    let top_down = ["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];
    let spec = |name: &&str| {
        Some(CountedSpec { name: named(name), unit: "slots", kind: unit.kind, config: unit.event(name)? })
    };
    if let Some(group) = top_down.iter().map(spec).collect() {
        groups.push(group);
    }
    groups
}

/// A group, and what was read last.
#[derive(Debug)]
struct Group {
    /// The first one leads.
    events: Vec<File>,
    specs: Vec<CountedSpec>,
    before: Times,
}

/// What a group's file says.
#[derive(Debug, Clone, Default)]
struct Times {
    enabled: u64,
    running: u64,
    counts: Vec<u64>,
}

impl Group {
    /// Opens the events that the CPU has. `None` if it has none.
    fn open(specs: Vec<CountedSpec>, target: i32, kernel: Kernel, on_exec: bool) -> io::Result<Self> {
        let mut group = Self { events: Vec::new(), specs: Vec::new(), before: Times::default() };
        let mut refusal = None;
        for spec in specs {
            let mut attr = perf_event_attr { type_: spec.kind, config: spec.config, ..Default::default() };
            attr.size = size_of::<perf_event_attr>() as u32;
            attr.read_format = (sys::PERF_FORMAT_GROUP
                | sys::PERF_FORMAT_TOTAL_TIME_ENABLED
                | sys::PERF_FORMAT_TOTAL_TIME_RUNNING) as u64;
            attr.set_inherit(1);
            attr.set_exclude_hv(1);
            attr.set_exclude_kernel(u64::from(kernel == Kernel::Excluded));
            let leader = group.events.first().map_or(-1, AsRawFd::as_raw_fd);
            attr.set_disabled(u64::from(leader < 0));
            attr.set_enable_on_exec(u64::from(leader < 0 && on_exec));
            // SAFETY: `attr` is initialised, its size set; the kernel reads no further.
            let fd = unsafe { perf_event_open(&mut attr, target, -1, leader, sys::PERF_FLAG_FD_CLOEXEC as _) };
            if fd < 0 {
                refusal = Some(io::Error::last_os_error());
                continue;
            }
            // SAFETY: the descriptor is new, and nobody else has it.
            group.events.push(unsafe { File::from_raw_fd(fd) });
            group.specs.push(spec);
        }
        match (group.events.is_empty(), refusal) {
            (true, refusal) => Err(refusal.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            _ => Ok(group),
        }
    }

    fn enable(&self) -> io::Result<()> {
        // SAFETY: the event is open.
        match unsafe { ioctls::ENABLE(self.events[0].as_raw_fd(), sys::PERF_IOC_FLAG_GROUP) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn read(&self) -> io::Result<Times> {
        let mut bytes = vec![0; 8 * (3 + self.events.len())];
        let mut leader = &self.events[0];
        let read = leader.read(&mut bytes)?;
        let mut words = bytes[..read].as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        let mut next = || words.next().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof));
        let (_, enabled, running) = (next()?, next()?, next()?);
        Ok(Times { enabled, running, counts: words.collect() })
    }

    /// What was counted since the last call.
    fn take(&mut self) -> Vec<CountedEvent> {
        let Ok(now) = self.read() else { return Vec::new() };
        let enabled_ns = now.enabled.saturating_sub(self.before.enabled);
        let running_ns = now.running.saturating_sub(self.before.running);
        let before = self.before.counts.iter().copied().chain(std::iter::repeat(0));
        let counts = now.counts.iter().zip(before).map(|(now, before)| now.saturating_sub(before));
        let event = |(spec, count): (&CountedSpec, u64)| CountedEvent {
            event: spec.name.clone(),
            unit: spec.unit.to_owned(),
            count: scaled(count, enabled_ns, running_ns),
            enabled_ns,
            running_ns,
        };
        let events = self.specs.iter().zip(counts).map(event).collect();
        self.before = now;
        events
    }
}

/// A count for the whole enabled time. `None` if it never ran.
fn scaled(count: u64, enabled: u64, running: u64) -> Option<u64> {
    match running {
        0 => (enabled == 0).then_some(count),
        running if running >= enabled => Some(count),
        running => u64::try_from(u128::from(count) * u128::from(enabled) / u128::from(running)).ok(),
    }
}

/// The open groups of a recording.
#[derive(Debug, Default)]
pub(crate) struct CounterGroups {
    groups: Vec<Group>,
    waits_for_exec: bool,
}

impl CounterGroups {
    /// Opens the groups of every unit of the machine for these threads.
    ///
    /// # Errors
    /// If no event can be opened.
    pub fn open(tree: &Scope, kernel: Kernel) -> io::Result<Self> {
        let units = CoreUnit::all();
        let specs = units.iter().flat_map(|unit| groups_of(unit, units.len() == 1));
        Self::of(specs.collect(), tree, kernel)
    }

    fn of(specs: Vec<Vec<CountedSpec>>, tree: &Scope, kernel: Kernel) -> io::Result<Self> {
        let waits_for_exec = matches!(tree, Scope::OnExec(_));
        let mut open = Self { groups: Vec::new(), waits_for_exec };
        let mut refusal = io::Error::from(io::ErrorKind::NotFound);
        for group in specs {
            for target in tree.targets() {
                match Group::open(group.clone(), target, kernel, waits_for_exec) {
                    Ok(group) => open.groups.push(group),
                    Err(error) => refusal = error,
                }
            }
        }
        if open.groups.is_empty() { Err(refusal) } else { Ok(open) }
    }

    /// Starts counting, unless the program's start does.
    pub fn enable(&self) -> io::Result<()> {
        if self.waits_for_exec { Ok(()) } else { self.groups.iter().try_for_each(Group::enable) }
    }

    /// What was counted since the last call.
    pub fn take(&mut self) -> Vec<CountedEvent> {
        self.groups.iter_mut().flat_map(Group::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Software events are counted in groups like those of the CPU, and every machine has them.
    #[test]
    fn a_group_counts_what_happens_between_two_readings() {
        let spec = |name: &str, config: u32| CountedSpec {
            name: name.to_owned(),
            unit: "events",
            kind: sys::PERF_TYPE_SOFTWARE,
            config: config.into(),
        };
        let specs = vec![
            spec("task-clock", sys::PERF_COUNT_SW_TASK_CLOCK),
            spec("page-faults", sys::PERF_COUNT_SW_PAGE_FAULTS),
            // The kernel has no such event: it is left out.
            spec("none", 9_999),
        ];
        // SAFETY: it has no arguments and no effect.
        let own = Scope::Threads(vec![unsafe { libc::gettid() } as u32]);
        let mut groups = match CounterGroups::of(vec![specs], &own, Kernel::Excluded) {
            Ok(groups) => groups,
            Err(error) => return println!("skipped: a_group_counts_what_happens_between_two_readings: {error}"),
        };
        groups.enable().unwrap();
        groups.take();
        touch_new_pages(1_000);
        let first = groups.take();
        let names: Vec<&str> = first.iter().map(|event| event.event.as_str()).collect();
        assert_eq!(names, ["task-clock", "page-faults"]);
        assert!(first.iter().all(|event| event.running_ns > 0 && event.running_ns == event.enabled_ns), "{first:?}");
        assert!(first[1].count.unwrap() >= 1, "{first:?}");
        let second = groups.take();
        assert!(second[1].count.unwrap() < first[1].count.unwrap().max(100), "{second:?}");
    }

    /// Touches memory that no allocator had before: the heap may have pages left of another test.
    fn touch_new_pages(count: usize) {
        let (length, access) = (count * 4096, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the mapping is new, written within its length, and unmapped once.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            pages.cast::<u8>().write_bytes(1, length);
            libc::munmap(pages, length);
        }
    }

    #[test]
    fn counts_are_scaled_up_to_the_time_asked_for() {
        assert_eq!(scaled(10, 100, 100), Some(10));
        assert_eq!(scaled(10, 100, 25), Some(40));
        assert_eq!(scaled(0, 100, 0), None);
        assert_eq!(scaled(u64::MAX, 100, 1), None);
    }
}
