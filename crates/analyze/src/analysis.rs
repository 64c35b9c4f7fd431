//! [`Analysis`]: a question about a capture, and the tables that answer it.
//!
//! [`ANALYSES`] lists every analysis of one capture in the order of a report. `stepscope show --view`, its help and its completions, the
//! sections of a report, the index of `docs/analyses/` and `docs/reference/analyses.md` are derived from the list. Adding
//! an analysis takes a module with an `ANALYSIS`, a line in [`ANALYSES`] and a page `docs/analyses/NAME.md`.
//! [`OF_SEVERAL`] lists those of several captures; their help, completions and docs are derived from it.

use std::collections::BTreeMap;

use stepscope_model::{
    CallTree, Capture, Dimension, DimensionStatus, MACHINE_SPEED, Mark, Note, NoteValue, Table, TreeDifference, note,
};

pub use crate::analyses::{ANALYSES, OF_SEVERAL};
use crate::query::events::{self, Role};
use crate::query::select::Selection;

/// A question about one capture.
#[derive(Debug, Clone, Copy)]
pub struct Analysis {
    /// Its heading.
    pub title: &'static str,
    /// Its views. The first has the name of the analysis.
    pub views: &'static [View],
    /// The dimensions without which it has no rows.
    pub needs: &'static [Dimension],
    /// Its options on the command line.
    pub options: &'static [AnalysisOption],
    /// Other subcommands that show it.
    pub also_in: &'static [&'static str],
    /// Makes its sections in the report of a capture, in order.
    pub report: fn(&Selection<'_>) -> Vec<ReportSection>,
}

impl Analysis {
    /// Nothing, to say only what an analysis has.
    pub const NONE: Self =
        Self { title: "", views: &[], needs: &[], options: &[], also_in: &[], report: |_| Vec::new() };

    /// Its name, as in `docs/analyses/NAME.md`.
    pub fn name(&self) -> &'static str {
        self.views[0].name
    }
}

/// Tables that answer a question, by the name that `stepscope show --view` accepts.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Makes its tables.
    pub tables: fn(&Selection<'_>, &OptionValues) -> Vec<Table>,
}

/// An analysis of several captures, with a subcommand of its own.
///
/// It is no [`Analysis`]: it takes several selections and arguments that are no numbers, such as a function, and it can
/// fail, so it fits no [`View`].
#[derive(Debug, Clone, Copy)]
pub struct AnalysisOfSeveral {
    /// The name of its subcommand.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// The help of its subcommand: one sentence without a full stop.
    pub about: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Its page, from `docs/`.
    pub page: &'static str,
    /// Other subcommands that show it.
    pub also_in: &'static [&'static str],
    /// Its tables for a function of these captures, if one capture is enough.
    pub tables: Option<TablesOfSeveral>,
}

/// Tables of several captures, for a function.
pub type TablesOfSeveral = fn(&[Selection<'_>], function: &str) -> Vec<Table>;

/// An option of an analysis, e.g. `--slow-percentile PERCENT`.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisOption {
    /// Its name, without dashes.
    pub name: &'static str,
    /// The name of its value, e.g. `PERCENT`.
    pub value: &'static str,
    /// The least and the largest value that it accepts.
    pub range: (f64, f64),
    /// What happens without it.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

impl AnalysisOption {
    /// Reads its value.
    ///
    /// # Errors
    /// If the text is no number within the range.
    pub fn parse(&self, text: &str) -> Result<f64, String> {
        let (least, most) = self.range;
        let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("{} must be a number from {least} to {most}", self.value))
    }
}

/// The values of an analysis' options. Options that were not given have none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OptionValues(BTreeMap<&'static str, f64>);

impl OptionValues {
    /// Sets the value of an option.
    pub fn set(&mut self, option: &AnalysisOption, value: f64) {
        self.0.insert(option.name, value);
    }

    /// The value of an option, if it was given.
    pub fn get(&self, option: &AnalysisOption) -> Option<f64> {
        self.0.get(option.name).copied()
    }
}

/// Most rows of a table in a report, unless its analysis says otherwise.
pub const MOST_ROWS: usize = 1000;

/// A section of a capture's report.
#[derive(Debug, Clone)]
pub struct ReportSection {
    /// Heading.
    pub title: &'static str,
    /// What it shows, in order.
    pub parts: Vec<Part>,
    /// Most rows of a table. Further rows are only in the capture.
    pub most_rows: usize,
}

/// Something that a section of a report shows.
#[derive(Debug, Clone)]
pub enum Part {
    /// A table of one row, shown as figures.
    Figures(Table),
    /// A table.
    Table(Table),
    /// Columns of a table as a picture.
    Chart {
        /// The values.
        table: Table,
        /// The column of the horizontal axis.
        across: &'static str,
        /// What is drawn.
        marks: Vec<Mark>,
        /// What the axes are.
        caption: &'static str,
    },
    /// A call tree.
    FlameGraph(CallTree),
    /// Two call trees, compared.
    Difference(TreeDifference),
}

impl ReportSection {
    /// A section of these parts.
    pub fn new(title: &'static str, parts: Vec<Part>) -> Self {
        Self { title, parts, most_rows: MOST_ROWS }
    }

    /// A section of tables; none if all of them are without rows and notes.
    pub fn of_tables(title: &'static str, tables: Vec<Table>) -> Option<Self> {
        let is_empty = tables.iter().all(|table| table.rows.is_empty() && table.notes.is_empty());
        (!is_empty).then(|| Self::new(title, tables.into_iter().map(Part::Table).collect()))
    }

    /// The same; none if no table has rows.
    pub fn of_rows(title: &'static str, tables: Vec<Table>) -> Option<Self> {
        if tables.iter().all(|table| table.rows.is_empty()) { None } else { Self::of_tables(title, tables) }
    }

    /// A section of a flame graph; none if the tree is empty.
    pub fn of_tree(title: &'static str, tree: CallTree) -> Option<Self> {
        (tree.nodes[0].total > 0).then(|| Self::new(title, vec![Part::FlameGraph(tree)]))
    }

    /// The same section with at most this number of rows in a table.
    #[must_use]
    pub fn most_rows(self, most_rows: usize) -> Self {
        Self { most_rows, ..self }
    }
}

/// The tables of a view. If they have no rows because a dimension was not recorded, one note says so.
pub fn tables(analysis: &Analysis, view: &View, selection: &Selection<'_>, options: &OptionValues) -> Vec<Table> {
    let mut tables = (view.tables)(selection, options);
    if tables.iter().all(|table| table.rows.is_empty())
        && let Some(note) = analysis.needs.iter().find_map(|dimension| not_recorded(selection, *dimension))
    {
        tables.truncate(1);
        tables.iter_mut().for_each(|table| table.notes = vec![note.clone()]);
    }
    tables
}

/// Why a dimension was not recorded, and what to do; `None` if it was.
pub fn not_recorded(selection: &Selection<'_>, dimension: Dimension) -> Option<Note> {
    let capture = selection.capture();
    let has_samples = |role| events::of_role(capture, role).next().is_some();
    let has_data = match dimension {
        Dimension::Cpu => selection.event_id().is_some(),
        Dimension::Offcpu | Dimension::Sched => selection.has_switches(),
        Dimension::Faults => [Role::MinorFaults, Role::MajorFaults, Role::Faults].into_iter().any(has_samples),
        Dimension::Cache => has_samples(Role::CacheMisses) || !capture.event_counts.is_empty(),
        Dimension::Resources => capture.counters.iter().any(|one| !MACHINE_SPEED.contains(&&*one.name)),
        Dimension::Steps => !capture.steps.is_empty(),
        Dimension::Heap => !capture.allocations.is_empty(),
        Dimension::Syscalls => !capture.system_calls.is_empty(),
        Dimension::Sharing => !capture.data_accesses.is_empty(),
        Dimension::Memcheck => !capture.memory_errors.is_empty() || has_checker(capture),
        _ => false,
    };
    let name = NoteValue::names([dimension.name()], 1);
    match capture.info.dimensions.get(&dimension) {
        _ if has_data => None,
        Some(DimensionStatus::Recorded | DimensionStatus::Partial { .. }) => None,
        Some(DimensionStatus::Missing { reason, remedy: Some(remedy) }) => {
            Some(note!(Limit, "{} was not recorded: {}; fix: {}.", name, sentence(reason), sentence(remedy)))
        }
        Some(DimensionStatus::Missing { reason, remedy: None }) => {
            Some(note!(Limit, "{} was not recorded: {}.", name, sentence(reason)))
        }
        None => Some(note!(Limit, "{} was not recorded; fix: {}.", name, how_to_record(dimension))),
    }
}

/// Whether any checker of memory errors ran.
pub fn has_checker(capture: &Capture) -> bool {
    use Dimension::{Asan, Memcheck, Tsan, Ubsan};
    let ran = |status: &DimensionStatus| !matches!(status, DimensionStatus::Missing { .. });
    [Memcheck, Asan, Ubsan, Tsan].iter().any(|checker| capture.info.dimensions.get(checker).is_some_and(ran))
}

/// A sentence without its full stop.
fn sentence(text: &str) -> &str {
    text.trim_end_matches('.')
}

fn how_to_record(dimension: Dimension) -> String {
    match dimension {
        Dimension::Cpu => "`stepscope record --dimensions cpu`".to_owned(),
        Dimension::Steps => "`stepscope record --step-function NAME`, or mark steps in the program".to_owned(),
        Dimension::Heap => "`stepscope record --with heap`".to_owned(),
        Dimension::Sharing => "`stepscope record --with sharing`".to_owned(),
        Dimension::Memcheck => "`stepscope record --with memcheck` (or asan, ubsan, tsan)".to_owned(),
        other => format!("`stepscope record --dimensions cpu,{other}`"),
    }
}
