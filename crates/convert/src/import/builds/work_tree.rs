//! [`WorkTree`]: the time of one compiler or configure step, by what it worked on.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use stepscope_model::compiler_work::CompilerWork;
use stepscope_model::{Capture, EventId, Frame, Language, Module, ModuleId, Sample, Scope, StackId, ThreadId};

/// The time of one compiler or configure step: a tree of what it worked on, and intervals where the source has them.
#[derive(Debug, Clone, Default)]
pub struct WorkTree {
    nodes: Vec<Node>,
    found: HashMap<Node, usize>,
    own_ns: Vec<u64>,
    spans: Vec<(usize, u64, u64, u32)>,
    event: &'static str,
    note: Option<&'static str>,
}

/// What is worked on, below what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub parent: Option<usize>,
    pub work: CompilerWork,
    pub name: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
}

/// An interval of work.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub work: CompilerWork,
    pub name: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl WorkTree {
    /// An empty tree of times of this event.
    pub(super) fn new(event: &'static str) -> Self {
        Self { event, ..Self::default() }
    }

    /// Puts intervals below those that contain their start.
    pub(super) fn of_spans(event: &'static str, mut spans: Vec<Span>) -> Self {
        let mut tree = Self::new(event);
        spans.sort_by_key(|span| (span.start_ns, Reverse(span.end_ns)));
        let mut open: Vec<(usize, u64)> = Vec::new();
        for span in spans {
            while open.last().is_some_and(|&(_, end_ns)| end_ns <= span.start_ns) {
                open.pop();
            }
            let parent = open.last().copied();
            let node = Node {
                parent: parent.map(|(node, _)| node),
                work: span.work,
                name: span.name,
                file: span.file,
                line: span.line,
            };
            let index = tree.node(node);
            // Rounding can move the end of a part behind that of the whole.
            let end_ns = parent.map_or(span.end_ns, |(_, end_ns)| span.end_ns.min(end_ns));
            let own_ns = end_ns - span.start_ns;
            tree.add(index, own_ns);
            if let Some((parent, _)) = parent {
                tree.own_ns[parent] = tree.own_ns[parent].saturating_sub(own_ns);
            }
            tree.spans.push((index, span.start_ns, span.end_ns, open.len() as u32));
            open.push((index, end_ns));
        }
        tree
    }

    /// The place of a node, which is added if it is new.
    pub(super) fn node(&mut self, node: Node) -> usize {
        if let Some(&index) = self.found.get(&node) {
            return index;
        }
        let index = self.nodes.len();
        self.nodes.push(node.clone());
        self.own_ns.push(0);
        self.found.insert(node, index);
        index
    }

    pub(super) fn add(&mut self, node: usize, ns: u64) {
        self.own_ns[node] = self.own_ns[node].saturating_add(ns);
    }

    pub(super) fn set_note(&mut self, note: &'static str) {
        self.note = Some(note);
    }

    /// What readers should know of its times.
    pub fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// The name of the event that its times are of.
    pub fn event(&self) -> &'static str {
        self.event
    }

    /// Whether it has nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Changes the paths of headers.
    pub fn absolute_paths(&mut self, absolute: impl Fn(&str) -> String) {
        for node in self.nodes.iter_mut().filter(|node| node.work == CompilerWork::Header) {
            node.name = absolute(&node.name).into();
            node.file = Some(node.name.clone());
        }
    }

    /// All its time, in ns.
    pub fn total_ns(&self) -> u64 {
        self.own_ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// From the first start to the last end.
    pub fn window(&self) -> Option<(u64, u64)> {
        let start = self.spans.iter().map(|&(_, start, ..)| start).min()?;
        Some((start, self.spans.iter().map(|&(_, _, end, _)| end).max()?))
    }

    /// Time with and below nodes of this kind, in ns.
    pub fn inclusive_ns(&self, work: CompilerWork) -> u64 {
        let mut inside: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            inside.push(node.work == work || node.parent.is_some_and(|parent| inside[parent]));
        }
        inside.iter().zip(&self.own_ns).filter(|(inside, _)| **inside).fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    /// Adds a sample for each node, below a stack. If `total_ns` is given, they are scaled to add up to it, and the rest is
    /// that of the stack itself.
    pub fn add_samples(
        &self,
        capture: &mut Capture,
        thread: ThreadId,
        below: Option<StackId>,
        event: EventId,
        total_ns: Option<u64>,
    ) {
        let all = self.total_ns();
        let scaled = |ns: u64| match total_ns {
            Some(total) if all > 0 => (u128::from(ns) * u128::from(total) / u128::from(all)) as u64,
            _ => ns,
        };
        let mut modules: HashMap<CompilerWork, ModuleId> = HashMap::new();
        let mut stacks: Vec<StackId> = Vec::with_capacity(self.nodes.len());
        let mut sum = 0_u64;
        for (node, own_ns) in self.nodes.iter().zip(&self.own_ns) {
            let module = *modules.entry(node.work).or_insert_with(|| module(capture, node.work.module()));
            let frame = Frame {
                function: node.name.clone(),
                module: Some(module),
                file: node.file.clone(),
                line: node.line,
                inlined: false,
                address: None,
                language: Language::Native,
            };
            let frame = capture.intern_frame(frame);
            let stack = capture.intern_stack_node(node.parent.map_or(below, |parent| Some(stacks[parent])), frame);
            stacks.push(stack);
            let weight = scaled(*own_ns);
            sum = weight.saturating_add(sum);
            add_sample(capture, thread, Some(stack), event, weight);
        }
        let rest = total_ns.map_or(0, |total| total.saturating_sub(sum));
        add_sample(capture, thread, below, event, rest);
    }

    /// Adds its intervals as scopes of a thread, moved by `offset_ns`.
    pub fn add_scopes(&self, capture: &mut Capture, thread: ThreadId, offset_ns: u64) {
        for &(node, start_ns, end_ns, depth) in &self.spans {
            let Node { work, name, .. } = &self.nodes[node];
            let is_plain = matches!(work, CompilerWork::FrontEnd | CompilerWork::BackEnd);
            let name = capture.intern_text(&work.scope(if is_plain { "" } else { name }));
            let at = |ns: u64| ns.saturating_add(offset_ns);
            capture.scopes.push(Scope { thread, name, start_ns: at(start_ns), end_ns: at(end_ns), depth });
        }
    }
}

fn add_sample(capture: &mut Capture, thread: ThreadId, stack: Option<StackId>, event: EventId, weight: u64) {
    if weight > 0 {
        capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight });
    }
}

/// The module of this path, added if it is new.
pub fn module(capture: &mut Capture, path: &str) -> ModuleId {
    match capture.modules.iter().position(|module| module.path == path) {
        Some(index) => ModuleId::from_index(index),
        None => capture.add_module(Module { path: path.to_owned(), ..Module::default() }),
    }
}
