//! GCC's `-ftime-report`, alone or with the list of headers of `-H` before it.
//!
//! The table has a row for each timer: `NAME : USER (..%) SYSTEM (..%) WALL (..%) MEMORY`; GCC 14 and later have `WALL` and memory only. The first
//! column counts: system time is mostly that of reading the clock, which GCC does at each start and end of a timer. Rows named
//! `phase ...` divide the whole. Rows that begin with `|` overlap with others and are left out. All other rows divide the whole once more.
//! So the front end is the phases `setup`, `parsing` and `lang. deferred`, the back end is the rest, and other rows are parts of these.
//!
//! GCC does not time headers. A recording of a build knows how much code each header has, and divides the time of the front end, except for
//! template instantiation, by that: an estimate.

use std::sync::Arc;

use stepscope_model::Capture;
use stepscope_model::compiler_work::CompilerWork;

use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed};
use super::clang_trace::plain_path;
use super::work_tree::{Node, WorkTree};

/// What GCC's `-ftime-report` writes.
pub struct GccReport;

impl InputFormat for GccReport {
    fn name(&self) -> &'static str {
        "gcc-time-report"
    }

    fn describe(&self) -> &'static str {
        "GCC's -ftime-report (standard error), alone or with -H: CPU time of phases and passes of one unit."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        memchr::memmem::find(head.bytes, b"Time variable  ").is_some() || is_list_of_headers(head.bytes)
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        super::read_tree(input, self.name(), |bytes, malformed| parse(bytes, malformed, &|_| None))
    }
}

/// Headers by depth: a table comes after them.
fn is_list_of_headers(bytes: &[u8]) -> bool {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').take(4).collect();
    lines.len() == 4
        && lines[0].starts_with(b". ")
        && lines.iter().all(|line| header(&String::from_utf8_lossy(line)).is_some())
}

impl WorkTree {
    /// Reads GCC's report. `code` says how much code a file has; the unit itself is the empty path.
    pub fn of_gcc_report(bytes: &[u8], code: &dyn Fn(&str) -> Option<u64>) -> Self {
        parse(bytes, &mut Malformed::default(), code)
    }
}

/// A row of the table.
struct Timer<'a> {
    name: &'a str,
    ns: u64,
}

/// Timers of the front end. All others are of the back end.
const FRONT: [&str; 15] = [
    "preprocessing",
    "lexical analysis",
    "parser",
    "name lookup",
    "overload resolution",
    "template instantiation",
    "constant expression evaluation",
    "constraint",
    "deferred",
    "garbage collection",
    "tree gimplify",
    "dump files",
    "inlining heuristics",
    "PCH",
    "module",
];

fn parse(bytes: &[u8], malformed: &mut Malformed, code: &dyn Fn(&str) -> Option<u64>) -> WorkTree {
    let text = String::from_utf8_lossy(bytes);
    let (mut headers, mut timers) = (Vec::new(), Vec::new());
    let mut is_table = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(found) = header(line) {
            headers.push(found);
        } else if line.starts_with("Time variable ") {
            is_table = true;
        } else if let Some((name, values)) = line.rsplit_once(" : ").filter(|_| is_table) {
            let name = name.trim();
            match first_column(values) {
                Some(ns) if name != "TOTAL" => timers.push(Timer { name, ns }),
                Some(_) => {}
                None => malformed.add(index as u64 + 1, "a row lacks its times"),
            }
        }
    }
    tree(&headers, &timers, code)
}

fn tree(headers: &[(usize, String)], timers: &[Timer<'_>], code: &dyn Fn(&str) -> Option<u64>) -> WorkTree {
    let mut tree = WorkTree::new("cpu");
    if timers.is_empty() {
        return tree;
    }
    let phase = |timer: &&Timer<'_>| timer.name.starts_with("phase ");
    let is_early = |timer: &&Timer<'_>| ["phase setup", "phase parsing", "phase lang. deferred"].contains(&timer.name);
    let sum =
        |of: &dyn Fn(&&Timer<'_>) -> bool| timers.iter().filter(of).map(|timer| timer.ns).fold(0, u64::saturating_add);
    let front_ns = sum(&|timer| phase(timer) && is_early(timer));
    let back_ns = sum(&|timer| phase(timer) && !is_early(timer));
    let mut add = |parent: Option<usize>, work: CompilerWork, name: &str, ns: u64| {
        let file = (work == CompilerWork::Header).then(|| Arc::from(name));
        let node = tree.node(Node { parent, work, name: name.into(), file, line: None });
        tree.add(node, ns);
        node
    };
    let passes = |is_front: bool| {
        let in_front = |name: &str| FRONT.iter().any(|front| name.starts_with(front));
        let is_part = |timer: &&Timer<'_>| !phase(timer) && !timer.name.starts_with('|') && timer.ns > 0;
        timers.iter().filter(is_part).filter(move |timer| in_front(timer.name) == is_front)
    };
    let front = add(None, CompilerWork::FrontEnd, "front end", 0);
    let mut left = front_ns;
    for timer in passes(true).filter(|timer| timer.name == "template instantiation") {
        let ns = timer.ns.min(left);
        left -= ns;
        add(Some(front), CompilerWork::Template, timer.name, ns);
    }
    let sizes: Vec<u64> = headers.iter().map(|(_, path)| code(path).unwrap_or(0)).collect();
    let whole = sizes.iter().fold(code("").unwrap_or(0), |sum, size| sum.saturating_add(*size));
    let of_size = |size: u64| (u128::from(left) * u128::from(size) / u128::from(whole.max(1))) as u64;
    let mut rest = left;
    let mut open: Vec<usize> = Vec::new();
    for ((depth, path), size) in headers.iter().zip(sizes) {
        // A list that lacks lines can skip a level.
        open.truncate(depth - 1);
        let ns = of_size(size);
        rest -= ns;
        open.push(add(Some(open.last().copied().unwrap_or(front)), CompilerWork::Header, path, ns));
    }
    if whole == 0 {
        for timer in passes(true).filter(|timer| timer.name != "template instantiation") {
            let ns = timer.ns.min(rest);
            rest -= ns;
            add(Some(front), CompilerWork::Parsing, timer.name, ns);
        }
    }
    add(None, CompilerWork::FrontEnd, "front end", rest);
    let back = add(None, CompilerWork::BackEnd, "back end", 0);
    let mut rest = back_ns;
    for timer in passes(false) {
        let ns = timer.ns.min(rest);
        rest -= ns;
        add(Some(back), CompilerWork::Code, timer.name, ns);
    }
    add(None, CompilerWork::BackEnd, "back end", rest);
    if whole > 0 {
        tree.set_note(
            "GCC does not time headers: their cost is the front end's time, divided by how much code each has.",
        );
    }
    tree
}

/// Depth and path of a line of `-H`.
fn header(line: &str) -> Option<(usize, String)> {
    let depth = line.bytes().take_while(|byte| *byte == b'.').count();
    let path = line[depth..].strip_prefix(' ').filter(|path| depth > 0 && !path.is_empty())?;
    Some((depth, plain_path(path)))
}

/// The first column, in ns: ` 0.02 (  1%)   0.01 (  1%)  ...`.
fn first_column(values: &str) -> Option<u64> {
    let seconds: f64 = values.split_whitespace().next()?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1e9).round() as u64)
}
