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

/// A module of the log, with its unwind tables once the target had them.
struct KnownModule {
    module: Module,
    tables: Option<UnwindTables>,
    /// For which process the target was asked last, and how often.
    asked: (u32, u32),
}

impl KnownModule {
    /// A process that has ended no longer leads to its files. Other processes may have mapped the same file.
    const MOST_ASKED: u32 = 20;
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
        self.modules.push(KnownModule { module: module.clone(), tables: None, asked: (0, 0) });
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
            self.modules[next].asked = known.asked;
        }
        id
    }

    /// Interns stacks of an earlier log again.
    pub fn carry<'a>(&'a mut self, earlier: &'a Self) -> Carry<'a> {
        let mut frames: Vec<_> = earlier.frames.iter().map(|(&key, &frame)| (frame, key)).collect();
        frames.sort_unstable_by_key(|&(frame, _)| frame.0);
        let mut stacks: Vec<_> = earlier.stacks.iter().map(|(&key, &stack)| (stack, key)).collect();
        stacks.sort_unstable_by_key(|&(stack, _)| stack.0);
        Carry {
            interner: self,
            earlier,
            frames: frames.into_iter().map(|(_, key)| key).collect(),
            stacks: stacks.into_iter().map(|(_, key)| key).collect(),
            known: FxHashMap::default(),
        }
    }

    /// The jitdumps of these processes.
    pub fn jit_dumps(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = &Module> {
        let modules = self.modules.iter().map(|known| &known.module);
        modules.filter(move |module| matches!(module.kind, ModuleKind::JitDump(pid) if is_wanted(pid)))
    }

    pub fn path(&self, module: ModuleRef) -> &str {
        &self.modules[module.0 as usize].module.path
    }

    /// The unwind tables of a module. The target is asked until it has them, at most once in a row for each process.
    pub fn tables(&mut self, module: ModuleRef, pid: u32, target: &mut impl Target) -> Option<&UnwindTables> {
        let KnownModule { module, tables, asked: (last, times) } = &mut self.modules[module.0 as usize];
        if tables.is_none() && *last != pid && *times < KnownModule::MOST_ASKED {
            (*last, *times) = (pid, *times + 1);
            *tables = target.unwind_tables(module, pid);
        }
        tables.as_ref()
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

/// Interns stacks of an earlier log in the next one.
pub(super) struct Carry<'a> {
    interner: &'a mut Interner,
    earlier: &'a Interner,
    /// By number in the earlier log.
    frames: Vec<(Option<ModuleRef>, u64)>,
    stacks: Vec<(Option<StackRef>, FrameRef)>,
    known: FxHashMap<StackRef, StackRef>,
}

impl Carry<'_> {
    /// The number of a stack in the next log.
    pub fn stack(&mut self, stack: StackRef, sink: &mut impl Sink) -> Option<StackRef> {
        if let Some(&known) = self.known.get(&stack) {
            return Some(known);
        }
        let (mut frames, mut next) = (Vec::new(), Some(stack));
        while let Some(at) = next {
            let &(parent, frame) = self.stacks.get(at.0 as usize)?;
            let &(module, offset) = self.frames.get(frame.0 as usize)?;
            let module = module.map(|module| self.interner.module_of(self.earlier, module, sink));
            frames.push(self.interner.frame(module, offset, sink));
            next = parent;
        }
        let carried = self.interner.stack(&frames, sink)?;
        self.known.insert(stack, carried);
        Some(carried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the stacks of a log back, leaf first, as paths of modules and offsets.
    #[derive(Default)]
    struct Log {
        modules: Vec<String>,
        frames: Vec<(Option<ModuleRef>, u64)>,
        stacks: Vec<(Option<StackRef>, FrameRef)>,
    }

    impl Sink for Log {
        fn take(&mut self, entry: Entry) {
            match entry {
                Entry::Module(module) => self.modules.push(module.path),
                Entry::Frame { module, offset } => self.frames.push((module, offset)),
                Entry::Stack { parent, frame } => self.stacks.push((parent, frame)),
                other => panic!("{other:?}"),
            }
        }
    }

    impl Log {
        fn read(&self, stack: StackRef) -> Vec<String> {
            let (mut read, mut next) = (Vec::new(), Some(stack));
            while let Some(at) = next {
                let (parent, frame) = self.stacks[at.0 as usize];
                let (module, offset) = self.frames[frame.0 as usize];
                read.push(format!("{}+{offset}", module.map_or("", |module| &self.modules[module.0 as usize])));
                next = parent;
            }
            read
        }
    }

    fn file(path: &str) -> Module {
        Module { kind: ModuleKind::File, path: path.to_owned(), build_id: None }
    }

    #[test]
    fn stacks_are_the_same_in_the_next_log() {
        let (mut earlier, mut first) = (Interner::default(), Log::default());
        let [program, library] = ["/sim", "/lib"].map(|path| earlier.module(file(path), &mut first));
        let frames = [(library, 1), (program, 2), (program, 3)]
            .map(|(module, offset)| earlier.frame(Some(module), offset, &mut first));
        let deep = earlier.stack(&frames, &mut first).unwrap();
        let kernel = earlier.kernel_frame(9, &mut first);
        let other = earlier.stack(&[kernel, frames[2]], &mut first).unwrap();

        let (mut next, mut second) = (Interner::default(), Log::default());
        next.module(file("/other"), &mut second);
        let mut carry = next.carry(&earlier);
        let carried = [deep, other, deep].map(|stack| carry.stack(stack, &mut second).unwrap());
        assert!(carry.stack(StackRef(77), &mut second).is_none());
        assert_eq!(second.read(carried[0]), ["/lib+1", "/sim+2", "/sim+3"]);
        assert_eq!(second.read(carried[1]), ["[kernel.kallsyms]+9", "/sim+3"]);
        assert_eq!(carried[0], carried[2]);
        let kernel = next.kernel_frame(9, &mut second);
        assert_eq!(next.stack(&[kernel], &mut second), next.stack(&[kernel], &mut second));
        assert_eq!(second.modules.iter().filter(|path| *path == "[kernel.kallsyms]").count(), 1);
    }

    /// A file that only some processes lead to.
    struct LivesIn(u32, Vec<u32>);

    impl Target for LivesIn {
        fn unwind_tables(&mut self, _: &Module, pid: u32) -> Option<UnwindTables> {
            self.1.push(pid);
            let own = std::fs::File::open("/proc/self/exe").ok().filter(|_| pid == self.0)?;
            UnwindTables::of_elf(&object::read::ReadCache::new(own))
        }
    }

    #[test]
    fn a_file_that_an_ended_process_no_longer_leads_to_is_found_by_another_process() {
        let (mut interner, mut log, mut target) = (Interner::default(), Log::default(), LivesIn(5, Vec::new()));
        let module = interner.module(file("/in/a/container"), &mut log);
        let has = [3, 3, 4, 5, 6].map(|pid| interner.tables(module, pid, &mut target).is_some());
        assert_eq!(has, [false, false, false, true, true]);
        assert_eq!(target.1, [3, 4, 5]);
    }
}
