//! [`CallTree`]: what flame graphs draw.

use std::sync::Arc;

/// A weighed call tree, made by an analysis and drawn by a view.
///
/// Node 0 is the whole; every other node's parent comes before it. Children are in the order they are drawn
/// (by name, as flame graphs are, so that equal trees look equal).
#[derive(Debug, Clone, PartialEq)]
pub struct CallTree {
    /// Heading, e.g. `On-CPU time`.
    pub title: String,
    /// A second line: capture, filters, order of the stacks.
    pub subtitle: String,
    /// Unit of the weights: `ns`, `cycles`, `samples`, ...
    pub unit: String,
    /// Nodes, parents before children. Never empty.
    pub nodes: Vec<CallNode>,
    /// Whether leaves are at the root (callers grow from them).
    pub inverted: bool,
}

/// A function, called by the parent's.
#[derive(Debug, Clone, PartialEq)]
pub struct CallNode {
    /// The caller's node; absent for node 0 only.
    pub parent: Option<u32>,
    /// Full name of the function.
    pub name: Arc<str>,
    /// Module's file name, empty where unknown.
    pub module: Arc<str>,
    /// Source file and line, empty where unknown.
    pub source: Arc<str>,
    /// What kind of code it is, for colours.
    pub kind: FrameKind,
    /// The user's team can change it.
    pub owned: bool,
    /// Inlined into its parent.
    pub inlined: bool,
    /// Weight of the samples that pass through here.
    pub total: u64,
    /// Weight of the samples that end here.
    pub own: u64,
}

/// What kind of code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// The whole, a thread, a process: not a function.
    Group,
    /// Program or library code.
    Native,
    /// C, C++ and threading run-time libraries, and the dynamic linker.
    Runtime,
    /// Memory allocation.
    Allocator,
    /// Kernel code.
    Kernel,
    /// Python code.
    Python,
    /// Code without a name.
    Unknown,
}

impl FrameKind {
    /// The name used in tables (`category`) and legends.
    pub fn name(self) -> &'static str {
        match self {
            FrameKind::Group => "group",
            FrameKind::Native => "native",
            FrameKind::Runtime => "runtime",
            FrameKind::Allocator => "allocator",
            FrameKind::Kernel => "kernel",
            FrameKind::Python => "python",
            FrameKind::Unknown => "unknown",
        }
    }
}
