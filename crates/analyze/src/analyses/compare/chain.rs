//! Tables of a chain of variants: each against the first and against the one before it.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use stepscope_model::{Column, Columns, Kind, Table};

use super::Comparison;
use super::evidence::Family;
use super::judge::Assessment;
use super::rows::Row;
use super::side::Side;
use super::tables::{cost_column, heading};
use crate::analyses::metrics::{self, Metric};

/// Families that have a table of the chain.
const FAMILIES: [(Family, &str); 3] = [
    (Family::Attributed, "compare_chain_functions"),
    (Family::Threads, "compare_chain_threads"),
    (Family::Categories, "compare_chain_categories"),
];

/// What one variant has of one row.
struct Link<'a> {
    name: &'a str,
    unit: &'a str,
    variant: &'a str,
    value: f64,
    to_first: Option<&'a Assessment>,
    to_previous: Option<&'a Assessment>,
}

/// The tables of a chain. `to_first[i]` and `to_previous[i]` are comparisons of variant `i + 1`.
pub(super) fn tables(sides: &[Side], to_first: &[Comparison], to_previous: &[Comparison]) -> Vec<Table> {
    let of_family = |(family, table)| family_table(sides, to_first, to_previous, family, table);
    [metrics_table(sides, to_first, to_previous)]
        .into_iter()
        .chain(FAMILIES.into_iter().filter_map(of_family))
        .collect()
}

/// The metrics of the whole run.
pub(super) fn metrics_table(sides: &[Side], to_first: &[Comparison], to_previous: &[Comparison]) -> Table {
    let measured: Vec<Vec<&[Metric]>> =
        sides.iter().map(|side| side.runs.iter().map(|run| &*run.metrics).collect()).collect();
    let metrics = metrics::by_variant(&measured);
    let links = metrics.iter().map(|metric| Link {
        name: &metric.name,
        unit: &metric.unit,
        variant: &sides[metric.variant].name,
        value: metric.mean(),
        to_first: metric_in(to_first, metric.variant, &metric.name),
        to_previous: metric_in(to_previous, metric.variant, &metric.name),
    });
    Columns::<Link<'_>>::new()
        .with(Column::text("metric", "Metric of the whole run.").essential().grouping(), |link| link.name.into())
        .with(Column::text("unit", "Its unit.").detail(), |link| link.unit.into())
        .with_all(variant_columns(Column::new("value", Kind::InRowUnit, "", "Mean of its runs.")))
        .table("compare_chain", "Variant by variant", links.collect::<Vec<_>>())
}

/// The assessment of a metric of the variant at this place; the first variant has none.
fn metric_in<'a>(comparisons: &'a [Comparison], place: usize, metric: &str) -> Option<&'a Assessment> {
    let comparison = &comparisons[place.checked_sub(1)?];
    comparison.metrics.iter().find(|row| row.name == metric).map(|row| &row.assessment)
}

/// The rows of a family, the most expensive first; none if it has no rows.
fn family_table<'a>(
    sides: &'a [Side],
    to_first: &'a [Comparison],
    to_previous: &'a [Comparison],
    family: Family,
    table: &str,
) -> Option<Table> {
    let unit = family.unit().unwrap_or(&to_first[0].unit);
    let first = Rows::of(to_first, family);
    let previous = Rows::of(to_previous, family);
    let mut most: Vec<(&str, f64)> = first.most().chain(previous.most()).collect();
    most.sort_by(|(a, a_most), (b, b_most)| a.cmp(b).then(b_most.total_cmp(a_most)));
    most.dedup_by_key(|(name, _)| *name);
    most.sort_by(|(a, a_most), (b, b_most)| b_most.total_cmp(a_most).then(a.cmp(b)));
    let mut links = Vec::new();
    for (name, _) in most {
        for (place, side) in sides.iter().enumerate() {
            let of_place = |rows: &Rows<'a>| place.checked_sub(1).and_then(|place| rows.at(place, name));
            let (to_first, to_previous) = (of_place(&first), of_place(&previous));
            let value = match place {
                0 => (0..sides.len() - 1).find_map(|place| first.at(place, name)).map(|one| one.before),
                _ => to_first.or(to_previous).map(|one| one.after),
            };
            let value = value.unwrap_or(0.0);
            links.push(Link { name, unit: "", variant: &side.name, value, to_first, to_previous });
        }
    }
    let (_, subject, key) = heading(family);
    let value = cost_column(&to_first[0], unit, "value", "Mean of its runs.");
    let columns = Columns::<Link<'_>>::new()
        .with(Column::text(key, "Its name.").essential().grouping(), |link| link.name.into())
        .with_all(variant_columns(value));
    (!links.is_empty()).then(|| columns.table(table, format!("{subject}, variant by variant"), links))
}

/// Assessments of a family's rows in each comparison, by name.
struct Rows<'a>(Vec<FxHashMap<&'a str, &'a Assessment>>);

impl<'a> Rows<'a> {
    /// Functions of one name in several modules: the one that costs most.
    fn of(comparisons: &'a [Comparison], family: Family) -> Self {
        let size = |row: &Row| row.assessment.before.max(row.assessment.after);
        let by_name = |comparison: &'a Comparison| {
            let mut rows: Vec<&Row> = comparison.rows(family).iter().collect();
            rows.sort_by(|a, b| size(a).partial_cmp(&size(b)).unwrap_or(Ordering::Equal));
            rows.into_iter().map(|row| (&*row.identity().name, &row.assessment)).collect()
        };
        Self(comparisons.iter().map(by_name).collect())
    }

    fn at(&self, place: usize, name: &str) -> Option<&'a Assessment> {
        self.0.get(place)?.get(name).copied()
    }

    /// Each name with its largest cost, once for each comparison.
    fn most(&self) -> impl Iterator<Item = (&'a str, f64)> {
        let all = self.0.iter().flat_map(|rows| rows.iter());
        all.map(|(name, one)| (*name, one.before.max(one.after)))
    }
}

/// The variant, its value, and how that compares.
fn variant_columns<'a>(value: Column) -> Columns<'a, Link<'a>> {
    Columns::<Link<'a>>::new()
        .with(Column::text("variant", "The variant.").essential(), |link| link.variant.into())
        .with(value.essential(), |link| link.value.into())
        .with_all(link_columns("first", "the first variant", |link| link.to_first))
        .with_all(link_columns("previous", "the variant before it", |link| link.to_previous))
}

/// Ratio and verdict against another variant.
fn link_columns<'a>(
    other: &str,
    name: &str,
    assessment: impl for<'l> Fn(&'l Link<'a>) -> Option<&'l Assessment> + Copy + 'a,
) -> Columns<'a, Link<'a>> {
    let ratio = move |link: &Link<'a>| assessment(link).and_then(|assessment| assessment.adjusted.ratio);
    let number = |end: &str, doc: &str| Column::number(&format!("ratio_to_{other}{end}"), "", doc);
    let verdict = format!("`changed`, `equivalent` or `inconclusive`, against {name}.");
    Columns::new()
        .with(number("", &format!("Divided by that of {name}.")).essential(), move |link| {
            ratio(link).map(|ratio| ratio.value).into()
        })
        .with(
            number("_low", "Lower bound of its confidence interval, adjusted for the number of rows.").detail(),
            move |link| ratio(link).map(|ratio| ratio.low).into(),
        )
        .with(
            number("_high", "Upper bound of its confidence interval, adjusted for the number of rows.").detail(),
            move |link| ratio(link).map(|ratio| ratio.high).into(),
        )
        .with(Column::text(&format!("verdict_to_{other}"), &verdict).essential(), move |link| {
            assessment(link).map(|assessment| assessment.verdict.name()).into()
        })
}
