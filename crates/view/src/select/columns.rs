//! [`ColumnChoice`]: the columns to show. [`UnknownColumn`]: no table has a column of this name.

use std::fmt;
use std::str::FromStr;

use stepscope_model::Table;

/// Which columns are shown. Written `all`, or `NAME,NAME,...` in the order wanted.
///
/// A terminal shows these columns even if the line gets too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnChoice {
    /// Every column of the table.
    All,
    /// These, in this order.
    Named(Vec<String>),
}

/// A list of columns without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no column is named; write names with commas between them, or `all`")]
pub struct NoColumns;

impl FromStr for ColumnChoice {
    type Err = NoColumns;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() { Err(NoColumns) } else { Ok(Self::Named(names)) }
    }
}

impl ColumnChoice {
    /// The chosen columns that a table has. `None` if it has none of them: it keeps its own.
    pub(super) fn of(&self, table: &Table) -> Option<Vec<usize>> {
        let columns: Vec<usize> = match self {
            Self::All => (0..table.columns.len()).collect(),
            Self::Named(names) => names.iter().filter_map(|name| table.column(name)).collect(),
        };
        (!columns.is_empty()).then_some(columns)
    }

    /// The names given.
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Named(names) => names,
        }
    }
}

/// A column that no table has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn {
    /// The name given.
    pub name: String,
    /// The columns of the tables.
    pub available: Vec<String>,
}

impl UnknownColumn {
    /// Checks that some table has a column of this name.
    pub(super) fn check(name: &str, tables: &[Table]) -> Result<(), Self> {
        match tables.is_empty() || tables.iter().any(|table| table.column(name).is_some()) {
            true => Ok(()),
            false => Err(Self::of(name, tables)),
        }
    }

    pub(super) fn of(name: &str, tables: &[Table]) -> Self {
        let mut available: Vec<String> = Vec::new();
        for column in tables.iter().flat_map(|table| &table.columns) {
            if !available.contains(&column.name) {
                available.push(column.name.clone());
            }
        }
        Self { name: name.to_owned(), available }
    }

    /// The column that was probably meant.
    pub fn nearest(&self) -> Option<&str> {
        const ALIKE: f64 = 0.6;
        let name = self.name.to_lowercase();
        let likeness = |column: &str| {
            let is_part = column.contains(&name) || name.contains(column);
            f64::from(is_part) + strsim::normalized_damerau_levenshtein(&name, column)
        };
        let rated = self.available.iter().map(|column| (likeness(column), column));
        let (likeness, column) = rated.rev().max_by(|a, b| a.0.total_cmp(&b.0))?;
        (likeness >= ALIKE).then_some(column)
    }
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no column is named `{}`; ", self.name)?;
        match self.nearest() {
            Some(nearest) => write!(f, "did you mean `{nearest}`? The columns are ")?,
            None => f.write_str("the columns are ")?,
        }
        f.write_str(&self.available.join(", "))
    }
}

impl std::error::Error for UnknownColumn {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_column_is_suggested_if_one_is_near() {
        let nearest = |name: &str| {
            let available = ["function", "module", "self", "self_share", "owned"].map(str::to_owned).to_vec();
            UnknownColumn { name: name.to_owned(), available }.nearest().map(str::to_owned)
        };
        assert_eq!(nearest("slef").as_deref(), Some("self"));
        assert_eq!(nearest("self_shar").as_deref(), Some("self_share"));
        assert_eq!(nearest("Module").as_deref(), Some("module"));
        assert_eq!(nearest("share").as_deref(), Some("self_share"));
        assert_eq!(nearest("nonsense"), None);
        assert_eq!(nearest("vector"), None);
    }

    #[test]
    fn a_choice_names_each_column_once() {
        let named = |text: &str| text.parse::<ColumnChoice>();
        assert_eq!(named("share, function,share,"), Ok(ColumnChoice::Named(vec!["share".into(), "function".into()])));
        assert_eq!(named(" all "), Ok(ColumnChoice::All));
        assert_eq!(named(" , "), Err(NoColumns));
    }
}
