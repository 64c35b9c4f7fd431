//! [`Table`]: what every analysis makes and every output shows.

use std::borrow::Borrow;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::column::{Column, Importance};
use crate::note::{Note, ShownNotes};
use crate::quantity::number;
use crate::value::Value;

/// The result of an analysis: typed columns with units and meaning, rows, and notes.
///
/// Serialises to the object that `--format json` prints: `{"table", "columns", "rows", "notes"}`, each row an object
/// keyed by column name.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Stable name of the analysis' result, e.g. `hotspots`.
    pub name: String,
    /// One sentence for a heading, e.g. `On-CPU time by function`.
    pub title: String,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows; each has a value for every column.
    pub rows: Vec<Row>,
    /// What a reader needs to judge the rows: losses, limits, totals, what to do next.
    pub notes: Vec<Note>,
}

/// One row's values, in the order of the table's columns.
pub type Row = Vec<Value>;

impl Table {
    /// An empty table.
    pub fn new(name: &str, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { name: name.to_owned(), title: title.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row does not have one value per column.
    pub fn push(&mut self, row: Row) {
        assert_eq!(row.len(), self.columns.len(), "a row of `{}` has one value per column", self.name);
        self.rows.push(row);
    }

    /// Adds a note, unless the table has it.
    pub fn note(&mut self, note: impl Into<Note>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds the notes that the table does not have.
    pub fn add_notes(&mut self, notes: impl IntoIterator<Item = impl Into<Note>>) {
        notes.into_iter().for_each(|note| self.note(note));
    }

    /// Removes columns by name; unknown names change nothing.
    pub fn drop_columns(&mut self, names: &[&str]) {
        self.retain_columns(|column| !names.contains(&column.name.as_str()));
    }

    /// Removes the columns that `keep` refuses.
    pub fn retain_columns(&mut self, keep: impl Fn(&Column) -> bool) {
        let keep: Vec<bool> = self.columns.iter().map(keep).collect();
        let mut kept = keep.iter();
        self.columns.retain(|_| *kept.next().expect("one flag per column"));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| *kept.next().expect("a row has one value per column"));
        }
    }

    /// Keeps this many rows of a tree, those with the largest weights, in their order: a row stays if one below it does. False if the
    /// table has no more rows, or no column [weighs](Column::weighs_rows) them.
    pub fn keep_largest(&mut self, limit: usize) -> bool {
        let weights: Vec<usize> = (0..self.columns.len()).filter(|&index| self.columns[index].weighs_rows).collect();
        if weights.is_empty() || self.rows.len() <= limit {
            return false;
        }
        let weight = |row: &Row| weights.iter().filter_map(|&index| number(&row[index])).fold(0.0, f64::max);
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        // Of equal rows the first stays, which contains the others.
        order.sort_by(|&one, &other| weight(&self.rows[other]).total_cmp(&weight(&self.rows[one])));
        let mut is_kept = vec![false; order.len()];
        order[..limit].iter().for_each(|&row| is_kept[row] = true);
        let mut is_kept = is_kept.into_iter();
        self.rows.retain(|_| is_kept.next().expect("one flag per row"));
        true
    }

    /// Index of the column of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The value at a row and a named column. `None` if there is no such row or column.
    pub fn get(&self, row: usize, column: &str) -> Option<&Value> {
        self.rows.get(row)?.get(self.column(column)?)
    }

    /// The text at a row and a named column. `None` if there is no such row or column, or the value is no text.
    pub fn text(&self, row: usize, column: &str) -> Option<&str> {
        match self.get(row, column)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Columns that fill themselves from rows of type `R`: each has its name, unit, doc and the closure that reads its value.
///
/// ```
/// use stepscope_model::{Columns, Value};
///
/// struct Thread { name: &'static str, running_ns: u64 }
/// let table = Columns::<Thread>::new()
///     .text("thread", "Name of the thread.", |thread| thread.name.into())
///     .duration("running", "On a CPU.", |thread| thread.running_ns)
///     .essential("thread")
///     .table("wall", "Wall time by thread", [Thread { name: "main", running_ns: 42 }]);
/// assert_eq!(table.get(0, "running"), Some(&Value::from(42)));
/// ```
#[must_use]
pub struct Columns<'a, R> {
    filled: Vec<(Column, Fill<'a, R>)>,
}

/// Reads a column's value from a row.
type Fill<'a, R> = Box<dyn Fn(&R) -> Value + 'a>;

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Self { filled: Vec::new() }
    }
}

impl<'a, R> Columns<'a, R> {
    /// No columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column and what fills it.
    pub fn with(mut self, column: Column, fill: impl Fn(&R) -> Value + 'a) -> Self {
        self.filled.push((column, Box::new(fill)));
        self
    }

    /// Adds a column if `condition` holds.
    pub fn with_if(self, condition: bool, column: Column, fill: impl Fn(&R) -> Value + 'a) -> Self {
        if condition { self.with(column, fill) } else { self }
    }

    /// Adds a column of names.
    pub fn text(self, name: &str, doc: &str, fill: impl Fn(&R) -> Value + 'a) -> Self {
        self.with(Column::text(name, doc), fill)
    }

    /// Adds a column of sentences.
    pub fn prose(self, name: &str, doc: &str, fill: impl Fn(&R) -> Value + 'a) -> Self {
        self.with(Column::prose(name, doc), fill)
    }

    /// Adds a column of yes or no.
    pub fn flag<V: Into<Value>>(self, name: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::flag(name, doc), move |row| fill(row).into())
    }

    /// Adds a column of percentages.
    pub fn percentage<V: Into<Value>>(self, name: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::percentage(name, doc), move |row| fill(row).into())
    }

    /// Adds a column of durations in ns.
    pub fn duration<V: Into<Value>>(self, name: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::duration(name, doc), move |row| fill(row).into())
    }

    /// Adds a column of sizes in bytes.
    pub fn bytes<V: Into<Value>>(self, name: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::bytes(name, doc), move |row| fill(row).into())
    }

    /// Adds a column of numbers of things.
    pub fn count<V: Into<Value>>(self, name: &str, unit: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::count(name, unit, doc), move |row| fill(row).into())
    }

    /// Adds a column of other numbers.
    pub fn number<V: Into<Value>>(self, name: &str, unit: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::number(name, unit, doc), move |row| fill(row).into())
    }

    /// Adds a column of weights in `unit`.
    pub fn weight<V: Into<Value>>(self, name: &str, unit: &str, doc: &str, fill: impl Fn(&R) -> V + 'a) -> Self {
        self.with(Column::weight(name, unit, doc), move |row| fill(row).into())
    }

    /// Makes the columns of these names (with spaces between) [`Importance::Essential`]. Panics if a name has no column.
    pub fn essential(self, names: &str) -> Self {
        self.at(Importance::Essential, names)
    }

    /// Makes the columns of these names (with spaces between) [`Importance::Detail`]. Panics if a name has no column.
    pub fn detail(self, names: &str) -> Self {
        self.at(Importance::Detail, names)
    }

    /// Makes a limit of rows keep the [largest](Column::weighs_rows) of this column. Panics if the name has no column.
    pub fn weighing(mut self, name: &str) -> Self {
        self.column_named(name).weighs_rows = true;
        self
    }

    fn column_named(&mut self, name: &str) -> &mut Column {
        let column = self.filled.iter_mut().map(|(column, _)| column).find(|column| column.name == name);
        column.unwrap_or_else(|| panic!("there is no column `{name}`"))
    }

    fn at(mut self, importance: Importance, names: &str) -> Self {
        for name in names.split_whitespace() {
            self.column_named(name).importance = importance;
        }
        self
    }

    /// Adds columns that other tables have too.
    pub fn with_all(mut self, columns: Columns<'a, R>) -> Self {
        self.filled.extend(columns.filled);
        self
    }

    /// The same columns for rows that contain an `R`.
    pub fn on<S>(self, part: impl Fn(&S) -> &R + Clone + 'a) -> Columns<'a, S>
    where
        R: 'a,
    {
        let on = |(column, fill): (Column, Fill<'a, R>)| {
            let part = part.clone();
            let fill: Fill<'a, S> = Box::new(move |row| fill(part(row)));
            (column, fill)
        };
        Columns { filled: self.filled.into_iter().map(on).collect() }
    }

    /// The table of these rows.
    pub fn table(self, name: &str, title: impl Into<String>, rows: impl IntoIterator<Item = impl Borrow<R>>) -> Table {
        let (columns, fills): (Vec<Column>, Vec<Fill<'a, R>>) = self.filled.into_iter().unzip();
        let mut table = Table::new(name, title, columns);
        table.rows = rows.into_iter().map(|row| fills.iter().map(|fill| fill(row.borrow())).collect()).collect();
        table
    }
}

/// Removes notes that an earlier table of the same output already has, and orders each table's notes by
/// importance.
pub fn collapse(tables: &mut [Table]) {
    let mut shown = ShownNotes::default();
    for table in tables {
        table.notes = shown.add(&table.notes);
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("table", &self.name)?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("columns", &self.columns)?;
        map.serialize_entry("rows", &Rows(self))?;
        map.serialize_entry("notes", &self.notes)?;
        map.end()
    }
}

struct Rows<'a>(&'a Table);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.rows.len()))?;
        for row in &self.0.rows {
            seq.serialize_element(&Named(&self.0.columns, row))?;
        }
        seq.end()
    }
}

struct Named<'a>(&'a [Column], &'a Row);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (column, value) in self.0.iter().zip(self.1) {
            map.serialize_entry(&column.name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Kind;
    use crate::note;

    #[test]
    fn a_table_serialises_rows_as_objects_with_exact_integers() {
        let mut table = Table::new(
            "hotspots",
            "On-CPU time by function",
            vec![
                Column::new("function", Kind::Text, "", "The function."),
                Column::new("self", Kind::Number, "cycles", "Self."),
            ],
        );
        table.push(vec!["std::function<bool ".into(), 156_578_009_190_u64.into()]);
        table.notes.push("A remark.".into());
        assert_eq!(
            serde_json::to_string(&table).unwrap(),
            r#"{"table":"hotspots","title":"On-CPU time by function","columns":[{"name":"function","unit":"","doc":"The function."},{"name":"self","unit":"cycles","doc":"Self."}],"rows":[{"function":"std::function<bool ","self":156578009190}],"notes":["A remark."]}"#
        );
    }

    #[test]
    fn shared_columns_fill_themselves_from_a_part_of_a_row() {
        struct Function(&'static str);
        let names = || {
            let doc = Column::new("function", Kind::Text, "", "The function.");
            Columns::<Function>::new().with(doc, |function| function.0.into())
        };
        let share = || Column::new("share", Kind::Percent, "percent", "Its share.");
        let table = Columns::new()
            .with_all(names().on(|row: &(Function, f64)| &row.0))
            .with(share(), |row| row.1.into())
            .with_if(false, share(), |row| row.1.into())
            .table("hotspots", "", &[(Function("gz::Step"), 12.5)]);
        assert_eq!(table.rows, [[Value::from("gz::Step"), Value::from(12.5)]]);
    }

    #[test]
    fn equal_notes_of_one_output_are_shown_once_and_losses_come_first() {
        let mut tables = [Table::new("a", "A", vec![]), Table::new("b", "B", vec![])];
        tables[0].notes = vec![note!(Hint, "Do."), note!(Loss, "Lost.")];
        tables[1].notes = vec![note!(Loss, "Lost."), note!(Fact, "Total.")];
        collapse(&mut tables);
        assert_eq!(tables[0].notes, [note!(Loss, "Lost."), note!(Hint, "Do.")]);
        assert_eq!(tables[1].notes, [note!(Fact, "Total.")]);
    }
}
