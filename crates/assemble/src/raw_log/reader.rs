//! Reads entries back from the bytes of a chunk.

use serde::de::DeserializeOwned;
use stepscope_model::WaitState;

use super::kind::{Counts, Kind};
use super::layout::{FLOW_STAGE, FLOW_STAGES, MarkBefore, NO_CPU, SAME_THREAD, SAME_WEIGHT, UNTIMED, tag};
use crate::data_source::Hitm;
use crate::entry::{
    AccessCost, AllocationBurst, AllocationSums, Allocations, DataAccess, Entry, EventRef, FrameRef, MarkNameRef,
    MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, Sample, StackRef, SystemCalls, ThreadRef, Wait,
};
use crate::system_call::Amount;

/// A chunk's bytes being unpacked: the reverse of [`ChunkPacker`](super::packer::ChunkPacker). Everything gives `None` on bytes that nothing packs.
pub(super) struct ChunkReader<'a> {
    bytes: &'a [u8],
    time: u64,
    stack: u32,
    weight: u64,
    mark: MarkBefore,
}

impl<'a> ChunkReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, time: 0, stack: 0, weight: 0, mark: MarkBefore::default() }
    }

    /// Whether no entry is left.
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }

    fn optional_small(&mut self) -> Option<Option<u32>> {
        match self.optional()? {
            None => Some(None),
            Some(value) => Some(Some(u32::try_from(value).ok()?)),
        }
    }

    /// Bytes with their length.
    pub fn blob(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok().filter(|&length| length <= self.bytes.len())?;
        let (blob, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Some(blob)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.blob()?).into_owned())
    }

    /// A number for each kind.
    pub fn counts(&mut self) -> Option<Counts> {
        let mut counts = Counts::default();
        for kind in Kind::ALL {
            counts[kind] = self.number()?;
        }
        Some(counts)
    }

    fn json<T: DeserializeOwned>(&mut self) -> Option<T> {
        serde_json::from_slice(self.blob()?).ok()
    }

    fn since_last(&mut self) -> Option<u64> {
        self.time = self.time.wrapping_add(self.signed()? as u64);
        Some(self.time)
    }

    fn stack(&mut self) -> Option<Option<StackRef>> {
        let difference = self.signed()?;
        if difference == 0 {
            return Some(None);
        }
        let difference = if difference > 0 { difference - 1 } else { difference };
        self.stack = u32::try_from(i64::from(self.stack).checked_add(difference)?).ok()?;
        Some(Some(StackRef(self.stack)))
    }

    /// The next entry.
    pub fn entry(&mut self) -> Option<Entry> {
        let first = self.byte()?;
        if first == tag::DATA_ACCESS {
            return Some(Entry::DataAccess(Box::new(self.data_access()?)));
        }
        if first == tag::ALLOCATION_BURST {
            return Some(Entry::AllocationBurst(self.allocation_burst()?));
        }
        if first == tag::CALL_TIMES {
            let mut calls = self.system_calls()?;
            let many = self.number()?;
            // Two numbers take two bytes at least.
            if many > self.bytes.len() as u64 / 2 {
                return None;
            }
            calls.times = (0..many).map(|_| Some((self.number()?, self.number()?))).collect::<Option<_>>()?;
            return Some(Entry::SystemCalls(Box::new(calls)));
        }
        if first == tag::WORKING_DIRECTORY {
            return Some(Entry::WorkingDirectory { process: ProcessRef(self.small()?), path: self.text()? });
        }
        if first == tag::FLOW_STAGE {
            return self.flow_stage();
        }
        if first == tag::CLOCK_PEER {
            return Some(Entry::ClockPeer(self.json()?));
        }
        Some(match first & 0x1f {
            tag::START => Entry::Start(self.json()?),
            tag::BEGAN => Entry::WindowStart { time_ns: self.since_last()? },
            tag::PROGRAM => {
                let (command, working_directory, environment) = self.json()?;
                Entry::Program { command, working_directory, environment }
            }
            tag::EVENT => Entry::Event(self.json()?),
            tag::PROCESS => {
                Entry::Process { pid: self.small()?, parent_pid: self.optional_small()?, start_ns: self.optional()? }
            }
            tag::IMAGE => {
                let process = ProcessRef(self.small()?);
                let executable = self.text()?;
                let arguments = self.number()?;
                // An argument takes a byte at least.
                if arguments > self.bytes.len() as u64 {
                    return None;
                }
                let command_line = (0..arguments).map(|_| self.text()).collect::<Option<_>>()?;
                Entry::Image { process, executable, command_line }
            }
            tag::PROCESS_END => Entry::ProcessEnd { process: ProcessRef(self.small()?), time_ns: self.since_last()? },
            tag::EXIT_STATUS => Entry::ExitStatus { pid: self.small()?, status: i32::try_from(self.signed()?).ok()? },
            tag::EXIT_USAGE => {
                Entry::ExitUsage { pid: self.small()?, cpu_ns: self.number()?, peak_rss_bytes: self.optional()? }
            }
            tag::THREAD => Entry::Thread {
                tid: self.small()?,
                process: ProcessRef(self.small()?),
                start_ns: self.optional()?,
                name: self.text()?,
            },
            tag::THREAD_NAME => {
                Entry::ThreadName { thread: ThreadRef(self.small()?), time_ns: self.since_last()?, name: self.text()? }
            }
            tag::THREAD_END => Entry::ThreadEnd {
                thread: ThreadRef(self.small()?),
                time_ns: self.optional()?,
                cpu_ns: self.optional()?,
                runnable_ns: self.optional()?,
            },
            tag::MODULE => Entry::Module(self.module()?),
            tag::FRAME => Entry::Frame { module: self.optional_small()?.map(ModuleRef), offset: self.number()? },
            tag::STACK => Entry::Stack { parent: self.stack()?, frame: FrameRef(self.small()?) },
            tag::SAMPLE => Entry::Sample(self.sample(first)?),
            tag::WAIT => Entry::Wait(self.wait()?),
            tag::WAITS => {
                let wait = self.wait()?;
                Entry::Wait(Wait { count: self.small()?.max(1), ..wait })
            }
            tag::ALLOCATIONS => Entry::Allocations(Box::new(self.allocations()?)),
            tag::COUNTER => Entry::Counter {
                time_ns: self.since_last()?,
                process: ProcessRef(self.small()?),
                thread: self.optional_small()?.map(ThreadRef),
                name: self.text()?,
                value: self.signed()?,
            },
            tag::SYSTEM_CALLS => Entry::SystemCalls(Box::new(self.system_calls()?)),
            tag::STEP_BEGIN | tag::TIMED_STEP_BEGIN => Entry::StepStart {
                time_ns: self.since_last()?,
                thread: ThreadRef(self.small()?),
                sim_time_ns: if first & 0x1f == tag::TIMED_STEP_BEGIN { Some(self.number()?) } else { None },
            },
            tag::MARK_NAME => Entry::MarkName { name: self.text()? },
            tag::MARK_THREAD => Entry::MarkThread { pid: self.small()?, tid: self.small()?, time_ns: self.number()? },
            tag::SCOPE => {
                let (thread, end_ns) = self.mark(first)?;
                let name = MarkNameRef(self.small()?);
                Entry::Scope { thread, name, start_ns: end_ns.wrapping_sub(self.number()?), end_ns }
            }
            tag::STEP_MARK => {
                let (thread, time_ns) = self.mark(first)?;
                let sim_time_ns = self.optional()?.map(|ns| (ns >> 1) as i64 ^ -((ns & 1) as i64));
                Entry::StepMark { thread, time_ns, sim_time_ns }
            }
            tag::FRAME_MARK => {
                let (thread, time_ns) = self.mark(first)?;
                Entry::FrameMark { thread, name: MarkNameRef(self.small()?), time_ns }
            }
            tag::MARKED_COUNTER => {
                let (thread, time_ns) = self.mark(first)?;
                let (name, value) = (MarkNameRef(self.small()?), self.signed()?);
                match FLOW_STAGES.iter().find(|(flags, _)| first & FLOW_STAGE == *flags) {
                    Some(&(_, stage)) => {
                        let flow = Some(value as u64);
                        Entry::FlowMark { thread, name, time_ns, flow, stage, by: None, period_ns: None }
                    }
                    None => Entry::MarkedCounter { thread, name, time_ns, value },
                }
            }
            tag::MARKS_LOST => Entry::MarksLost { count: self.number()? },
            tag::LOSSES => Entry::Losses(self.json()?),
            tag::END => Entry::RecordingEnd(self.json()?),
            _ => return None,
        })
    }

    fn flow_stage(&mut self) -> Option<Entry> {
        Some(Entry::FlowMark {
            thread: MarkThreadRef(self.small()?),
            time_ns: self.number()?,
            name: MarkNameRef(self.small()?),
            stage: self.text()?.parse().ok()?,
            flow: self.optional()?,
            by: self.optional_small()?.map(MarkNameRef),
            period_ns: self.optional()?,
        })
    }

    fn data_access(&mut self) -> Option<DataAccess> {
        let (thread, stack) = (ThreadRef(self.small()?), self.stack()?);
        let (address, bytes, flags) = (self.number()?, self.small()?, self.byte()?);
        let cost = match flags & 4 == 4 {
            true => Some(AccessCost { hitm: Hitm::from_repr(self.byte()?)?, latency_cycles: self.number()? }),
            false => None,
        };
        let object = match flags & 8 == 8 {
            true => Some((ModuleRef(self.small()?), self.number()?)),
            false => None,
        };
        let (is_read, is_write, is_awaited) = (flags & 1 == 1, flags & 2 == 2, flags & 16 == 16);
        Some(DataAccess { thread, stack, address, bytes, is_read, is_write, is_awaited, cost, object })
    }

    fn system_calls(&mut self) -> Option<SystemCalls> {
        let end_ns = self.since_last()?;
        Some(SystemCalls {
            end_ns,
            start_ns: end_ns.wrapping_sub(self.number()?),
            thread: ThreadRef(self.small()?),
            call: self.text()?,
            stack: self.stack()?,
            file: Some(self.text()?).filter(|file| !file.is_empty()),
            amount: Amount {
                count: self.number()?,
                errors: self.number()?,
                total_ns: self.number()?,
                longest_ns: self.number()?,
                bytes: self.number()?,
            },
            last_ns: self.optional()?,
            times: Vec::new(),
        })
    }

    /// All entries.
    pub fn entries(mut self) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        while !self.is_at_end() {
            entries.push(self.entry()?);
        }
        Some(entries)
    }

    fn mark(&mut self, first: u8) -> Option<(MarkThreadRef, u64)> {
        let thread = if first & SAME_THREAD == 0 { self.small()? } else { self.mark.thread };
        let time = self.mark.time.wrapping_add(self.signed()? as u64);
        self.mark = MarkBefore { time, thread };
        Some((MarkThreadRef(thread), time))
    }

    fn module(&mut self) -> Option<Module> {
        let kind = self.byte()?;
        let pid = self.small()?;
        let kind = match kind {
            0 => ModuleKind::File,
            1 => ModuleKind::Kernel,
            2 => ModuleKind::Vdso,
            3 => ModuleKind::Jit(pid),
            4 => ModuleKind::StackMarks,
            5 => ModuleKind::JitDump(pid),
            _ => return None,
        };
        let path = self.text()?;
        let build_id = Some(self.blob()?.to_vec()).filter(|id| !id.is_empty());
        Some(Module { kind, path, build_id })
    }

    fn sample(&mut self, first: u8) -> Option<Sample> {
        let time_ns = if first & UNTIMED == 0 { Some(self.since_last()?) } else { None };
        let thread = ThreadRef(self.small()?);
        let cpu = if first & NO_CPU == 0 { Some(self.small()?) } else { None };
        let stack = self.stack()?;
        let event = EventRef(self.small()?);
        if first & SAME_WEIGHT == 0 {
            self.weight = self.number()?;
        }
        Some(Sample { time_ns, thread, cpu, stack, event, weight: self.weight })
    }

    fn allocations(&mut self) -> Option<Allocations> {
        let end_ns = self.since_last()?;
        let start_ns = end_ns.checked_sub(self.number()?)?;
        let process = ProcessRef(self.small()?);
        let thread = self.optional_small()?.map(ThreadRef);
        let stack = self.stack()?;
        let (live_blocks, live_bytes, peak_bytes) = (self.signed()?, self.signed()?, self.signed()?);
        let mut sums = AllocationSums {
            calls: self.number()?,
            bytes: self.number()?,
            temporary: self.number()?,
            frees: self.number()?,
            freed_bytes: self.number()?,
            foreign_frees: self.number()?,
            foreign_freed_bytes: self.number()?,
            ..AllocationSums::default()
        };
        let mask = self.number()?;
        for (class, count) in sums.sizes.iter_mut().chain(&mut sums.lifetimes).enumerate() {
            if mask >> class & 1 == 1 {
                *count = self.small()?;
            }
        }
        Some(Allocations { start_ns, end_ns, process, thread, stack, sums, live_blocks, live_bytes, peak_bytes })
    }

    fn allocation_burst(&mut self) -> Option<AllocationBurst> {
        let end_ns = self.since_last()?;
        Some(AllocationBurst {
            start_ns: end_ns.checked_sub(self.number()?)?,
            end_ns,
            process: ProcessRef(self.small()?),
            thread: self.optional_small()?.map(ThreadRef),
            stack: self.stack()?,
            calls: self.number()?,
            bytes: self.number()?,
        })
    }

    fn wait(&mut self) -> Option<Wait> {
        let thread = ThreadRef(self.small()?);
        let end_ns = self.since_last()?;
        let packed = self.number()?;
        let length = packed >> 2;
        let state = if packed & 1 == 1 { WaitState::Preempted } else { WaitState::Blocked };
        let runnable_ns = if packed & 2 == 2 { Some(length) } else { self.optional()? };
        let stack = self.stack()?;
        let cpu = self.optional_small()?;
        let waker = self.optional_small()?.map(ThreadRef);
        let waker_stack = if waker.is_some() { self.stack()? } else { None };
        let start_ns = end_ns.checked_sub(length)?;
        Some(Wait { start_ns, end_ns, thread, stack, state, runnable_ns, cpu, waker, waker_stack, count: 1 })
    }
}
