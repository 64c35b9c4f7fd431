//! Records of interpreted files: names, instructions, kinds of allocations.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Frame, FrameId, Language, Module, ModuleId, StackId};

use super::super::call_tree::CallTreeRows;
use super::super::text::{function_name, text};
use super::{Fault, NOT_NUMBERS, Numbers, TOO_FEW, UNKNOWN_NODE};

/// Tables of an interpreted file.
pub(super) struct Interpreted {
    texts: Vec<Arc<str>>,
    modules: FxHashMap<u64, ModuleId>,
    /// Frames of each instruction, outermost first.
    instructions: Vec<Vec<FrameId>>,
    nodes: Vec<Option<StackId>>,
    kinds: Vec<Kind>,
    rows: CallTreeRows<Frame>,
}

/// Allocations of one size at one node.
struct Kind {
    bytes: u64,
    node: usize,
}

impl Default for Interpreted {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            modules: FxHashMap::default(),
            instructions: Vec::new(),
            nodes: Vec::new(),
            kinds: Vec::new(),
            rows: CallTreeRows::new(),
        }
    }
}

impl Interpreted {
    pub fn text(&mut self, bytes: &[u8], capture: &mut Capture) {
        self.texts.push(capture.intern_text(&text(bytes)));
    }

    /// A text by its number from 1; `None` for 0.
    fn text_of(&self, number: u64) -> Option<Arc<str>> {
        self.texts.get(usize::try_from(number).ok()?.checked_sub(1)?).cloned()
    }

    pub fn instruction(&mut self, mut numbers: Numbers<'_>, capture: &mut Capture) -> Result<(), Fault> {
        // A bad instruction keeps its number.
        let index = self.instructions.len();
        self.instructions.push(Vec::new());
        let address = numbers.next().ok_or(NOT_NUMBERS)?;
        let module = numbers.next().and_then(|number| self.module(number, capture));
        let nameless =
            || format!("{}+{address:#x}", module.map_or("", |module| capture.modules[module.index()].name()));
        let mut frames = Vec::new();
        while let Some(function) = numbers.next() {
            let (file, line) = (numbers.next(), numbers.next());
            let frame = Frame {
                function: match function {
                    0 => nameless().into(),
                    _ => self.text_of(function).ok_or("it refers to a text that the file does not have")?,
                },
                module,
                file: file.and_then(|file| self.text_of(file)),
                line: line.and_then(|line| u32::try_from(line).ok()),
                inlined: false,
                address: None,
                language: Language::Native,
            };
            frames.push(frame);
        }
        if !numbers.is_well_formed() {
            return Err(NOT_NUMBERS);
        }
        if frames.is_empty() {
            frames.push(Frame { module, address: Some(address), ..Frame::named(nameless()) });
        }
        // All but the outermost are inlined there.
        let outermost = frames.len() - 1;
        frames[..outermost].iter_mut().for_each(|frame| frame.inlined = true);
        let rows = &mut self.rows;
        let interned = frames.into_iter().rev().map(|mut frame| {
            frame.function = function_name(&frame.function).into();
            rows.frame(&frame, capture, |capture| {
                capture.frames.push(frame.clone());
                (frame.clone(), FrameId::from_index(capture.frames.len() - 1))
            })
        });
        self.instructions[index] = interned.collect();
        Ok(())
    }

    fn module(&mut self, number: u64, capture: &mut Capture) -> Option<ModuleId> {
        let path = self.text_of(number)?;
        let add = || capture.add_module(Module { path: path.to_string(), ..Module::default() });
        Some(*self.modules.entry(number).or_insert_with(add))
    }

    pub fn node(&mut self, instruction: u64, parent: u64, capture: &mut Capture) -> Result<(), Fault> {
        let caller = match usize::try_from(parent).ok().and_then(|parent| parent.checked_sub(1)) {
            None => None,
            Some(parent) => *self.nodes.get(parent).unwrap_or(&None),
        };
        let index = usize::try_from(instruction).ok().and_then(|number| number.checked_sub(1));
        let frames = index.and_then(|index| self.instructions.get(index));
        let fault = frames.is_none().then_some("it refers to an instruction that the file does not have");
        let rows = &mut self.rows;
        let add = |caller, frame: &FrameId| Some(rows.node(caller, *frame, capture));
        // A bad node keeps its number.
        self.nodes.push(frames.into_iter().flatten().fold(caller, add));
        fault.map_or(Ok(()), Err)
    }

    pub fn kind(&mut self, bytes: u64, node: u64) -> Result<(), Fault> {
        let node = usize::try_from(node).map_err(|_| TOO_FEW)?;
        let is_known = node <= self.nodes.len();
        self.kinds.push(Kind { bytes, node: if is_known { node } else { 0 } });
        if is_known { Ok(()) } else { Err(UNKNOWN_NODE) }
    }

    /// The node and size of a kind of allocations.
    pub fn of_kind(&self, number: u64) -> Result<(usize, u64), Fault> {
        let kind = usize::try_from(number).ok().and_then(|number| self.kinds.get(number));
        kind.map(|kind| (kind.node, kind.bytes)).ok_or("it refers to an allocation that the file does not have")
    }

    /// The stack of each node; 0 is none.
    pub fn stacks(self) -> Vec<Option<StackId>> {
        [None].into_iter().chain(self.nodes).collect()
    }
}
