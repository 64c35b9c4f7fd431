//! Modules, frames and stacks, numbered as the log declares them.

use rustc_hash::FxHashMap;

use crate::entry::{Entry, FrameRef, Module, ModuleKind, ModuleRef, Sink, StackMark, StackRef};
use crate::target::Target;
use crate::unwind_tables::UnwindTables;

/// Gives each module, frame and stack node of one log its number, and declares it in the log when it is new.
#[derive(Default)]
pub(super) struct Interner {
    refs: FxHashMap<Module, ModuleRef>,
    modules: Vec<KnownModule>,
    kernel: Option<ModuleRef>,
    marks: Option<ModuleRef>,
    frames: FxHashMap<(Option<ModuleRef>, u64), FrameRef>,
    stacks: FxHashMap<(Option<StackRef>, FrameRef), StackRef>,
    /// The last stack that was interned, root first.
    last_stack: Vec<InternedFrame>,
    whole_stacks: WholeStacks,
}

/// A module of the log, with its unwind tables once the target was asked for them.
struct KnownModule {
    module: Module,
    tables: Option<Option<UnwindTables>>,
}

/// A frame of a stack, and the stack that ends in it.
struct InternedFrame {
    frame: FrameRef,
    stack: StackRef,
}

/// Whole stacks seen before, leaf first. Most samples have one of a few stacks, and one look-up costs less than one for
/// each frame.
#[derive(Default)]
struct WholeStacks {
    stacks: FxHashMap<Box<[FrameRef]>, StackRef>,
    /// Frames in all of them.
    frames: usize,
}

impl WholeStacks {
    /// 4 MiB of frames.
    const MAX_FRAMES: usize = 1 << 20;

    fn insert(&mut self, frames: &[FrameRef], stack: StackRef) {
        if self.frames + frames.len() > Self::MAX_FRAMES {
            *self = Self::default();
        }
        self.frames += frames.len();
        self.stacks.insert(frames.into(), stack);
    }
}

impl Interner {
    pub fn module(&mut self, module: Module, sink: &mut impl Sink) -> ModuleRef {
        if let Some(&known) = self.refs.get(&module) {
            return known;
        }
        let id = ModuleRef(self.modules.len() as u32);
        self.modules.push(KnownModule { module: module.clone(), tables: None });
        self.refs.insert(module.clone(), id);
        sink.take(Entry::Module(module));
        id
    }

    /// Interns a module of an earlier log again, together with its unwind tables.
    pub fn module_of(&mut self, earlier: &Self, module: ModuleRef, sink: &mut impl Sink) -> ModuleRef {
        let known = &earlier.modules[module.0 as usize];
        let next = self.modules.len();
        let id = self.module(known.module.clone(), sink);
        if id.0 as usize == next {
            self.modules[next].tables.clone_from(&known.tables);
        }
        id
    }

    /// The jitdumps of these processes.
    pub fn jit_dumps(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = &Module> {
        let modules = self.modules.iter().map(|known| &known.module);
        modules.filter(move |module| matches!(module.kind, ModuleKind::JitDump(pid) if is_wanted(pid)))
    }

    pub fn path(&self, module: ModuleRef) -> &str {
        &self.modules[module.0 as usize].module.path
    }

    /// The unwind tables of a module. The target is asked the first time.
    pub fn tables(&mut self, module: ModuleRef, pid: u32, target: &mut impl Target) -> Option<&UnwindTables> {
        let KnownModule { module, tables } = &mut self.modules[module.0 as usize];
        tables.get_or_insert_with(|| target.unwind_tables(module, pid)).as_ref()
    }

    pub fn frame(&mut self, module: Option<ModuleRef>, offset: u64, sink: &mut impl Sink) -> FrameRef {
        let next = FrameRef(self.frames.len() as u32);
        *self.frames.entry((module, offset)).or_insert_with(|| {
            sink.take(Entry::Frame { module, offset });
            next
        })
    }

    pub fn kernel_frame(&mut self, address: u64, sink: &mut impl Sink) -> FrameRef {
        let module = match self.kernel {
            Some(known) => known,
            None => {
                let kernel = Module { kind: ModuleKind::Kernel, path: "[kernel.kallsyms]".into(), build_id: None };
                let module = self.module(kernel, sink);
                *self.kernel.insert(module)
            }
        };
        self.frame(Some(module), address, sink)
    }

    pub fn mark_frame(&mut self, mark: StackMark, sink: &mut impl Sink) -> FrameRef {
        let module = match self.marks {
            Some(known) => known,
            None => {
                let marks = Module { kind: ModuleKind::StackMarks, path: "[stack]".into(), build_id: None };
                let module = self.module(marks, sink);
                *self.marks.insert(module)
            }
        };
        self.frame(Some(module), mark as u64, sink)
    }

    /// The stack of these frames, leaf first. It mostly shares its root end with the stack before it.
    pub fn stack(&mut self, frames: &[FrameRef], sink: &mut impl Sink) -> Option<StackRef> {
        if let Some(&known) = self.whole_stacks.stacks.get(frames) {
            return Some(known);
        }
        let root_first = frames.iter().rev();
        let common = root_first.zip(&self.last_stack).take_while(|(frame, last)| **frame == last.frame).count();
        self.last_stack.truncate(common);
        for &frame in frames.iter().rev().skip(common) {
            let parent = self.last_stack.last().map(|last| last.stack);
            let next = StackRef(self.stacks.len() as u32);
            let stack = *self.stacks.entry((parent, frame)).or_insert_with(|| {
                sink.take(Entry::Stack { parent, frame });
                next
            });
            self.last_stack.push(InternedFrame { frame, stack });
        }
        let stack = self.last_stack.last()?.stack;
        self.whole_stacks.insert(frames, stack);
        Some(stack)
    }
}
