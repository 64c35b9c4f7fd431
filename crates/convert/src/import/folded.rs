//! Folded (collapsed) stacks: a line a stack, `thread;root;...;leaf COUNT`.
//!
//! What `stackcollapse-*.pl`, inferno, bcc and bpftrace scripts write and flame graphs are drawn from. The format has
//! no specification and carries no units; the rules here are the ones under which no name is changed:
//!
//! - The count is what follows the **last** space. Everything before it is names: they hold spaces, `(`, `<`, may end
//!   with a space and may be empty, and are never trimmed or cut (erratum 7 of the Gazebo study).
//! - Names are separated by `;`. The first is the thread's name, which may stand alone: a sample without a stack.
//! - What a count counts is not said: often it is a sum of periods, so that the number of samples is unknown
//!   ([`Counts::Unknown`], erratum 1), unless the caller knows better ([`FoldedUnit`]).
//! - Suffixes that collapse scripts put on names (`_[k]` kernel, `_[i]` inlined) tell about the frame and stay in the
//!   name; `[libfoo.so]`, which stands for an unnamed function of that library, also names the frame's module.
//! - Blank lines and lines that begin with `# ` are skipped. Lines may end in `\r\n`.
//!
//! Lines of equal thread and stack are added up, so memory is bounded by the number of distinct stacks.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{
    Capture, Counts, Event, EventId, Frame, FrameId, Language, Module, ModuleId, Process, ProcessId, Sample, StackId,
    Thread, ThreadId,
};

use super::call_tree::CallTreeRows;
use super::lines::Lines;
use super::text::{number, text};
use super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed};

/// Folded stacks.
pub struct Folded;

/// What folded stacks do not say about themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldedOptions {
    /// What the first name of a line is.
    pub first_frame: FirstFrame,
    /// Whether the first name holds process and thread ids.
    pub thread_ids: ThreadIds,
    /// What the counts count.
    pub unit: FoldedUnit,
}

/// What the first name of a line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstFrame {
    /// The thread's name (`comm`), as collapse scripts for perf, bcc and bpftrace write it.
    #[default]
    Thread,
    /// The root function: the lines name no thread. All samples go to one thread without a name.
    Function,
}

/// Whether the first name of a line holds ids beside the thread's name, as `stackcollapse-perf.pl --pid` and `--tid`
/// write them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadIds {
    /// `name-PID/TID` where it reads so, else the name alone. `name-PID` cannot be told from a name that ends in a
    /// number.
    #[default]
    Detect,
    /// The name alone, whatever it looks like.
    Absent,
    /// `name-PID`.
    Pid,
    /// `name-PID/TID`.
    PidTid,
}

/// What the counts of folded stacks count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FoldedUnit {
    /// Not known: a weight of unknown unit.
    #[default]
    Unknown,
    /// Samples: then, and only then, the number of samples is known.
    Samples,
    /// Nanoseconds.
    Nanoseconds,
    /// Processor cycles.
    Cycles,
    /// Cache misses.
    Misses,
    /// Bytes.
    Bytes,
}

impl FoldedUnit {
    /// Every unit.
    pub const ALL: [FoldedUnit; 6] =
        [Self::Unknown, Self::Samples, Self::Nanoseconds, Self::Cycles, Self::Misses, Self::Bytes];

    /// The name used in captures and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "weight",
            Self::Samples => "samples",
            Self::Nanoseconds => "ns",
            Self::Cycles => "cycles",
            Self::Misses => "misses",
            Self::Bytes => "bytes",
        }
    }

    /// The unit of this [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    fn event(&self) -> Event {
        let counts = if *self == Self::Samples { Counts::Weight } else { Counts::Unknown };
        let name = match self {
            Self::Nanoseconds => "time",
            Self::Misses => "cache-misses",
            other => other.name(),
        };
        Event { name: name.to_owned(), unit: self.name().to_owned(), counts }
    }
}

impl InputFormat for Folded {
    fn name(&self) -> &'static str {
        "folded"
    }

    fn describe(&self) -> &'static str {
        "Folded stacks of stackcollapse-*.pl, inferno, bcc: `thread;root;...;leaf COUNT`, a line a stack."
    }

    /// At least half of the lines that are neither blank nor comments read as records.
    fn recognises(&self, head: Head<'_>) -> bool {
        let (mut good, mut bad) = (0, 0);
        for line in head.lines().filter(|line| !is_skipped(line)) {
            match parse(line) {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
        }
        head.is_text() && good > 0 && good >= bad
    }

    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut lines = Lines::new(input);
        let mut reader = Reader::new(&options.folded);
        loop {
            match lines.next_line() {
                Ok(Some(line)) if line.too_long => reader.malformed.add(line.number, "it is longer than 16 MiB"),
                Ok(Some(line)) => reader.line(line.bytes, line.number),
                Ok(None) => return reader.finish(&file),
                Err(source) => return Err(ImportError::Read { file, offset: lines.offset(), source }),
            }
        }
    }
}

fn is_skipped(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"# ")
}

/// Splits a line into names and count.
fn parse(line: &[u8]) -> Result<(&[u8], u64), &'static str> {
    let space = memchr::memrchr(b' ', line).ok_or("there is no space before a count")?;
    let (names, count) = (&line[..space], &line[space + 1..]);
    match number(count) {
        Some(count) => Ok((names, count)),
        None if count.is_empty() => Err("there is no count after the last space"),
        None if count.iter().all(u8::is_ascii_digit) => Err("the count exceeds 64 bits"),
        None => Err("what follows the last space is not a whole number"),
    }
}

struct Reader<'a> {
    options: &'a FoldedOptions,
    capture: Capture,
    event: EventId,
    rows: CallTreeRows<Arc<str>>,
    samples: FxHashMap<(ThreadId, Option<StackId>), usize>,
    threads: Threads,
    modules: HashMap<String, ModuleId>,
    previous: Previous,
    malformed: Malformed,
    lines: u64,
    two_counts: u64,
    renamed: u64,
}

/// The names of the line before. Neighbouring lines share most of their stack, which need not be looked up again.
#[derive(Default)]
struct Previous {
    names: Vec<u8>,
    /// Offset of the end of the thread's name.
    thread_end: usize,
    thread: Option<ThreadId>,
    /// Offset of each frame's end, with the node it led to.
    nodes: Vec<(usize, StackId)>,
}

impl<'a> Reader<'a> {
    fn new(options: &'a FoldedOptions) -> Self {
        let mut capture = Capture::default();
        let event = capture.add_event(options.unit.event());
        Self {
            options,
            capture,
            event,
            rows: CallTreeRows::new(),
            samples: FxHashMap::default(),
            threads: Threads::default(),
            modules: HashMap::new(),
            previous: Previous::default(),
            malformed: Malformed::default(),
            lines: 0,
            two_counts: 0,
            renamed: 0,
        }
    }

    fn line(&mut self, line: &[u8], line_number: u64) {
        if is_skipped(line) {
            return;
        }
        match parse(line) {
            Ok((names, count)) => {
                self.lines += 1;
                self.two_counts += u64::from(parse(names).is_ok());
                let (thread, stack) = self.stack(names);
                self.add(thread, stack, count);
            }
            Err(what) => self.malformed.add(line_number, what),
        }
    }

    fn add(&mut self, thread: ThreadId, stack: Option<StackId>, count: u64) {
        let row = self.samples.entry((thread, stack)).or_insert(usize::MAX);
        if let Some(sample) = self.capture.samples.get_mut(*row)
            && let Some(sum) = sample.weight.checked_add(count)
        {
            sample.weight = sum;
            return;
        }
        // New, or a sum beyond 64 bits, which goes on in a row of its own.
        *row = self.capture.samples.len();
        self.capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event: self.event, weight: count });
    }

    /// The thread and the node of a line's names, of which those shared with the line before are known.
    fn stack(&mut self, names: &[u8]) -> (ThreadId, Option<StackId>) {
        let shared = common_prefix(&self.previous.names, names);
        let is_shared = |end: usize| end <= shared && (end == names.len() || names[end] == b';');
        let same_thread = self.names_no_thread() || is_shared(self.previous.thread_end);
        let kept = match self.previous.thread {
            Some(_) if same_thread => self.previous.nodes.iter().take_while(|(end, _)| is_shared(*end)).count(),
            _ => {
                self.begin(names);
                0
            }
        };
        self.previous.nodes.truncate(kept);
        self.previous.names.truncate(shared);
        self.previous.names.extend_from_slice(&names[shared..]);

        let (mut end, mut parent) = match self.previous.nodes.last() {
            Some(&(end, node)) => (end, Some(node)),
            None => (self.previous.thread_end, None),
        };
        // The first frame of a line without a thread has no `;` before it.
        let mut start = if self.names_no_thread() && parent.is_none() { 0 } else { end + 1 };
        while start <= names.len() {
            end = memchr::memchr(b';', &names[start..]).map_or(names.len(), |at| start + at);
            let frame = self.frame(&names[start..end]);
            let node = self.rows.node(parent, frame, &mut self.capture);
            self.previous.nodes.push((end, node));
            parent = Some(node);
            start = end + 1;
        }
        (self.previous.thread.expect("set by `begin`, at the first line at the latest"), parent)
    }

    fn names_no_thread(&self) -> bool {
        self.options.first_frame == FirstFrame::Function
    }

    /// Reads the thread of a line.
    fn begin(&mut self, names: &[u8]) {
        let end = if self.names_no_thread() { 0 } else { memchr::memchr(b';', names).unwrap_or(names.len()) };
        let label = self.name(&names[..end]).into_owned();
        self.previous.thread_end = end;
        self.previous.thread = Some(self.threads.of(&label, self.options.thread_ids, &mut self.capture));
    }

    fn name<'n>(&mut self, name: &'n [u8]) -> std::borrow::Cow<'n, str> {
        let name = text(name);
        self.renamed += u64::from(matches!(name, std::borrow::Cow::Owned(_)));
        name
    }

    fn frame(&mut self, name: &[u8]) -> FrameId {
        let name = self.name(name);
        let modules = &mut self.modules;
        self.rows.frame(&*name, &mut self.capture, |capture| {
            let function: Arc<str> = (&*name).into();
            let module = library_of(&name).map(|library| {
                *modules
                    .entry(library.to_owned())
                    .or_insert_with(|| capture.add_module(Module { path: library.to_owned(), ..Module::default() }))
            });
            let frame = Frame {
                module,
                language: language_of(&name),
                inlined: is_inlined(&name),
                ..Frame::named(function.clone())
            };
            capture.frames.push(frame);
            (function, FrameId::from_index(capture.frames.len() - 1))
        })
    }

    fn finish(mut self, file: &str) -> Result<Capture, ImportError> {
        self.threads.number_the_nameless(&mut self.capture);
        self.malformed.settle(&mut self.capture, file, Folded.name(), self.lines > 0)?;
        let info = &mut self.capture.info;
        if self.options.unit == FoldedUnit::Samples {
            let weights = self.capture.samples.iter().map(|sample| sample.weight);
            info.losses.samples = weights.fold(0, u64::saturating_add);
        }
        if self.options.unit == FoldedUnit::Unknown {
            info.notes.push(
                "The unit of folded counts is unknown: they may be samples, cycles, ns or anything else, so results are \
                 shares, without tests of significance. Name the unit at import if you know it."
                    .to_owned(),
            );
        }
        if self.two_counts == self.lines && self.lines > 1 {
            info.notes.push(format!(
                "Every line of {file} ends in two numbers, as difffolded.pl writes them; the first was read as part of \
                 the function's name. Import the two files it was made from instead."
            ));
        }
        if self.renamed > 0 {
            info.notes.push("Names that are not UTF-8 show their other bytes as \\xHH.".to_owned());
        }
        Ok(self.capture)
    }
}

/// Length of the longest common beginning.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 16;
    let steps = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    steps + a[steps..].iter().zip(&b[steps..]).take_while(|(a, b)| a == b).count()
}

/// `libfoo.so.6` of `[libfoo.so.6]`, which collapse scripts write for a function without a name in a known library.
fn library_of(name: &str) -> Option<&str> {
    let library = name.strip_prefix('[')?.strip_suffix(']')?;
    let is_library = library.ends_with(".so") || library.contains(".so.") || library == "kernel.kallsyms";
    (is_library && !library.contains(['[', ']'])).then_some(library)
}

/// Collapse scripts mark kernel functions with `_[k]`.
fn language_of(name: &str) -> Language {
    if has_suffix(name, "_[k]") || name == "[kernel.kallsyms]" { Language::Kernel } else { Language::Native }
}

/// Collapse scripts mark inlined functions with `_[i]`.
fn is_inlined(name: &str) -> bool {
    has_suffix(name, "_[i]")
}

/// Whether a mark follows a name. A mark alone is a name (`_[i]` occurs as one).
fn has_suffix(name: &str, mark: &str) -> bool {
    name.len() > mark.len() && name.ends_with(mark)
}

/// The threads seen so far, by what a line calls them.
#[derive(Default)]
struct Threads {
    by_label: HashMap<String, ThreadId>,
    processes: FxHashMap<u32, ProcessId>,
    nameless: Vec<ThreadId>,
}

impl Threads {
    fn of(&mut self, label: &str, ids: ThreadIds, capture: &mut Capture) -> ThreadId {
        if let Some(&thread) = self.by_label.get(label) {
            return thread;
        }
        let (name, pid, tid) = match ids {
            ThreadIds::Absent => (label, None, None),
            ThreadIds::Pid => split_pid(label).map_or((label, None, None), |(name, pid)| (name, pid, None)),
            ThreadIds::Detect | ThreadIds::PidTid => split_pid_tid(label).unwrap_or((label, None, None)),
        };
        let process = pid.map(|pid| {
            *self.processes.entry(pid).or_insert_with(|| capture.add_process(Process { pid, ..Process::default() }))
        });
        let thread =
            capture.add_thread(Thread { tid: tid.unwrap_or(0), process, name: name.to_owned(), ..Thread::default() });
        if tid.is_none() {
            self.nameless.push(thread);
        }
        self.by_label.insert(label.to_owned(), thread);
        thread
    }

    /// Gives the threads whose tid is unknown one that no other has.
    fn number_the_nameless(&self, capture: &mut Capture) {
        let nameless: FxHashSet<ThreadId> = self.nameless.iter().copied().collect();
        let taken: FxHashSet<u32> = capture
            .threads
            .iter()
            .enumerate()
            .filter(|(index, _)| !nameless.contains(&ThreadId::from_index(*index)))
            .map(|(_, thread)| thread.tid)
            .collect();
        let free = (1..=u32::MAX).filter(|tid| !taken.contains(tid));
        for (thread, tid) in self.nameless.iter().zip(free) {
            capture.threads[thread.index()].tid = tid;
        }
    }
}

/// `name` and pid of `name-PID`; perf scripts write `?` for a pid they do not know.
fn split_pid(label: &str) -> Option<(&str, Option<u32>)> {
    let (name, pid) = label.rsplit_once('-')?;
    match pid {
        "?" => Some((name, None)),
        _ => Some((name, Some(id(pid)?))),
    }
}

/// `name`, pid and tid of `name-PID/TID`.
fn split_pid_tid(label: &str) -> Option<(&str, Option<u32>, Option<u32>)> {
    let (name, tid) = label.rsplit_once('/')?;
    let (name, pid) = split_pid(name)?;
    Some((name, pid, Some(id(tid)?)))
}

/// An id in plain decimal, as programs print it: the form must survive being written again.
fn id(text: &str) -> Option<u32> {
    let id: u32 = text.parse().ok()?;
    (id.to_string() == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::super::{Source, import};
    use super::*;

    fn read_with(options: FoldedOptions, bytes: &[u8]) -> Capture {
        let options = ImportOptions { format: Some(&Folded), folded: options, ..ImportOptions::default() };
        import(Source::stream("it", bytes), &options).unwrap()
    }

    fn read(bytes: impl AsRef<[u8]>) -> Capture {
        read_with(FoldedOptions::default(), bytes.as_ref())
    }

    /// Every sample as `thread|root|...|leaf=weight`.
    fn drawn(capture: &Capture) -> Vec<String> {
        let draw = |sample: &Sample| {
            let mut names: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
            names.push(&capture.threads[sample.thread.index()].name);
            names.reverse();
            format!("{}={}", names.join("|"), sample.weight)
        };
        capture.samples.iter().map(draw).collect()
    }

    #[test]
    fn the_count_follows_the_last_space_and_names_keep_theirs() {
        let capture =
            read("main;void Foo<int, std::pair<long, long> >::Run;operator new 3\nmain;Step;std::function<bool  7\n");
        assert_eq!(
            drawn(&capture),
            ["main|void Foo<int, std::pair<long, long> >::Run|operator new=3", "main|Step|std::function<bool =7"]
        );
    }

    #[test]
    fn a_thread_may_stand_alone_and_names_may_be_empty() {
        let capture = read("worker 4\nworker; 5\n;a;;b 6\n 7\n");
        assert_eq!(drawn(&capture), ["worker=4", "worker|=5", "|a||b=6", "=7"]);
        assert_eq!(capture.samples[0].stack, None);
        assert!(capture.samples[1].stack.is_some());
    }

    #[test]
    fn neighbouring_lines_share_frames_only_where_whole_names_are_equal() {
        let capture = read("m;a;b 1\nm;a;bc 2\nm;a 3\nm;a;b 4\nm;ab 5\nmn;a 6\nm 7\n");
        assert_eq!(drawn(&capture), ["m|a|b=5", "m|a|bc=2", "m|a=3", "m|ab=5", "mn|a=6", "m=7"]);
        // a, a|b, a|bc, ab: threads share the tree.
        assert_eq!(capture.stacks.len(), 4);
        assert_eq!(capture.frames.len(), 4);
    }

    #[test]
    fn recursion_makes_a_node_a_level_and_one_frame() {
        let capture = read("m;a;b;a;a 10\n");
        assert_eq!((capture.frames.len(), capture.stacks.len()), (2, 4));
    }

    #[test]
    fn lines_of_equal_stacks_are_added_up_until_64_bits_are_full() {
        let capture = read(format!("m;a 1\nm;b 2\nm;a 3\nm;a {}\nm;a 5\n", u64::MAX));
        assert_eq!(drawn(&capture), ["m|a=4", "m|b=2", &format!("m|a={}", u64::MAX), "m|a=5"]);
    }

    #[test]
    fn line_ends_of_windows_blank_lines_and_comments_are_no_part_of_the_data() {
        let capture = read("# made by x 1\r\nm;a 1\r\n\r\n   \nm;b 2");
        assert_eq!(drawn(&capture), ["m|a=1", "m|b=2"]);
        assert_eq!(capture.info.losses.malformed_records, 0);
    }

    #[test]
    fn malformed_lines_are_counted_and_the_first_is_said_with_its_number() {
        let capture = read("m;a 1\nnonsense\nm;b 1.5\nm;c 99999999999999999999\nm;d -1\nm;e \nm;f 2\n");
        assert_eq!(drawn(&capture), ["m|a=1", "m|f=2"]);
        assert_eq!(capture.info.losses.malformed_records, 5);
        assert_eq!(
            capture.info.notes[0],
            "5 malformed records of it were left out; the first is line 2: there is no space before a count."
        );
    }

    #[test]
    fn a_file_without_one_good_line_is_an_error_that_says_why() {
        let options = ImportOptions { format: Some(&Folded), ..ImportOptions::default() };
        let error = import(Source::stream("it", &b"m;a x\n"[..]), &options).unwrap_err().to_string();
        assert_eq!(
            error,
            "it holds no record of folded that can be read (line 1: what follows the last space is not a whole number); \
             check that it is whole and of that format"
        );
    }

    #[test]
    fn names_that_are_no_text_are_kept_apart() {
        let capture = read(b"m;caf\xe9 1\nm;caf\xe8 2\n");
        assert_eq!(drawn(&capture), ["m|caf\\xe9=1", "m|caf\\xe8=2"]);
        assert!(capture.info.notes.iter().any(|note| note.contains("\\xHH")));
    }

    #[test]
    fn marks_of_collapse_scripts_tell_about_the_frame_and_stay_in_its_name() {
        let capture = read("m;read_[k];f_[i];g_[j];_[i];[unknown];[libc.so.6];[kernel.kallsyms] 1\n");
        let frames: Vec<_> = capture
            .frames
            .iter()
            .map(|frame| (&*frame.function, frame.language, frame.inlined, frame.module))
            .collect();
        let (native, kernel) = (Language::Native, Language::Kernel);
        assert_eq!(
            frames,
            [
                ("read_[k]", kernel, false, None),
                ("f_[i]", native, true, None),
                ("g_[j]", native, false, None),
                ("_[i]", native, false, None),
                ("[unknown]", native, false, None),
                ("[libc.so.6]", native, false, Some(ModuleId(0))),
                ("[kernel.kallsyms]", kernel, false, Some(ModuleId(1))),
            ]
        );
        assert_eq!(capture.modules[0].path, "libc.so.6");
    }

    #[test]
    fn process_and_thread_ids_of_collapse_scripts_are_read() {
        let threads = |ids, lines: &str| {
            let capture = read_with(FoldedOptions { thread_ids: ids, ..FoldedOptions::default() }, lines.as_bytes());
            let pid = |thread: &Thread| thread.process.map(|process| capture.processes[process.index()].pid);
            capture.threads.iter().map(|thread| (thread.name.clone(), pid(thread), thread.tid)).collect::<Vec<_>>()
        };
        let lines = "sim-12/34;a 1\nsim-12/35;a 1\npool-1;a 1\nZMQbg/IO/0;a 1\nx-?/7;a 1\nx-012/7;a 1\n";
        let own = |threads: &[(&str, Option<u32>, u32)]| {
            threads.iter().map(|(name, pid, tid)| ((*name).to_owned(), *pid, *tid)).collect::<Vec<_>>()
        };
        assert_eq!(
            threads(ThreadIds::Detect, lines),
            own(&[
                ("sim", Some(12), 34),
                ("sim", Some(12), 35),
                ("pool-1", None, 1),
                ("ZMQbg/IO/0", None, 2),
                ("x", None, 7),
                ("x-012/7", None, 3)
            ])
        );
        assert_eq!(threads(ThreadIds::Pid, "pool-1;a 1\npool;a 1\n"), own(&[("pool", Some(1), 1), ("pool", None, 2)]));
        assert_eq!(threads(ThreadIds::Absent, "s-1/2;a 1\n"), own(&[("s-1/2", None, 1)]));
    }

    #[test]
    fn lines_without_a_thread_begin_with_a_function() {
        let options = FoldedOptions { first_frame: FirstFrame::Function, ..FoldedOptions::default() };
        let capture = read_with(options, b"main;a 1\nmain;a;b 2\nmain 3\nmain2;a 4\n;a 5\n 6\n");
        assert_eq!(drawn(&capture), ["|main|a=1", "|main|a|b=2", "|main=3", "|main2|a=4", "||a=5", "|=6"]);
        assert_eq!(capture.threads.len(), 1);
    }

    #[test]
    fn the_number_of_samples_is_known_only_where_counts_are_samples() {
        let counts = |unit| {
            let capture = read_with(FoldedOptions { unit, ..FoldedOptions::default() }, b"m;a 30\nm;b 12\n");
            (capture.info.events[0].counts, capture.info.events[0].unit.clone(), capture.info.losses.samples)
        };
        assert_eq!(counts(FoldedUnit::Unknown), (Counts::Unknown, "weight".to_owned(), 0));
        assert_eq!(counts(FoldedUnit::Samples), (Counts::Weight, "samples".to_owned(), 42));
        assert_eq!(counts(FoldedUnit::Cycles), (Counts::Unknown, "cycles".to_owned(), 0));
        for unit in FoldedUnit::ALL {
            assert_eq!(FoldedUnit::named(unit.name()), Some(unit));
        }
    }

    #[test]
    fn a_differential_file_is_read_with_a_warning() {
        let capture = read("m;a 1 2\nm;b 3 4\n");
        assert!(capture.info.notes.iter().any(|note| note.contains("difffolded.pl")));
        assert!(!read("m;a 1 2\nm;b 4\n").info.notes.iter().any(|note| note.contains("difffolded.pl")));
    }
}
