//! BPF programs that record context switches and wake-ups of the recorded processes, and add up those of busy threads.
//!
//! The kernel's own switch records are two for each switch of any thread of the machine, and further events are needed for
//! stacks and wake-ups. These programs run once for each switch and each wake-up, and write nothing for other processes.
//!
//! # Single waits and sums
//! The first switches of a thread in each second are recorded one by one. If it switches more often than its
//! [budget](SwitchSums::set_budget), the programs add up the rest of its waits: number, blocked time and runnable time by
//! *place*, in slices of 10 ms. A slice is written as one record. Each thread has its own budget, so a busy thread takes
//! nothing from the others.
//!
//! # Places
//! `bpf_get_stackid` follows frame pointers only, and most programs and libraries have none: of a stack of 13 frames, it finds
//! three. Copying the stack for the unwinder at each switch costs more than the switch. So the programs identify a stack by its
//! place: a hash of the instruction, the stack pointer, and those of the topmost 48 words that point into code. These are
//! return addresses, and leftovers of earlier calls. Two calls from different functions differ in a return address, and
//! arguments and addresses of objects do not count. A place that is new to a thread has its whole stack copied once, and again
//! every 250 ms. The unwinder makes a stack of it as of any sample, with or without frame pointers. The later copies
//! check the method: the recorder counts those that differ from the copy before them at the same place.
//!
//! A thread may have more places than stacks in its budget, for example where leftovers differ each time. The half of the key that
//! is instruction and stack pointer then leads to the stack of a similar place.

mod layout;
mod parts;
mod place;
mod switch;
mod waking;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use stepscope_assemble::written_switch::Pending;

use super::bpf::{self, Map};
use super::btf;
use layout::{SLOTS, Tables, WORDS, thread};
use switch::at_switch;
use waking::at_waking;

/// Threads that are observed at a time beside those with a slot.
const OTHERS: u32 = 1 << 10;
/// Places that are remembered. Those that were not seen for long make place.
const PLACES: u32 = 32 << 10;
/// Processes whose code is known.
const PROCESSES: u32 = 16 << 10;

/// Offsets in the kernel's `task_struct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskOffsets {
    /// Of a thread's id, with that of its process behind it.
    pub ids_at: i16,
    /// Of the address of its stack in the kernel.
    pub stack_at: i16,
}

/// The budget of each thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadBudget {
    /// Waits that are recorded one by one, per second.
    pub single_waits_hz: u64,
    /// Stacks that are copied, per second.
    pub stacks_hz: u64,
}

/// The attached programs, and the tables that they share.
pub(crate) struct SwitchSums {
    slots: OwnedFd,
    others: OwnedFd,
    code: OwnedFd,
    settings: OwnedFd,
    _kept: Vec<OwnedFd>,
}

impl SwitchSums {
    /// Loads the programs and attaches them. They write through these events of each CPU: the first for records without a
    /// stack, the second for those with one.
    pub(super) fn open(members: BorrowedFd<'_>, outputs: &[(u32, [RawFd; 2])], task: TaskOffsets) -> io::Result<Self> {
        if !tells_state() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let cpus = outputs.iter().map(|(cpu, _)| cpu + 1).max().unwrap_or(1);
        let events = [bpf::create_map(Map::PerfEvents, cpus)?, bpf::create_map(Map::PerfEvents, cpus)?];
        for (cpu, fds) in outputs {
            for (map, fd) in events.iter().zip(fds) {
                bpf::set_element(map.as_fd(), *cpu, *fd as u32)?;
            }
        }
        let slots = bpf::create_map_of(Map::Array, 4, thread::BYTES as u32, SLOTS)?;
        let others = bpf::create_map_of(Map::Hash, 4, thread::BYTES as u32, OTHERS)?;
        let empty = bpf::create_map_of(Map::Array, 4, thread::BYTES as u32, 1)?;
        let places = bpf::create_map_of(Map::RecentlyUsed, 16, 8, PLACES)?;
        let code = bpf::create_map_of(Map::Hash, 4, 32, PROCESSES)?;
        let settings = bpf::create_map_of(Map::Array, 4, 24, 1)?;
        let scratch = bpf::create_map_of(Map::ArrayOfEachCpu, 4, WORDS as u32 * 8, 1)?;
        let tables = Tables {
            members,
            slots: slots.as_fd(),
            others: others.as_fd(),
            empty: empty.as_fd(),
            places: places.as_fd(),
            code: code.as_fd(),
            settings: settings.as_fd(),
            scratch: scratch.as_fd(),
            without_stack: events[0].as_fd(),
            with_stack: events[1].as_fd(),
            ids_at: task.ids_at,
        };
        let kernel = btf::Kernel::read()?;
        let load = |tracepoint, program: &[_]| bpf::load_typed(kernel.id_of_tracepoint(tracepoint)?, program);
        let switch = load("sched_switch", &at_switch(&tables))?;
        let waking = load("sched_waking", &at_waking(&tables, task.stack_at))?;
        let attached = [bpf::attach_typed(switch.as_fd())?, bpf::attach_typed(waking.as_fd())?];
        let [without_stack, with_stack] = events;
        let mut kept = vec![empty, places, scratch, without_stack, with_stack];
        kept.extend(attached);
        Ok(Self { slots, others, code, settings, _kept: kept })
    }

    /// Sets what each thread may have, and since when stacks are known.
    pub fn set_budget(&self, budget: ThreadBudget, known_since_ns: u64) -> io::Result<()> {
        bpf::set_words(self.settings.as_fd(), 0, &[budget.single_waits_hz, budget.stacks_hz, known_since_ns])
    }

    /// Sets where the code of a process is: starts and lengths of two ranges.
    pub fn set_code(&self, pid: u32, ranges: [u64; 4]) -> io::Result<()> {
        bpf::set_words(self.code.as_fd(), pid, &ranges)
    }

    /// The sums of these threads that are not written yet.
    pub fn pending(&self, tids: impl Iterator<Item = u32>) -> Vec<Pending> {
        const BYTES: usize = thread::BYTES as usize;
        let read = |map: &OwnedFd, key, tid| {
            let words = bpf::words_of::<{ BYTES / 8 }>(map.as_fd(), key)?;
            (words[thread::IDS as usize / 8] as u32 == tid).then_some(words)
        };
        let of = |tid| {
            let words = read(&self.slots, tid % SLOTS, tid).or_else(|| read(&self.others, tid, tid))?;
            Pending::read(&words[..thread::SUMS_END as usize / 8])
        };
        tids.filter_map(of).collect()
    }
}

/// Whether the tracepoint of switches passes the state of the thread that leaves (Linux 5.18).
fn tells_state() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= (5, 18))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_accepts_the_programs() {
        let members = match bpf::create_map(Map::RecentlyUsed, 16) {
            Ok(members) => members,
            Err(error) => return println!("skipped: the_kernel_accepts_the_programs: no BPF maps ({error})"),
        };
        let fields = ["pid", "stack"];
        let offsets = btf::Kernel::read().unwrap().offsets_of("task_struct", fields).unwrap();
        let [ids_at, stack_at] = offsets.map(|offset| offset as i16);
        if let Err(error) = SwitchSums::open(members.as_fd(), &[], TaskOffsets { ids_at, stack_at }) {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
            println!("skipped: the_kernel_accepts_the_programs: an older kernel");
        }
    }
}
