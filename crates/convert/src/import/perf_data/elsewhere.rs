//! The machine on which a `perf.data` file was recorded, from the file and from files that this machine shares with it.

use std::cell::Cell;
use std::fs::{self, File};
use std::rc::Rc;

use linux_perf_event_reader::Endianness;
use object::Object as _;
use object::read::ReadCache;
use stepscope_assemble::{Entry, Module, ModuleKind, Sink, Target, UnwindTables};
use stepscope_symbolize::{Options, Symbolizer, own_vdso};

use super::features::Features;
use super::file::PerfFile;

/// Sources of code and unwind tables.
#[derive(Clone)]
pub(super) struct Elsewhere<'a> {
    features: &'a Features,
    files: Rc<Symbolizer>,
    has_roots: bool,
    architecture: Architecture,
    is_here: bool,
    unwinds: bool,
    doubtful: Rc<Cell<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Architecture {
    Same,
    Other,
}

impl<'a> Elsewhere<'a> {
    pub fn new(file: &'a PerfFile, symbols: &Options) -> Self {
        let features = &file.features;
        let same = features.architecture.as_deref().is_none_or(|name| name == std::env::consts::ARCH);
        let same = same && file.endian == Endianness::NATIVE;
        let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            features,
            files: Rc::new(Symbolizer::new(symbols.clone())),
            has_roots: !symbols.roots.is_empty(),
            architecture: if same { Architecture::Same } else { Architecture::Other },
            is_here: features.host.as_deref().is_none_or(|host| host == here.trim()),
            unwinds: same && file.attributes.iter().any(|attribute| attribute.copies_stack),
            doubtful: Rc::default(),
        }
    }

    pub fn same_architecture(&self) -> bool {
        self.architecture == Architecture::Same
    }

    /// Notes for readers of the results.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.architecture == Architecture::Other {
            let name = self.features.architecture.as_deref().unwrap_or("another architecture");
            notes.push(format!(
                "Recorded on {name}: copied stacks can be unwound only there. Frame-pointer call chains are kept."
            ));
        }
        if self.doubtful.get() > 0 {
            notes.push(format!(
                "Recorded on another machine ({}): {} files have no build-id in the recording, so files of the same name \
                 here may differ. If names look wrong, import on that machine.",
                self.features.host.as_deref().unwrap_or_default(),
                self.doubtful.get()
            ));
        }
        notes
    }

    fn build_id(&self, module: &Module) -> Option<Vec<u8>> {
        let known = || self.features.build_ids.get(module.path.as_bytes()).cloned();
        module.build_id.clone().or_else(known)
    }
}

impl Target for Elsewhere<'_> {
    fn unwind_tables(&mut self, module: &Module, _: u32) -> Option<UnwindTables> {
        if !self.unwinds {
            return None;
        }
        match module.kind {
            ModuleKind::File => {
                let path = self.files.find_file(module.path.as_ref(), self.build_id(module).as_deref())?;
                UnwindTables::of_elf(&ReadCache::new(File::open(path).ok()?))
            }
            ModuleKind::Vdso if self.has_roots => {
                let own = own_vdso()?;
                let recorded = self.features.vdso_build_id.as_deref();
                let is_it = |recorded: &[u8]| {
                    let id = object::File::parse(&*own).ok().and_then(|file| file.build_id().ok().flatten());
                    id.is_some_and(|id| recorded.starts_with(id))
                };
                recorded.is_none_or(is_it).then(|| UnwindTables::of_elf(&*own))?
            }
            _ => None,
        }
    }
}

/// Adds the build-ids that the file lists by path to modules on their way to a sink.
pub(super) struct Modules<'a, S> {
    pub inner: S,
    elsewhere: Elsewhere<'a>,
}

impl<'a, S> Modules<'a, S> {
    pub fn new(inner: S, elsewhere: Elsewhere<'a>) -> Self {
        Self { inner, elsewhere }
    }
}

impl<S: Sink> Sink for Modules<'_, S> {
    fn take(&mut self, entry: Entry) {
        let Entry::Module(mut module) = entry else { return self.inner.take(entry) };
        if module.kind == ModuleKind::File {
            module.build_id = self.elsewhere.build_id(&module);
            if module.build_id.is_none() && !self.elsewhere.is_here {
                self.elsewhere.doubtful.set(self.elsewhere.doubtful.get() + 1);
            }
        }
        self.inner.take(Entry::Module(module));
    }
}
