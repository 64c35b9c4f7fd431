//! A gate: which changes for the worse are tolerated, and whether a comparison keeps to that.
//!
//! # Rule
//! A limit is on the ratio, after to before (`rtf = "-3%"`: not below 0.97; `step.p99 = "+5%"`: not above 1.05), or on the
//! difference (`step.p99 = "+2ms"`). It is a test of *non-inferiority*, by where the 95 % interval lies:
//!
//! | the interval lies | result |
//! |---|---|
//! | wholly on the good side of the limit | *pass*, be there a change or not |
//! | wholly beyond it | *regression* |
//! | on both sides | *inconclusive*, with how many more runs a side would tell |
//!
//! So a regression is never called on the word of one noisy run, and a pass is never the mere lack of evidence: with few
//! runs intervals are wide, and the result is inconclusive. Each end of the interval errs with probability 2.5 %.
//! What was not measured is inconclusive too, with the reason: no data is no pass. A pattern that may fit many is about those of
//! which there are enough samples to say anything.
//!
//! A limit on the number itself (`memory_errors = 0`) is for exact counts: the mean of the runs after is at most that, or the limit is broken.
//!
//! Several limits are several chances to err; each is judged at its own level, because each is a question of its own that was
//! asked before anything was measured.

use stepscope_model::{Column, Columns, Kind, Table, Value};
use stepscope_stats::Estimate;

use crate::analyses::compare::{Assessment, Comparison, Family, Row};
#[cfg(doc)]
use crate::analyses::metrics;
use crate::analyses::metrics::Better;
use crate::query::pattern::Pattern;
use crate::query::qualified_name::own_name;

/// A change for the worse that is tolerated, and no more.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Of what.
    pub of: Limited,
    /// How far it may change.
    pub allowed: Allowed,
    /// As the user wrote it, e.g. `+5%`.
    pub text: String,
}

/// What a limit is about.
#[derive(Debug, Clone)]
pub enum Limited {
    /// A metric of the whole recording: one of [`metrics::NAMES`], or `metric.NAME.STATISTIC`.
    Metric(String),
    /// The cost of each function that this fits, its name or its own qualified name, in a family of functions.
    Function(Family, Pattern),
    /// The CPU time of the threads of each name that this fits.
    Thread(Pattern),
}

/// How far something may change for the worse. Never negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// By this part of what it was, in percent.
    Percent(f64),
    /// To this value, whatever it was before. Only for exact counts: the value has no interval.
    AtMost(f64),
    /// By this amount, in the unit of what is limited, without what it is divided by: ns, bytes, a number.
    Amount(f64),
}

/// What came of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    /// It was kept.
    Pass,
    /// The interval contains the limit, or nothing was measured.
    Inconclusive,
    /// It was broken.
    Regression,
}

impl Outcome {
    /// The words used in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A limit on one thing, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What was limited: `step.p99`, `function gz::Step`, `thread physics`.
    pub metric: String,
    /// Unit of the numbers; empty where nothing was measured.
    pub unit: String,
    /// The limit as the user wrote it.
    pub allowed: String,
    /// Both sides; `None` where it was not measured on both.
    pub numbers: Option<Numbers>,
    /// What came of it.
    pub outcome: Outcome,
    /// Why the check is inconclusive: a sentence without its full stop.
    pub reason: Option<String>,
    /// Where the limit lies inside the interval: how many more runs a side would tell, in four of five cases.
    pub more_runs: Option<u64>,
}

/// A number on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// Mean of the runs before.
    pub before: f64,
    /// Mean of the runs after.
    pub after: f64,
    /// After less before.
    pub difference: Estimate,
    /// After over before; `None` unless both are more than nothing.
    pub ratio: Option<Estimate>,
}

/// Judges a comparison by limits, in their order; a pattern has a judgement for each thing that it fits.
pub fn judge(comparison: &Comparison, limits: &[Limit]) -> Vec<Judgement> {
    limits.iter().flat_map(|limit| of_limit(comparison, limit)).collect()
}

/// The outcome of all: the worst.
pub fn overall(judgements: &[Judgement]) -> Outcome {
    judgements.iter().map(|judgement| judgement.outcome).max().unwrap_or(Outcome::Pass)
}

fn of_limit(comparison: &Comparison, limit: &Limit) -> Vec<Judgement> {
    match &limit.of {
        Limited::Metric(name) => match comparison.metrics.iter().find(|row| row.name == *name) {
            Some(row) => {
                let runs = row.runs.0.min(row.runs.1);
                vec![of_row(limit, name.clone(), &row.unit, row.better, &row.assessment, runs)]
            }
            None => vec![not_measured(limit, name.clone(), "it was not recorded on both sides".to_owned())],
        },
        Limited::Function(family, pattern) => {
            let fits = |row: &Row| fits_function(pattern, row);
            let what = match family {
                Family::Allocations => "allocations of",
                Family::SystemCalls => "system calls of",
                _ => "function",
            };
            of_rows(comparison, limit, *family, (what, pattern), fits)
        }
        Limited::Thread(pattern) => {
            let fits = |row: &Row| pattern.matches(&row.identity().name);
            of_rows(comparison, limit, Family::Threads, ("thread", pattern), fits)
        }
    }
}

/// By its name on either side, so that a limit holds for what was renamed.
fn fits_function(pattern: &Pattern, row: &Row) -> bool {
    let names = [&row.before, &row.after].into_iter().flatten().map(|identity| &*identity.name);
    names.into_iter().any(|name| pattern.matches(name) || pattern.matches(&own_name(name)))
}

fn of_rows(
    comparison: &Comparison,
    limit: &Limit,
    family: Family,
    (what, pattern): (&str, &Pattern),
    fits: impl Fn(&Row) -> bool,
) -> Vec<Judgement> {
    let unit = comparison.basis.unit(family.unit().unwrap_or(&comparison.unit));
    let runs = comparison.runs.0.min(comparison.runs.1);
    let fitting: Vec<&Row> = comparison.rows(family).iter().filter(|row| fits(row)).collect();
    let is_tested = |row: &&&Row| pattern.is_exact() || row.assessment.q.is_some();
    let judge = |row: &&Row| {
        of_row(limit, format!("{what} {}", row.identity().name), &unit, Better::Lower, &row.assessment, runs)
    };
    let judged: Vec<Judgement> = fitting.iter().filter(is_tested).map(judge).collect();
    if !judged.is_empty() {
        return judged;
    }
    let kind = if family == Family::Threads { "thread" } else { "function" };
    let reason = match fitting.is_empty() {
        true => format!("no {kind} of either side fits `{}`", pattern.as_str()),
        false => format!(
            "no {kind} that fits `{}` could be tested: too few {}, or no counts",
            pattern.as_str(),
            family.counted()
        ),
    };
    vec![not_measured(limit, format!("{what} {}", pattern.as_str()), reason)]
}

fn not_measured(limit: &Limit, metric: String, reason: String) -> Judgement {
    Judgement {
        metric,
        unit: String::new(),
        allowed: limit.text.clone(),
        numbers: None,
        outcome: Outcome::Inconclusive,
        reason: Some(reason),
        more_runs: None,
    }
}

fn of_row(
    limit: &Limit,
    metric: String,
    unit: &str,
    better: Better,
    assessment: &Assessment,
    runs: usize,
) -> Judgement {
    let numbers = Numbers {
        before: assessment.before,
        after: assessment.after,
        difference: assessment.difference,
        ratio: assessment.ratio,
    };
    let range = Range::of(&numbers, limit.allowed, better);
    let outcome = range.outcome();
    let unknown = !is_known(&assessment.difference);
    let reason = match outcome {
        Outcome::Inconclusive if unknown => Some("how much runs differ is not known".to_owned()),
        Outcome::Inconclusive => Some("the limit lies inside the interval".to_owned()),
        Outcome::Pass | Outcome::Regression => None,
    };
    let more_runs = (outcome == Outcome::Inconclusive).then(|| range.more_runs(runs)).flatten();
    let (unit, allowed) = (unit.to_owned(), limit.text.clone());
    Judgement { metric, unit, allowed, numbers: Some(numbers), outcome, reason, more_runs }
}

fn is_known(estimate: &Estimate) -> bool {
    estimate.low.is_finite() && estimate.high.is_finite()
}

/// An interval and a limit on a scale on which larger is worse and distances are errors: of logarithms of ratios, or of
/// differences.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    value: f64,
    low: f64,
    high: f64,
    limit: f64,
}

impl Range {
    fn of(numbers: &Numbers, allowed: Allowed, better: Better) -> Self {
        let range = match (allowed, numbers.ratio) {
            (Allowed::Percent(percent), Some(ratio)) => {
                let limit = if better == Better::Higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 };
                // A fall by 100 % and more is always tolerated.
                let log = |ratio: f64| if ratio > 0.0 { ratio.ln() } else { f64::NEG_INFINITY };
                Self { value: log(ratio.value), low: log(ratio.low), high: log(ratio.high), limit: log(limit) }
            }
            // What is new or vanished has no ratio: the part is of what it was before.
            (Allowed::Percent(percent), None) => Self::of_difference(numbers, percent / 100.0 * numbers.before, better),
            (Allowed::Amount(amount), _) => Self::of_difference(numbers, amount, better),
            (Allowed::AtMost(most), _) => {
                Self { value: numbers.after, low: numbers.after, high: numbers.after, limit: most }
            }
        };
        match better {
            Better::Lower => range,
            Better::Higher => {
                let Self { value, low, high, limit } = range;
                Self { value: -value, low: -high, high: -low, limit: -limit }
            }
        }
    }

    fn of_difference(numbers: &Numbers, amount: f64, better: Better) -> Self {
        let Estimate { value, low, high, .. } = numbers.difference;
        Self { value, low, high, limit: if better == Better::Higher { -amount } else { amount } }
    }

    fn outcome(&self) -> Outcome {
        if self.high <= self.limit {
            Outcome::Pass
        } else if self.low > self.limit {
            Outcome::Regression
        } else {
            Outcome::Inconclusive
        }
    }

    /// How many more runs a side would put the limit outside of the interval, supposing that the value is as measured:
    /// widths go with the square root of the runs; for four of five cases the margin is (1.96 + 0.84) / 1.96 times the
    /// half width.
    fn more_runs(&self, runs: usize) -> Option<u64> {
        const FOUR_OF_FIVE: f64 = 2.8016 / 1.96;
        const MOST: f64 = 1_000.0;
        let half = if self.value <= self.limit { self.high - self.value } else { self.value - self.low };
        let margin = (self.limit - self.value).abs();
        let needed = runs as f64 * (FOUR_OF_FIVE * half / margin).powi(2);
        (needed <= MOST).then(|| ((needed - runs as f64).ceil() as u64).max(1))
    }
}

/// The judgements of several scenarios as a table; the column of scenarios is left out where there is one without a name.
pub fn table(scenarios: &[(String, Vec<Judgement>)]) -> Table {
    type Row<'a> = (&'a str, &'a Judgement);
    let in_row_unit = |name: &str, doc: &str| Column::new(name, Kind::InRowUnit, "", doc);
    let number = |of: fn(&Numbers) -> f64| move |(_, one): &Row<'_>| Value::from(one.numbers.as_ref().map(of));
    let ratio = |of: fn(Estimate) -> f64| {
        move |(_, one): &Row<'_>| Value::from(one.numbers.and_then(|numbers| numbers.ratio).map(of))
    };
    let named = scenarios.iter().any(|(name, _)| !name.is_empty());
    let rows = scenarios.iter().flat_map(|(name, judgements)| judgements.iter().map(move |one| (name.as_str(), one)));
    Columns::<Row<'_>>::new()
        .with_if(named, Column::text("scenario", "The scenario and phase."), |(scenario, _)| (*scenario).into())
        .text("metric", "The limited metric.", |(_, one)| one.metric.as_str().into())
        .text("unit", "Unit of `before`, `after` and `difference`.", |(_, one)| one.unit.as_str().into())
        .with(in_row_unit("before", "Mean of the runs before."), number(|numbers| numbers.before))
        .with(in_row_unit("after", "Mean of the runs after."), number(|numbers| numbers.after))
        .with(in_row_unit("difference", "After minus before.").detail(), number(|numbers| numbers.difference.value))
        .with(
            in_row_unit("difference_low", "Lower end of its 95 % interval.").detail(),
            number(|numbers| numbers.difference.low),
        )
        .with(
            in_row_unit("difference_high", "Upper end of its 95 % interval.").detail(),
            number(|numbers| numbers.difference.high),
        )
        .with(Column::number("ratio", "", "After over before: 0.5 is half.").essential(), ratio(|ratio| ratio.value))
        .with(Column::number("ratio_low", "", "Lower end of its 95 % interval."), ratio(|ratio| ratio.low))
        .with(Column::number("ratio_high", "", "Upper end of its 95 % interval."), ratio(|ratio| ratio.high))
        .text("allowed", "The tolerated change for the worse.", |(_, one)| one.allowed.as_str().into())
        .text(
            "result",
            "pass (the whole interval is on the good side of the limit), regression (the whole \
                interval is beyond it), or inconclusive.",
            |(_, one)| one.outcome.name().into(),
        )
        .text("reason", "Why the check is inconclusive.", |(_, one)| one.reason.as_deref().into())
        .count("more_runs", "runs", "Further runs per side that would decide in four of five cases.", |(_, one)| {
            one.more_runs
        })
        .essential("metric allowed result")
        .detail("unit")
        .table("gate", "Gate", rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low, high }
    }

    /// Of a ratio with its interval; differences are those of 100 before.
    fn numbers(value: f64, low: f64, high: f64) -> Numbers {
        let difference = |ratio: f64| (ratio - 1.0) * 100.0;
        Numbers {
            before: 100.0,
            after: 100.0 * value,
            difference: estimate(difference(value), difference(low), difference(high)),
            ratio: Some(estimate(value, low, high)),
        }
    }

    fn outcome(numbers: &Numbers, allowed: Allowed, better: Better) -> Outcome {
        Range::of(numbers, allowed, better).outcome()
    }

    #[test]
    fn a_cost_passes_below_its_limit_and_regresses_beyond_it() {
        let of = |value, low, high| outcome(&numbers(value, low, high), Allowed::Percent(5.0), Better::Lower);
        assert_eq!(of(0.99, 0.96, 1.02), Outcome::Pass);
        assert_eq!(of(1.03, 1.01, 1.05), Outcome::Pass, "it changed, but by no more than is tolerated");
        assert_eq!(of(1.03, 1.01, 1.051), Outcome::Inconclusive);
        assert_eq!(of(1.2, 1.04, 1.4), Outcome::Inconclusive, "likely worse, and not known to be");
        assert_eq!(of(1.2, 1.06, 1.4), Outcome::Regression);
    }

    #[test]
    fn a_metric_that_should_rise_passes_above_its_limit() {
        let of = |value, low, high| outcome(&numbers(value, low, high), Allowed::Percent(3.0), Better::Higher);
        assert_eq!(of(1.5, 1.4, 1.6), Outcome::Pass);
        assert_eq!(of(0.985, 0.971, 1.0), Outcome::Pass);
        assert_eq!(of(0.97, 0.95, 0.99), Outcome::Inconclusive);
        assert_eq!(of(0.9, 0.85, 0.96), Outcome::Regression);
    }

    #[test]
    fn amounts_limit_the_difference() {
        let of = |allowed, better| outcome(&numbers(1.1, 1.08, 1.12), Allowed::Amount(allowed), better);
        assert_eq!(of(12.1, Better::Lower), Outcome::Pass);
        assert_eq!(of(10.0, Better::Lower), Outcome::Inconclusive);
        assert_eq!(of(7.0, Better::Lower), Outcome::Regression);
        assert_eq!(of(0.0, Better::Higher), Outcome::Pass, "more is better");
    }

    #[test]
    fn a_limit_on_the_number_itself_ignores_what_it_was() {
        let of = |before, after, most| {
            let difference = estimate(after - before, f64::NEG_INFINITY, f64::INFINITY);
            outcome(&Numbers { before, after, difference, ratio: None }, Allowed::AtMost(most), Better::Lower)
        };
        assert_eq!(of(9.0, 0.0, 0.0), Outcome::Pass);
        assert_eq!(of(0.5, 0.5, 0.0), Outcome::Regression, "an error in one of two runs");
        assert_eq!(of(0.0, 3.0, 3.0), Outcome::Pass);
    }

    #[test]
    fn a_new_function_regresses_and_a_vanished_one_passes() {
        let without_ratio = |before, difference| Numbers { before, after: 0.0, difference, ratio: None };
        let new = without_ratio(0.0, estimate(40.0, 35.0, 45.0));
        assert_eq!(outcome(&new, Allowed::Percent(5.0), Better::Lower), Outcome::Regression);
        let unsure = without_ratio(0.0, estimate(40.0, -3.0, 90.0));
        assert_eq!(outcome(&unsure, Allowed::Percent(5.0), Better::Lower), Outcome::Inconclusive);
        let gone = without_ratio(40.0, estimate(-40.0, -45.0, -35.0));
        assert_eq!(outcome(&gone, Allowed::Percent(5.0), Better::Lower), Outcome::Pass);
    }

    #[test]
    fn an_interval_that_is_not_known_neither_passes_nor_regresses() {
        let unknown = estimate(50.0, f64::NEG_INFINITY, f64::INFINITY);
        let of = |before| Numbers { before, after: 50.0, difference: unknown, ratio: None };
        for better in [Better::Lower, Better::Higher] {
            for allowed in [Allowed::Percent(5.0), Allowed::Amount(1.0)] {
                assert_eq!(outcome(&of(10.0), allowed, better), Outcome::Inconclusive);
            }
        }
        assert_eq!(Range::of(&of(10.0), Allowed::Amount(1.0), Better::Lower).more_runs(1), None);
    }

    #[test]
    fn the_number_of_runs_grows_with_the_square_of_the_width() {
        let range = Range { value: 0.0, low: -4.0, high: 4.0, limit: 2.0 };
        // (1.4294 · 4 / 2)^2 = 8.17 times as many.
        assert_eq!(range.more_runs(4), Some(29));
        assert_eq!(Range { limit: 0.01, ..range }.more_runs(4), None, "more than a thousand");
        assert_eq!(Range { value: 3.0, low: -1.0, high: 7.0, limit: 2.0 }.more_runs(4), Some(127));
    }

    #[test]
    fn the_worst_outcome_is_that_of_all() {
        let of = |outcome| Judgement { outcome, ..not_measured(&limit("rtf"), "rtf".into(), "x".into()) };
        let [pass, unknown, worse] = [Outcome::Pass, Outcome::Inconclusive, Outcome::Regression].map(of);
        assert_eq!(overall(&[pass.clone(), unknown.clone()]), Outcome::Inconclusive);
        assert_eq!(overall(&[worse, unknown, pass.clone()]), Outcome::Regression);
        assert_eq!(overall(&[pass]), Outcome::Pass);
    }

    fn limit(metric: &str) -> Limit {
        Limit { of: Limited::Metric(metric.into()), allowed: Allowed::Percent(5.0), text: "+5%".into() }
    }

    #[test]
    fn a_table_has_a_row_a_limit_and_what_was_not_measured_is_missing_in_it() {
        let unknown = not_measured(&limit("rtf"), "rtf".into(), "it was not recorded on both sides".into());
        let known = Judgement { numbers: Some(numbers(1.2, 1.1, 1.3)), unit: "ns".into(), ..unknown.clone() };
        let named = table(&[("shapes/steady".into(), vec![unknown.clone(), known])]);
        assert_eq!(named.get(0, "before"), Some(&Value::Missing));
        assert_eq!(named.get(0, "result"), Some(&Value::from("inconclusive")));
        assert_eq!(named.get(1, "ratio_high"), Some(&Value::from(1.3)));
        assert_eq!(named.get(1, "scenario"), Some(&Value::from("shapes/steady")));
        assert_eq!(table(&[(String::new(), vec![unknown])]).column("scenario"), None);
    }
}
