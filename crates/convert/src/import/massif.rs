//! Files of massif (`valgrind --tool=massif`): `massif.out.PID`.
//!
//! A file is text: `desc:`, `cmd:`, `time_unit:` (`i` instructions, `ms`, or `B` bytes allocated), then snapshots. Each has
//! its time, the bytes of the heap and of the allocator's overhead, and for some a *heap tree*: who held these bytes. A line of
//! a tree is `nCHILDREN: BYTES NAME`, indented by its depth, from the allocator to the callers. Small nodes are one node
//! (`in 12 places, all below massif's threshold`).
//!
//! Every snapshot is a reading of the heap. Every tree gives the bytes that live at its time by stack; the one marked
//! `peak` gives the peak. massif counts bytes, not allocations, and takes most peaks within 1 % (`--peak-inaccuracy`).

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use stepscope_model::{
    Allocation, Capture, Counter, Dimension, DimensionStatus, Frame, FrameId, Module, ModuleId, Process, ProcessId,
    StackId,
};

use super::heap_sums::{empty, name_program, signed};
use super::text::{number, text};
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_record};

/// Files of massif.
pub struct Massif;

impl InputFormat for Massif {
    fn name(&self) -> &'static str {
        "massif"
    }

    fn describe(&self) -> &'static str {
        "Files of valgrind's massif (`massif.out.PID`): the heap over time, and who held it at the peak."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        let mut lines = head.lines();
        let mut begins = |start: &[u8]| lines.next().is_some_and(|line| line.starts_with(start));
        begins(b"desc: ") && begins(b"cmd: ") && begins(b"time_unit: ")
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reader = Reader::new();
        let malformed = each_record(input, |line| reader.record(line))?;
        reader.finish(malformed, &file)
    }
}

/// What massif's times are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Instructions,
    Milliseconds,
    Bytes,
}

/// A snapshot whose lines are being read.
#[derive(Default)]
struct Snapshot {
    time: u64,
    heap: Option<u64>,
    overhead: u64,
    has_tree: bool,
    is_peak: bool,
    tree: Vec<TreeNode>,
    /// The last node and those that contain it.
    open: Vec<usize>,
}

struct TreeNode {
    depth: usize,
    /// Bytes that no child has.
    own_bytes: u64,
    frame: Option<FrameId>,
    /// The callee.
    parent: Option<usize>,
}

struct Reader {
    capture: Capture,
    process: ProcessId,
    unit: TimeUnit,
    command: String,
    snapshot: Option<Snapshot>,
    snapshots: u64,
    trees: u64,
    has_peak: bool,
    last_time_ns: u64,
    /// Time of the last tree.
    tree_time_ns: u64,
    modules: BTreeMap<String, ModuleId>,
    /// Bytes of each stack at the last tree.
    live: BTreeMap<Option<StackId>, i64>,
    /// The same at the peak.
    at_peak: BTreeMap<Option<StackId>, i64>,
}

impl Reader {
    fn new() -> Self {
        let mut capture = Capture::default();
        let process = capture.add_process(Process::default());
        Self {
            capture,
            process,
            unit: TimeUnit::Instructions,
            command: String::new(),
            snapshot: None,
            snapshots: 0,
            trees: 0,
            has_peak: false,
            last_time_ns: 0,
            tree_time_ns: 0,
            modules: BTreeMap::new(),
            live: BTreeMap::new(),
            at_peak: BTreeMap::new(),
        }
    }

    fn record(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"desc: ") {
            return Ok(());
        }
        if let Some(command) = line.strip_prefix(b"cmd: ") {
            self.command = text(command.trim_ascii()).into_owned();
            return Ok(());
        }
        if let Some(unit) = line.strip_prefix(b"time_unit: ") {
            self.unit = match unit.trim_ascii() {
                b"i" => TimeUnit::Instructions,
                b"ms" => TimeUnit::Milliseconds,
                b"B" => TimeUnit::Bytes,
                _ => return Err("its unit of time is unknown"),
            };
            return Ok(());
        }
        let trimmed = line.trim_ascii_start();
        if trimmed.first() == Some(&b'n') {
            return self.node(trimmed, line.len() - trimmed.len());
        }
        let equals = memchr::memchr(b'=', line).ok_or("it is neither a field nor a node of a heap tree")?;
        let (name, value) = (&line[..equals], &line[equals + 1..]);
        let value_of = || number(value).ok_or("its value is not a number");
        if name == b"snapshot" {
            self.end_snapshot();
            self.snapshot = Some(Snapshot::default());
            return value_of().map(drop);
        }
        let snapshot = self.snapshot.as_mut().ok_or("it belongs to no snapshot")?;
        match name {
            b"time" => snapshot.time = value_of()?,
            b"mem_heap_B" => snapshot.heap = Some(value_of()?),
            b"mem_heap_extra_B" => snapshot.overhead = value_of()?,
            b"mem_stacks_B" => drop(value_of()?),
            b"heap_tree" => {
                snapshot.has_tree = value != b"empty";
                snapshot.is_peak = value == b"peak";
            }
            _ => return Err("it is no field of a snapshot"),
        }
        Ok(())
    }

    /// `n2: 101888 0x1092D3: hold() (alloc.cc:18)`
    fn node(&mut self, node: &[u8], depth: usize) -> Result<(), &'static str> {
        const FAULT: &str = "it is not a node of a heap tree";
        let colon = memchr::memchr(b':', node).ok_or(FAULT)?;
        number(&node[1..colon]).ok_or(FAULT)?;
        let rest = node[colon + 1..].trim_ascii();
        let space = memchr::memchr(b' ', rest).ok_or(FAULT)?;
        let bytes = number(&rest[..space]).ok_or(FAULT)?;
        // The root is the allocator.
        let frame = if depth == 0 { None } else { self.frame(&text(rest[space + 1..].trim_ascii())) };
        let snapshot = self.snapshot.as_mut().filter(|snapshot| snapshot.has_tree).ok_or("it belongs to no tree")?;
        let Snapshot { tree, open, .. } = snapshot;
        while open.last().is_some_and(|&last| tree[last].depth >= depth) {
            open.pop();
        }
        let parent = open.last().copied();
        match parent {
            Some(parent) => tree[parent].own_bytes = tree[parent].own_bytes.saturating_sub(bytes),
            None if depth > 0 => return Err("its callee is missing"),
            None => {}
        }
        open.push(tree.len());
        tree.push(TreeNode { depth, own_bytes: bytes, frame, parent });
        Ok(())
    }

    /// The frame of a node; `None` for a sum over several places.
    fn frame(&mut self, name: &str) -> Option<FrameId> {
        let (address, rest) = name.split_once(": ")?;
        let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
        let (function, place) =
            match rest.rsplit_once(" (").and_then(|(name, place)| Some((name, place.strip_suffix(')')?))) {
                Some((function, place)) => (function, Some(place)),
                None => (rest, None),
            };
        let in_module = place.and_then(|place| place.strip_prefix("in "));
        let module = in_module.map(|path| {
            let add = || self.capture.add_module(Module { path: path.to_owned(), ..Module::default() });
            *self.modules.entry(path.to_owned()).or_insert_with(add)
        });
        let source = place.filter(|_| in_module.is_none()).and_then(|place| place.rsplit_once(':'));
        let line = source.and_then(|(_, line)| line.parse().ok());
        let file = source.map(|(file, _)| self.capture.intern_text(file));
        let of = module.map(|module| self.capture.modules[module.index()].name().to_owned());
        let function = match (function, of) {
            ("???", Some(module)) => format!("{module}+{address:#x}"),
            ("???", None) => format!("{address:#x}"),
            (function, _) => function.to_owned(),
        };
        // Addresses of inlined functions are the same.
        let frame = Frame { module, file, line, address: Some(address), ..Frame::named(function) };
        Some(self.capture.intern_frame(frame))
    }

    fn end_snapshot(&mut self) {
        let Some(snapshot) = self.snapshot.take() else { return };
        let Some(heap) = snapshot.heap else { return };
        self.snapshots += 1;
        let time_ns = match self.unit {
            TimeUnit::Milliseconds => snapshot.time.saturating_mul(1_000_000),
            TimeUnit::Instructions | TimeUnit::Bytes => snapshot.time,
        };
        self.last_time_ns = self.last_time_ns.max(time_ns);
        for (name, value) in [("heap_live_bytes", heap), ("heap_overhead_bytes", snapshot.overhead)] {
            let name = self.capture.intern_text(name);
            let value = signed(value);
            self.capture.counters.push(Counter { time_ns, process: Some(self.process), thread: None, name, value });
        }
        if snapshot.has_tree && !snapshot.tree.is_empty() {
            self.trees += 1;
            self.has_peak |= snapshot.is_peak;
            self.tree(&snapshot, time_ns);
        }
    }

    /// Rows of what each stack holds at the time of a tree, also of those that hold nothing any more.
    fn tree(&mut self, snapshot: &Snapshot, time_ns: u64) {
        let mut now: BTreeMap<Option<StackId>, i64> = BTreeMap::new();
        for node in snapshot.tree.iter().filter(|node| node.own_bytes > 0) {
            let held = now.entry(self.stack(&snapshot.tree, node)).or_default();
            *held = held.saturating_add(signed(node.own_bytes));
        }
        let start_ns = self.tree_time_ns.min(time_ns);
        self.tree_time_ns = time_ns;
        let at_peak = if snapshot.is_peak { &now } else { &self.at_peak };
        let others = if snapshot.is_peak { Some(self.at_peak.keys()) } else { None };
        let stacks: BTreeSet<_> = now.keys().chain(self.live.keys()).chain(others.into_iter().flatten()).collect();
        let rows = stacks.into_iter().map(|stack| Allocation {
            start_ns,
            end_ns: time_ns,
            live_bytes: now.get(stack).copied().unwrap_or(0),
            peak_bytes: at_peak.get(stack).copied().unwrap_or(0),
            ..empty(self.process, *stack)
        });
        self.capture.allocations.extend(rows);
        if snapshot.is_peak {
            self.at_peak.clone_from(&now);
        }
        self.live = now;
    }

    /// The stack of a node: its frame is the root, that of the allocator's child the leaf.
    fn stack(&mut self, tree: &[TreeNode], node: &TreeNode) -> Option<StackId> {
        let callees = successors(Some(node), |node| Some(&tree[node.parent?]));
        let frames: Vec<FrameId> = callees.filter_map(|node| node.frame).collect();
        self.capture.intern_stack(frames)
    }

    fn finish(mut self, malformed: Malformed, file: &str) -> Result<Capture, ImportError> {
        self.end_snapshot();
        let capture = &mut self.capture;
        name_program(capture, self.process, &self.command);
        let info = &mut capture.info;
        (info.start_ns, info.end_ns) = (Some(0), Some(self.last_time_ns));
        let (clock, is_shown) = match self.unit {
            TimeUnit::Milliseconds => ("massif", None),
            TimeUnit::Instructions => ("massif (instructions)", Some("instruction")),
            TimeUnit::Bytes => ("massif (allocated bytes)", Some("allocated or freed byte")),
        };
        info.clock = Some(clock.to_owned());
        if let Some(unit) = is_shown {
            info.notes.push(format!(
                "{file}: has no times. Each {unit} is shown as 1 ns; `valgrind --time-unit=ms` records times."
            ));
        }
        let mut lacks =
            vec!["massif records live bytes at some moments, not allocations, threads and lifetimes.".to_owned()];
        if self.tree_time_ns < self.last_time_ns {
            lacks.push(
                "The last snapshot does not say who held its bytes: leaks are those of the last that does.".into(),
            );
        }
        if self.trees > 0 && !self.has_peak {
            lacks.push("No snapshot is that of the peak.".into());
        }
        info.dimensions.insert(Dimension::Heap, DimensionStatus::Partial { lacks });
        malformed.settle(capture, file, Massif.name(), self.snapshots > 0)?;
        Ok(self.capture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Source, import};

    const FILE: &str = "desc: --time-unit=ms\ncmd: ./sim -x\ntime_unit: ms\n#-----------\nsnapshot=0\n#-----------\ntime=0\n\
        mem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n#-----------\nsnapshot=1\n#-----------\ntime=7\n\
        mem_heap_B=100\nmem_heap_extra_B=8\nmem_stacks_B=0\nheap_tree=peak\n\
        n3: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n n2: 70 0x10: hold(int) (a.cc:7)\n  \
        n0: 40 0x20: main (a.cc:9)\n  n0: 30 0x28: load() (in /usr/bin/sim)\n n0: 20 0x30: ??? (in /lib/libc.so.6)\n \
        n0: 10 in 3 places, all below massif's threshold (1.00%)\n#-----------\nsnapshot=2\n#-----------\ntime=9\n\
        mem_heap_B=40\nmem_heap_extra_B=8\nmem_stacks_B=0\nheap_tree=detailed\n\
        n1: 40 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n n1: 40 0x10: hold(int) (a.cc:7)\n  \
        n0: 40 0x20: main (a.cc:9)\n";

    fn read(text: &str) -> Capture {
        import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
    }

    /// Functions from the root, end, live and peak bytes.
    fn rows(capture: &Capture) -> Vec<String> {
        let row = |row: &Allocation| {
            let mut names: Vec<&str> = capture.frames_of(row.stack).map(|frame| capture.function(frame)).collect();
            names.reverse();
            format!("{} {} {} {}", row.end_ns / 1_000_000, names.join(";"), row.live_bytes, row.peak_bytes)
        };
        let mut rows: Vec<String> = capture.allocations.iter().map(row).collect();
        rows.sort();
        rows
    }

    #[test]
    fn trees_are_live_bytes_by_stack_and_one_is_the_peak() {
        let capture = read(FILE);
        let expected = [
            "7  10 10",
            "7 libc.so.6+0x30 20 20",
            "7 load();hold(int) 30 30",
            "7 main;hold(int) 40 40",
            "9  0 10",
            "9 libc.so.6+0x30 0 20",
            "9 load();hold(int) 0 30",
            "9 main;hold(int) 40 40",
        ];
        assert_eq!(rows(&capture), expected);
        let main = capture.frames.iter().find(|frame| &*frame.function == "main").unwrap();
        assert_eq!((main.file.as_deref(), main.line), (Some("a.cc"), Some(9)));
        let curve = capture.counters.iter().filter(|read| &*read.name == "heap_live_bytes");
        let curve: Vec<_> = curve.map(|read| (read.time_ns / 1_000_000, read.value)).collect();
        assert_eq!(curve, [(0, 0), (7, 100), (9, 40)]);
        assert_eq!(capture.info.losses.malformed_records, 0);
    }

    #[test]
    fn a_file_that_is_cut_anywhere_keeps_the_snapshots_before() {
        for end in FILE.find("mem_heap_extra_B").unwrap()..FILE.len() {
            let capture = read(&FILE[..end]);
            assert_eq!(capture.info.losses.malformed_records, u64::from(!FILE[..end].ends_with('\n')), "{end}");
            assert!(!capture.counters.is_empty());
        }
    }

    #[test]
    fn lines_that_are_no_fields_are_counted() {
        let capture = read(&FILE.replace("n0: 30 0x28", "n0: many 0x28").replace("mem_stacks_B=0", "mem_stacks_B=-1"));
        assert_eq!(capture.info.losses.malformed_records, 4);
        assert!(rows(&capture).contains(&"7 hold(int) 30 30".to_owned()), "the bytes stay with the callee");
    }

    #[test]
    fn the_peak_is_that_of_ms_print() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/massif/bytes.out");
        let Ok(output) = std::process::Command::new("ms_print").arg(&file).output() else {
            eprintln!("skipped: the_peak_is_that_of_ms_print: ms_print is missing");
            return;
        };
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        // `99.93% (278,016B) (heap allocation functions) ...` of the snapshot with most bytes.
        let held = |line: &str| line.split_once("% (")?.1.split_once("B)")?.0.replace(',', "").parse::<i64>().ok();
        let trees = printed.lines().filter(|line| line.contains("(heap allocation functions)"));
        let peak = trees.filter_map(held).max().unwrap();
        let capture = import(Source::open(&file).unwrap(), &ImportOptions::default()).unwrap();
        let last_ns = capture.allocations.last().unwrap().end_ns;
        let rows = capture.allocations.iter().filter(|row| row.end_ns == last_ns);
        assert_eq!(rows.map(|row| row.peak_bytes).sum::<i64>(), peak);
    }
}
