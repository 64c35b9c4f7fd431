//! [`CodeLoop`]: what a loop of machine code does, as far as its instructions show it.

use std::ops::Range;

use crate::Module;

/// What a loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopShape {
    /// It goes from element to element, by a constant stride or along pointers, compares each with a value that stays the
    /// same, and ends at one that fits. It writes nothing.
    Search,
    /// It goes from element to element and compares, and does something with those that fit. Passing over the others writes
    /// nothing.
    Scan,
    /// It goes from element to element, compares each with the least or the greatest so far, and keeps the place of that one. It writes nothing,
    /// and computes no keys.
    Least,
    /// It goes from element to element and calls a function for each, and does nothing else.
    Visit,
    /// It follows one chain of pointers or indices to its end without a decision, and writes nothing: what it computes is of the whole chain.
    Chain,
    /// It goes along a column of a matrix, in steps of a row or more, while the loop around it goes from element to element.
    Columns,
    /// It reads the same memory again and again and changes nothing: only another thread can end it.
    Spin,
}

/// A loop of machine code with a known shape. Addresses are those of the module's symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLoop {
    /// What it does.
    pub shape: LoopShape,
    /// The instructions that all elements take, or that wait.
    pub inside: Vec<Range<u64>>,
    /// The instructions just before it and just after it: a few that run once for each time that the loop is entered.
    pub edges: Vec<Range<u64>>,
    /// What it does with elements that fit.
    pub uses: Vec<Range<u64>>,
    /// Whether a function that it calls compares.
    pub calls: bool,
    /// Whether another loop of its function is around it.
    pub is_nested: bool,
}

/// The loops of a module's hot functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleLoops {
    /// Path of the module.
    pub path: String,
    /// Its build-id.
    pub build_id: Option<String>,
    /// Its loops with a known shape.
    pub loops: Vec<CodeLoop>,
    /// Return addresses, in order, of calls that are no wait: they are in no loop, or in one that calls something else, too.
    pub no_waits: Vec<u64>,
    /// Return addresses, in order, of the calls of functions that have no loop.
    pub straight_calls: Vec<u64>,
    /// Return addresses, in order, of the calls in loops.
    pub looped_calls: Vec<u64>,
    /// Functions of a few instructions that only load and compare: without loops, calls, writes and arithmetic with numbers.
    pub questions: Vec<Range<u64>>,
}

/// A loop in the source of an interpreted program, whose lines show what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineLoop {
    /// What it does.
    pub shape: LoopShape,
    /// The lines that all elements take.
    pub inside: Vec<u32>,
    /// Lines that run once for each time that the loop is entered.
    pub edges: Vec<u32>,
    /// What it does with elements that fit.
    pub uses: Vec<u32>,
}

/// The loops of a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLoops {
    /// Path of the file.
    pub path: String,
    /// Its loops with a known shape.
    pub loops: Vec<LineLoop>,
    /// Lines, in order, of functions that have no loop.
    pub straight: Vec<u32>,
    /// Lines, in order, that raise exceptions or begin what catches them.
    pub raises: Vec<u32>,
}

impl ModuleLoops {
    /// Whether these are loops of this module.
    pub fn is_of(&self, module: &Module) -> bool {
        self.build_id == module.build_id && self.path == module.path
    }
}

impl CodeLoop {
    /// Whether an address is one of these.
    pub fn holds(ranges: &[Range<u64>], address: u64) -> bool {
        ranges.iter().any(|range| range.contains(&address))
    }

    /// Bytes of its instructions.
    pub fn length(&self) -> u64 {
        self.inside.iter().map(|range| range.end - range.start).sum()
    }
}
