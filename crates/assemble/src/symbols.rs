//! Where names of code come from: the seam between the finisher and whatever reads files.

use std::path::Path;

use stepscope_model::{Build, Capture};
use stepscope_symbolize::{Code, ModuleNames, NamedBy, NamedFrame, Place, Symbolizer, build};

/// Names code, and knows how programs were built.
pub trait Symbols {
    /// Names the code at these offsets of one module; gives one place for each offset, in their order.
    fn name(&mut self, code: &Code, offsets: &[u64]) -> ModuleNames;

    /// Names the global variables at these addresses of a module: offsets from where its start is mapped, in ascending order. Gives one
    /// name for each, or none at all.
    fn name_objects(&mut self, code: &Code, offsets: &[u64]) -> Vec<Option<String>> {
        let _ = (code, offsets);
        Vec::new()
    }

    /// Adds a file that describes the generated code of a process.
    fn add_jit_dump(&mut self, pid: u32, path: &Path) {
        let _ = (pid, path);
    }

    /// How the main program of a capture was built, where that is known.
    fn build_of(&mut self, capture: &Capture) -> Option<Build>;
}

impl Symbols for Symbolizer {
    fn name(&mut self, code: &Code, offsets: &[u64]) -> ModuleNames {
        Symbolizer::name(self, code, offsets)
    }

    fn name_objects(&mut self, code: &Code, offsets: &[u64]) -> Vec<Option<String>> {
        Symbolizer::name_objects(self, code, offsets)
    }

    fn add_jit_dump(&mut self, pid: u32, path: &Path) {
        Symbolizer::add_jit_dump(self, pid, path);
    }

    fn build_of(&mut self, capture: &Capture) -> Option<Build> {
        build::of(capture)
    }
}

/// Knows no names and reads no files: every address becomes `module+0xOFFSET`. For tests and fuzzing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn name(&mut self, code: &Code, offsets: &[u64]) -> ModuleNames {
        let module = match code {
            Code::File { path, .. } => path.display().to_string(),
            Code::Kernel => "[kernel]".to_owned(),
            Code::Vdso => "[vdso]".to_owned(),
            Code::Jit { .. } => "[jit]".to_owned(),
        };
        let place = |offset: &u64| Place {
            address: None,
            frames: vec![NamedFrame {
                function: format!("{module}+{offset:#x}").into(),
                file: None,
                line: None,
                inlined: false,
            }],
            named_by: NamedBy::Nothing,
        };
        ModuleNames { places: offsets.iter().map(place).collect(), ..ModuleNames::default() }
    }

    fn build_of(&mut self, _: &Capture) -> Option<Build> {
        None
    }
}
