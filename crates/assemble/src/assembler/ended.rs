//! Addresses that are reported later than they were seen: those of heap tables.
//!
//! A table is read some time after its process allocated, perhaps after the process ended or ran another program. So the code
//! and the threads of what ended are kept until the end of the log.

use super::Assembler;
use super::interner::Interner;
use crate::address_space::Mapping;
use crate::entry::{FrameRef, ProcessRef, Sink, StackMark, StackRef, ThreadRef};
use crate::target::Target;

/// The program that a process ran, and where its code was.
#[derive(Debug, Clone)]
pub struct Code {
    process: ProcessRef,
    mappings: Vec<Mapping>,
}

impl Code {
    /// The process.
    pub fn process(&self) -> ProcessRef {
        self.process
    }
}

/// What ended in the present log.
#[derive(Default)]
pub(super) struct Ended {
    images: Vec<EndedCode>,
    threads: Vec<EndedThread>,
}

struct EndedCode {
    pid: u32,
    end_ns: u64,
    code: Code,
}

struct EndedThread {
    tid: u32,
    end_ns: u64,
    id: ThreadRef,
}

impl<W: Target> Assembler<W> {
    /// Keeps code and threads of what ends from now on.
    pub fn keep_ended(&mut self) {
        self.ended_code.get_or_insert_default();
    }

    pub(super) fn forget_ended(&mut self) {
        self.ended_code = self.ended_code.take().map(|_| Ended::default());
    }

    pub(super) fn keep_code(&mut self, pid: u32, end_ns: Option<u64>) {
        let (Some(ended), Some(process), Some(end_ns)) = (&mut self.ended_code, self.processes.get(&pid), end_ns)
        else {
            return;
        };
        let code = Code { process: process.id, mappings: process.space.mappings().to_vec() };
        ended.images.push(EndedCode { pid, end_ns, code });
    }

    pub(super) fn keep_thread(&mut self, tid: u32, id: ThreadRef, end_ns: Option<u64>) {
        if let (Some(ended), Some(end_ns)) = (&mut self.ended_code, end_ns) {
            ended.threads.push(EndedThread { tid, end_ns, id });
        }
    }

    /// The program that a process ran at a time. `None` if the process is not part of the present log.
    pub fn code_of(&self, pid: u32, time_ns: u64) -> Option<Code> {
        let ended = self.ended_code.iter().flat_map(|ended| &ended.images);
        if let Some(image) = ended.filter(|image| image.pid == pid).find(|image| image.end_ns >= time_ns) {
            return Some(image.code.clone());
        }
        let process = self.processes.get(&pid)?;
        Some(Code { process: process.id, mappings: process.space.mappings().to_vec() })
    }

    /// Whether a process still runs the program that it ran at a time.
    pub fn runs_since(&self, pid: u32, time_ns: u64) -> bool {
        let mut ended = self.ended_code.iter().flat_map(|ended| &ended.images);
        self.processes.contains_key(&pid) && !ended.any(|image| image.pid == pid && image.end_ns >= time_ns)
    }

    /// The thread that had an id at a time.
    pub fn thread_at(&self, tid: u32, time_ns: u64) -> Option<ThreadRef> {
        let ended = self.ended_code.iter().flat_map(|ended| &ended.threads);
        let ended = ended.filter(|thread| thread.tid == tid).find(|thread| thread.end_ns >= time_ns);
        ended.map(|thread| thread.id).or_else(|| self.thread_ref(tid))
    }

    /// The stack of these addresses, leaf first: each is the address after a call.
    pub fn stack_of(
        &mut self,
        code: &Code,
        addresses: &[u64],
        missing: Option<StackMark>,
        sink: &mut impl Sink,
    ) -> Option<StackRef> {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        frames.extend(addresses.iter().map(|&address| frame(&mut self.interner, code, address.wrapping_sub(1), sink)));
        frames.extend(missing.map(|mark| self.interner.mark_frame(mark, sink)));
        let stack = self.interner.stack(&frames, sink);
        self.scratch = frames;
        stack
    }
}

fn frame(interner: &mut Interner, code: &Code, address: u64, sink: &mut impl Sink) -> FrameRef {
    let index = code.mappings.partition_point(|mapping| mapping.range.end <= address);
    match code.mappings.get(index).filter(|mapping| mapping.range.contains(&address)) {
        Some(mapping) => {
            let offset = mapping.offset.wrapping_add(address - mapping.range.start);
            interner.frame(Some(mapping.module), offset, sink)
        }
        None => interner.frame(None, address, sink),
    }
}
