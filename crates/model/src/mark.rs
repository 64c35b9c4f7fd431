//! [`Mark`]: how a chart draws columns of a table.

/// What a chart draws for each row. Rows without the values it needs are skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The area between two columns.
    Band(String, String),
    /// A line through a column's values, in the order of the rows.
    Line(String),
    /// A point for each row that has a value, for outliers.
    Points(String),
    /// A vertical line between two columns: the uncertainty of a point.
    Interval(String, String),
    /// A step line through a column's values, for levels.
    Steps(String),
    /// A dashed vertical line at each row where the column is `true`, or has a text, which is its title: for events.
    Rules(String),
    /// A bar from the column of the horizontal axis to column `to`.
    Bars {
        /// Column with the end of each bar.
        to: String,
        /// Column with the height of each bar.
        height: String,
    },
}
