//! Accesses to data at samples: those that the CPU sampled, and those that the code at a sample is about to make or just made.

use super::samples::{InternedFrames, SampleRecord};
use super::{Assembler, Target};
use crate::data_operand::DataOperand;
use crate::data_source::DataSource;
use crate::entry::{AccessCost, DataAccess, Entry, ModuleRef, Sink, StackRef, ThreadRef};
use crate::kernel_record::ThreadIds;
use crate::registers::{GENERAL_REGISTERS, recorded_register};

impl<W: Target> Assembler<W> {
    /// Adds the accesses at a sample.
    pub(super) fn add_data_accesses(
        &mut self,
        ids: ThreadIds,
        thread: ThreadRef,
        stack: Option<StackRef>,
        at: &SampleRecord<'_>,
        sink: &mut impl Sink,
    ) {
        let sample = at.sample;
        match (sample.address, sample.data_source) {
            (Some(address), Some(source)) => {
                let DataSource { is_load, is_store, hitm } = DataSource::decode(source);
                if address == 0 || !(is_load || is_store) {
                    return;
                }
                let cost = Some(AccessCost { hitm, latency_cycles: sample.weight.unwrap_or(0) });
                let object = self.object_at(ids.pid, address);
                let access = DataAccess {
                    thread,
                    stack,
                    address,
                    bytes: 0,
                    is_read: is_load,
                    is_write: is_store,
                    is_awaited: false,
                    cost,
                    object,
                };
                sink.take(Entry::DataAccess(Box::new(access)));
            }
            _ if self.decodes_accesses && !sample.in_kernel => self.decode_data_accesses(ids, thread, stack, at, sink),
            _ => {}
        }
    }

    fn decode_data_accesses(
        &mut self,
        ids: ThreadIds,
        thread: ThreadRef,
        stack: Option<StackRef>,
        at: &SampleRecord<'_>,
        sink: &mut impl Sink,
    ) {
        let Some(values) = at.sample.regs.as_deref() else { return };
        let mask = at.register_mask;
        if mask & GENERAL_REGISTERS != GENERAL_REGISTERS {
            return;
        }
        let register = |number: u32| recorded_register(values, mask, number);
        let Some(ip) = register(IP) else { return };
        // The lines of a single thread are shared with nobody.
        let Some(process) = self.processes.get_mut(&ids.pid).filter(|process| process.threads.len() > 1) else {
            return;
        };
        let mut source = InternedFrames { interner: &mut self.interner, target: &mut self.target, sink };
        let operands = process.space.data_operands(ids.pid, ip, &mut source);
        for operand in operands.iter() {
            let Some(address) = operand.address(register).filter(|address| address >> 63 == 0) else { continue };
            let DataOperand { bytes, is_read, is_write, is_awaited, .. } = *operand;
            let object = self.object_at(ids.pid, address);
            let access =
                DataAccess { thread, stack, address, bytes, is_read, is_write, is_awaited, cost: None, object };
            sink.take(Entry::DataAccess(Box::new(access)));
        }
    }

    /// The mapped file that an address may be a global variable of, and the offset from where the start of that file is mapped.
    fn object_at(&self, pid: u32, address: u64) -> Option<(ModuleRef, u64)> {
        let mapping = self.processes.get(&pid)?.space.code_before(address)?;
        Some((mapping.module, mapping.offset.wrapping_add(address - mapping.range.start)))
    }
}

/// The kernel's number of the instruction pointer (`PERF_REG_X86_IP`).
const IP: u32 = 8;
