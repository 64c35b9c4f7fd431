//! [`Functions`]: the functions of a capture, with ownership and kind of code.
//!
//! One function has many frames, at different lines and addresses. Two frames are of the same function if their names and
//! the file names of their modules are exactly equal. (A join on a part of a name attributes cost to the wrong function:
//! erratum 5 of the Gazebo study.) For imported stacks without modules, the name alone decides.
//!
//! A function is owned if any of its frames is, because debug information may name a header for some of its lines.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Frame, FrameId, FrameKind, Module, ModuleId, StackId};

use crate::query::family::Family;
use crate::query::frame_kind;
use crate::query::installed::{
    Standing, is_in_package, is_standard_python, library_of_module, library_of_script, standings,
};
use crate::query::ownership::Owned;
use crate::query::qualified_name::{own_name, python_function};

/// What tables show for samples without a stack.
pub const NO_STACK: &str = "(no stack)";

/// The function that a stack's cost is attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caller {
    /// The nearest one that costs are attributed to.
    Function(FunctionId),
    /// The stack has none.
    NotOwned,
    /// There is no stack.
    NoStack,
}

/// Name of the row of stacks without an owned caller.
pub const NO_OWNER: &str = "(no owned caller)";

/// A row of [`Functions`]. Means nothing for another capture: join captures by [`Function::identity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u32);

impl FunctionId {
    /// The row's index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its full name, as the capture has it.
    pub name: Arc<str>,
    /// File name of its module; empty where unknown.
    pub module: Arc<str>,
    /// Whether the user's team can change it.
    pub owned: bool,
    /// What kind of code it is.
    pub kind: FrameKind,
}

impl Function {
    /// What makes it the same function in another capture.
    pub fn identity(&self) -> Identity {
        Identity { name: self.name.clone(), module: self.module.clone() }
    }
}

/// What makes functions of two captures the same: the exact full name and the module's file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Full name.
    pub name: Arc<str>,
    /// File name of the module; empty where unknown.
    pub module: Arc<str>,
}

/// The functions of one capture, with everything that does not depend on the samples.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    functions: Vec<Function>,
    of_frame: Vec<FunctionId>,
    nearest_owned: Vec<Option<FunctionId>>,
    nearest_program: Vec<Option<FunctionId>>,
    /// Whether each function is of the program; empty where ownership is configured.
    of_program: Vec<bool>,
    /// Where each function's code stands; empty where ownership is configured, or all of it is installed.
    standings: Vec<Standing>,
    /// The library of each function that has no owner's code in its module, and is of no run-time library.
    libraries: Vec<Option<Arc<str>>>,
    outermost: Vec<bool>,
    any_owned: bool,
    owning_nothing: Vec<String>,
    groups: FxHashMap<FunctionId, Arc<str>>,
}

impl Functions {
    /// Tells the capture's functions apart and judges each one.
    pub fn of(capture: &Capture, owned: &Owned) -> Self {
        let mut found = Self { any_owned: !owned.is_empty(), ..Self::default() };
        found.tell_apart(capture, owned);
        found.nearest_owned = found.nearest(capture, |id| found.get(id).owned);
        if !found.any_owned {
            // Where Python functions have names, they are the program, and the interpreter and native packages are libraries.
            let has_python = found.functions.iter().any(|function| function.kind == FrameKind::Python);
            // A script makes packages libraries, too.
            let has_script = found.functions.iter().any(is_of_script);
            let is_library = |one: &Function| {
                (has_python && (is_python_library(one) || is_python_extension(one)))
                    || (has_script && (is_of_package(one) || is_generated(one)))
            };
            let of_program = found.functions.iter().map(|one| is_of_program(one) && !is_library(one)).collect();
            found.of_program = of_program;
            let of_frame: Vec<usize> = found.of_frame.iter().map(|id| id.index()).collect();
            if has_script {
                let modules: Vec<bool> = capture.modules.iter().map(|module| is_in_package(&module.path)).collect();
                let is_of_package = |frame: &Frame| frame.module.is_some_and(|module| modules[module.index()]);
                let frames = capture.frames.iter().zip(&of_frame).filter(|(frame, _)| is_of_package(frame));
                frames.for_each(|(_, function)| found.of_program[*function] = false);
            }
            found.standings = standings(capture, &of_frame, &found.of_program);
            // A template of an installed header is a library, like the code in a module of its own.
            for (is_of_program, standing) in found.of_program.iter_mut().zip(&found.standings) {
                *is_of_program &= *standing != Standing::Header;
            }
            found.nearest_program = found.nearest(capture, |id| found.of_program[id.index()]);
        }
        found.libraries = found.find_libraries(capture);
        found.outermost = found.find_outermost(capture);
        let groups = found.all().filter_map(|(id, function)| Some((id, owned.group_of(&function.name)?.into())));
        found.groups = groups.collect();
        found.owning_nothing = owned.unmatched(
            found.functions.iter().map(|function| &*function.name),
            capture.modules.iter().map(|module| module.path.as_str()),
            capture.frames.iter().filter_map(source_file),
        );
        found
    }

    /// All functions, in the order of their first frames.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (FunctionId, &Function)> {
        self.functions.iter().enumerate().map(|(index, function)| (FunctionId(index as u32), function))
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether the capture has no frames.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function of this row.
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// The function of a frame.
    pub fn of_frame(&self, frame: FrameId) -> FunctionId {
        self.of_frame[frame.index()]
    }

    /// The function at a stack's node.
    pub fn of_node(&self, capture: &Capture, node: StackId) -> FunctionId {
        self.of_frame(capture.stacks[node.index()].frame)
    }

    /// Whether ownership is configured.
    pub fn ownership_known(&self) -> bool {
        self.any_owned
    }

    /// The function that a stack's cost is [attributed](Self::attributed) to, or why there is none.
    pub fn caller(&self, stack: Option<StackId>) -> Caller {
        stack.map_or(Caller::NoStack, |stack| self.attributed(stack).map_or(Caller::NotOwned, Caller::Function))
    }

    /// Name of the row of stacks without a function that costs are attributed to.
    pub fn no_owner(&self) -> &'static str {
        if self.any_owned { NO_OWNER } else { "(only run-time libraries)" }
    }

    /// Whether costs are attributed to this function: an owned one, or without configured ownership one of the program.
    pub fn is_owner(&self, id: FunctionId) -> bool {
        if self.any_owned { self.get(id).owned } else { self.of_program[id.index()] }
    }

    /// Whether a function is of an installed library, while other code of the program is not installed. Never where ownership is configured.
    pub fn is_installed(&self, id: FunctionId) -> bool {
        self.standings.get(id.index()).is_some_and(|standing| *standing != Standing::Own)
    }

    /// The user's group that this function belongs to.
    pub fn group(&self, id: FunctionId) -> Option<&Arc<str>> {
        self.groups.get(&id)
    }

    /// The family of a function outside of owned code, if it is of one.
    pub fn family(&self, id: FunctionId) -> Option<Family> {
        let by_user = self.group(id).map(|group| Family::Group(group.clone()));
        let Function { name, module, kind, .. } = self.get(id);
        let of_library = || self.libraries[id.index()].clone().map(Family::Library);
        by_user.or_else(|| Family::built_in(name, module, *kind)).or_else(of_library)
    }

    /// The patterns of ownership that own nothing in this capture.
    pub fn owning_nothing(&self) -> &[String] {
        &self.owning_nothing
    }

    /// Patterns for the namespaces (crates, packages) and the Python files of the program that are at most places of the call tree,
    /// at most `most` of them. What is installed, and the recorder's own libraries, are not the user's.
    pub fn largest_namespaces(&self, capture: &Capture, most: usize) -> Vec<String> {
        let mut places = vec![0_usize; self.functions.len()];
        for node in &capture.stacks {
            places[self.of_frame(node.frame).index()] += 1;
        }
        let mut sizes: FxHashMap<String, usize> = FxHashMap::default();
        for ((id, function), places) in self.all().zip(places) {
            let pattern = match function.kind {
                FrameKind::Native if self.family(id) != Some(Family::Recording) => {
                    namespace_of(&function.name).map(|namespace| format!("{namespace}::*"))
                }
                FrameKind::Python if !self.is_installed(id) => python_function(&function.name)
                    .map(|(_, file)| format!("{}:*", file.rsplit('/').next().unwrap_or(file))),
                _ => None,
            };
            if let Some(pattern) = pattern {
                *sizes.entry(pattern).or_default() += places;
            }
        }
        let mut sizes: Vec<(String, usize)> = sizes.into_iter().collect();
        sizes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sizes.into_iter().take(most).map(|(pattern, _)| pattern).collect()
    }

    /// The first owned function from a stack's leaf to its root.
    pub fn nearest_owned(&self, stack: StackId) -> Option<FunctionId> {
        self.nearest_owned[stack.index()]
    }

    /// The function that a stack's cost is attributed to: the nearest owned one. Without configured ownership, the nearest
    /// one of the program, skipping the kernel, run-time libraries and allocators.
    pub fn attributed(&self, stack: StackId) -> Option<FunctionId> {
        let nearest = if self.any_owned { &self.nearest_owned } else { &self.nearest_program };
        nearest[stack.index()]
    }

    /// Whether the function at this node is at no node between it and the root. A function's inclusive weight is the sum
    /// over the subtrees of such nodes, so that recursion counts once.
    pub fn is_outermost(&self, node: StackId) -> bool {
        self.outermost[node.index()]
    }

    /// One flag per node: whether a function with a flag is on the path from the root to it.
    pub(crate) fn paths_through(&self, capture: &Capture, flags: &[bool]) -> Vec<bool> {
        let mut passes: Vec<bool> = Vec::with_capacity(capture.stacks.len());
        for node in &capture.stacks {
            let above = node.parent.is_some_and(|parent| passes[parent.index()]);
            passes.push(above || flags[self.of_frame(node.frame).index()]);
        }
        passes
    }

    fn tell_apart(&mut self, capture: &Capture, owned: &Owned) {
        let modules = ModuleNames::of(capture, owned);
        let mut rows: FxHashMap<(&str, u32), FunctionId> = FxHashMap::default();
        self.of_frame.reserve(capture.frames.len());
        for frame in &capture.frames {
            let module = frame.module.map_or(ModuleNames::NONE, |module| modules.name_of[module.index()]);
            let id = *rows.entry((&frame.function, module)).or_insert_with(|| {
                self.functions.push(Function {
                    name: frame.function.clone(),
                    module: modules.names[module as usize].clone(),
                    owned: owned.owns_name(&frame.function),
                    kind: frame_kind::of(frame, module_of(capture, frame)),
                });
                FunctionId(self.functions.len() as u32 - 1)
            });
            let function = &mut self.functions[id.index()];
            function.owned = function.owned || modules.owns(frame.module) || owns_source(owned, frame);
            self.of_frame.push(id);
        }
        for function in self.functions.iter_mut().filter(|function| function.owned) {
            function.owned = !owned.excepts(&function.name);
        }
    }

    /// For each node the first function from there to the root that is `wanted`.
    fn nearest(&self, capture: &Capture, wanted: impl Fn(FunctionId) -> bool) -> Vec<Option<FunctionId>> {
        let mut nearest: Vec<Option<FunctionId>> = Vec::with_capacity(capture.stacks.len());
        for node in &capture.stacks {
            let function = self.of_frame(node.frame);
            let above = node.parent.and_then(|parent| nearest[parent.index()]);
            nearest.push(if wanted(function) { Some(function) } else { above });
        }
        nearest
    }

    /// The library of each function that has one.
    fn find_libraries(&self, capture: &Capture) -> Vec<Option<Arc<str>>> {
        let mut has_owner = vec![false; capture.modules.len()];
        let frames = || capture.frames.iter().zip(&self.of_frame);
        for module in frames().filter(|(_, id)| self.is_owner(**id)).filter_map(|(frame, _)| frame.module) {
            has_owner[module.index()] = true;
        }
        let names: Vec<Option<Arc<str>>> =
            capture.modules.iter().map(|module| Some(library_of_module(&module.path)?.into())).collect();
        let mut libraries = vec![None; self.functions.len()];
        for (frame, id) in frames().filter(|(_, id)| !self.is_owner(**id)) {
            let function = self.get(*id);
            let name = match (function.kind, frame.module) {
                (FrameKind::Python, _) => {
                    python_function(&function.name).and_then(|(_, file)| Some(library_of_script(file)?.into()))
                }
                (FrameKind::Native | FrameKind::Unknown, Some(module))
                    if !has_owner[module.index()] && !is_of_cpython(function) =>
                {
                    names[module.index()].clone()
                }
                _ => None,
            };
            libraries[id.index()] = libraries[id.index()].take().or(name);
        }
        libraries
    }

    /// Walks the tree once, depth first, with the functions on the path to the current node.
    fn find_outermost(&self, capture: &Capture) -> Vec<bool> {
        let children = Children::of(capture);
        let mut outermost = vec![false; capture.stacks.len()];
        let mut on_path = vec![false; self.functions.len()];
        children.walk(|step| match step {
            Step::Enter(node) => {
                let on_path = &mut on_path[self.of_node(capture, node).index()];
                outermost[node.index()] = !*on_path;
                *on_path = true;
            }
            Step::Leave(node) if outermost[node.index()] => {
                on_path[self.of_node(capture, node).index()] = false;
            }
            Step::Leave(_) => {}
        });
        outermost
    }
}

/// Whether a function is of the program: not of the kernel, a run-time library, an allocator or a library of a known family,
/// such as zlib. Code without a name counts where its module is known.
fn is_of_program(function: &Function) -> bool {
    let is_code = match function.kind {
        FrameKind::Native | FrameKind::Python => true,
        FrameKind::Unknown => !function.module.is_empty(),
        _ => false,
    };
    is_code && !Family::is_library(&function.name, &function.module, function.kind)
}

fn is_of_package(function: &Function) -> bool {
    python_function(&function.name).is_some_and(|(_, file)| is_in_package(file))
}

/// Whether it is a Python function without a file: a package made it at run time, as `dataclass` does.
fn is_generated(function: &Function) -> bool {
    python_function(&function.name).is_some_and(|(_, file)| file.starts_with('<'))
}

/// Whether it is a Python function that is neither installed nor of the standard library.
fn is_of_script(function: &Function) -> bool {
    let is_file = |file: &str| file.starts_with('/') && !is_standard_python(file) && !is_in_package(file);
    python_function(&function.name).is_some_and(|(_, file)| is_file(file))
}

/// Whether a function is of a native module of a Python package, such as NumPy's.
fn is_python_extension(function: &Function) -> bool {
    function.kind != FrameKind::Python && (function.module.contains(".cpython-") || function.module.contains(".abi3."))
}

/// Whether a function is of CPython.
pub(crate) fn is_of_cpython(function: &Function) -> bool {
    /// Beginnings of modules that hold CPython and its standard library.
    const MODULES: [&str; 4] = ["libpython", "python3", "_json", "_sqlite3"];
    MODULES.iter().any(|start| function.module.starts_with(start))
}

/// Whether a function is of CPython or its standard library.
fn is_python_library(function: &Function) -> bool {
    match python_function(&function.name) {
        Some((_, file)) => is_standard_python(file),
        None => is_of_cpython(function),
    }
}

/// The outermost namespace of a function (its crate, or its class where it has none).
pub(crate) fn namespace_of(name: &str) -> Option<String> {
    own_name(name).split_once("::").filter(|(first, _)| is_word(first)).map(|(namespace, _)| namespace.to_owned())
}

/// Whether it is a name as people write them, and not `(anonymous namespace)`, `{closure}` or what is left of a cut one.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_alphanumeric() || character == '_')
}

fn module_of<'a>(capture: &'a Capture, frame: &Frame) -> Option<&'a Module> {
    Some(&capture.modules[frame.module?.index()])
}

fn owns_source(owned: &Owned, frame: &Frame) -> bool {
    source_file(frame).is_some_and(|file| owned.owns_source(file))
}

/// The source file of a frame; that of a Python function may be a part of its name.
fn source_file(frame: &Frame) -> Option<&str> {
    frame.file.as_deref().or_else(|| python_function(&frame.function).map(|(_, file)| file))
}

/// The modules' file names, each once, and which modules are owned.
struct ModuleNames {
    names: Vec<Arc<str>>,
    name_of: Vec<u32>,
    owned: Vec<bool>,
}

impl ModuleNames {
    /// The name of no module.
    const NONE: u32 = 0;

    fn of(capture: &Capture, owned: &Owned) -> Self {
        let mut names: Vec<Arc<str>> = vec!["".into()];
        let mut rows: FxHashMap<&str, u32> = FxHashMap::default();
        let name_of = capture.modules.iter().map(|module| {
            let name = stable_name(module.name());
            *rows.entry(name).or_insert_with(|| {
                names.push(name.into());
                names.len() as u32 - 1
            })
        });
        Self {
            name_of: name_of.collect(),
            owned: capture.modules.iter().map(|module| owned.owns_module(&module.path)).collect(),
            names,
        }
    }

    fn owns(&self, module: Option<ModuleId>) -> bool {
        module.is_some_and(|module| self.owned[module.index()])
    }
}

/// The name of a module's file. Those of our preloaded libraries differ in each recording, so that comparisons would find no pairs.
fn stable_name(name: &str) -> &str {
    const OURS: [(&str, &str); 2] =
        [("stepscope-python-", "stepscope-python-*.so"), ("stepscope-heap-", "stepscope-heap-*.so")];
    OURS.iter().find(|(start, _)| name.starts_with(start)).map_or(name, |(_, stable)| stable)
}

/// `FILE:LINE` of a frame, as far as it is known.
pub(crate) fn source_of(capture: &Capture, frame: FrameId) -> String {
    let frame = &capture.frames[frame.index()];
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_string(),
        (None, _) => String::new(),
    }
}

/// The call tree seen from the root: each node's children.
pub(crate) struct Children {
    first: Vec<Option<StackId>>,
    next: Vec<Option<StackId>>,
    root: Option<StackId>,
}

/// A step of a walk through the call tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// On the way down, before the node's children.
    Enter(StackId),
    /// On the way up, after them.
    Leave(StackId),
}

impl Children {
    pub(crate) fn of(capture: &Capture) -> Self {
        let count = capture.stacks.len();
        let mut children = Self { first: vec![None; count], next: vec![None; count], root: None };
        // From the last to the first, so that each list is in the order of the nodes.
        for (index, node) in capture.stacks.iter().enumerate().rev() {
            let head = match node.parent {
                Some(parent) => &mut children.first[parent.index()],
                None => &mut children.root,
            };
            children.next[index] = head.replace(StackId::from_index(index));
        }
        children
    }

    /// Calls `visit` on entering and on leaving every node. Not recursive: stacks may be deeper than ours.
    pub(crate) fn walk(&self, mut visit: impl FnMut(Step)) {
        let mut path: Vec<StackId> = Vec::new();
        let mut next = self.root;
        loop {
            while let Some(node) = next {
                visit(Step::Enter(node));
                path.push(node);
                next = self.first[node.index()];
            }
            let Some(node) = path.pop() else { return };
            visit(Step::Leave(node));
            next = self.next[node.index()];
        }
    }
}

#[cfg(test)]
mod tests;
