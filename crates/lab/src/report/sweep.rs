//! What a report of a sweep holds: findings, growth with its pictures, capacity, CPUs, and the trials.

use stepscope_analyze::{Selection, capacity, cores, growth};
use stepscope_model::{Importance, Table};
use stepscope_view::chart::{Chart, Floor};
use stepscope_view::report::{Report, Section};

use super::{findings_section, head, overview, shortened};
use crate::run::RunInfo;

/// Rows of the table of growth.
const MOST_ROWS: usize = 200;

/// A report on the captures of a sweep.
pub fn sweep(run: Option<&RunInfo>, selections: &[Selection<'_>], findings: Table) -> Report {
    let mut section = Section::new("Growth").note(
        "Cost per step over the size, with the 95 % band of the expected cost, up to twice the largest size. Both axes are logarithmic, so a power of \
         the size is a straight line.",
    );
    let fits = growth::Fits::of(selections, &growth::Options::default());
    for table in fits.pictures() {
        section = section.chart(picture(table));
    }
    let section = section.table(shortened(essential(fits.table()), MOST_ROWS));
    let tables = |title: &str, tables: Vec<Table>| {
        let tables = tables.into_iter().filter(|table| !table.rows.is_empty() || !table.notes.is_empty());
        tables.fold(Section::new(title), Section::table)
    };
    let capacities = capacity::Capacities::of(selections, &capacity::Options::default());
    let capacity = tables("Capacity", capacities.tables);
    let capacity = capacities.pictures.into_iter().map(picture).fold(capacity, Section::chart);
    head(run, selections)
        .section(findings_section(findings))
        .section(section)
        .section(capacity)
        .section(tables("CPUs", cores::tables(selections)))
        .section(overview(run, selections))
}

/// Curves over the size on logarithmic axes.
fn picture(table: Table) -> Chart {
    let (across, marks) = (table.columns[0].name.clone(), growth::marks(&table));
    let caption = format!("cost per step over {across}");
    Chart::new(table, across, marks).caption(caption).floor(Floor::Ratios)
}

/// Without the columns for programs, and with the exponent's interval.
fn essential(mut table: Table) -> Table {
    table.retain_columns(|column| column.importance > Importance::Detail || column.name == "unit");
    table
}
