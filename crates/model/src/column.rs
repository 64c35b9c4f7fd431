//! [`Column`]: a table's column, without its values.

use serde::Serialize;

/// A column's name, unit, meaning and form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Column {
    /// Stable machine-readable name, `snake_case`.
    pub name: String,
    /// Unit of its values: `ns`, `percent`, `bytes`, `cycles`, ...; empty for names and flags.
    pub unit: String,
    /// What it means, in a sentence.
    pub doc: String,
    /// Header for people, where it says more than the name: a variant's name in place of `before`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How its values are shown to people; the values themselves stay exact.
    #[serde(skip)]
    pub kind: Kind,
    /// How soon it is left out of a narrow output; the machine-readable formats have every column.
    #[serde(skip)]
    pub importance: Importance,
    /// Whether rows of one value belong together, such as those of one capture: a limit of rows applies to each group.
    #[serde(skip)]
    pub groups_rows: bool,
    /// Whether a limit of rows keeps those with the largest values here, and not the first ones: the rows are a tree, and no row
    /// has more than the one above it that contains it.
    #[serde(skip)]
    pub weighs_rows: bool,
    /// Whether people read its text below the row, over the whole line, and not beside the other columns.
    #[serde(skip)]
    pub below: bool,
}

/// How soon a column is left out of a narrow output, least important first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// Answers a further question: left out first.
    Detail,
    /// Shown if it fits.
    #[default]
    Normal,
    /// Answers the table's question: never left out.
    Essential,
}

/// How a column's values are shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name, left-aligned; shortened where a terminal is narrow.
    Text,
    /// Sentences and commands: wrapped at spaces, never shortened.
    Prose,
    /// A number of things.
    Count,
    /// A duration in ns, shown in a readable unit.
    Duration,
    /// A size in bytes, shown in a readable unit.
    Bytes,
    /// A percentage, 0 to 100, one or two decimals.
    Percent,
    /// Any other number.
    Number,
    /// A number in the unit that the row's `unit` column names (`ns`, `bytes`, `ns/step`, ...), for tables whose rows are
    /// different quantities.
    InRowUnit,
    /// Yes or no.
    Flag,
}

impl Kind {
    /// Whether the values are text: names or prose.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::Prose)
    }
}

impl Column {
    /// A column.
    pub fn new(name: &str, kind: Kind, unit: impl Into<String>, doc: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.into(),
            doc: doc.into(),
            label: None,
            kind,
            importance: Importance::Normal,
            groups_rows: false,
            weighs_rows: false,
            below: false,
        }
    }

    /// A column of names.
    pub fn text(name: &str, doc: &str) -> Self {
        Self::new(name, Kind::Text, "", doc)
    }

    /// A column of sentences.
    pub fn prose(name: &str, doc: &str) -> Self {
        Self::new(name, Kind::Prose, "", doc)
    }

    /// A column of yes or no.
    pub fn flag(name: &str, doc: &str) -> Self {
        Self::new(name, Kind::Flag, "", doc)
    }

    /// A column of percentages.
    pub fn percentage(name: &str, doc: &str) -> Self {
        Self::new(name, Kind::Percent, "percent", doc)
    }

    /// A column of durations in ns.
    pub fn duration(name: &str, doc: &str) -> Self {
        Self::new(name, Kind::Duration, "ns", doc)
    }

    /// A column of sizes in bytes.
    pub fn bytes(name: &str, doc: &str) -> Self {
        Self::new(name, Kind::Bytes, "bytes", doc)
    }

    /// A column of numbers of things.
    pub fn count(name: &str, unit: &str, doc: &str) -> Self {
        Self::new(name, Kind::Count, unit, doc)
    }

    /// A column of other numbers.
    pub fn number(name: &str, unit: &str, doc: &str) -> Self {
        Self::new(name, Kind::Number, unit, doc)
    }

    /// A column of weights in `unit`.
    pub fn weight(name: &str, unit: &str, doc: &str) -> Self {
        let kind = match unit {
            "ns" => Kind::Duration,
            "bytes" => Kind::Bytes,
            "samples" | "faults" | "misses" => Kind::Count,
            _ => Kind::Number,
        };
        Self::new(name, kind, unit, doc)
    }

    /// The same column with this header for people.
    pub fn labelled(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// The same column, whose largest values a limit of rows keeps.
    pub fn weighing(self) -> Self {
        Self { weighs_rows: true, ..self }
    }

    /// The same column, whose equal values group rows.
    pub fn grouping(self) -> Self {
        Self { groups_rows: true, ..self }
    }

    /// The same column as prose below its row: what is too long to stand beside numbers.
    pub fn below(self) -> Self {
        Self { kind: Kind::Prose, below: true, ..self }
    }

    /// The header for people: the label, else the name.
    pub fn header(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    /// The same column of this importance.
    pub fn at(self, importance: Importance) -> Self {
        Self { importance, ..self }
    }

    /// The same column as a [`Importance::Detail`].
    pub fn detail(self) -> Self {
        self.at(Importance::Detail)
    }

    /// The same column as [`Importance::Essential`].
    pub fn essential(self) -> Self {
        self.at(Importance::Essential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importance_orders_columns_and_is_not_serialised() {
        let column = Column::new("self", Kind::Number, "cycles", "Self.");
        assert!(column.clone().detail().importance < column.importance);
        assert!(column.importance < column.clone().essential().importance);
        let written = |column: &Column| serde_json::to_string(column).unwrap();
        assert_eq!(written(&column.clone().essential()), written(&column));
    }
}
