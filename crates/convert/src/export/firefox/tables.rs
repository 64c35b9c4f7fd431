//! The tables of one thread: strings, resources, functions, frames and stacks, with only the rows that it uses.

use std::hash::Hash;
use std::io;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, FrameId, Language, ModuleId, StackId, StackNode};

use super::super::json::Json;

/// Category of code or of a marker. The number is its index in the profile's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Anything else. The format requires it first.
    Other,
    /// Machine code of the program and its libraries.
    User,
    /// The kernel.
    Kernel,
    /// Python.
    Python,
    /// Off-CPU.
    OffCpu,
}

/// Number of categories.
pub const CATEGORIES: usize = 5;

impl Category {
    /// The name shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "Other",
            Self::User => "User",
            Self::Kernel => "Kernel",
            Self::Python => "Python",
            Self::OffCpu => "Off-CPU",
        }
    }

    fn of(language: Language) -> Self {
        match language {
            Language::Native => Self::User,
            Language::Kernel => Self::Kernel,
            Language::Python => Self::Python,
        }
    }
}

/// Interned rows, numbered in order of insertion.
struct Interned<T> {
    rows: Vec<T>,
    ids: FxHashMap<T, u32>,
}

impl<T: Copy + Eq + Hash> Interned<T> {
    fn new() -> Self {
        Self { rows: Vec::new(), ids: FxHashMap::default() }
    }

    fn id(&mut self, row: T) -> u32 {
        *self.ids.entry(row).or_insert_with(|| {
            self.rows.push(row);
            self.rows.len() as u32 - 1
        })
    }
}

/// The tables of one thread. Until they are written, they hold indices into the capture.
pub struct Tables<'a> {
    capture: &'a Capture,
    strings: Vec<String>,
    string_ids: FxHashMap<String, u32>,
    resources: Interned<ModuleId>,
    functions: Interned<(&'a str, Option<ModuleId>, Option<&'a str>)>,
    /// A frame and the number of functions that it is inlined into at its address.
    frames: Interned<(FrameId, u32)>,
    stacks: Vec<(Option<u32>, u32)>,
    stack_ids: FxHashMap<StackId, u32>,
}

impl<'a> Tables<'a> {
    /// Empty tables.
    pub fn new(capture: &'a Capture) -> Self {
        Self {
            capture,
            strings: Vec::new(),
            string_ids: FxHashMap::default(),
            resources: Interned::new(),
            functions: Interned::new(),
            frames: Interned::new(),
            stacks: Vec::new(),
            stack_ids: FxHashMap::default(),
        }
    }

    /// The index of a string.
    pub fn string(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.string_ids.get(text) {
            return id;
        }
        let id = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    /// The index of a stack.
    pub fn stack(&mut self, stack: StackId) -> u32 {
        // Up to the nearest node that has an index, then down again.
        let mut new = Vec::new();
        let mut prefix = None;
        for node in self.capture.nodes_of(Some(stack)) {
            if let Some(&id) = self.stack_ids.get(&node) {
                prefix = Some(id);
                break;
            }
            new.push(node);
        }
        for node in new.into_iter().rev() {
            let StackNode { frame, .. } = self.capture.stacks[node.index()];
            let depth = match prefix {
                Some(prefix) if self.capture.frames[frame.index()].inlined => self.inline_depth(prefix) + 1,
                _ => 0,
            };
            let frame = self.frames.id((frame, depth));
            self.stacks.push((prefix, frame));
            let id = self.stacks.len() as u32 - 1;
            self.stack_ids.insert(node, id);
            prefix = Some(id);
        }
        prefix.expect("a stack has at least its own node")
    }

    fn inline_depth(&self, stack: u32) -> u32 {
        let (_, frame) = self.stacks[stack as usize];
        self.frames.rows[frame as usize].1
    }

    /// Writes the tables as entries of the thread.
    pub fn write(mut self, json: &mut Json<'_>) -> io::Result<()> {
        json.object_entry("stackTable", |json| {
            json.entry("length", self.stacks.len())?;
            json.column("prefix", self.stacks.iter().map(|(prefix, _)| prefix))?;
            json.column("frame", self.stacks.iter().map(|(_, frame)| frame))
        })?;
        json.object_entry("frameTable", |json| self.write_frames(json))?;
        json.object_entry("funcTable", |json| self.write_functions(json))?;
        json.object_entry("resourceTable", |json| self.write_resources(json))?;
        json.object_entry("nativeSymbols", |json| {
            json.entry("length", 0)?;
            ["address", "functionSize", "libIndex", "name"].iter().try_for_each(|key| json.column(key, [(); 0]))
        })?;
        json.column("stringArray", &self.strings)
    }

    fn write_frames(&mut self, json: &mut Json<'_>) -> io::Result<()> {
        let capture = self.capture;
        let functions: Vec<u32> = self
            .frames
            .rows
            .iter()
            .map(|(frame, _)| &capture.frames[frame.index()])
            .map(|frame| self.functions.id((&frame.function, frame.module, frame.file.as_deref())))
            .collect();
        let frames = || self.frames.rows.iter().map(|(frame, _)| &capture.frames[frame.index()]);
        let length = functions.len();
        json.entry("length", length)?;
        json.column("address", frames().map(|frame| frame.address.and_then(exact).map_or(-1, |address| address)))?;
        json.column("inlineDepth", self.frames.rows.iter().map(|(_, depth)| depth))?;
        json.column("category", frames().map(|frame| Category::of(frame.language) as u32))?;
        json.column("subcategory", std::iter::repeat_n(0, length))?;
        json.column("func", functions)?;
        json.column("nativeSymbol", std::iter::repeat_n((), length))?;
        json.column("innerWindowID", std::iter::repeat_n(0, length))?;
        json.column("line", frames().map(|frame| frame.line))?;
        json.column("column", std::iter::repeat_n((), length))
    }

    fn write_functions(&mut self, json: &mut Json<'_>) -> io::Result<()> {
        let functions = std::mem::take(&mut self.functions.rows);
        let names: Vec<u32> = functions.iter().map(|(name, ..)| self.string(name)).collect();
        let resources: Vec<i64> = functions
            .iter()
            .map(|(_, module, _)| module.map_or(-1, |module| i64::from(self.resources.id(module))))
            .collect();
        let files: Vec<Option<u32>> = functions.iter().map(|(.., file)| file.map(|file| self.string(file))).collect();
        let length = functions.len();
        json.entry("length", length)?;
        json.column("name", names)?;
        json.column("isJS", std::iter::repeat_n(false, length))?;
        json.column("relevantForJS", std::iter::repeat_n(false, length))?;
        json.column("resource", resources)?;
        json.column("fileName", files)?;
        json.column("lineNumber", std::iter::repeat_n((), length))?;
        json.column("columnNumber", std::iter::repeat_n((), length))
    }

    fn write_resources(&mut self, json: &mut Json<'_>) -> io::Result<()> {
        const LIBRARY: u32 = 1;
        let capture = self.capture;
        let modules = std::mem::take(&mut self.resources.rows);
        let names: Vec<u32> =
            modules.iter().map(|module| self.string(capture.modules[module.index()].name())).collect();
        json.entry("length", modules.len())?;
        // `libs` lists every module of the capture in the same order.
        json.column("lib", modules.iter().map(|module| module.index()))?;
        json.column("name", names)?;
        json.column("host", modules.iter().map(|_| ()))?;
        json.column("type", modules.iter().map(|_| LIBRARY))
    }
}

/// An address that a JavaScript number can hold. Those of the kernel are too large.
fn exact(address: u64) -> Option<i64> {
    const LARGEST: u64 = 1 << 53;
    (address <= LARGEST).then_some(address as i64)
}
