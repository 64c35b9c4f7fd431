//! The executable part of a process' address space.

mod caller;
mod frame_source;
mod mapping;
mod python;
mod signal_frame;
mod stack_memory;
mod state;
mod user_stack;
mod walk;

use std::ops::Range;
use std::sync::Arc;

use framehop::{MayAllocateDuringUnwind, Unwinder as _, UnwinderNative};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::Evidence;
use crate::data_operand::{self, DataOperand};
use crate::entry::{FrameRef, ModuleRef};
use crate::target::Target as _;
use caller::Epilogue;
pub(crate) use frame_source::{Ending, FrameSource, RuleCaches};
pub(crate) use mapping::Mapping;
use python::PythonFrames;
pub use python::STUB as PYTHON_STUB;
use stack_memory::LiveMemory;
use state::{DeepStack, RememberedStacks, WalkState};
pub(crate) use user_stack::UserStack;

/// Bytes of a slot for a copied instruction (`UPROBE_XOL_SLOT_BYTES`).
const SLOT_BYTES: u64 = if cfg!(target_arch = "x86_64") { 128 } else { 4 };

/// No code is mapped below this address (`vm.mmap_min_addr`, by default).
const LOWEST_CODE: u64 = 64 << 10;

/// One process' executable mappings, and what is known about addresses in them.
pub(crate) struct AddressSpace {
    /// Sorted by start; they never overlap.
    mappings: Vec<Mapping>,
    /// Where the kernel executes copies of probed instructions.
    out_of_line: Option<Range<u64>>,
    /// Starts of the mappings that the unwinder knows.
    loaded: FxHashSet<u64>,
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    frames: FxHashMap<u64, KnownCode>,
    after_call: FxHashMap<u64, bool>,
    /// What the code at an address undoes before it returns, if that is all it does.
    epilogues: FxHashMap<u64, Option<Epilogue>>,
    /// By return address and an address in the callee, whether the call led there.
    callers: FxHashMap<(u64, u64), Evidence>,
    /// By thread, the last stacks that were followed beyond their copy.
    remembered: FxHashMap<u32, RememberedStacks>,
    /// By thread, its last stack that was too deep to keep.
    deep: FxHashMap<u32, DeepStack>,
    python: PythonFrames,
    live: LiveMemory,
    /// Memory operands of the code around an address.
    operands: FxHashMap<u64, Arc<[DataOperand]>>,
    /// States of the last walk, kept for the allocation.
    states: Vec<WalkState>,
    /// Whether mappings changed since [`changed_code`](Self::changed_code).
    code_changed: bool,
}

/// What is known about an address of code.
#[derive(Debug, Clone, Copy)]
struct KnownCode {
    frame: FrameRef,
    unwinds_by: UnwindsBy,
}

/// How the caller of code is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnwindsBy {
    /// By unwind tables.
    Tables,
    /// By the registers that the kernel saved when it interrupted the caller for a signal.
    SignalFrame,
    /// By what the code and the stack look like.
    Evidence,
    /// By the frame pointer, because the caller is on another stack.
    FramePointer,
    /// It has no caller.
    Root,
    /// It has no caller, because a scheduler is at work.
    Scheduler,
}

impl AddressSpace {
    pub fn new() -> Self {
        Self {
            mappings: Vec::new(),
            out_of_line: None,
            loaded: FxHashSet::default(),
            unwinder: UnwinderNative::new(),
            frames: FxHashMap::default(),
            after_call: FxHashMap::default(),
            epilogues: FxHashMap::default(),
            callers: FxHashMap::default(),
            remembered: FxHashMap::default(),
            deep: FxHashMap::default(),
            python: PythonFrames::default(),
            live: LiveMemory::default(),
            operands: FxHashMap::default(),
            states: Vec::new(),
            code_changed: true,
        }
    }

    /// The address space that a forked child starts with.
    pub fn forked(&self) -> Self {
        Self { mappings: self.mappings.clone(), out_of_line: self.out_of_line.clone(), ..Self::new() }
    }

    /// Where code is mapped, by address.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Forgets the stack of a thread that ended.
    pub fn forget_thread(&mut self, tid: u32) {
        self.remembered.remove(&tid);
        self.deep.remove(&tid);
    }

    /// Renumbers modules and forgets frames: the next log numbers both from zero.
    pub fn renumber(&mut self, mut module: impl FnMut(ModuleRef) -> ModuleRef) {
        for mapping in &mut self.mappings {
            mapping.module = module(mapping.module);
        }
        self.frames.clear();
        self.remembered.clear();
        self.deep.clear();
    }

    /// Maps code in place of whatever was mapped there.
    ///
    /// There is no record of `munmap`, so this is also how unmapped code disappears. Until its addresses are used again it
    /// keeps its name, which late samples need.
    pub fn map(&mut self, new: Mapping) {
        if new.range.is_empty()
            || self
                .mappings
                .binary_search_by_key(&new.range.start, |old| old.range.start)
                .is_ok_and(|index| self.mappings[index] == new)
        {
            return;
        }
        let first = self.mappings.partition_point(|old| old.range.end <= new.range.start);
        let last = self.mappings.partition_point(|old| old.range.start < new.range.end).max(first);
        let mut pieces = Vec::with_capacity(3);
        for old in &self.mappings[first..last] {
            self.unwinder.remove_module(old.range.start);
            self.loaded.remove(&old.range.start);
            if old.range.start < new.range.start {
                pieces.push(Mapping { range: old.range.start..new.range.start, ..old.clone() });
            }
            if old.range.end > new.range.end {
                let offset = old.offset.wrapping_add(new.range.end - old.range.start);
                pieces.push(Mapping { range: new.range.end..old.range.end, offset, module: old.module });
            }
        }
        if !self.frames.is_empty() {
            self.frames.retain(|address, _| !new.range.contains(address));
            self.after_call.retain(|address, _| !new.range.contains(address));
            self.python.forget(&new.range);
            self.epilogues.retain(|address, _| !new.range.contains(address));
            self.callers.retain(|(caller, callee), _| !new.range.contains(caller) && !new.range.contains(callee));
        }
        self.operands.retain(|address, _| !new.range.contains(address));
        pieces.push(new);
        pieces.sort_by_key(|piece| piece.range.start);
        self.mappings.splice(first..last, pieces);
        self.code_changed = true;
    }

    /// Starts and lengths of two ranges that hold the code of files, if they may have changed since the last call: the
    /// program's, and that of its libraries. They are the mappings on both sides of the largest gap, since the kernel places
    /// libraries far from the program.
    pub fn changed_code(&mut self, is_file: impl Fn(ModuleRef) -> bool) -> Option<[u64; 4]> {
        if !std::mem::take(&mut self.code_changed) {
            return None;
        }
        let files: Vec<&Mapping> = self.mappings.iter().filter(|mapping| is_file(mapping.module)).collect();
        let gap = |index: &usize| files[index + 1].range.start - files[*index].range.end;
        let split = (0..files.len().saturating_sub(1)).max_by_key(gap).map_or(files.len(), |last| last + 1);
        let hull = |files: &[&Mapping]| match files {
            [first, .., last] => [first.range.start, last.range.end - first.range.start],
            [only] => [only.range.start, only.range.end - only.range.start],
            [] => [0, 0],
        };
        let [[start, length], [of_libraries, length_of_libraries]] = [hull(&files[..split]), hull(&files[split..])];
        Some([start, length, of_libraries, length_of_libraries])
    }

    /// Notes where the kernel executes copies of probed instructions.
    pub fn execute_out_of_line(&mut self, range: Range<u64>) {
        self.out_of_line = Some(range);
    }

    /// Whether an address is in a copy of a probed instruction.
    pub fn is_out_of_line(&self, address: u64) -> bool {
        self.out_of_line.as_ref().is_some_and(|range| range.contains(&address))
    }

    /// The address in the program's code that stands for `copied`, an address in a copy of its instruction at `offset` of a
    /// module. The kernel puts each copy into a slot of its own, and no unwind table covers those.
    pub fn back_in_line(&self, copied: u64, offset: u64, is_module: impl Fn(ModuleRef) -> bool) -> u64 {
        let Some(area) = &self.out_of_line else { return copied };
        let holds = |mapping: &&Mapping| {
            let length = mapping.range.end - mapping.range.start;
            is_module(mapping.module) && offset.checked_sub(mapping.offset).is_some_and(|into| into < length)
        };
        let Some(mapping) = self.mappings.iter().find(holds) else { return copied };
        mapping.range.start + (offset - mapping.offset) + (copied - area.start) % SLOT_BYTES
    }

    /// The memory operands of the instruction at `ip`, and of the one that was executed before it.
    pub fn data_operands(&mut self, pid: u32, ip: u64, source: &mut impl FrameSource) -> Arc<[DataOperand]> {
        /// Addresses of code whose operands are kept.
        const MOST_KNOWN: usize = 1 << 16;
        if let Some(known) = self.operands.get(&ip) {
            return known.clone();
        }
        let function = self.find(ip).cloned().and_then(|mapping| source.function(&mapping, ip, pid));
        let range = data_operand::wanted_code(ip, function.as_ref());
        let mut code = vec![0; (range.end - range.start) as usize];
        let length = source.target().read_memory(pid, range.start, &mut code);
        let found = data_operand::operands(ip, range.start, &code[..length.min(code.len())]);
        // A process that is gone has no memory. Another one may run the same code.
        if self.operands.len() >= MOST_KNOWN {
            self.operands.clear();
        }
        self.operands.insert(ip, found.clone());
        found
    }

    /// The mapped code that an address of data follows: the data of a file are behind its code.
    pub fn code_before(&self, address: u64) -> Option<&Mapping> {
        let behind = self.mappings.partition_point(|mapping| mapping.range.start <= address);
        self.mappings.get(behind.checked_sub(1)?)
    }

    /// The mapping that holds an address.
    fn find(&self, address: u64) -> Option<&Mapping> {
        let index = self.mappings.partition_point(|mapping| mapping.range.end <= address);
        self.mappings.get(index).filter(|mapping| mapping.range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_two_ranges_on_both_sides_of_the_largest_gap() {
        let mut space = space(&[(100, 120, 0), (130, 140, 0), (7_000, 7_100, 1), (7_200, 7_300, 2), (9_900, 9_999, 3)]);
        let is_file = |module: ModuleRef| module.0 != 3;
        assert_eq!(space.changed_code(is_file), Some([100, 40, 7_000, 300]));
        assert_eq!(space.changed_code(is_file), None, "nothing changed");
        assert_eq!(AddressSpace::new().changed_code(is_file), Some([0; 4]));
    }

    fn space(drawn: &[(u64, u64, u32)]) -> AddressSpace {
        let mut space = AddressSpace::new();
        for &(start, end, module) in drawn {
            space.map(Mapping { range: start..end, offset: 0, module: ModuleRef(module) });
        }
        space
    }

    fn drawn(space: &AddressSpace) -> Vec<String> {
        let draw = |m: &Mapping| format!("{:x}-{:x} m{}+{:x}", m.range.start, m.range.end, m.module.0, m.offset);
        space.mappings.iter().map(draw).collect()
    }

    #[test]
    fn a_newer_mapping_replaces_what_it_overlaps_and_leaves_the_rest() {
        let space = space(&[(0x1000, 0x5000, 0), (0x6000, 0x9000, 1), (0x2000, 0x3000, 2), (0x4000, 0x7000, 3)]);
        assert_eq!(
            drawn(&space),
            ["1000-2000 m0+0", "2000-3000 m2+0", "3000-4000 m0+2000", "4000-7000 m3+0", "7000-9000 m1+1000"]
        );
    }

    #[test]
    fn a_copy_of_an_instruction_stands_for_the_instruction() {
        let mut space = space(&[(0x1000, 0x2000, 0), (0x5000, 0x8000, 1)]);
        space.execute_out_of_line(0x7fff_e000..0x7fff_f000);
        assert!(space.is_out_of_line(0x7fff_e083) && !space.is_out_of_line(0x5000));
        let in_line = |address, offset| space.back_in_line(address, offset, |module| module == ModuleRef(1));
        assert_eq!(in_line(0x7fff_e000, 0x1139), 0x6139);
        assert_eq!(in_line(0x7fff_e084, 0x1139), 0x613d, "after it, in the second slot");
        assert_eq!(in_line(0x7fff_e084, 0x9000), 0x7fff_e084, "not mapped there");
    }

    #[test]
    fn an_address_is_found_in_the_mapping_that_holds_it_and_not_past_its_end() {
        let space = space(&[(0x1000, 0x2000, 0), (0x3000, 0x4000, 1)]);
        let module = |address| space.find(address).map(|mapping| mapping.module.0);
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x3fff, 0x4000].map(module),
            [None, Some(0), Some(0), None, Some(1), None]
        );
    }
}
