//! Which rows and columns of tables are shown, and in which order: `--filter`, `--sort`, `--limit`, `--columns`.

mod columns;
mod filter;
mod sort;

pub use columns::{ColumnChoice, NoColumns, UnknownColumn};
pub use filter::Filter;
pub use sort::{Direction, Sort};

use stepscope_model::{Column, Importance, NoteValue, Table, Value, note};

/// What a reader asked to see of some tables. The default is all of them, unchanged.
#[derive(Debug, Clone, Default)]
pub struct TableQuery {
    /// Only rows that pass all of these are shown.
    pub filters: Vec<Filter>,
    /// The order; if `None`, the table's own.
    pub sort: Option<Sort>,
    /// The most rows of a table to show; of each group, if a column [groups](Column::groups_rows) the rows.
    pub limit: Option<usize>,
    /// The columns. If `None`, all of them; a terminal shows those that fit.
    pub columns: Option<ColumnChoice>,
}

/// Why a query does not fit the tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No table has such a column.
    #[error(transparent)]
    UnknownColumn(#[from] UnknownColumn),
    /// A pattern that is not a regular expression.
    #[error(
        "`{pattern}` is not a regular expression: {reason}; put a backslash before characters that stand for themselves"
    )]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that the column's values cannot be compared with.
    #[error("`{value}` is not a number to compare column `{column}` with; write one such as 5, 1.5, 10ms, 2MiB or 5%")]
    NotANumber {
        /// The column.
        column: String,
        /// The text given.
        value: String,
    },
}

impl TableQuery {
    /// Filters, then sorts, then limits the rows of each table, and chooses its columns. Notes say what is not shown.
    ///
    /// Each table is filtered and sorted by the columns that it has. A table that has none of the chosen columns keeps its
    /// own.
    ///
    /// # Errors
    /// If no table has a column that the query names; if a filter compares what cannot be compared.
    pub fn apply(&self, tables: &mut [Table]) -> Result<(), QueryError> {
        let sort = self.sort.iter().map(|sort| &sort.column);
        let chosen = self.columns.iter().flat_map(ColumnChoice::names);
        sort.chain(chosen).try_for_each(|name| UnknownColumn::check(name, tables))?;
        let names_column: Vec<bool> =
            self.filters.iter().map(|filter| filter.names_column(tables)).collect::<Result<_, _>>()?;
        for table in tables {
            self.filter(&names_column, table)?;
            if let Some(sort) = &self.sort {
                sort.apply(table);
                // The sort column must be visible.
                table.columns.iter_mut().filter(|column| column.name == sort.column).for_each(make_essential);
            }
            if let Some(limit) = self.limit {
                limit_rows(table, limit, self.sort.is_some());
            }
            if let Some(columns) = self.columns.as_ref().and_then(|columns| columns.of(table)) {
                keep_columns(table, &columns);
            }
        }
        Ok(())
    }

    fn filter(&self, names_column: &[bool], table: &mut Table) -> Result<(), QueryError> {
        let mut conditions = Vec::new();
        for (filter, &names_column) in self.filters.iter().zip(names_column) {
            match filter.bind(names_column, table)? {
                Some(condition) => conditions.push(condition),
                None => table.note(note!(Limit, "`{}` does not filter tables without that column.", filter.text())),
            }
        }
        let all = table.rows.len();
        table.rows.retain(|row| conditions.iter().all(|condition| condition.holds(row)));
        if table.rows.len() < all {
            let [hidden, all] = [all - table.rows.len(), all].map(NoteValue::number);
            table.note(note!(Rows, "{} of {} rows do not match the filter.", hidden, all));
        }
        Ok(())
    }
}

/// Keeps the first rows, or those of each group; of a tree, the largest. A note says how many there are.
fn limit_rows(table: &mut Table, limit: usize, is_sorted: bool) {
    let all = table.rows.len();
    if !is_sorted && table.keep_largest(limit) {
        let [shown, all] = [limit, all].map(NoteValue::number);
        return table.note(note!(Rows, "Shows the {} largest of {} rows; `--limit 0` shows all.", shown, all));
    }
    let groups: Vec<usize> =
        table.columns.iter().enumerate().filter(|(_, column)| column.groups_rows).map(|(index, _)| index).collect();
    let mut kept: Vec<(Vec<Value>, usize)> = Vec::new();
    table.rows.retain(|row| {
        let group: Vec<Value> = groups.iter().map(|&index| row[index].clone()).collect();
        let known = kept.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
            kept.push((group, 0));
            kept.len() - 1
        });
        kept[known].1 += 1;
        kept[known].1 <= limit
    });
    let shown = table.rows.len();
    if shown == all {
        return;
    }
    let [limit, shown, all] = [limit, shown, all].map(NoteValue::number);
    let headers: Vec<&str> = groups.iter().map(|&index| table.columns[index].header()).collect();
    let per = headers.join(" and ");
    let note = match kept.len() {
        1 => note!(Rows, "Shows {} of {} rows; `--limit 0` shows all.", shown, all),
        _ => note!(Rows, "Shows {} of {} rows, at most {} per {}; `--limit 0` shows all.", shown, all, limit, per),
    };
    table.note(note);
}

/// Leaves the table these columns, in this order, all of them essential.
fn keep_columns(table: &mut Table, indices: &[usize]) {
    table.columns = indices.iter().map(|&index| table.columns[index].clone()).collect();
    table.columns.iter_mut().for_each(make_essential);
    for row in &mut table.rows {
        *row = indices.iter().map(|&index| row[index].clone()).collect();
    }
}

fn make_essential(column: &mut Column) {
    column.importance = Importance::Essential;
}

#[cfg(test)]
mod tests {
    use stepscope_model::Kind;

    use super::filter::as_text;
    use super::*;

    /// ```text
    /// function        module   self[ns]   share[%]  owned
    /// operator<<      libc     2000000    20        no
    /// Run             app      5000000    50        yes
    /// step<int>       app      –          –         yes
    /// write           Libc2    3000000    30        no
    /// ```
    fn table() -> Table {
        let mut table = Table::new(
            "hotspots",
            "Hot spots",
            vec![
                Column::new("function", Kind::Text, "", ""),
                Column::new("module", Kind::Text, "", ""),
                Column::new("self", Kind::Duration, "ns", ""),
                Column::new("share", Kind::Percent, "percent", ""),
                Column::new("owned", Kind::Flag, "", ""),
            ],
        );
        table.push(vec!["operator<<".into(), "libc".into(), 2_000_000_u64.into(), 20.0.into(), false.into()]);
        table.push(vec!["Run".into(), "app".into(), 5_000_000_u64.into(), 50.0.into(), true.into()]);
        table.push(vec!["step<int>".into(), "app".into(), Value::Missing, Value::Missing, true.into()]);
        table.push(vec!["write".into(), "Libc2".into(), 3_000_000_u64.into(), 30.0.into(), false.into()]);
        table
    }

    fn apply(query: TableQuery, table: &mut Table) -> Result<(), QueryError> {
        query.apply(std::slice::from_mut(table))
    }

    fn selected(query: TableQuery) -> Result<Vec<String>, QueryError> {
        let mut table = table();
        apply(query, &mut table)?;
        Ok(table.rows.iter().map(|row| as_text(&row[0])).collect())
    }

    fn filtered(filter: &str) -> Vec<String> {
        selected(TableQuery { filters: vec![filter.into()], ..TableQuery::default() }).unwrap()
    }

    fn sorted(sort: &str) -> Vec<String> {
        selected(TableQuery { sort: Some(sort.parse().unwrap()), ..TableQuery::default() }).unwrap()
    }

    #[test]
    fn numbers_are_sorted_largest_first_and_texts_by_the_alphabet() {
        assert_eq!(sorted("self"), ["Run", "write", "operator<<", "step<int>"]);
        assert_eq!(sorted("function"), ["Run", "operator<<", "step<int>", "write"]);
        assert_eq!(sorted("function:desc"), ["write", "step<int>", "operator<<", "Run"]);
    }

    #[test]
    fn a_limit_keeps_the_largest_rows_of_a_tree_and_the_first_ones_of_a_sorted_table() {
        let mut tree =
            Table::new("tree", "Tree", vec![Column::text("tree", ""), Column::percentage("share", "").weighing()]);
        for (text, share) in [("all", 100.0), ("  load", 5.0), ("    read", 4.0), ("  step", 95.0), ("    scan", 60.0)]
        {
            tree.push(vec![text.into(), share.into()]);
        }
        let texts = |table: &Table| table.rows.iter().map(|row| as_text(&row[0])).collect::<Vec<_>>();
        let mut limited = tree.clone();
        apply(TableQuery { limit: Some(3), ..TableQuery::default() }, &mut limited).unwrap();
        assert_eq!(texts(&limited), ["all", "  step", "    scan"]);
        assert_eq!(limited.notes, ["Shows the 3 largest of 5 rows; `--limit 0` shows all."]);
        let query = TableQuery { limit: Some(3), sort: Some("share:asc".parse().unwrap()), ..TableQuery::default() };
        apply(query, &mut tree).unwrap();
        assert_eq!(texts(&tree), ["    read", "  load", "    scan"]);
    }

    #[test]
    fn missing_values_come_last_in_both_directions_and_equal_rows_keep_their_order() {
        assert_eq!(sorted("self:asc"), ["operator<<", "write", "Run", "step<int>"]);
        assert_eq!(sorted("owned"), ["Run", "step<int>", "operator<<", "write"]);
    }

    #[test]
    fn a_limit_is_noted_with_what_it_leaves_out() {
        let mut table = table();
        let query = TableQuery { filters: vec!["share<40".into()], limit: Some(1), ..TableQuery::default() };
        apply(query, &mut table).unwrap();
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.notes, ["2 of 4 rows do not match the filter.", "Shows 1 of 2 rows; `--limit 0` shows all."]);
    }

    #[test]
    fn a_limit_applies_to_the_rows_of_each_capture() {
        let mut table = table();
        table.columns[1] = table.columns[1].clone().grouping();
        apply(TableQuery { limit: Some(1), ..TableQuery::default() }, &mut table).unwrap();
        let names: Vec<String> = table.rows.iter().map(|row| as_text(&row[0])).collect();
        assert_eq!(names, ["operator<<", "Run", "write"], "one of libc, app and Libc2");
        assert_eq!(table.notes, ["Shows 3 of 4 rows, at most 1 per module; `--limit 0` shows all."]);
    }

    #[test]
    fn each_table_is_filtered_and_sorted_by_the_columns_that_it_has() {
        let other = || {
            let mut other = Table::new("threads", "Threads", vec![Column::new("thread", Kind::Text, "", "")]);
            other.push(vec!["writer".into()]);
            other.push(vec!["main".into()]);
            other
        };
        let first = |tables: &[Table]| tables.iter().map(|table| as_text(&table.rows[0][0])).collect::<Vec<_>>();
        let mut tables = [table(), other()];
        let query = TableQuery {
            filters: vec!["self<5ms".into()],
            sort: Some("self".parse().unwrap()),
            ..TableQuery::default()
        };
        query.apply(&mut tables).unwrap();
        assert_eq!(first(&tables), ["write", "writer"]);
        assert_eq!(tables[1].notes, ["`self<5ms` does not filter tables without that column."]);
        let mut tables = [table(), other()];
        TableQuery { filters: vec!["^writ".into()], ..TableQuery::default() }.apply(&mut tables).unwrap();
        assert_eq!(tables.each_ref().map(|table| table.rows.len()), [1, 1]);
        let query = TableQuery { sort: Some("nothing".parse().unwrap()), ..TableQuery::default() };
        assert!(matches!(query.apply(&mut tables), Err(QueryError::UnknownColumn(_))));
        let query = TableQuery { filters: vec!["nothing=1".into()], ..TableQuery::default() };
        assert!(matches!(query.apply(&mut tables), Err(QueryError::UnknownColumn(_))));
    }

    fn columns_of(columns: &str, table: &mut Table) -> Result<Vec<String>, QueryError> {
        apply(TableQuery { columns: Some(columns.parse().unwrap()), ..TableQuery::default() }, table)?;
        Ok(table.columns.iter().map(|column| column.name.clone()).collect())
    }

    #[test]
    fn named_columns_are_shown_in_the_order_asked_for_and_are_not_left_out() {
        let mut table = table();
        assert_eq!(columns_of("share, function,share,", &mut table).unwrap(), ["share", "function"]);
        assert_eq!(table.rows[1], [Value::from(50.0), "Run".into()]);
        assert!(table.columns.iter().all(|column| column.importance == Importance::Essential));
        assert_eq!(columns_of("all", &mut table).unwrap(), ["share", "function"]);
        assert!(matches!(columns_of("self", &mut table), Err(QueryError::UnknownColumn(_))));
    }

    #[test]
    fn rows_are_sorted_and_filtered_by_columns_that_are_not_shown_and_the_order_is_seen_if_all_are() {
        let mut table = table();
        let columns = Some("function".parse().unwrap());
        let sort: Option<Sort> = Some("self:asc".parse().unwrap());
        let filters = vec!["owned=yes".into()];
        apply(TableQuery { columns, sort: sort.clone(), filters, limit: None }, &mut table).unwrap();
        assert_eq!(table.rows, [vec![Value::from("Run")], vec!["step<int>".into()]]);
        let mut table = self::table();
        apply(TableQuery { sort, ..TableQuery::default() }, &mut table).unwrap();
        assert_eq!(table.columns[2].importance, Importance::Essential);
    }

    #[test]
    fn of_several_tables_each_shows_the_named_columns_that_it_has() {
        let other = Table::new("threads", "Threads", vec![Column::new("thread", Kind::Text, "", "")]);
        let mut tables = [table(), other];
        let named = |names: &str| TableQuery { columns: Some(names.parse().unwrap()), ..TableQuery::default() };
        named("share").apply(&mut tables).unwrap();
        assert_eq!(tables.each_ref().map(|table| table.columns[0].name.as_str()), ["share", "thread"]);
        assert!(named("thread,nothing").apply(&mut tables).is_err());
    }

    #[test]
    fn comparisons_take_units_and_what_is_missing_compares_with_nothing() {
        assert_eq!(filtered("self>=3ms"), ["Run", "write"]);
        assert_eq!(filtered("self < 3000 us"), ["operator<<"]);
        assert_eq!(filtered("share>25%"), ["Run", "write"]);
        assert_eq!(filtered("share!=50"), ["operator<<", "write"]);
        assert_eq!(filtered("owned=yes"), ["Run", "step<int>"]);
        assert_eq!(filtered("owned!=true"), ["operator<<", "write"]);
    }

    #[test]
    fn in_a_column_of_several_units_an_amount_is_compared_with_rows_of_its_kind() {
        let filtered = |filter: &str| {
            let columns = vec![
                Column::new("metric", Kind::Text, "", ""),
                Column::new("unit", Kind::Text, "", ""),
                Column::new("before", Kind::InRowUnit, "", ""),
            ];
            let mut table = Table::new("compare_runs", "", columns);
            for (metric, unit, before) in
                [("p50", "ns/step", 4e6), ("p99", "ns/step", 12e6), ("rss", "bytes", 5e7), ("rtf", "", 0.9)]
            {
                table.push(vec![metric.into(), unit.into(), before.into()]);
            }
            apply(TableQuery { filters: vec![filter.into()], ..TableQuery::default() }, &mut table)?;
            Ok::<_, QueryError>(table.rows.iter().map(|row| as_text(&row[0])).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(filtered("before>10ms").unwrap(), "p99");
        assert_eq!(filtered("before<10ms").unwrap(), "p50", "neither a size nor a factor");
        assert_eq!(filtered("before>=1MB").unwrap(), "rss");
        assert_eq!(filtered("before<1e7").unwrap(), "p50 rtf", "the values as they are");
        assert!(filtered("before>much").is_err());
    }

    #[test]
    fn patterns_without_capitals_ignore_case() {
        assert_eq!(filtered("module~^libc"), ["operator<<", "write"]);
        assert_eq!(filtered("module~^Libc"), ["write"]);
        assert_eq!(filtered("module!~libc"), ["Run", "step<int>"]);
    }

    #[test]
    fn text_that_names_no_column_is_a_pattern_for_every_text() {
        assert_eq!(filtered("operator<<"), ["operator<<"]);
        assert_eq!(filtered("app"), ["Run", "step<int>"]);
        assert_eq!(filtered("step<int>"), ["step<int>"]);
    }

    #[test]
    fn errors_name_what_there_is() {
        let error = |query| selected(query).unwrap_err().to_string();
        let sort = Some("slef".parse().unwrap());
        assert_eq!(
            error(TableQuery { sort, ..TableQuery::default() }),
            "no column is named `slef`; did you mean `self`? The columns are function, module, self, share, owned"
        );
        for condition in ["nonsense>3%", "nonsense=3", "nonsense~x"] {
            assert_eq!(
                error(TableQuery { filters: vec![condition.into()], ..TableQuery::default() }),
                "no column is named `nonsense`; the columns are function, module, self, share, owned"
            );
        }
        assert_eq!(
            error(TableQuery { filters: vec!["self>lots".into()], ..TableQuery::default() }),
            "`lots` is not a number to compare column `self` with; write one such as 5, 1.5, 10ms, 2MiB or 5%"
        );
        assert_eq!(
            error(TableQuery { filters: vec!["a(".into()], ..TableQuery::default() }),
            "`a(` is not a regular expression: unclosed group; put a backslash before characters that stand for themselves"
        );
    }
}
