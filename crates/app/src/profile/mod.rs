//! [`Profile`]: what is selected of a capture, as tables of columns for the page.
//!
//! Times are nanoseconds since the start of the recording. Integers refer to rows of other tables; -1 stands for none, NaN
//! for none in other numbers.
//!
//! | table | columns |
//! |---|---|
//! | `processes` | `pid`, `label` (as tables name it), `command` |
//! | `threads` | `tid`, `process`, `name`, `start`, `end`, `cpu` (exact time on CPUs). Rows of threads that are not selected have no times |
//! | `modules` | `name` (of the file), `path` |
//! | `frames` | `function`, `module`, `file`, `line`, `kind` (place in [`FrameKind`](stepscope_model::FrameKind)), `owned`, `owner` (costs are attributed to it), `inlined`, `identity` (equal for frames of one function) |
//! | `stacks` | `parent`, `frame`; parents come first |
//! | `cost_nodes` | `parent`, `kind`, `name`, `function`, `module`: the [cost tree](stepscope_analyze::cost_tree) without costs; parents come first |
//! | `cost_places` | `node`: for each row of `stacks`, and then for no stack, the row of `cost_nodes` at which its cost ends |
//! | `samples` | `time`, `thread`, `cpu`, `stack`, `event`, `weight`, `count` (how many samples it stands for; 0 if unknown); by time |
//! | `sums` | `event`, `stack`, `weight`: the samples added up over the whole recording, where they are many; a server has them |
//! | `amounts` | the same of heap allocations and system calls: `event` counts on after those of the samples; see [`amounts`] |
//! | `waits` | `start`, `end`, `thread`, `stack`, `state` (place in [`states`]), `runnable`, `cpu`, `waker`, `waker_stack`; by start |
//! | `steps` | `index`, `start`, `end`, `sim`, `thread`, `loop` (0 is the main one), `pacing` (ns), and [classes](stepscope_analyze::step_classes): `first`, `stall`, `level` (0 lower, 1 upper), `set` (0 typical, 1 slow), and `count` (how many steps it stands for); by start |
//! | `scope_names` | `name` |
//! | `scopes` | `thread`, `name`, `start`, `end`, `depth`; by start |
//! | `counter_names` | `name`, `unit`, `process`, `thread`: a row is a series |
//! | `counters` | `series`, `time`, `value` |
//! | `path` | `thread`, `start`, `end`, `state` (-1 runs, else as in `waits`): each step's critical path, in time order |
//! | `lane_order`, `lanes/...`, `scope_lanes/...`, `counter_lanes/...` | see [`lanes`](crate::lanes) |
//! | `sources` | `file`, `text` |
//! | `instructions/...`, `instruction_samples/...` | the machine code of a function, and the samples in it; a server has them |
//!
//! Sums over these tables equal those of the analyses: samples and waits are those of the [`Selection`], and a wait whose
//! stack was left out has that of a similar one. Where a table exceeds its [limit](Limits), rows of one thread, stack and
//! event or state are added up within equal parts of the recording.

pub mod amounts;
mod cost;
pub mod evidence;
mod instructions;
mod marks;
mod names;
pub mod places;
mod rows;
mod sources;
mod steps;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use stepscope_analyze::cost_tree::CostPlaces;
use stepscope_analyze::step_classes::{self, StepClass};
use stepscope_analyze::step_paths::Paths;
use stepscope_analyze::wait_class::WaitClass;
use stepscope_analyze::{Selection, events, parallel};
use stepscope_model::{Capture, CaptureInfo, Counter, Step};

use self::amounts::Amount;
use self::evidence::Evidence;
pub use self::names::Names;
use self::places::Places;
use self::steps::Shown;
use crate::lanes::{Lanes, LanesEntry};
use crate::parquet_table::ParquetTable;

/// How much of a capture the page holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most rows of `samples`.
    pub samples: usize,
    /// Most rows of `waits`, and of `amounts`.
    pub waits: usize,
    /// Most rows of `steps` and `scopes`, the longest ones, of `path`, those of the longest steps, and of `counters`.
    pub marks: usize,
    /// Most rows of `stacks`: the smallest subtrees become `(other)`.
    pub stacks: usize,
    /// Most bytes of source text.
    pub sources: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { samples: 5_000_000, waits: 2_000_000, marks: 2_000_000, stacks: usize::MAX, sources: 4 << 20 }
    }
}

/// Every table but tiles of the timeline, those that the first picture needs first.
pub const TABLES: [&str; 18] = [
    "processes",
    "threads",
    "lane_order",
    "modules",
    "frames",
    "stacks",
    "steps",
    "samples",
    "path",
    "waits",
    "amounts",
    "scope_names",
    "scopes",
    "counter_names",
    "counters",
    "cost_nodes",
    "cost_places",
    "sources",
];

/// Tables that take long to make, and that the first picture does not need. A served manifest does not count them.
pub const ON_DEMAND: [&str; 3] = ["cost_nodes", "cost_places", "sources"];

/// What is selected of a capture, as tables of columns.
pub struct Profile<'a> {
    selection: Selection<'a>,
    limits: Limits,
    recording: Range<u64>,
    /// In which samples and waits are added up, if there are too many.
    span: Range<u64>,
    names: Option<Arc<Names>>,
    evidence: OnceLock<Evidence>,
    lanes: Arc<OnceLock<Lanes>>,
    cost: Arc<OnceLock<CostPlaces>>,
    steps: Arc<OnceLock<Vec<(Step, StepClass)>>>,
}

impl<'a> Profile<'a> {
    /// What is selected of a capture. Its tables are made when they are asked for.
    pub fn new(selection: Selection<'a>, limits: Limits) -> Self {
        let recording = recording(selection.capture());
        let span = recording.clone();
        Self {
            selection,
            limits,
            recording,
            span,
            names: None,
            evidence: OnceLock::new(),
            lanes: Arc::default(),
            cost: Arc::default(),
            steps: Arc::default(),
        }
    }

    /// The same of a capture that grows: its rows refer to these names, which have grown with it, and lie in this span of time.
    #[must_use]
    pub fn growing(self, names: Arc<Names>, span: Range<u64>) -> Self {
        Self { names: Some(names), span, ..self }
    }

    /// The time in which the rows of samples and waits lie, on the capture's clock.
    fn span(&self) -> &Range<u64> {
        &self.span
    }

    /// Whether samples or waits are added up, because there are too many.
    pub fn is_added_up(&self) -> bool {
        self.evidence().is_added_up()
    }

    /// The same with other limits. Lanes, the cost tree and the classes of steps are made once for both.
    pub(crate) fn limited(&self, limits: Limits) -> Self {
        let (selection, names) = (self.selection.clone(), self.names.clone());
        let (lanes, cost, steps) = (self.lanes.clone(), self.cost.clone(), self.steps.clone());
        let (recording, span) = (self.recording(), self.span.clone());
        Self { selection, limits, recording, span, names, evidence: OnceLock::new(), lanes, cost, steps }
    }

    /// The selection.
    pub fn selection(&self) -> &Selection<'a> {
        &self.selection
    }

    /// The capture.
    pub fn capture(&self) -> &'a Capture {
        self.selection.capture()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The recording, on the capture's clock: times of tables count from its start.
    pub fn recording(&self) -> Range<u64> {
        self.recording.clone()
    }

    /// A moment of the capture's clock as tables have it.
    pub fn since_start(&self, time_ns: u64) -> f64 {
        match time_ns.checked_sub(self.recording.start) {
            Some(after) => after as f64,
            None => -((self.recording.start - time_ns) as f64),
        }
    }

    /// The frames and stacks of the selected samples and waits.
    pub fn places(&self) -> &Places {
        &self.evidence().places
    }

    fn cost(&self) -> &CostPlaces {
        self.cost.get_or_init(|| CostPlaces::of(&self.selection))
    }

    /// The steps of all loops by start, each with its classes.
    fn steps(&self) -> &[(Step, StepClass)] {
        self.steps.get_or_init(|| step_classes::of(&self.selection))
    }

    /// Which of the steps have a row.
    fn shown_steps(&self) -> Shown {
        Shown::of(self.steps(), self.most_steps())
    }

    /// Most rows of `steps`. Of a capture that grows each step has one.
    fn most_steps(&self) -> usize {
        self.names.as_ref().map_or(self.limits.marks, |_| usize::MAX)
    }

    /// The timeline's lanes.
    pub fn lanes(&self) -> &Lanes {
        self.lanes.get_or_init(|| Lanes::of(&self.selection, self.recording(), &self.selects_counters()))
    }

    /// Whether a reading is of a selected thread or its process.
    pub(crate) fn selects_counters(&self) -> impl Fn(&Counter) -> bool + '_ {
        marks::selects_counters(self)
    }

    fn evidence(&self) -> &Evidence {
        self.evidence.get_or_init(|| Evidence::of(self))
    }

    /// A table by its name; `None` if there is no such table, or it has no rows.
    pub fn table(&self, name: &str) -> Option<ParquetTable> {
        let table = match name {
            "processes" => self.processes(),
            "threads" => self.threads(),
            "modules" => self.places().modules(self.capture()),
            "frames" => self.places().frames(self),
            "stacks" => self.places().stacks(),
            "cost_nodes" => cost::nodes(self.cost()),
            "cost_places" => cost::places(self.cost(), self.places()),
            "samples" => evidence::samples(self, self.evidence()),
            "sums" => evidence::sums(self, self.evidence()),
            "waits" => evidence::waits(self, self.evidence()),
            "amounts" => evidence::amounts(self, self.evidence()),
            "steps" => steps::table(self),
            "scopes" => marks::scopes(self),
            "scope_names" => marks::scope_names(self),
            "counters" => marks::counters(self),
            "counter_names" => marks::counter_names(self),
            "path" => marks::path(self),
            "sources" => sources::table(self),
            name if name.starts_with("instruction") => instructions::table(self, name)?,
            _ => self.lanes().table(&self.selection, &|stack| self.places().row(stack), name)?,
        };
        Some(table).filter(|table| table.rows() > 0)
    }

    /// What the manifest says about the capture: how many rows each of its tables has, the finest levels of its lanes, and what
    /// else was left out.
    pub(crate) fn entry(&self, rows: Vec<(String, usize)>, finest: [u32; 3], left_out: Option<String>) -> CaptureEntry {
        let info = &self.capture().info;
        let text = |text: &Option<String>| text.as_deref().map_or_else(String::new, |text| cut(text).into_owned());
        let event = |event: &stepscope_model::Event| EventEntry {
            name: cut(&event.name).into_owned(),
            unit: cut(&event.unit).into_owned(),
            role: events::role(event).into(),
        };
        let amounts = Amount::of(self.capture()).into_iter().map(Amount::entry);
        CaptureEntry {
            label: cut(&self.capture().info.name()).into_owned(),
            scenario: text(&info.scenario),
            phase: info.phase.map(|phase| phase.to_string()).unwrap_or_default(),
            variant: text(&info.variant),
            repetition: info.repetition.unwrap_or(0),
            selection: self.selection.description(),
            duration: (self.recording.end - self.recording.start) as f64,
            ownership: self.selection.functions().ownership_known(),
            events: info.events.iter().map(event).chain(amounts).collect(),
            event: self.selection.event_id().map_or(0, |event| event.index()),
            states: states(),
            dimensions: dimensions(info),
            tables: rows.into_iter().map(|(name, rows)| (name, rows.into())).collect(),
            lanes: self.lanes().entry(finest),
            left_out: self.left_out().into_iter().chain(left_out).collect(),
        }
    }

    /// What the manifest says about a capture that grows, as JSON. It counts the rows of no table that is `sent` row by row.
    pub fn growing_entry(&self, sent: &[&str]) -> serde_json::Map<String, serde_json::Value> {
        let rows = self.rows_of(TABLES.iter().filter(|name| !sent.contains(name)));
        match serde_json::to_value(self.entry(rows, [0; 3], None)) {
            Ok(serde_json::Value::Object(entry)) => entry,
            other => unreachable!("an entry has only text keys: {other:?}"),
        }
    }

    /// Number of rows of each table that has some, without [those](ON_DEMAND) that take long. Source text and instructions are read when the page asks
    /// for them: it learns only that it may.
    pub(crate) fn rows(&self) -> Vec<(String, usize)> {
        self.prepare();
        let mut rows = self.rows_of(TABLES.iter().filter(|name| !ON_DEMAND.contains(name)));
        rows.extend(["sources", "instructions"].map(|name| (name.to_owned(), 1)));
        rows
    }

    /// Makes what the tables are made from, on all CPUs.
    pub(crate) fn prepare(&self) {
        let parts: [fn(&Self); 4] = [
            |profile| _ = profile.lanes(),
            |profile| _ = profile.evidence(),
            |profile| _ = profile.steps(),
            |profile| _ = Paths::of(&profile.selection),
        ];
        parallel::map(&parts, |prepare| prepare(self));
    }

    fn rows_of<'n>(&self, tables: impl Iterator<Item = &'n &'n str>) -> Vec<(String, usize)> {
        let capture = self.capture();
        let count = |name: &str| match name {
            "processes" => capture.processes.len(),
            "threads" => capture.threads.len(),
            "modules" => capture.modules.len(),
            "stacks" => self.places().stack_rows(),
            "frames" => self.places().frame_rows(),
            "samples" => self.evidence().sample_rows,
            "waits" => self.evidence().wait_rows,
            "amounts" => self.evidence().amount_rows,
            "scopes" => marks::scope_rows(self),
            "path" => marks::has_path(self).into(),
            name => self.table(name).map_or(0, |table| table.rows()),
        };
        let rows = tables.map(|name| ((*name).to_owned(), count(name)));
        rows.filter(|(_, rows)| *rows > 0).collect()
    }

    /// What the tables do not hold, in sentences.
    fn left_out(&self) -> Vec<String> {
        self.evidence().left_out.iter().cloned().chain(marks::left_out(self)).collect()
    }

    fn processes(&self) -> ParquetTable {
        let capture = self.capture();
        let ids = || (0..capture.processes.len()).map(stepscope_model::ProcessId::from_index);
        let texts = |text: &dyn Fn(&stepscope_model::Process) -> Arc<str>| capture.processes.iter().map(text).collect();
        ParquetTable::new()
            .integers("pid", capture.processes.iter().map(|process| process.pid as i32).collect())
            .texts("label", ids().map(|id| clipped(self.selection.process_label(id))).collect())
            .texts("command", texts(&|process| clipped(&process.command_line)))
    }

    fn threads(&self) -> ParquetTable {
        let threads = &self.capture().threads;
        let ids = || (0..threads.len()).map(stepscope_model::ThreadId::from_index);
        let lives: Vec<Option<Range<u64>>> =
            ids().map(|id| self.selection.lifetime(id).filter(|_| self.selection.has_thread(id))).collect();
        let time = |time: Option<u64>| time.map_or(f64::NAN, |time| self.since_start(time));
        let cpu_times = self.selection.cpu_times();
        ParquetTable::new()
            .integers("tid", threads.iter().map(|thread| thread.tid as i32).collect())
            .integers("process", threads.iter().map(|thread| row(thread.process.map(|id| id.index()))).collect())
            .texts("name", threads.iter().map(|thread| clipped(&thread.name)).collect())
            .numbers("start", lives.iter().map(|life| time(life.as_ref().map(|life| life.start))).collect())
            .numbers("end", lives.iter().map(|life| time(life.as_ref().map(|life| life.end))).collect())
            .numbers("cpu", cpu_times.into_iter().map(|cpu| cpu.map_or(f64::NAN, |cpu| cpu as f64)).collect())
    }
}

/// What the manifest says about a capture. `web/src/profile/columns.ts` has the same as `CaptureEntry`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureEntry {
    label: String,
    scenario: String,
    phase: String,
    variant: String,
    /// 0 if it was not repeated.
    repetition: u32,
    /// The filters, in words; empty if everything is selected.
    selection: String,
    /// In ns.
    duration: f64,
    /// Whether it is configured which code is owned.
    ownership: bool,
    events: Vec<EventEntry>,
    /// The event that the analyses are about.
    event: usize,
    states: Vec<&'static str>,
    dimensions: Vec<DimensionEntry>,
    tables: serde_json::Map<String, serde_json::Value>,
    lanes: LanesEntry,
    left_out: Vec<String>,
}

impl CaptureEntry {
    /// Whether the page does not hold everything of the capture.
    pub(crate) fn is_reduced(&self) -> bool {
        !self.left_out.is_empty()
    }
}

/// What samples of an event, or rows of an [`Amount`], weigh.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct EventEntry {
    name: String,
    unit: String,
    /// What they are evidence of; of an amount `amount`, or `held` if it is what a moment holds.
    role: &'static str,
}

/// A kind of evidence, and what came of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DimensionEntry {
    name: &'static str,
    #[serde(flatten)]
    status: stepscope_model::DimensionStatus,
}

fn dimensions(info: &CaptureInfo) -> Vec<DimensionEntry> {
    let entry = |(dimension, status): (&stepscope_model::Dimension, &stepscope_model::DimensionStatus)| {
        DimensionEntry { name: dimension.name(), status: status.clone() }
    };
    info.dimensions.iter().map(entry).collect()
}

/// Why a thread was off the CPU, by the number in `waits`: preempted, blocked by class, blocked without a stack.
pub fn states() -> Vec<&'static str> {
    let classes = WaitClass::ALL.into_iter().map(WaitClass::name);
    ["preempted"].into_iter().chain(classes).chain(["no_stack"]).collect()
}

/// A row's number, or -1.
fn row(index: Option<usize>) -> i32 {
    index.and_then(|index| i32::try_from(index).ok()).unwrap_or(-1)
}

/// A CPU's number, or -1.
fn cpu(cpu: Option<u32>) -> i32 {
    row(cpu.map(|cpu| cpu as usize))
}

/// Longest text in a table. Names beyond it are damaged or hostile.
const LONGEST_TEXT: usize = 8 << 10;

/// A text of bearable length.
fn clipped(text: &str) -> Arc<str> {
    cut(text).into()
}

/// A text of bearable length, and a mark if it was longer.
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_TEXT {
        return Cow::Borrowed(text);
    }
    let end = (0..=LONGEST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// When the capture was recorded: what it says, else from the first time to the last.
fn recording(capture: &Capture) -> Range<u64> {
    if let (Some(start), Some(end)) = (capture.info.start_ns, capture.info.end_ns) {
        return start..end.max(start);
    }
    let samples = capture.samples.iter().filter_map(|sample| sample.time_ns).map(|time| time..time);
    let waits = capture.waits.iter().map(|wait| wait.start_ns..wait.end_ns);
    let steps = capture.steps.iter().map(|step| step.start_ns..step.end_ns);
    let all = samples.chain(waits).chain(steps);
    all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
}
