//! Up to which size a program keeps its limits, which function decides that, and what comes after it.
//!
//! # Limits
//! *real time*: a step takes as long as the time that it simulates (RTF = 1), where steps have simulated times. *step*: the
//! step budget of the user. *memory*: the memory limit of the user.
//!
//! # Capacity
//! The size at which the expected step time (or the largest resident memory) reaches the limit, by the law of
//! [`growth`](crate::analyses::growth), with a 95 % interval. Beyond ten times the largest size it is not known.
//!
//! # Bottlenecks
//! The function that decides at the capacity is the one with the largest expected attributed cost *on the thread that runs
//! the steps*: work of other threads need not delay a step. If it were free, each run's step would be shorter by its cost in
//! that run; the law of that time gives the next capacity, and the next function. This assumes that no other thread then
//! limits the step, so a capacity without a function is an upper bound.
//!
//! # Leaders
//! The function with the largest expected cost on that thread, by size, up to ten times the largest size.

use stepscope_model::{Column, Columns, Kind, NoteValue, Phase, Table, note};
use stepscope_stats::Estimate;
use stepscope_stats::growth::{FARTHEST, Growth};

use crate::analyses::growth::{Curve, LoopCosts, Measure, Measured, Series, curves_table, law_name, series};
use crate::columns::{self, count, duration, number, percentage, text};
use crate::query::select::Selection;

/// The limits of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// Longest time of a step.
    pub step_budget_ns: Option<f64>,
    /// Largest resident memory of all processes together.
    pub memory_bytes: Option<f64>,
}

impl Options {
    /// The limits of the step time, with their names.
    fn of_steps(&self, costs: &LoopCosts) -> Vec<(&'static str, f64)> {
        let limits = [("real time", costs.simulated_ns), ("step", self.step_budget_ns)];
        limits.into_iter().filter_map(|(limit, value)| Some((limit, value?))).collect()
    }
}

/// Functions whose removal is followed.
const MOST_BOTTLENECKS: usize = 5;

/// A function below this share of the limit is no bottleneck.
const LEAST_SHARE: f64 = 0.03;

/// Sizes at which leaders are looked up.
const LOOKS: u32 = 200;

struct Capacity {
    series: String,
    limit: &'static str,
    reached: Estimate,
    law: String,
    largest: f64,
    decides: Option<String>,
    without: Option<Estimate>,
}

struct Bottleneck {
    series: String,
    limit: &'static str,
    place: usize,
    function: String,
    law: String,
    cost_ns: f64,
    share: f64,
    without: Estimate,
}

struct Leader {
    series: String,
    function: String,
    from: f64,
    to: f64,
    share_from: f64,
    share_to: f64,
}

/// The tables `capacity`, `bottlenecks` and `leaders`.
pub fn tables(selections: &[Selection<'_>], options: &Options) -> Vec<Table> {
    let all = steady_series(selections);
    let (mut capacities, mut bottlenecks, mut leaders) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = Vec::new();
    for one in &all {
        if let Some(costs) = LoopCosts::of(one) {
            for (limit, value) in options.of_steps(&costs) {
                let found = of_limit(one, &costs, limit, value);
                capacities.extend(capacity(one, &costs.step, limit, value, found.first()));
                bottlenecks.extend(found);
            }
            leaders.extend(leaders_of(one, &costs));
            if costs.simulated_ns.is_none() && options.step_budget_ns.is_none() {
                notes.push(note!(Hint, "Steps have no simulated time; give `--step-budget`.").about(&one.label));
            }
        } else {
            notes.push(note!(Limit, "No capacity by step time: the recordings have no steps.").about(&one.label));
        }
        if let Some(bytes) = options.memory_bytes
            && let Some(memory) = one.measures().into_iter().find(|measure| measure.name == "rss.peak")
        {
            capacities.extend(capacity(one, &memory, "memory", bytes, None));
        }
    }
    let mut table = capacity_columns().table("capacity", "Capacity: the size at which a limit is reached", &capacities);
    if all.is_empty() {
        table.note(note!(Limit, "No capture belongs to a sweep of two sizes; `stepscope sweep` records one."));
    }
    if capacities.iter().any(|row| row.reached.value.is_infinite()) {
        table.note(note!(
            Limit,
            "A missing capacity lies beyond {} times the largest size.",
            NoteValue::number(FARTHEST as usize)
        ));
    }
    table.add_notes(notes);
    vec![
        table,
        bottleneck_columns().table("bottlenecks", "Bottlenecks, in the order in which they come up", &bottlenecks),
        leader_columns().table("leaders", "Leading function by size", &leaders),
    ]
}

/// The values of a picture a series and limit, for [`growth::marks`](crate::analyses::growth::marks): the step time over the
/// size, the limit, and the step time without each bottleneck and those before it.
pub fn chart(selections: &[Selection<'_>], options: &Options) -> Vec<Table> {
    let mut tables = Vec::new();
    for one in steady_series(selections) {
        let Some(costs) = LoopCosts::of(&one) else { continue };
        tables.extend(
            options.of_steps(&costs).into_iter().filter_map(|(limit, value)| picture(&one, &costs, limit, value)),
        );
    }
    tables
}

/// The series of several sizes that are not of loading.
fn steady_series<'s, 'a>(selections: &'s [Selection<'a>]) -> Vec<Series<'s, 'a>> {
    let all = series(selections).into_iter().flat_map(Series::by_cores);
    all.filter(|one| one.sizes().len() > 1 && one.phase != Some(Phase::Loading)).collect()
}

fn picture(one: &Series<'_, '_>, costs: &LoopCosts, limit: &'static str, value: f64) -> Option<Table> {
    let mut curves = vec![Curve::of("step", costs.step.points(sizes(one)))?];
    let (low, high) = curves[0].growth.sizes;
    let found = of_limit(one, costs, limit, value);
    let mut free: Vec<&Measure> = Vec::new();
    for bottleneck in &found {
        free.extend(costs.functions.iter().find(|measure| measure.name == bottleneck.function));
        let name = format!("without {}{}", if free.len() > 1 { "also " } else { "" }, bottleneck.function);
        curves.extend(Curve::of(&name, costs.step.points_less(&free, sizes(one))));
    }
    let known = |estimate: Estimate| Some(estimate.value).filter(|n| n.is_finite());
    let reached =
        known(curves[0].growth.reach(value)).into_iter().chain(found.iter().filter_map(|one| known(one.without)));
    let end = reached.fold(2.0 * high, |end, n| end.max(1.2 * n)).min(FARTHEST * high);
    let title = format!("Capacity by {}: {}, {limit}", one.axis, one.label);
    let mut table = curves_table("capacity_curves", title, &one.axis, &curves, low..end);
    // Only the step was measured.
    table.retain_columns(|column| !column.name.starts_with("measured.") || column.name == "measured.step");
    let (name, column) = (format!("limit: {limit}"), "expected.limit");
    table.columns.push(Column::new(column, Kind::Duration, "ns", "Longest time of a step.").labelled(name));
    table.rows.iter_mut().for_each(|row| row.push(value.into()));
    Some(table)
}

fn capacity(
    one: &Series<'_, '_>,
    measure: &Measure,
    limit: &'static str,
    value: f64,
    first: Option<&Bottleneck>,
) -> Option<Capacity> {
    let growth = measure.growth(sizes(one))?;
    Some(Capacity {
        series: one.label.clone(),
        limit,
        reached: growth.reach(value),
        law: law_name(&growth),
        largest: growth.sizes.1,
        decides: first.map(|first| first.function.clone()),
        without: first.map(|first| first.without),
    })
}

fn sizes<'r>(one: &'r Series<'_, '_>) -> impl Iterator<Item = f64> + 'r {
    one.runs.iter().map(|run| run.n)
}

fn of_limit(one: &Series<'_, '_>, costs: &LoopCosts, limit: &'static str, value: f64) -> Vec<Bottleneck> {
    let laws: Vec<(&Measure, Growth)> =
        costs.functions.iter().filter_map(|measure| Some((measure, measure.growth(sizes(one))?))).collect();
    let mut free: Vec<&Measure> = Vec::new();
    let mut found = Vec::new();
    let reach = |free: &[&Measure]| Some(Growth::of(&costs.step.points_less(free, sizes(one)))?.reach(value));
    let mut at = reach(&free);
    while let Some(n) = at.map(|at| at.value).filter(|n| n.is_finite() && *n > 0.0)
        && found.len() < MOST_BOTTLENECKS
    {
        let left = laws.iter().filter(|(measure, _)| !free.iter().any(|free| std::ptr::eq(*free, *measure)));
        let costs_there = left.filter_map(|(measure, growth)| Some((*measure, growth, growth.expect(n)?.value)));
        let Some((measure, growth, cost_ns)) = costs_there.max_by(|a, b| a.2.total_cmp(&b.2)) else { break };
        if cost_ns < LEAST_SHARE * value {
            break;
        }
        free.push(measure);
        let Some(without) = reach(&free) else { break };
        found.push(Bottleneck {
            series: one.label.clone(),
            limit,
            place: found.len() + 1,
            function: measure.name.clone(),
            law: law_name(growth),
            cost_ns,
            share: 100.0 * cost_ns / value,
            without,
        });
        at = Some(without);
    }
    found
}

/// The function with the largest cost, from the smallest size to the farthest.
fn leaders_of(one: &Series<'_, '_>, costs: &LoopCosts) -> Vec<Leader> {
    let Some(step) = costs.step.growth(sizes(one)) else { return Vec::new() };
    let functions = costs.functions.iter().filter(|measure| measure.kind == Measured::Function);
    let laws: Vec<(&str, Growth)> =
        functions.filter_map(|measure| Some((measure.name.as_str(), measure.growth(sizes(one))?))).collect();
    let (low, high) = (step.sizes.0, step.sizes.1 * FARTHEST);
    let mut leaders: Vec<Leader> = Vec::new();
    for look in 0..=LOOKS {
        let n = low * (high / low).powf(f64::from(look) / f64::from(LOOKS));
        let at = laws.iter().filter_map(|(name, growth)| Some((*name, growth.expect(n)?.value)));
        let Some((name, cost)) = at.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let share = step.expect(n).map_or(0.0, |step| 100.0 * cost / step.value).min(100.0);
        match leaders.last_mut().filter(|last| last.function == name) {
            Some(last) => (last.to, last.share_to) = (n, share),
            None => leaders.push(Leader {
                series: one.label.clone(),
                function: name.to_owned(),
                from: n,
                to: n,
                share_from: share,
                share_to: share,
            }),
        }
    }
    leaders
}

/// An end of an interval, if it lies within the measured sizes and ten times the largest.
fn known(size: f64) -> stepscope_model::Value {
    Some(size).filter(|size| size.is_finite() && *size > 0.0).into()
}

/// A size with its interval.
fn size<R: 'static>(
    name: &str,
    doc: &str,
    estimate: impl Fn(&R) -> Option<Estimate> + Copy + 'static,
) -> Columns<'static, R> {
    let end = |end: &str| format!("{end} bound of its 95 % confidence interval; missing where it is not known.");
    let value = move |row: &R, part: fn(Estimate) -> f64| estimate(row).map_or(known(f64::NAN), |one| known(part(one)));
    Columns::new()
        .with(number(name, "", doc).essential(), move |row| value(row, |one| one.value))
        .with(number(&format!("{name}_low"), "", &end("Lower")), move |row| value(row, |one| one.low))
        .with(number(&format!("{name}_high"), "", &end("Upper")), move |row| value(row, |one| one.high))
}

fn where_it_is(row: &Capacity) -> &'static str {
    match row.reached.value {
        0.0 => "below the smallest size",
        value if value.is_infinite() => "beyond 10 times the largest size",
        value if value > row.largest => "extrapolated",
        _ => "measured",
    }
}

fn capacity_columns() -> Columns<'static, Capacity> {
    Columns::<Capacity>::new()
        .with(text("series", "Scenario, variant and number of CPUs.").essential(), |row| row.series.as_str().into())
        .with(text("limit", "real time (RTF = 1), step (the step budget) or memory.").essential(), |row| {
            row.limit.into()
        })
        .with_all(size("capacity", "The size at which the limit is reached.", |row: &Capacity| Some(row.reached)))
        .with(text("reached", "Where that is: measured, extrapolated, or outside of what is known."), |row| {
            where_it_is(row).into()
        })
        .with(text("law", "Law of the step time, or of the memory."), |row| row.law.as_str().into())
        .with(text("decides", "The function with the largest cost there, on the thread that runs the steps."), |row| {
            row.decides.as_deref().into()
        })
        .with_all(size("without", "The capacity if that function were free: an upper bound.", |row: &Capacity| {
            row.without
        }))
}

fn bottleneck_columns() -> Columns<'static, Bottleneck> {
    Columns::<Bottleneck>::new()
        .with(text("series", "Scenario, variant and number of CPUs."), |row| row.series.as_str().into())
        .with(text("limit", "The limit that is reached.").detail(), |row| row.limit.into())
        .with(count("bottleneck", "", "Place in the order in which they come up."), |row| row.place.into())
        .with(columns::function()[0].clone(), |row| row.function.as_str().into())
        .with(text("law", "Law of its cost on the thread that runs the steps."), |row| row.law.as_str().into())
        .with(duration("cost_there", "Its expected cost per step at the capacity that it decides."), |row| {
            row.cost_ns.into()
        })
        .with(percentage("limit_share", "That cost in percent of the limit."), |row| row.share.into())
        .with_all(size(
            "without",
            "The capacity if it, and those before it, were free: an upper bound.",
            |row: &Bottleneck| Some(row.without),
        ))
}

fn leader_columns() -> Columns<'static, Leader> {
    Columns::<Leader>::new()
        .with(text("series", "Scenario, variant and number of CPUs."), |row| row.series.as_str().into())
        .with(columns::function()[0].clone(), |row| row.function.as_str().into())
        .with(number("from_size", "", "From this size on it has the largest cost per step."), |row| row.from.into())
        .with(number("to_size", "", "Up to this size, at most ten times the largest."), |row| row.to.into())
        .with(percentage("share_from", "Its share of the step there."), |row| row.share_from.into())
        .with(percentage("share_to", "Its share of the step at the end."), |row| row.share_to.into())
}
