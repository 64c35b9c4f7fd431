//! Where the rounds of loops begin: a loop that has no function of its own still has an instruction that runs once a round.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Architecture, Object};

use super::graph::{Graph, Natural};
use super::instruction::{Effect, Operation};
use super::{MOST_CODE, bytes};
use crate::Problem;
use crate::function_starts::FunctionStarts;
use crate::image::{Image, Segments};

/// The first instruction of each round of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopHead {
    /// Address in the module, as in its symbol table.
    pub address: u64,
    /// Its place in the file.
    pub offset: u64,
}

/// The loops around each of these addresses, the outermost first. An address is that of an instruction, or the one that a call
/// returns to.
///
/// Loops that call nothing and have no loops within are left out: what they do in a round takes some instructions. Only x86-64
/// has loops here, and functions whose extent the unwind tables know: a probe inside an instruction would break the program.
///
/// # Errors
/// If the file cannot be read.
pub fn loops_around(path: &Path, addresses: &[u64]) -> Result<Vec<Vec<LoopHead>>, Problem> {
    let image = Image::open(path)?;
    let mut code = Code::of(&image);
    Ok(addresses.iter().map(|address| code.loops(*address, |function| function.heads_around(*address))).collect())
}

/// The loop whose rounds begin at this address, if one does.
///
/// # Errors
/// If the file cannot be read.
pub fn loop_at(path: &Path, address: u64) -> Result<Option<LoopHead>, Problem> {
    let image = Image::open(path)?;
    let mut code = Code::of(&image);
    let heads = code.loops(address.saturating_add(1), |function| function.heads(|_| true));
    Ok(heads.into_iter().find(|head| head.address == address))
}

/// The functions of a file, decoded when they are asked for.
struct Code<'data> {
    elf: object::File<'data>,
    starts: Option<FunctionStarts<'data>>,
    segments: Segments,
    read: BTreeMap<u64, Function>,
}

impl<'data> Code<'data> {
    fn of(image: &'data Image) -> Self {
        let elf = image.elf();
        let starts = FunctionStarts::of(&elf).filter(|_| elf.architecture() == Architecture::X86_64);
        Self { starts, segments: Segments::of(&elf), read: BTreeMap::new(), elf }
    }

    /// Those loops of the function at an address.
    fn loops(&mut self, address: u64, of: impl FnOnce(&Function) -> Vec<u64>) -> Vec<LoopHead> {
        let Some(function) = self.function(address) else { return Vec::new() };
        let found = of(function);
        let head = |address: u64| Some(LoopHead { address, offset: self.segments.offset_of(address)? });
        found.into_iter().filter_map(head).collect()
    }

    fn function(&mut self, address: u64) -> Option<&Function> {
        // The call before a return address may be the last instruction of its function.
        let extent = self.starts.as_ref()?.extent_of(address.checked_sub(1)?)?;
        if extent.end - extent.start > MOST_CODE {
            return None;
        }
        let code = bytes(&self.elf, &extent)?;
        Some(self.read.entry(extent.start).or_insert_with(|| Function::of(code, extent.start)))
    }
}

/// The code of a function.
struct Function {
    graph: Graph,
    loops: Vec<Natural>,
}

impl Function {
    fn of(code: &[u8], start: u64) -> Self {
        let mut graph = Graph::of(code, start);
        let loops = graph.likely_loops();
        Self { graph, loops }
    }

    /// Addresses of the heads of loops that call something or have loops within, the outermost first.
    fn heads(&self, is_wanted: impl Fn(&Natural) -> bool) -> Vec<u64> {
        let calls = |one: &Natural| {
            let mut operations = one.blocks.iter().flat_map(|block| &self.graph.blocks[*block].operations);
            operations.any(|operation| operation.effect == Effect::Call)
        };
        let has_loops = |one: &Natural| self.loops.iter().any(|inner| inner.is_within(one));
        let is_large = |one: &&Natural| is_wanted(one) && (calls(one) || has_loops(one));
        let mut found: Vec<&Natural> = self.loops.iter().filter(is_large).collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.blocks.len()));
        let address = |one: &Natural| Some(self.graph.blocks[one.head].operations.first()?.start);
        found.into_iter().filter_map(address).collect()
    }

    fn heads_around(&self, address: u64) -> Vec<u64> {
        let block_with = |is_it: &dyn Fn(&Operation) -> bool| {
            self.graph.blocks.iter().position(|block| block.operations.iter().any(is_it))
        };
        let returns_to = block_with(&|one| one.effect == Effect::Call && one.end == address);
        let block = returns_to.or_else(|| block_with(&|one| (one.start..one.end).contains(&address)));
        block.map_or_else(Vec::new, |block| self.heads(|one| one.blocks.contains(&block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries;

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_symbolize_called_by_loops(number: u64) -> u64 {
        std::hint::black_box(number) + 1
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_symbolize_two_loops(outer: u64, inner: u64) -> u64 {
        let mut sum = 0;
        for _ in 0..std::hint::black_box(outer) {
            sum = stepscope_symbolize_called_by_loops(sum);
            for _ in 0..std::hint::black_box(inner) {
                sum = stepscope_symbolize_called_by_loops(sum);
            }
        }
        sum
    }

    #[test]
    fn loops_around_a_call_are_found_from_the_outermost_to_the_innermost() {
        assert_eq!(stepscope_symbolize_two_loops(2, 3), 8);
        let this = std::env::current_exe().unwrap();
        let entry = entries(&this, &Default::default(), |_, symbol| symbol == "stepscope_symbolize_two_loops").unwrap();
        let image = Image::open(&this).unwrap();
        let elf = image.elf();
        let start = Segments::of(&elf).address_of(entry[0].offset).unwrap();
        let extent = FunctionStarts::of(&elf).unwrap().extent_of(start).unwrap();
        let found = loops_around(&this, &extent.clone().map(|address| address + 1).collect::<Vec<_>>()).unwrap();
        let deepest = found.iter().max_by_key(|heads| heads.len()).unwrap();
        assert_eq!(deepest.len(), 2, "{found:x?}");
        assert!(deepest.iter().all(|head| extent.contains(&head.address)), "{found:x?}");
        assert!(found.iter().any(|heads| heads.len() == 1 && heads[0] == deepest[0]), "{found:x?}");
        assert!(found.iter().any(Vec::is_empty), "the entry is in no loop");
        assert_eq!(loop_at(&this, deepest[1].address).unwrap(), Some(deepest[1]));
        assert_eq!(loop_at(&this, deepest[1].address + 1).unwrap(), None);
        assert_eq!(loop_at(&this, extent.start).unwrap(), None);
    }
}
