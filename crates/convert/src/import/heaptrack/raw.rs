//! Records of raw files: addresses, modules, blocks.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Frame, Language, Module, ModuleId, StackId};
use stepscope_symbolize::Symbolizer;

use super::super::ImportOptions;
use super::super::text::text;
use super::{Fault, NOT_NUMBERS, Numbers, TOO_FEW, UNKNOWN_NODE};

/// Tables of a raw file.
#[derive(Default)]
pub(super) struct Raw {
    executable: String,
    /// Paths of all modules that were ever loaded.
    paths: Vec<String>,
    /// What is loaded now, by start.
    loaded: BTreeMap<u64, Loaded>,
    nodes: Vec<Node>,
    blocks: FxHashMap<u64, (usize, u64)>,
}

/// A segment of a module.
struct Loaded {
    end: u64,
    path: usize,
    /// Where the module's address 0 is.
    base: u64,
}

struct Node {
    place: Place,
    parent: usize,
}

/// A place in code: a module and an address in it, or an absolute address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    path: Option<usize>,
    address: u64,
}

impl Raw {
    pub fn executable(&mut self, path: &[u8]) {
        self.executable = text(path).into_owned();
    }

    pub fn module(&mut self, name: &[u8], after: &[u8]) -> Result<(), Fault> {
        if name == b"-" {
            self.loaded.clear();
            return Ok(());
        }
        let path = if name == b"x" { self.executable.clone() } else { text(name).into_owned() };
        let path = self.paths.iter().position(|known| *known == path).unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        });
        let mut numbers = Numbers { rest: after, is_bad: false };
        let base = numbers.next().ok_or(TOO_FEW)?;
        while let (Some(start), Some(length)) = (numbers.next(), numbers.next()) {
            let start = base.wrapping_add(start);
            self.loaded.insert(start, Loaded { end: start.saturating_add(length), path, base });
        }
        if numbers.is_well_formed() { Ok(()) } else { Err(NOT_NUMBERS) }
    }

    pub fn node(&mut self, address: u64, parent: u64) -> Result<(), Fault> {
        let parent = usize::try_from(parent).ok().filter(|&parent| parent <= self.nodes.len());
        // The call is before the address that it returns to.
        let address = address.wrapping_sub(1);
        let loaded = self.loaded.range(..=address).next_back().filter(|(_, loaded)| address < loaded.end);
        let place = match loaded {
            Some((_, loaded)) => Place { path: Some(loaded.path), address: address.wrapping_sub(loaded.base) },
            None => Place { path: None, address },
        };
        // A bad node keeps its number.
        self.nodes.push(Node { place, parent: parent.unwrap_or(0) });
        parent.map_or(Err(UNKNOWN_NODE), |_| Ok(()))
    }

    /// The node, size and pointer of an allocation.
    pub fn allocate(
        &mut self,
        bytes: u64,
        node: Option<u64>,
        pointer: Option<u64>,
    ) -> Result<(usize, u64, u64), Fault> {
        let (node, pointer) = (node.ok_or(TOO_FEW)?, pointer.ok_or(TOO_FEW)?);
        let node = usize::try_from(node).ok().filter(|&node| node <= self.nodes.len()).ok_or(UNKNOWN_NODE)?;
        self.blocks.insert(pointer, (node, bytes));
        Ok((node, bytes, pointer))
    }

    pub fn free(&mut self, pointer: u64) -> Option<(usize, u64)> {
        self.blocks.remove(&pointer)
    }

    /// The stack of each node; 0 is none. Names its functions from the files of this machine.
    pub fn stacks(self, capture: &mut Capture, options: &ImportOptions) -> Vec<Option<StackId>> {
        let frames = self.frames(capture, options);
        let mut stacks: Vec<Option<StackId>> = vec![None];
        for node in &self.nodes {
            // A parent has a smaller number.
            let mut stack = stacks[node.parent];
            for frame in &frames[&node.place] {
                let frame = capture.intern_frame(frame.clone());
                stack = Some(capture.intern_stack_node(stack, frame));
            }
            stacks.push(stack);
        }
        stacks
    }

    /// The functions at each place, outermost first.
    fn frames(&self, capture: &mut Capture, options: &ImportOptions) -> FxHashMap<Place, Vec<Frame>> {
        let mut symbolizer = Symbolizer::new(options.symbols.clone());
        let mut addresses: BTreeMap<Option<usize>, Vec<u64>> = BTreeMap::new();
        self.nodes.iter().for_each(|node| addresses.entry(node.place.path).or_default().push(node.place.address));
        let mut frames: FxHashMap<Place, Vec<Frame>> = FxHashMap::default();
        for (path, mut addresses) in addresses {
            addresses.sort_unstable();
            addresses.dedup();
            let Some(number) = path else {
                let unknown = |address: u64| Frame::named(format!("[unknown]+{address:#x}"));
                let places = addresses.into_iter().map(|address| (Place { path, address }, vec![unknown(address)]));
                frames.extend(places);
                continue;
            };
            let names = symbolizer.name_addresses(self.paths[number].as_ref(), &addresses);
            capture.info.notes.extend(names.problems.iter().map(|problem| format!("{problem}.")));
            let module = capture.add_module(Module {
                path: self.paths[number].clone(),
                build_id: names.build_id,
                symbols: names.symbols,
                package: names.package,
            });
            for (address, place) in addresses.into_iter().zip(names.places) {
                let named = place.frames.into_iter().map(|frame| frame_of(frame, module, address)).collect();
                frames.insert(Place { path, address }, named);
            }
        }
        frames
    }
}

fn frame_of(frame: stepscope_symbolize::NamedFrame, module: ModuleId, address: u64) -> Frame {
    Frame {
        function: frame.function,
        module: Some(module),
        file: frame.file,
        line: frame.line,
        inlined: frame.inlined,
        address: Some(address),
        language: Language::Native,
    }
}
