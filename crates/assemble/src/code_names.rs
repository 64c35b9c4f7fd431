//! From the code of a log to frames and stacks of a capture: names for addresses, stacks with inlined frames.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use stepscope_model::{Capture, Frame, FrameId, Language, ModuleId, StackId};
use stepscope_symbolize::{Code, ModuleNames, NamedBy, Place};

use crate::data_accesses::ObjectPlace;
use crate::entry::{FrameRef, Module, ModuleKind, ModuleRef, StackMark, StackRef};
use crate::symbols::Symbols;

/// Modules, frames and stacks of a log, and what the capture has for them.
///
/// A log is named when all of it is known, or in parts: each call of [`name`](Self::name) names what came since the last one.
#[derive(Default)]
pub(crate) struct CodeNames {
    modules: Vec<Module>,
    frames: Vec<(Option<ModuleRef>, u64)>,
    stacks: Vec<(Option<StackRef>, FrameRef)>,
    /// The frames of the capture for each frame of the log that has names, outermost first: inlined frames have the same
    /// address.
    named: Vec<Vec<FrameId>>,
    /// The capture's stack node for each node of the log whose frames have names.
    nodes: Vec<Option<StackId>>,
    module_ids: HashMap<(String, Option<String>), ModuleId>,
    /// Modules whose jitdumps are known.
    dumps_known: usize,
    problems: BTreeSet<String>,
}

/// The modules that are asked for names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All modules, so that the capture lists each.
    Everything,
    /// Those with frames that have no names yet.
    WithFrames,
}

impl CodeNames {
    pub fn add_module(&mut self, module: Module) {
        self.modules.push(module);
    }

    /// A module of the log.
    pub fn module(&self, module: ModuleRef) -> Option<&Module> {
        self.modules.get(module.0 as usize)
    }

    /// Names of the global variables at these places, which are sorted.
    pub fn name_objects(&self, places: Vec<ObjectPlace>, symbols: &mut impl Symbols) -> HashMap<ObjectPlace, String> {
        let mut named = HashMap::new();
        for of_module in places.chunk_by(|one, other| one.0 == other.0) {
            let code = self.module(of_module[0].0).and_then(code_of);
            let offsets: Vec<u64> = of_module.iter().map(|(_, offset)| *offset).collect();
            let names = code.map(|code| symbols.name_objects(&code, &offsets)).unwrap_or_default();
            named.extend(of_module.iter().zip(names).filter_map(|(place, name)| Some((*place, name?))));
        }
        named
    }

    /// Adds a frame. `None` if it refers to a missing module.
    pub fn add_frame(&mut self, module: Option<ModuleRef>, offset: u64) -> Option<()> {
        module.is_none_or(|module| (module.0 as usize) < self.modules.len()).then_some(())?;
        self.frames.push((module, offset));
        Some(())
    }

    /// Adds a node of a stack. `None` if it refers to a missing entry.
    pub fn add_stack(&mut self, parent: Option<StackRef>, frame: FrameRef) -> Option<()> {
        (self.has_stack(parent) && (frame.0 as usize) < self.frames.len()).then_some(())?;
        self.stacks.push((parent, frame));
        Some(())
    }

    /// Whether a stack is known.
    pub fn has_stack(&self, stack: Option<StackRef>) -> bool {
        stack.is_none_or(|stack| (stack.0 as usize) < self.stacks.len())
    }

    /// Whether a stack's frames have names, or there is no stack.
    pub fn is_named(&self, stack: Option<StackRef>) -> bool {
        stack.is_none_or(|stack| (stack.0 as usize) < self.nodes.len())
    }

    /// The capture's stack node.
    pub fn node(&self, stack: Option<StackRef>) -> Option<StackId> {
        stack.and_then(|stack| *self.nodes.get(stack.0 as usize)?)
    }

    /// The capture's stack node for each node of the log, and why code lacks names.
    pub fn finish(self) -> (Vec<Option<StackId>>, BTreeSet<String>) {
        (self.nodes, self.problems)
    }

    /// Names what came since the last call, and adds it to the capture.
    pub fn name(&mut self, capture: &mut Capture, asked: Asked, symbols: &mut impl Symbols) {
        let named = self.unnamed(asked).name(symbols);
        self.add_names(named, capture);
    }

    /// What came since the last call. Its names have to be added before the next call.
    pub fn unnamed(&mut self, asked: Asked) -> Unnamed {
        let dump = |module: &Module| match module.kind {
            ModuleKind::JitDump(pid) => Some((pid, PathBuf::from(&module.path))),
            _ => None,
        };
        let jit_dumps = self.modules[self.dumps_known..].iter().filter_map(dump).collect();
        self.dumps_known = self.modules.len();
        let mut by_module: HashMap<Option<ModuleRef>, Vec<usize>> = HashMap::new();
        for (index, (module, _)) in self.frames.iter().enumerate().skip(self.named.len()) {
            by_module.entry(*module).or_default().push(index);
        }
        let mut modules = Vec::new();
        for (index, module) in self.modules.iter().enumerate() {
            let frames = by_module.remove(&Some(ModuleRef(index as u32))).unwrap_or_default();
            if asked == Asked::Everything || !frames.is_empty() {
                modules.push(UnnamedModule { index: Some(index), code: code_of(module), ..self.unnamed_in(frames) });
            }
        }
        modules.extend(by_module.remove(&None).map(|frames| self.unnamed_in(frames)));
        Unnamed { modules, jit_dumps, frames: self.frames.len() }
    }

    fn unnamed_in(&self, frames: Vec<usize>) -> UnnamedModule {
        let offsets = frames.iter().map(|&frame| self.frames[frame].1).collect();
        UnnamedModule { index: None, code: None, frames, offsets }
    }

    /// Adds the names of what came before the last call of [`unnamed`](Self::unnamed) to the capture.
    pub fn add_names(&mut self, NamedCode { modules, frames }: NamedCode, capture: &mut Capture) {
        self.named.resize(frames, Vec::new());
        for (unnamed, names) in modules {
            self.add_module_names(&unnamed, names, capture);
        }
        self.add_nodes(capture);
    }

    fn add_module_names(&mut self, unnamed: &UnnamedModule, names: Option<ModuleNames>, capture: &mut Capture) {
        let places = unnamed.frames.iter().zip(&unnamed.offsets);
        let Some(module) = unnamed.index.map(|index| &self.modules[index]) else {
            for (&frame, offset) in places {
                let function: Arc<str> = format!("[unmapped {offset:#x}]").into();
                count_unnamed(capture);
                self.named[frame] = vec![capture.intern_frame(Frame::named(function))];
            }
            return;
        };
        let Some(ModuleNames { symbols, build_id, package, places: named, problems }) = names else {
            if module.kind == ModuleKind::StackMarks {
                for (&frame, &offset) in places {
                    self.named[frame] = vec![capture.intern_frame(Frame::named(StackMark::name(offset)))];
                }
            }
            return;
        };
        // A program may map many files that hold no machine code: .NET does so with its assemblies.
        if !unnamed.frames.is_empty() {
            self.problems.extend(problems.iter().map(ToString::to_string));
        }
        let build_id = build_id.or_else(|| module.build_id.as_deref().map(hexadecimal));
        let id = *self.module_ids.entry((module.path.clone(), build_id.clone())).or_insert_with(|| {
            capture.add_module(stepscope_model::Module { path: module.path.clone(), build_id, symbols, package })
        });
        let language = if module.kind == ModuleKind::Kernel { Language::Kernel } else { Language::Native };
        for (&frame, place) in unnamed.frames.iter().zip(&named) {
            self.named[frame] = add_place(capture, place, id, language);
        }
    }

    /// Adds the stacks whose frames have names, up to the first one that has not.
    pub fn add_nodes(&mut self, capture: &mut Capture) {
        let is_named = |(_, frame): &&(Option<StackRef>, FrameRef)| (frame.0 as usize) < self.named.len();
        for (parent, frame) in self.stacks[self.nodes.len()..].iter().take_while(is_named) {
            let parent = parent.and_then(|parent| self.nodes[parent.0 as usize]);
            let frames = &self.named[frame.0 as usize];
            let add = |parent, &frame: &FrameId| Some(capture.intern_stack_node(parent, frame));
            self.nodes.push(frames.iter().fold(parent, add));
        }
    }
}

/// What names a module; `None` if its frames have names of their own.
fn code_of(module: &Module) -> Option<Code> {
    match module.kind {
        ModuleKind::StackMarks | ModuleKind::JitDump(_) => None,
        ModuleKind::File => Some(Code::File { path: PathBuf::from(&module.path), build_id: module.build_id.clone() }),
        ModuleKind::Kernel => Some(Code::Kernel),
        ModuleKind::Vdso => Some(Code::Vdso),
        ModuleKind::Jit(pid) => Some(Code::Jit { pid }),
    }
}

/// Code without names. It borrows nothing, so it can be named while more of the log is read.
#[derive(Debug)]
pub struct Unnamed {
    modules: Vec<UnnamedModule>,
    jit_dumps: Vec<(u32, PathBuf)>,
    /// How many frames of the log have names afterwards.
    frames: usize,
}

/// Frames of a module, or of code outside of all modules.
#[derive(Debug)]
struct UnnamedModule {
    index: Option<usize>,
    code: Option<Code>,
    frames: Vec<usize>,
    offsets: Vec<u64>,
}

impl Unnamed {
    /// Whether nothing has to be named.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.jit_dumps.is_empty()
    }

    /// Names it.
    pub fn name(self, symbols: &mut impl Symbols) -> NamedCode {
        for (pid, path) in &self.jit_dumps {
            symbols.add_jit_dump(*pid, path);
        }
        let mut named = |module: UnnamedModule| {
            let names = module.code.as_ref().map(|code| symbols.name(code, &module.offsets));
            (module, names)
        };
        NamedCode { modules: self.modules.into_iter().map(&mut named).collect(), frames: self.frames }
    }
}

/// Names of what was [`Unnamed`].
#[derive(Debug)]
pub struct NamedCode {
    modules: Vec<(UnnamedModule, Option<ModuleNames>)>,
    frames: usize,
}

fn add_place(capture: &mut Capture, place: &Place, module: ModuleId, language: Language) -> Vec<FrameId> {
    if matches!(place.named_by, NamedBy::Nothing | NamedBy::FunctionStart) {
        count_unnamed(capture);
    }
    let frames = place.frames.iter().map(|frame| {
        capture.intern_frame(Frame {
            function: frame.function.clone(),
            module: Some(module),
            file: frame.file.clone(),
            line: frame.line,
            inlined: frame.inlined,
            address: place.address,
            language,
        })
    });
    frames.collect()
}

fn count_unnamed(capture: &mut Capture) {
    let unnamed = &mut capture.info.losses.unnamed_addresses;
    *unnamed = unnamed.saturating_add(1);
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use stepscope_model::Build;
    use stepscope_symbolize::Problem;

    use super::*;
    use crate::symbols::NoSymbols;

    /// Every file is damaged.
    struct Damaged;

    impl Symbols for Damaged {
        fn name(&mut self, code: &Code, offsets: &[u64]) -> ModuleNames {
            let path = match code {
                Code::File { path, .. } => path.to_path_buf(),
                _ => PathBuf::new(),
            };
            let problem = Problem::NotElf { path, reason: "it is damaged".to_owned() };
            ModuleNames { problems: vec![problem], ..NoSymbols.name(code, offsets) }
        }

        fn build_of(&mut self, _: &Capture) -> Option<Build> {
            None
        }
    }

    #[test]
    fn files_without_names_matter_if_code_of_theirs_ran() {
        let mut names = CodeNames::default();
        for path in ["/lib/System.Runtime.dll", "/lib/sim.so"] {
            names.add_module(Module { kind: ModuleKind::File, path: path.to_owned(), build_id: None });
        }
        names.add_frame(Some(ModuleRef(1)), 0x10).unwrap();
        let mut capture = Capture::default();
        names.name(&mut capture, Asked::Everything, &mut Damaged);
        assert_eq!(capture.modules.len(), 2);
        let (_, problems) = names.finish();
        let problems: Vec<_> = problems.into_iter().collect();
        assert_eq!(problems, ["/lib/sim.so: not a readable ELF file (it is damaged), so its functions have no names"]);
    }
}
