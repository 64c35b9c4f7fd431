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

use stepscope_model::{Column, Columns, NoteValue, Phase, Table, note};
use stepscope_stats::Estimate;
use stepscope_stats::growth::{FARTHEST, Growth};

use crate::analyses::growth::{Curve, LoopCosts, Measure, Series, curves_table, law_name, series};
use crate::columns;
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

/// The capacities of a sweep. Each law is fitted once: the tables and the pictures show the same fits.
pub struct Capacities {
    /// The tables `capacity`, `bottlenecks` and `leaders`.
    pub tables: Vec<Table>,
    /// The values of a picture a series and limit, for [`growth::marks`](crate::analyses::growth::marks): the step time
    /// over the size, the limit, and the step time without each bottleneck and those before it.
    pub pictures: Vec<Table>,
}

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
    /// The capacity without it and those before it, and the curve of that step.
    without: Estimate,
    curve: Curve,
}

struct Leader {
    series: String,
    function: String,
    from: f64,
    to: f64,
    share_from: f64,
    share_to: f64,
}

/// The tables of [`Capacities`].
pub fn tables(selections: &[Selection<'_>], options: &Options) -> Vec<Table> {
    Capacities::of(selections, options).tables
}

impl Capacities {
    /// Finds the capacities of each series, by number of CPUs.
    pub fn of(selections: &[Selection<'_>], options: &Options) -> Self {
        let all = steady_series(selections);
        let (mut capacities, mut bottlenecks, mut leaders) = (Vec::new(), Vec::new(), Vec::new());
        let (mut pictures, mut notes) = (Vec::new(), Vec::new());
        for one in &all {
            let costs = LoopCosts::of(one);
            match &costs {
                None => notes
                    .push(note!(Limit, "No capacity by step time: the recordings have no steps.").about(&one.label)),
                Some(costs) if costs.simulated_ns.is_none() && options.step_budget_ns.is_none() => {
                    notes.push(note!(Hint, "Steps have no simulated time; give `--step-budget`.").about(&one.label));
                }
                Some(_) => {}
            }
            if let Some(laws) = costs.as_ref().and_then(|costs| StepLaws::of(one, costs)) {
                for (limit, value) in options.of_steps(laws.costs) {
                    let found = laws.bottlenecks(limit, value);
                    capacities.push(capacity(one, &laws.step.growth, limit, value, found.first()));
                    pictures.push(laws.picture(limit, value, &found));
                    bottlenecks.extend(found);
                }
                leaders.extend(laws.leaders());
            }
            if let Some(bytes) = options.memory_bytes
                && let Some(memory) = one.measures().into_iter().find(|measure| measure.name == "rss.peak")
            {
                let growth = memory.growth(sizes(one));
                capacities.extend(growth.map(|growth| capacity(one, &growth, "memory", bytes, None)));
            }
        }
        let title = "Capacity: the size at which a limit is reached";
        let mut table = capacity_columns().table("capacity", title, &capacities);
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
        let in_order = "Bottlenecks, in the order in which they come up";
        let bottlenecks = bottleneck_columns().table("bottlenecks", in_order, &bottlenecks);
        let leaders = leader_columns().table("leaders", "Leading function by size", &leaders);
        Self { tables: vec![table, bottlenecks, leaders], pictures }
    }
}

/// The series of several sizes that are not of loading.
fn steady_series<'s, 'a>(selections: &'s [Selection<'a>]) -> Vec<Series<'s, 'a>> {
    let all = series(selections).into_iter().flat_map(Series::by_cores);
    all.filter(|one| one.sizes().len() > 1 && one.phase != Some(Phase::Loading)).collect()
}

fn capacity(
    one: &Series<'_, '_>,
    growth: &Growth,
    limit: &'static str,
    value: f64,
    first: Option<&Bottleneck>,
) -> Capacity {
    Capacity {
        series: one.label.clone(),
        limit,
        reached: growth.reach(value),
        law: law_name(growth),
        largest: growth.sizes.1,
        decides: first.map(|first| first.function.clone()),
        without: first.map(|first| first.without),
    }
}

fn sizes<'r>(one: &'r Series<'_, '_>) -> impl Iterator<Item = f64> + 'r {
    one.runs.iter().map(|run| run.n)
}

/// The laws of a step and of the functions on its thread.
struct StepLaws<'l, 's, 'a> {
    series: &'l Series<'s, 'a>,
    costs: &'l LoopCosts,
    step: Curve,
    functions: Vec<(&'l Measure, Growth)>,
}

impl<'l, 's, 'a> StepLaws<'l, 's, 'a> {
    /// `None` if the step has no law.
    fn of(series: &'l Series<'s, 'a>, costs: &'l LoopCosts) -> Option<Self> {
        let step = Curve::of("step", costs.step.points(sizes(series)))?;
        let functions = costs.functions.iter();
        let functions = functions.filter_map(|measure| Some((measure, measure.growth(sizes(series))?))).collect();
        Some(Self { series, costs, step, functions })
    }

    fn bottlenecks(&self, limit: &'static str, value: f64) -> Vec<Bottleneck> {
        let mut free: Vec<&Measure> = Vec::new();
        let mut found: Vec<Bottleneck> = Vec::new();
        let mut at = self.step.growth.reach(value).value;
        while at.is_finite() && at > 0.0 && found.len() < MOST_BOTTLENECKS {
            let left = self.functions.iter().filter(|(one, _)| !free.iter().any(|free| std::ptr::eq(*free, *one)));
            let costs_there = left.filter_map(|(measure, law)| Some((*measure, law, law.expect(at)?.value)));
            let Some((measure, law, cost_ns)) = costs_there.max_by(|a, b| a.2.total_cmp(&b.2)) else { break };
            if cost_ns < LEAST_SHARE * value {
                break;
            }
            free.push(measure);
            let name = format!("without {}{}", if free.len() > 1 { "also " } else { "" }, measure.name);
            let points = self.costs.step.points_less(&free, sizes(self.series));
            let Some(curve) = Curve::of(&name, points) else { break };
            let without = curve.growth.reach(value);
            at = without.value;
            found.push(Bottleneck {
                series: self.series.label.clone(),
                limit,
                place: found.len() + 1,
                function: measure.name.clone(),
                law: law_name(law),
                cost_ns,
                share: 100.0 * cost_ns / value,
                without,
                curve,
            });
        }
        found
    }

    fn picture(&self, limit: &'static str, value: f64, found: &[Bottleneck]) -> Table {
        let (low, high) = self.step.growth.sizes;
        let reached = [self.step.growth.reach(value)].into_iter().chain(found.iter().map(|one| one.without));
        let reached = reached.map(|estimate| estimate.value).filter(|n| n.is_finite());
        let end = reached.fold(2.0 * high, |end, n| end.max(1.2 * n)).min(FARTHEST * high);
        let curves: Vec<Curve> = [&self.step].into_iter().chain(found.iter().map(|one| &one.curve)).cloned().collect();
        let axis = &self.series.axis;
        let title = format!("Capacity by {axis}: {}, {limit}", self.series.label);
        let mut table = curves_table("capacity_curves", title, axis, &curves, low..end);
        // Only the step was measured.
        table.retain_columns(|column| !column.name.starts_with("measured.") || column.name == "measured.step");
        let column = Column::duration("expected.limit", "Longest time of a step.").labelled(format!("limit: {limit}"));
        table.columns.push(column);
        table.rows.iter_mut().for_each(|row| row.push(value.into()));
        table
    }

    /// The function with the largest cost, from the smallest size to the farthest.
    fn leaders(&self) -> Vec<Leader> {
        let step = &self.step.growth;
        let (low, high) = (step.sizes.0, step.sizes.1 * FARTHEST);
        let mut leaders: Vec<Leader> = Vec::new();
        for look in 0..=LOOKS {
            let n = low * (high / low).powf(f64::from(look) / f64::from(LOOKS));
            let at = self.functions.iter().filter_map(|(measure, law)| Some((&measure.name, law.expect(n)?.value)));
            let Some((name, cost)) = at.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let share = step.expect(n).map_or(0.0, |step| 100.0 * cost / step.value).min(100.0);
            match leaders.last_mut().filter(|last| last.function == *name) {
                Some(last) => (last.to, last.share_to) = (n, share),
                None => leaders.push(Leader {
                    series: self.series.label.clone(),
                    function: name.clone(),
                    from: n,
                    to: n,
                    share_from: share,
                    share_to: share,
                }),
            }
        }
        leaders
    }
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
        .with(Column::number(name, "", doc).essential(), move |row| value(row, |one| one.value))
        .number(&format!("{name}_low"), "", &end("Lower"), move |row| value(row, |one| one.low))
        .number(&format!("{name}_high"), "", &end("Upper"), move |row| value(row, |one| one.high))
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
        .text("series", "Scenario, variant and number of CPUs.", |row| row.series.as_str().into())
        .text("limit", "real time (RTF = 1), step (the step budget) or memory.", |row| row.limit.into())
        .with_all(size("capacity", "The size at which the limit is reached.", |row: &Capacity| Some(row.reached)))
        .text("reached", "Where that is: measured, extrapolated, or outside of what is known.", |row| {
            where_it_is(row).into()
        })
        .text("law", "Law of the step time, or of the memory.", |row| row.law.as_str().into())
        .text("decides", "The function with the largest cost there, on the thread that runs the steps.", |row| {
            row.decides.as_deref().into()
        })
        .with_all(size("without", "The capacity if that function were free: an upper bound.", |row: &Capacity| {
            row.without
        }))
        .essential("series limit")
}

fn bottleneck_columns() -> Columns<'static, Bottleneck> {
    Columns::<Bottleneck>::new()
        .text("series", "Scenario, variant and number of CPUs.", |row| row.series.as_str().into())
        .text("limit", "The limit that is reached.", |row| row.limit.into())
        .count("bottleneck", "", "Place in the order in which they come up.", |row| row.place)
        .with(columns::function()[0].clone(), |row| row.function.as_str().into())
        .text("law", "Law of its cost on the thread that runs the steps.", |row| row.law.as_str().into())
        .duration("cost_there", "Its expected cost per step at the capacity that it decides.", |row| row.cost_ns)
        .percentage("limit_share", "That cost in percent of the limit.", |row| row.share)
        .with_all(size(
            "without",
            "The capacity if it, and those before it, were free: an upper bound.",
            |row: &Bottleneck| Some(row.without),
        ))
        .detail("limit")
}

fn leader_columns() -> Columns<'static, Leader> {
    Columns::<Leader>::new()
        .text("series", "Scenario, variant and number of CPUs.", |row| row.series.as_str().into())
        .with(columns::function()[0].clone(), |row| row.function.as_str().into())
        .number("from_size", "", "From this size on it has the largest cost per step.", |row| row.from)
        .number("to_size", "", "Up to this size, at most ten times the largest.", |row| row.to)
        .percentage("share_from", "Its share of the step there.", |row| row.share_from)
        .percentage("share_to", "Its share of the step at the end.", |row| row.share_to)
}
