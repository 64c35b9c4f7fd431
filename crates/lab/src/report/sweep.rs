//! What a report of a sweep holds: findings, growth with its pictures, capacity, CPUs, and the trials.

use std::cmp::{Ordering, Reverse};

use stepscope_analyze::growth::series_label;
use stepscope_analyze::{Selection, capacity, cores, growth};
use stepscope_model::Table;
use stepscope_view::chart::{Chart, Floor};
use stepscope_view::report::{Report, Section};

use super::{essential, findings_section, heading, overview, shortened, verdict, with_hidden};
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
    let verdict = verdict::of_sweep(selections, &findings, &capacities.tables);
    let capacity = tables("Capacity", capacities.tables);
    let capacity = capacities.pictures.into_iter().map(picture).fold(capacity, Section::chart);
    heading(run, selections)
        .section(verdict)
        .section(findings_section(findings))
        .section(section)
        .section(capacity)
        .section(tables("CPUs", cores::tables(selections)))
        .section(with_hidden(overview(run, selections), selections.len(), ends(selections).len()))
}

/// Of each scenario, variant and phase a capture of the smallest and one of the largest point.
pub fn ends<'a>(selections: &[Selection<'a>]) -> Vec<Selection<'a>> {
    let info = |selection: &Selection<'a>| &selection.capture().info;
    let series = |selection: &Selection<'a>| (series_label(info(selection)), Reverse(info(selection).phase));
    let point = |selection: &Selection<'a>| info(selection).sweep.values().copied().collect::<Vec<f64>>();
    let mut sorted = selections.to_vec();
    // Stable, so that the first repetition of a point stays first.
    sorted.sort_by(|a, b| {
        series(a).cmp(&series(b)).then_with(|| point(a).partial_cmp(&point(b)).unwrap_or(Ordering::Equal))
    });
    let ends = |group: &[Selection<'a>]| {
        let largest = group.iter().find(|one| point(one) == point(&group[group.len() - 1]));
        let largest = largest.filter(|one| point(one) != point(&group[0]));
        [Some(group[0].clone()), largest.cloned()].into_iter().flatten().collect::<Vec<_>>()
    };
    sorted.chunk_by(|a, b| series(a) == series(b)).flat_map(ends).collect()
}

/// Curves over the size on logarithmic axes.
fn picture(table: Table) -> Chart {
    let (across, marks) = (table.columns[0].name.clone(), growth::marks(&table));
    let caption = format!("cost per step over {across}");
    Chart::new(table, across, marks).caption(caption).floor(Floor::Ratios)
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::{Functions, Ownership};
    use stepscope_model::{Capture, Phase};

    use super::*;

    /// The captures of a sweep over three sizes, each recorded twice.
    fn captures(variants: &[&str]) -> Vec<Capture> {
        let mut captures = Vec::new();
        for (variant, n, repetition) in variants
            .iter()
            .flat_map(|variant| [4.0, 1.0, 2.0].map(|n| (variant, n)))
            .flat_map(|(variant, n)| [1, 2].map(|run| (variant, n, run)))
        {
            for phase in [Phase::Loading, Phase::Steady] {
                let mut capture = Capture::default();
                capture.info.scenario = Some("shapes".to_owned());
                capture.info.variant = Some(format!("{variant}n={n}"));
                capture.info.phase = Some(phase);
                capture.info.repetition = Some(repetition);
                capture.info.sweep.insert("n".to_owned(), n);
                captures.push(capture);
            }
        }
        captures
    }

    fn names_of_ends(variants: &[&str]) -> Vec<String> {
        let captures = captures(variants);
        let owned = Ownership::default().compile().unwrap();
        let functions: Vec<Functions> = captures.iter().map(|capture| Functions::of(capture, &owned)).collect();
        let selections: Vec<Selection<'_>> =
            captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
        let name = |one: &Selection<'_>| {
            let info = &one.capture().info;
            format!("{} #{}", info.label().unwrap(), info.repetition.unwrap())
        };
        ends(&selections).iter().map(name).collect()
    }

    #[test]
    fn a_sweep_shows_the_ends_of_each_variant_and_not_each_point() {
        let expected = ["n=1/steady #1", "n=4/steady #1", "n=1/loading #1", "n=4/loading #1"];
        assert_eq!(names_of_ends(&[""]), expected.map(|name| format!("shapes/{name}")));
        assert_eq!(names_of_ends(&["before+", "after+"]).len(), 8);
    }
}
