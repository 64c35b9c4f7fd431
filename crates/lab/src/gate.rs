//! `stepscope gate`: the limits of a lab file, applied to a comparison.

use stepscope_analyze::PatternError;
use stepscope_analyze::compare::Family;
use stepscope_analyze::gate::{self, Allowed, Judgement, Limit, Limited, Outcome};
use stepscope_model::{Note, NoteValue, Row, Table, Value, note};
use stepscope_view::junit::{Case, CaseResult, Suite};
use stepscope_view::sentence;

use crate::comparison::Compared;
use crate::lab_file::{self, Inconclusive, LabFile};
use crate::source::SourceError;

/// The limits of all scenarios, judged.
#[derive(Debug, Clone)]
pub struct Verdict {
    scenarios: Vec<ScenarioVerdict>,
    /// One row per limit.
    pub table: Table,
}

/// The limits of one scenario, judged.
#[derive(Debug, Clone)]
struct ScenarioVerdict {
    label: String,
    judgements: Vec<Judgement>,
    /// What an inconclusive limit counts as.
    inconclusive: Inconclusive,
}

/// What a gate reports to continuous integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateResult {
    /// Every limit is kept.
    Pass,
    /// A limit is inconclusive, and none is broken.
    Inconclusive,
    /// A limit is broken.
    Regression,
}

/// Judges a comparison by the limits of a lab file. `inconclusive` replaces what the lab file says.
///
/// # Errors
/// If nothing that was compared has a limit.
pub fn judge(compared: &Compared, lab: &LabFile, inconclusive: Option<Inconclusive>) -> Result<Verdict, SourceError> {
    let mut scenarios = Vec::new();
    for scenario in &compared.scenarios {
        let known = lab.scenarios.iter().find(|known| Some(&known.name) == scenario.name.as_ref());
        let limits = known.map_or(&lab.limits, |known| &known.limits);
        let analysed: Result<Vec<Limit>, PatternError> = limits.limits.iter().map(limit).collect();
        let analysed = analysed.map_err(|error| SourceError::Usage(error.to_string()))?;
        let [comparison] = scenario.to_first.as_slice() else {
            return Err(SourceError::Usage("a gate judges one change: name a baseline and a candidate".to_owned()));
        };
        scenarios.push(ScenarioVerdict {
            label: scenario.label.clone(),
            judgements: gate::judge(comparison, &analysed),
            inconclusive: inconclusive.unwrap_or(limits.inconclusive),
        });
    }
    if scenarios.iter().all(|one| one.judgements.is_empty()) {
        return Err(SourceError::Usage(format!(
            "{}: the lab file sets no limit on anything compared here. Add one under [gate], e.g. step.p99 = \"+5%\"",
            lab.path.display()
        )));
    }
    // A scenario that one side failed to record must not pass.
    scenarios.extend(compared.notes.iter().map(|note| ScenarioVerdict {
        label: "not compared".to_owned(),
        judgements: vec![not_compared(note)],
        inconclusive: inconclusive.unwrap_or(lab.limits.inconclusive),
    }));
    Ok(Verdict { table: table_of(&scenarios, compared), scenarios })
}

impl Verdict {
    /// The worst result of all scenarios.
    pub fn result(&self) -> GateResult {
        self.scenarios.iter().map(ScenarioVerdict::result).max().unwrap_or(GateResult::Pass)
    }

    /// The table for a pull request: broken limits first, then some of the others.
    pub fn summary(&self) -> Table {
        summarized(&self.table)
    }

    /// A test suite per scenario, with a case per limit.
    pub fn suites(&self) -> Vec<Suite> {
        let notes: Vec<String> = self.table.notes.iter().map(ToString::to_string).collect();
        let suite = |one: &ScenarioVerdict| {
            let table = gate::table(&[(one.label.clone(), one.judgements.clone())]);
            let cases = one.judgements.iter().enumerate().map(|(row, judgement)| one.case(judgement, row, &table));
            let name = if one.label.is_empty() { "gate".to_owned() } else { one.label.clone() };
            Suite { name, cases: cases.collect(), notes: notes.clone() }
        };
        self.scenarios.iter().map(suite).collect()
    }
}

impl ScenarioVerdict {
    fn result(&self) -> GateResult {
        match (gate::overall(&self.judgements), self.inconclusive) {
            (Outcome::Pass, _) | (Outcome::Inconclusive, Inconclusive::Pass) => GateResult::Pass,
            (Outcome::Regression, _) | (Outcome::Inconclusive, Inconclusive::Fail) => GateResult::Regression,
            (Outcome::Inconclusive, Inconclusive::Report) => GateResult::Inconclusive,
        }
    }

    fn case(&self, judgement: &Judgement, row: usize, table: &Table) -> Case {
        let measured = sentence::change(table, row).unwrap_or_default();
        let allowed = &judgement.allowed;
        let message = match &judgement.reason {
            Some(reason) if measured.is_empty() => format!("{}: {reason}", judgement.metric),
            Some(reason) => format!("{measured}, allowed {allowed}: {reason}{}", more_runs(judgement)),
            None => format!("{measured}, allowed {allowed}"),
        };
        let result = match (judgement.outcome, self.inconclusive) {
            (Outcome::Pass, _) => CaseResult::Passed,
            (Outcome::Regression, _) => CaseResult::Failed(message),
            (Outcome::Inconclusive, Inconclusive::Fail) => CaseResult::Error(message),
            (Outcome::Inconclusive, Inconclusive::Pass | Inconclusive::Report) => CaseResult::Skipped(message),
        };
        Case { name: format!("{} {allowed}", judgement.metric).trim_end().to_owned(), result, output: measured }
    }
}

fn limit(limit: &lab_file::Limit) -> Result<Limit, PatternError> {
    let of = match &limit.of {
        lab_file::Limited::Metric(name) | lab_file::Limited::Own { name, .. } => Limited::Metric(name.clone()),
        lab_file::Limited::Function(pattern) => Limited::Function(Family::Attributed, pattern.parse()?),
        lab_file::Limited::Allocations(pattern) => Limited::Function(Family::Allocations, pattern.parse()?),
        lab_file::Limited::SystemCalls(pattern) => Limited::Function(Family::SystemCalls, pattern.parse()?),
        lab_file::Limited::Thread(pattern) => Limited::Thread(pattern.parse()?),
    };
    let allowed = match limit.allowed {
        lab_file::Allowed::Percent(percent) => Allowed::Percent(percent),
        lab_file::Allowed::Amount { value, .. } => Allowed::Amount(value),
        lab_file::Allowed::AtMost(most) => Allowed::AtMost(most),
    };
    Ok(Limit { of, allowed, text: limit.text() })
}

/// The judgement of a scenario that one side lacks.
fn not_compared(note: &Note) -> Judgement {
    Judgement {
        metric: "all".to_owned(),
        unit: String::new(),
        allowed: String::new(),
        numbers: None,
        outcome: Outcome::Inconclusive,
        reason: Some(note.to_string().trim_end_matches('.').to_owned()),
        more_runs: None,
    }
}

fn table_of(scenarios: &[ScenarioVerdict], compared: &Compared) -> Table {
    let rows: Vec<(String, Vec<Judgement>)> =
        scenarios.iter().map(|one| (one.label.clone(), one.judgements.clone())).collect();
    let mut table = gate::table(&rows);
    let all: Vec<Judgement> = scenarios.iter().flat_map(|one| one.judgements.iter().cloned()).collect();
    table.title = format!("Gate: {}", summary(&all));
    for judgement in all.iter().filter(|judgement| judgement.numbers.is_none()) {
        let reason = judgement.reason.as_deref().unwrap_or("nothing was measured");
        table.note(note!(Limit, "{} cannot be judged: {}.", NoteValue::names([&*judgement.metric], 1), reason));
    }
    for comparison in compared.scenarios.iter().flat_map(|scenario| scenario.to_first.first()) {
        let about = note!(
            Fact,
            "{} against {}: {} against {}.",
            &comparison.after,
            &comparison.before,
            NoteValue::plural(comparison.runs.1, "run"),
            NoteValue::plural(comparison.runs.0, "run")
        );
        table.note(about);
        table.add_notes(comparison.notes.iter().cloned());
    }
    table
}

/// `regression: 1 of 4 limits is broken, 1 inconclusive`.
fn summary(all: &[Judgement]) -> String {
    let count = |outcome| all.iter().filter(|judgement| judgement.outcome == outcome).count();
    let message = match (count(Outcome::Regression), count(Outcome::Inconclusive)) {
        (1, 0) if all.len() == 1 => "the limit is broken".to_owned(),
        (0, 1) if all.len() == 1 => "the limit is inconclusive".to_owned(),
        (0, 0) if all.len() == 1 => "the limit is kept".to_owned(),
        (0, 0) => format!("all {} limits are kept", all.len()),
        (0, unknown) => format!("{unknown} of {} limits {} inconclusive", all.len(), is_or_are(unknown)),
        (broken, 0) => format!("{broken} of {} limits {} broken", all.len(), is_or_are(broken)),
        (broken, unknown) => {
            format!("{broken} of {} limits {} broken, {unknown} inconclusive", all.len(), is_or_are(broken))
        }
    };
    format!("{}: {message}", gate::overall(all).name())
}

fn is_or_are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// Inconclusive rows in a summary: a reviewer reads what is broken.
const MOST_INCONCLUSIVE: usize = 20;

/// Passing rows in a summary.
const MOST_PASSES: usize = 10;

/// Broken limits first, then some of the others, without empty columns.
fn summarized(table: &Table) -> Table {
    let mut table = table.clone();
    let Some(result) = table.column("result") else { return table };
    let is = |row: &&Row, outcome: Outcome| row[result] == Value::from(outcome.name());
    let parts =
        [(Outcome::Regression, usize::MAX), (Outcome::Inconclusive, MOST_INCONCLUSIVE), (Outcome::Pass, MOST_PASSES)];
    let mut rows = Vec::new();
    for (outcome, most) in parts {
        let matching: Vec<&Row> = table.rows.iter().filter(|row| is(row, outcome)).collect();
        rows.extend(matching.iter().take(most).map(|row| (*row).clone()));
        if matching.len() > most {
            table.notes.insert(0, format!("{} more: {}.", matching.len() - most, outcome.name()).into());
        }
    }
    table.rows = rows;
    let values = |name: &str| table.column(name).map(|column| table.rows.iter().map(move |row| &row[column]));
    let is_empty = |name: &&str| values(name).is_some_and(|mut all| all.all(|value| *value == Value::Missing));
    let mut without = vec!["difference", "difference_low", "difference_high"];
    without.extend(["reason", "more_runs"].into_iter().filter(is_empty));
    let mut scenarios: Vec<&Value> = values("scenario").into_iter().flatten().collect();
    scenarios.dedup();
    if let [Value::Text(only)] = scenarios.as_slice() {
        table.title.push_str(&format!(" ({only})"));
        without.push("scenario");
    }
    table.drop_columns(&without);
    table
}

fn more_runs(judgement: &Judgement) -> String {
    match judgement.more_runs {
        Some(1) => "; 1 more run per side would decide it".to_owned(),
        Some(more) => format!("; {more} more runs per side would decide it"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(outcomes: &[Outcome]) -> String {
        let judgement = |outcome: &Outcome| Judgement {
            metric: "rtf".to_owned(),
            unit: String::new(),
            allowed: "-5%".to_owned(),
            numbers: None,
            outcome: *outcome,
            reason: None,
            more_runs: None,
        };
        summary(&outcomes.iter().map(judgement).collect::<Vec<_>>())
    }

    #[test]
    fn a_summary_counts_limits_and_one_is_where_two_are() {
        use Outcome::{Inconclusive, Pass, Regression};
        assert_eq!(judged(&[Pass]), "pass: the limit is kept");
        assert_eq!(judged(&[Pass, Pass]), "pass: all 2 limits are kept");
        assert_eq!(judged(&[Pass, Inconclusive]), "inconclusive: 1 of 2 limits is inconclusive");
        assert_eq!(judged(&[Regression, Regression, Pass]), "regression: 2 of 3 limits are broken");
        assert_eq!(judged(&[Regression, Pass, Inconclusive]), "regression: 1 of 3 limits is broken, 1 inconclusive");
    }
}
