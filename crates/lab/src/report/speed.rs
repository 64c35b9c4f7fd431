//! The table `verdict_speed`: how fast the steps of a scenario are. Repetitions are one row, with their spread.

use stepscope_analyze::Selection;
use stepscope_analyze::step_times::StepParts;
use stepscope_analyze::steps::Loops;
use stepscope_model::quantity::{duration, weight};
use stepscope_model::{Columns, Step, Table, Value};

/// From this RTF on a program keeps real time: pacing is never exact.
const REAL_TIME: f64 = 0.99;

/// How fast the steps of a capture are.
pub(super) struct Speed {
    real_time_factor: Option<f64>,
    /// Without pacing: how fast the loop could run.
    unpaced: Option<f64>,
    is_paced: bool,
    steps: usize,
    mean_ns: f64,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    /// Simulated time of a step: the time that a step may take in real time.
    budget_ns: Option<f64>,
    over_budget_percent: Option<f64>,
}

impl Speed {
    fn of(selection: &Selection<'_>) -> Option<Self> {
        let loops = Loops::of(selection)?;
        let steps = loops.main();
        let parts = StepParts::of(selection, &loops, steps, &selection.off_cpu());
        let after_first = steps.after_first();
        let durations = &parts.durations[after_first.clone()];
        let times = steps.times_after_first();
        let sum = |times: &[u64]| times.iter().map(|ns| *ns as f64).sum::<f64>();
        let (whole, unpaced) = (sum(durations), sum(&parts.unpaced()[after_first]));
        let budget_ns = simulated_per_step(steps.rows());
        let over = |budget: f64| durations.iter().filter(|ns| **ns as f64 > budget).count() as f64;
        Some(Self {
            real_time_factor: steps.real_time_factor,
            unpaced: steps.real_time_factor.filter(|_| unpaced > 0.0).map(|rtf| rtf * whole / unpaced),
            is_paced: parts.is_paced(),
            steps: steps.count(),
            mean_ns: unpaced / durations.len().max(1) as f64,
            median_ns: times.median(),
            p99_ns: times.percentile(99.0),
            budget_ns,
            over_budget_percent: budget_ns.map(|budget| 100.0 * over(budget) / durations.len().max(1) as f64),
        })
    }

    /// The RTF with steps that are this much shorter.
    pub(super) fn without(&self, ns: f64) -> Option<f64> {
        let left = self.mean_ns - ns;
        self.unpaced.filter(|_| left > 0.0).map(|rtf| rtf * self.mean_ns / left)
    }
}

/// Mean simulated time of the steps that have one.
fn simulated_per_step(rows: &[Step]) -> Option<f64> {
    let mut times = rows.iter().enumerate().filter_map(|(place, step)| Some((place, step.sim_time_ns?)));
    let (first, from) = times.next()?;
    let (last, to) = times.next_back()?;
    let simulated = to.checked_sub(from).filter(|ns| *ns > 0)?;
    Some(simulated as f64 / (last - first) as f64)
}

/// The repetitions of a scenario, phase and variant.
pub(super) struct Repeated<'s, 'a> {
    /// The capture whose steps take the median time; the first one if there are no steps.
    pub(super) typical: &'s Selection<'a>,
    /// How fast they are, the typical one first. Empty without steps.
    speeds: Vec<Speed>,
}

impl<'s, 'a> Repeated<'s, 'a> {
    /// Captures by label. Those without a scenario stand by themselves.
    pub(super) fn all(selections: &[&'s Selection<'a>]) -> Vec<Self> {
        let label = |selection: &&Selection<'a>| (selection.capture().info.name(), &selection.capture().info.sweep);
        let labels: Vec<_> = selections.iter().map(label).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (index, selection) in selections.iter().enumerate() {
            let is_named = selection.capture().info.scenario.is_some();
            match groups.iter_mut().find(|group| is_named && labels[group[0]] == labels[index]) {
                Some(group) => group.push(index),
                None => groups.push(vec![index]),
            }
        }
        let group_of = |indices: Vec<usize>| indices.into_iter().map(|index| selections[index]).collect::<Vec<_>>();
        groups.into_iter().map(|indices| Self::of(&group_of(indices))).collect()
    }

    fn of(group: &[&'s Selection<'a>]) -> Self {
        let of = |selection: &&'s Selection<'a>| Some((*selection, Speed::of(selection)?));
        let mut found: Vec<(&'s Selection<'a>, Speed)> = group.iter().filter_map(of).collect();
        found.sort_by_key(|(_, speed)| speed.median_ns);
        if !found.is_empty() {
            // Of two in the middle the faster one.
            let middle = (found.len() - 1) / 2;
            found.swap(0, middle);
        }
        let typical = found.first().map_or(group[0], |(selection, _)| selection);
        Self { typical, speeds: found.into_iter().map(|(_, speed)| speed).collect() }
    }

    /// How fast the typical one is.
    pub(super) fn speed(&self) -> Option<&Speed> {
        self.speeds.first()
    }

    /// What the repetitions have of a figure, in ascending order.
    fn figures(&self, of: impl Fn(&Speed) -> Option<f64>) -> Vec<f64> {
        let mut figures: Vec<f64> = self.speeds.iter().filter_map(of).collect();
        figures.sort_by(f64::total_cmp);
        figures
    }

    fn median(&self, of: impl Fn(&Speed) -> Option<f64>) -> Option<f64> {
        let figures = self.figures(of);
        let middle = figures.len() / 2;
        match figures.len() {
            0 => None,
            count if count % 2 == 1 => Some(figures[middle]),
            _ => Some(f64::midpoint(figures[middle - 1], figures[middle])),
        }
    }

    /// The lowest and the highest of several repetitions.
    fn spread(&self, of: impl Fn(&Speed) -> Option<f64>) -> Option<[f64; 2]> {
        match *self.figures(of) {
            [low, .., high] => Some([low, high]),
            _ => None,
        }
    }

    fn sentence(&self) -> String {
        // The mean, because the real-time factor is that of all steps.
        let step = match (self.median(budget), self.median(rtf)) {
            (Some(budget), Some(rtf)) if rtf > 0.0 => {
                format!(": a step simulates {} and takes {} on average", duration(budget), duration(budget / rtf))
            }
            _ => String::new(),
        };
        let is_paced = self.speeds.iter().all(|speed| speed.is_paced);
        match (self.median(rtf), self.median(unpaced)) {
            (None, _) => {
                "The steps have no simulated time, so the real-time factor is unknown; `record --step-dt` names it."
                    .to_owned()
            }
            (Some(rtf), Some(unpaced)) if rtf >= REAL_TIME && is_paced => {
                format!("Keeps real time: paced at RTF {}, without pacing {}.", weight(rtf, ""), weight(unpaced, ""))
            }
            (Some(rtf), _) if rtf >= REAL_TIME => format!("Faster than real time{step}."),
            (Some(_), _) => format!("Slower than real time{step}."),
        }
    }
}

fn rtf(speed: &Speed) -> Option<f64> {
    speed.real_time_factor
}

fn unpaced(speed: &Speed) -> Option<f64> {
    speed.unpaced
}

fn step_median(speed: &Speed) -> Option<f64> {
    speed.median_ns.map(|ns| ns as f64)
}

fn step_p99(speed: &Speed) -> Option<f64> {
    speed.p99_ns.map(|ns| ns as f64)
}

fn budget(speed: &Speed) -> Option<f64> {
    speed.budget_ns
}

fn over_budget(speed: &Speed) -> Option<f64> {
    speed.over_budget_percent
}

/// A row for each that has steps.
pub(super) fn table(all: &[Repeated<'_, '_>]) -> Table {
    let with_steps: Vec<&Repeated<'_, '_>> = all.iter().filter(|one| !one.speeds.is_empty()).collect();
    let low = |spread: Option<[f64; 2]>| Value::from(spread.map(|[low, _]| low));
    let high = |spread: Option<[f64; 2]>| Value::from(spread.map(|[_, high]| high));
    Columns::<&Repeated<'_, '_>>::new()
        .text("capture", "Scenario, variant and phase.", |row| row.typical.capture().info.name().into())
        .text("scenario", "Scenario.", |row| row.typical.capture().info.scenario.as_deref().into())
        .text("variant", "Variant.", |row| row.typical.capture().info.variant.as_deref().into())
        .text("phase", "Phase.", |row| row.typical.capture().info.phase.map(|phase| phase.to_string()).into())
        .prose("verdict", "What it keeps up with.", |row| row.sentence().into())
        .count("runs", "runs", "Runs. Of several, figures are the median.", |row| row.speeds.len())
        .count("repetition", "", "The run whose steps take the median time.", |row| {
            row.typical.capture().info.repetition
        })
        .number("rtf", "", "Real-time factor: simulated time over wall time.", |row| row.median(rtf))
        .number("rtf_low", "", "Lowest real-time factor of the runs.", |row| low(row.spread(rtf)))
        .number("rtf_high", "", "Highest real-time factor of the runs.", |row| high(row.spread(rtf)))
        .number("rtf_unpaced", "", "Real-time factor without pacing: how fast the loop could run.", |row| {
            row.median(unpaced)
        })
        .count("steps", "steps", "Simulation steps of all runs.", |row| {
            row.speeds.iter().map(|speed| speed.steps).sum::<usize>()
        })
        .duration("step_median", "Median step time.", |row| row.median(step_median))
        .duration("step_median_low", "Lowest median of the runs.", |row| low(row.spread(step_median)))
        .duration("step_median_high", "Highest median of the runs.", |row| high(row.spread(step_median)))
        .duration("step_p99", "99th percentile of step time.", |row| row.median(step_p99))
        .duration("step_p99_low", "Lowest 99th percentile of the runs.", |row| low(row.spread(step_p99)))
        .duration("step_p99_high", "Highest 99th percentile of the runs.", |row| high(row.spread(step_p99)))
        .duration("budget", "Simulated time per step: a step that takes longer falls behind real time.", |row| {
            row.median(budget)
        })
        .percentage("over_budget", "Share of the steps that take longer than the budget.", |row| {
            row.median(over_budget)
        })
        .essential("capture verdict rtf step_median")
        .table("verdict_speed", "What it keeps up with", with_steps)
}
