//! What a report holds: [`Report`], its sections, and their tables, charts and call trees.
//!
//! `stepscope-lab` composes reports; `stepscope-app` shows them as one HTML file or serves them.
//!
//! ```
//! use stepscope_model::{Column, Kind, Table};
//! use stepscope_view::report::{Report, Section};
//!
//! let mut threads = Table::new("threads", "Threads", vec![Column::new("cpu", Kind::Duration, "ns", "Time on a CPU.")]);
//! threads.push(vec![1_230_000_000_u64.into()]);
//! let report = Report::new("Nightly run")
//!     .fact("machine", "2 cores, Linux 6.18")
//!     .section(Section::new("shapes · steady").section(Section::new("Threads").table(threads)));
//! assert_eq!(report.sections[0].sections[0].title, "Threads");
//! ```

pub mod anchor;

use stepscope_model::{CallTree, Note, Table, TreeDifference};

use crate::chart::{Chart, Forest};

/// A report: its title, facts and sections.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Report {
    /// Heading, and the title of the page.
    pub title: String,
    /// One line below it; may be empty.
    pub subtitle: String,
    /// Its context: tool version, machine, date, command.
    pub about: Vec<Fact>,
    /// What limits all of the report. Sections do not repeat these notes.
    pub warnings: Vec<Note>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// A name and its value, such as `machine` and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// The fact, in words.
    pub value: String,
}

/// A titled part of a report: remarks, then blocks, then sections within it.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Name in links; if empty, made from the title. Anchors of sections within others start with those of the others
    /// and a slash; one that is taken gets a number.
    pub anchor: String,
    /// Remarks, a paragraph each.
    pub notes: Vec<Note>,
    /// Tables, charts and flame graphs, in order.
    pub blocks: Vec<Block>,
    /// Sections within this one.
    pub sections: Vec<Section>,
}

/// Something that a section shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A table whose rows are shown as groups of named figures: for a summary of one row, or of a few.
    Figures(Table),
    /// A table: sortable, filterable; a long one is folded to its first rows.
    Table(Table),
    /// Columns of a table as a picture, and the table itself, folded.
    Chart(Chart),
    /// Ratios of a table and their intervals as a picture; the table is for a block of its own.
    Forest(Forest),
    /// A call tree as an interactive flame graph.
    FlameGraph(CallTree),
    /// Two call trees as a differential flame graph.
    Difference(TreeDifference),
}

impl Report {
    /// A report without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// With a line below the title.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// With one more fact.
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.about.push(Fact { name: name.into(), value: value.into() });
        self
    }

    /// With one more warning.
    pub fn warning(mut self, warning: impl Into<Note>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// With one more section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Section {
    /// A section without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// With a name for links of its own.
    pub fn anchor(mut self, anchor: impl Into<String>) -> Self {
        self.anchor = anchor.into();
        self
    }

    /// With one more remark.
    pub fn note(mut self, note: impl Into<Note>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With a table shown as figures: [`Block::Figures`].
    pub fn figures(mut self, table: Table) -> Self {
        self.blocks.push(Block::Figures(table));
        self
    }

    /// With one more table.
    pub fn table(mut self, table: Table) -> Self {
        self.blocks.push(Block::Table(table));
        self
    }

    /// With one more chart.
    pub fn chart(mut self, chart: Chart) -> Self {
        self.blocks.push(Block::Chart(chart));
        self
    }

    /// With one more picture of ratios.
    pub fn forest(mut self, forest: Forest) -> Self {
        self.blocks.push(Block::Forest(forest));
        self
    }

    /// With one more call tree, drawn as a flame graph.
    pub fn flame_graph(mut self, tree: CallTree) -> Self {
        self.blocks.push(Block::FlameGraph(tree));
        self
    }

    /// With two call trees, drawn as a differential flame graph.
    pub fn difference(mut self, difference: TreeDifference) -> Self {
        self.blocks.push(Block::Difference(difference));
        self
    }

    /// With one more section within this one.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}
