//! [`Document`]: a report as JSON.
//!
//! Values are raw: the page formats them by their column's kind and unit. Columns that are read together (an estimate and the
//! bounds of its interval) are marked, as the [reading](stepscope_view::reading) of the terminal finds them.
//! `web/src/profile/document.ts` has the same types.

use serde::Serialize;
use stepscope_analyze::Selection;
use stepscope_model::note::ShownNotes;
use stepscope_model::quantity::{grouped, unit_beside_name, weight};
use stepscope_model::{
    CallTree, Capture, Column, Importance, Kind, Mark, Note, NoteKind, Table, TreeDifference, Value,
};
use stepscope_view::chart::{Chart, Floor, Forest};
use stepscope_view::flamegraph;
use stepscope_view::reading::{Reading, is_prose, is_verdict};
use stepscope_view::report::anchor::Anchors;
use stepscope_view::report::{Block, Report, Section};

use crate::profile::cut;

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Heading.
    pub title: String,
    /// One line below it; may be empty.
    pub subtitle: String,
    /// Its context: name and value.
    pub about: Vec<FactEntry>,
    /// What limits all of it.
    pub warnings: Vec<NoteEntry>,
    /// Its sections, in order.
    pub sections: Vec<SectionEntry>,
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactEntry {
    /// The name.
    pub name: String,
    /// The value, in words.
    pub value: String,
}

/// A remark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoteEntry {
    /// `loss`, `limit`, `fact`, `hint` or `rows`.
    pub kind: &'static str,
    /// The sentence. Text in backticks is code.
    pub text: String,
}

impl NoteEntry {
    /// A remark as JSON.
    pub(crate) fn of(note: &Note) -> Self {
        Self { kind: name_of_note(note.kind()), text: whole(&note.to_string()) }
    }
}

/// A part of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SectionEntry {
    /// Heading.
    pub title: String,
    /// Its name in links, unique in the document.
    pub anchor: String,
    /// The capture that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<usize>,
    /// Remarks. A note appears once in a section of the top level.
    pub notes: Vec<NoteEntry>,
    /// Tables and pictures, in order.
    pub blocks: Vec<BlockEntry>,
    /// Sections within it.
    pub sections: Vec<SectionEntry>,
}

/// Something that a section shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum BlockEntry {
    /// A table whose rows are shown as groups of named figures.
    Figures {
        /// The table.
        table: TableEntry,
    },
    /// A table.
    Table {
        /// The table.
        table: TableEntry,
    },
    /// Columns of a table as a picture, and the table itself, folded.
    Chart {
        /// The table.
        table: TableEntry,
        /// The column of the horizontal axis.
        across: String,
        /// What is drawn, lowest first.
        marks: Vec<MarkEntry>,
        /// Description of the marks; may be empty.
        caption: String,
        /// Start of the vertical axis: `zero`, `least`, or `ratios` for two logarithmic axes.
        floor: &'static str,
    },
    /// Ratios of a table and their intervals on a logarithmic axis.
    Forest {
        /// The table.
        table: TableEntry,
        /// Columns: names, ratios, `new` or `vanished`, verdicts.
        label: String,
        /// The column of ratios. Its bounds are those of the column.
        ratio: String,
        /// The column that marks rows without a ratio.
        presence: String,
        /// The column of verdicts.
        verdict: String,
        /// Ratios from `1 / (1 + tolerance)` to `1 + tolerance` count as no change.
        tolerance: f64,
        /// Rows to draw.
        most: usize,
    },
    /// A call tree: of samples and waits a link to the flame graph in `Explore`, of other evidence the tree itself.
    Flame {
        /// Heading.
        title: String,
        /// Second line.
        subtitle: String,
        /// Its whole weight, in words.
        weight: String,
        /// Unit of the weights.
        unit: String,
        /// Number of frames.
        nodes: usize,
        /// The tree, if `Explore` cannot draw it. `web/src/tree.ts` decodes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        tree: Option<serde_json::Value>,
    },
    /// Two call trees as one. `web/src/tree.ts` decodes it.
    Difference {
        /// Both trees.
        tree: serde_json::Value,
    },
}

/// What is drawn of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkEntry {
    /// `line`, `band`, `points`, `steps`, `interval`, `bars` or `rules`.
    pub kind: &'static str,
    /// Its columns: of a band and an interval the lower and the upper one, of bars where they end and how high they are.
    pub columns: Vec<String>,
}

/// A table by columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableEntry {
    /// Stable name of the analysis' result.
    pub name: String,
    /// Heading; empty if it is that of the section.
    pub title: String,
    /// The columns.
    pub columns: Vec<ColumnEntry>,
    /// Notes that were not shown before.
    pub notes: Vec<NoteEntry>,
}

/// A column and its values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnEntry {
    /// Stable name.
    pub name: String,
    /// Header.
    pub header: String,
    /// Unit to write beside the header; may be empty.
    pub beside: String,
    /// Unit of the values.
    pub unit: String,
    /// What it means.
    pub doc: String,
    /// `text`, `prose`, `count`, `duration`, `bytes`, `percent`, `number`, `inrowunit` or `flag`.
    pub kind: &'static str,
    /// `detail`, `normal` or `essential`.
    pub importance: &'static str,
    /// Whether rows of one value belong together.
    #[serde(skip_serializing_if = "is_false")]
    pub groups: bool,
    /// Whether its text stands below the row.
    #[serde(skip_serializing_if = "is_false")]
    pub below: bool,
    /// Whether its texts are sentences or words of ours, not names.
    #[serde(skip_serializing_if = "is_false")]
    pub prose: bool,
    /// Whether its texts are verdicts.
    #[serde(skip_serializing_if = "is_false")]
    pub verdict: bool,
    /// The columns of the interval's bounds, low and high. They are shown in the estimate's cell and not by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[usize; 2]>,
    /// The value of each row: a number, a text, true, false, or null where it is unknown.
    pub values: Vec<Value>,
}

/// A text of bearable length: a name of megabytes is damaged or hostile.
fn whole(text: &str) -> String {
    cut(text).into_owned()
}

fn shown(value: &Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(whole(text)),
        value => value.clone(),
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Document {
    /// As JSON.
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a report has only text keys")
    }

    /// A report on these captures, in their order.
    pub fn of(report: &Report, selections: &[Selection<'_>]) -> Self {
        let captures: Vec<Explored> = selections.iter().map(Explored::of).collect();
        let mut writer =
            Writer { anchors: Anchors::default(), shown: ShownNotes::default(), captures: &captures, next: 0 };
        let warnings = writer.notes(&report.warnings);
        Self {
            title: whole(&report.title),
            subtitle: whole(&report.subtitle),
            about: report
                .about
                .iter()
                .map(|fact| FactEntry { name: whole(&fact.name), value: whole(&fact.value) })
                .collect(),
            warnings,
            sections: report.sections.iter().map(|section| writer.top(section)).collect(),
        }
    }
}

/// The anchor of a capture's section, by which the document knows what the section is about.
pub fn section_anchor(capture: &Capture) -> String {
    let label = capture.info.name().replace('/', "-");
    capture.info.repetition.map_or(label.clone(), |repetition| format!("{label}-{repetition}"))
}

/// A capture that `Explore` shows.
struct Explored {
    /// The anchor of its section.
    anchor: String,
    /// Units of its samples and waits.
    units: Vec<String>,
}

impl Explored {
    fn of(selection: &Selection<'_>) -> Self {
        let capture = selection.capture();
        let events = capture.info.events.iter().map(|event| event.unit.clone());
        Self { anchor: section_anchor(capture), units: events.chain(["ns".to_owned()]).collect() }
    }
}

/// Makes sections in their order.
struct Writer<'c> {
    anchors: Anchors,
    shown: ShownNotes,
    captures: &'c [Explored],
    /// The first capture without a section.
    next: usize,
}

impl Writer<'_> {
    fn top(&mut self, section: &Section) -> SectionEntry {
        let before = self.shown.count();
        let is_about = |capture: &Explored| capture.anchor == section.anchor;
        let capture = self.captures[self.next..].iter().position(is_about).map(|place| self.next + place);
        self.next = capture.map_or(self.next, |capture| capture + 1);
        let entry = self.section(section, "", capture);
        self.shown.truncate(before);
        entry
    }

    fn section(&mut self, section: &Section, within: &str, capture: Option<usize>) -> SectionEntry {
        let anchor = self.anchors.give(within, &section.anchor, &section.title);
        SectionEntry {
            title: whole(&section.title),
            capture,
            notes: self.notes(&section.notes),
            blocks: section.blocks.iter().map(|block| self.block(block, &section.title, capture)).collect(),
            sections: section.sections.iter().map(|section| self.section(section, &anchor, capture)).collect(),
            anchor,
        }
    }

    fn block(&mut self, block: &Block, heading: &str, capture: Option<usize>) -> BlockEntry {
        match block {
            Block::Figures(table) => BlockEntry::Figures { table: self.table(table, heading) },
            Block::Table(table) => BlockEntry::Table { table: self.table(table, heading) },
            Block::Chart(chart) => self.chart(chart),
            Block::Forest(forest) => self.forest(forest),
            Block::FlameGraph(tree) => flame(tree, capture.map(|capture| &self.captures[capture])),
            Block::Difference(difference) => BlockEntry::Difference { tree: encoded(difference) },
        }
    }

    fn chart(&mut self, chart: &Chart) -> BlockEntry {
        BlockEntry::Chart {
            table: self.table(&chart.table, ""),
            across: chart.across.clone(),
            marks: chart.marks.iter().map(mark).collect(),
            caption: chart.caption.clone(),
            floor: match chart.floor {
                Floor::Zero => "zero",
                Floor::Least => "least",
                Floor::Ratios => "ratios",
            },
        }
    }

    fn forest(&mut self, forest: &Forest) -> BlockEntry {
        BlockEntry::Forest {
            table: self.table(&forest.table, ""),
            label: forest.label.clone(),
            ratio: forest.ratio.clone(),
            presence: forest.presence.clone(),
            verdict: forest.verdict.clone(),
            tolerance: forest.tolerance,
            most: forest.most,
        }
    }

    fn table(&mut self, table: &Table, heading: &str) -> TableEntry {
        let reading = Reading::of(table);
        let entry = |(index, column): (usize, &Column)| ColumnEntry {
            name: whole(&column.name),
            header: header(column),
            beside: unit_beside_name(column).to_owned(),
            unit: whole(&column.unit),
            doc: whole(&column.doc),
            kind: name_of_kind(column.kind),
            importance: match column.importance {
                Importance::Detail => "detail",
                Importance::Normal => "normal",
                Importance::Essential => "essential",
            },
            groups: column.groups_rows,
            below: column.below,
            prose: is_prose(column),
            verdict: is_verdict(column),
            bounds: reading.fields.iter().find(|field| field.column == index).and_then(|field| field.bounds),
            values: table.rows.iter().map(|row| shown(&row[index])).collect(),
        };
        TableEntry {
            name: table.name.clone(),
            title: if table.title == heading { String::new() } else { whole(&table.title) },
            columns: table.columns.iter().enumerate().map(entry).collect(),
            notes: self.notes(&table.notes),
        }
    }

    /// The notes that were not shown yet.
    fn notes(&mut self, notes: &[Note]) -> Vec<NoteEntry> {
        self.shown.add(notes).iter().map(NoteEntry::of).collect()
    }
}

fn flame(tree: &CallTree, capture: Option<&Explored>) -> BlockEntry {
    let total: u64 = tree.nodes.first().map_or(0, |root| root.total);
    let is_explored = capture.is_some_and(|capture| capture.units.contains(&tree.unit));
    let drawn = || with_cut_names(&flamegraph::encode(tree));
    BlockEntry::Flame {
        title: whole(&tree.title),
        subtitle: whole(&tree.subtitle),
        weight: format!("{} in {} frames", weight(total, &tree.unit), grouped(tree.nodes.len() as i128)),
        unit: tree.unit.clone(),
        nodes: tree.nodes.len(),
        tree: (!is_explored).then(drawn),
    }
}

fn encoded(difference: &TreeDifference) -> serde_json::Value {
    with_cut_names(&flamegraph::encode_difference(difference))
}

/// What the encoder of flame graphs writes, with names of bearable length.
fn with_cut_names(encoded: &str) -> serde_json::Value {
    let mut tree: serde_json::Value = serde_json::from_str(encoded).expect("the encoder writes JSON");
    for name in tree["strings"].as_array_mut().into_iter().flatten() {
        if let serde_json::Value::String(text) = name {
            *text = whole(text);
        }
    }
    tree
}

fn mark(mark: &Mark) -> MarkEntry {
    let (kind, columns): (_, Vec<&String>) = match mark {
        Mark::Line(column) => ("line", vec![column]),
        Mark::Band(low, high) => ("band", vec![low, high]),
        Mark::Points(column) => ("points", vec![column]),
        Mark::Steps(column) => ("steps", vec![column]),
        Mark::Interval(low, high) => ("interval", vec![low, high]),
        Mark::Bars { to, height } => ("bars", vec![to, height]),
        Mark::Rules(column) => ("rules", vec![column]),
    };
    MarkEntry { kind, columns: columns.into_iter().cloned().collect() }
}

/// The header of a column: its label, else its name in words.
pub(crate) fn header(column: &Column) -> String {
    let label = column.label.as_deref().filter(|label| *label != column.name);
    label.map_or_else(|| whole(&column.name).split('_').map(word).collect::<Vec<_>>().join(" "), whole)
}

/// Abbreviations are capitals.
fn word(word: &str) -> &str {
    match word {
        "cpu" => "CPU",
        "cpus" => "CPUs",
        "ipc" => "IPC",
        "rss" => "RSS",
        "rtf" => "RTF",
        other => other,
    }
}

fn name_of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Prose => "prose",
        Kind::Count => "count",
        Kind::Duration => "duration",
        Kind::Bytes => "bytes",
        Kind::Percent => "percent",
        Kind::Number => "number",
        Kind::InRowUnit => "inrowunit",
        Kind::Flag => "flag",
    }
}

fn name_of_note(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Loss => "loss",
        NoteKind::Limit => "limit",
        NoteKind::Fact => "fact",
        NoteKind::Hint => "hint",
        NoteKind::Rows => "rows",
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{CallNode, FrameKind};

    use super::*;

    #[test]
    fn headers_are_words() {
        let column = Column::number("rtf_after", "", "");
        assert_eq!(header(&column), "RTF after");
        assert_eq!(header(&column.clone().labelled("rtf_after")), "RTF after", "a label that is the name");
        assert_eq!(header(&column.labelled("#")), "#");
    }

    #[test]
    fn names_of_flame_graphs_are_cut() {
        let node = |name: String, parent| CallNode {
            parent,
            name: name.into(),
            module: "".into(),
            source: "".into(),
            kind: FrameKind::Native,
            owned: false,
            inlined: false,
            total: 1,
            own: 0,
        };
        let nodes = vec![node("all".into(), None), node("n::".repeat(1_000_000), Some(0))];
        let tree = CallTree { title: "".into(), subtitle: "".into(), unit: "ns".into(), nodes, inverted: false };
        let drawn = serde_json::to_string(&flame(&tree, None)).unwrap();
        assert!(drawn.len() < 20_000 && drawn.contains("n::n::"), "{} bytes", drawn.len());
    }
}
