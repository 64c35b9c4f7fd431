//! The table `findings`.

use stepscope_model::{Column, Columns, Note, NoteValue, Phase, Table, note};
use stepscope_stats::Estimate;

use super::finding::Evidence;
use super::{Diagnosis, Finding, Total};
use crate::analyses::build;
use crate::columns::bounds;
use crate::notes::{found_step_note, ownership_note, ownership_option};
use crate::query::select::Selection;

/// The note of a table without rows.
pub fn none_found() -> Note {
    note!(Fact, "No known kind of defect was found. See `rank` for what your functions cost.")
}

pub(super) fn table(selections: &[Selection<'_>], diagnosis: &Diagnosis) -> Table {
    let findings = diagnosis.findings.as_slice();
    let mut table =
        findings_columns(findings).table("findings", "Findings, by what they would gain", findings.iter().enumerate());
    for total in &diagnosis.totals {
        let mut about = total.scenario.clone();
        if let Some(phase) = total.phase {
            about.push_str(&format!(" {phase}"));
        }
        table.note(total_note(total, findings).about(about));
    }
    table.add_notes(diagnosis.notes.iter().cloned());
    let has_no_cost = |one: &&Selection<'_>| one.samples().next().is_none();
    table.add_notes(
        selections
            .iter()
            .filter(has_no_cost)
            .map(|one| note!(Loss, "Not looked at: no CPU samples.").about(one.capture().info.name())),
    );
    if findings.is_empty() {
        table.note(none_found());
    }
    table.add_notes(diagnosis.unexplained.iter().cloned());
    table.add_notes(found_step_note(selections));
    // An imported file can have no steps, whatever is done.
    let lacks_steps = |one: &&Selection<'_>| {
        one.capture().steps.is_empty() && !one.capture().info.command.is_empty() && !build::is_build(one.capture())
    };
    table.add_notes(
        selections
            .iter()
            .filter(|one| one.capture().info.phase != Some(Phase::Loading))
            .filter(lacks_steps)
            .map(|one| {
                note!(
                    Hint,
                    "No steps are known, so findings that compare steps are missing. `stepscope record --suggest-steps` names \
                     functions that are called once a step."
                )
                .about(one.capture().info.name())
            }),
    );
    let in_loop = |one: &Selection<'_>| !one.capture().steps.is_empty() && one.capture().info.sweep.is_empty();
    if findings.is_empty() && !selections.is_empty() && selections.iter().all(in_loop) {
        table.note(note!(
            Hint,
            "Full scans, and searches and memory that grow faster than the world, show over several sizes: `stepscope sweep` \
             records them, `diagnose` takes its run."
        ));
    }
    if !selections.is_empty() && selections.iter().all(|one| build::is_build(one.capture())) {
        if selections.iter().any(|one| one.capture().scopes.is_empty()) {
            table.note(note!(
                Hint,
                "`stepscope build --with-timing` with clang also times each header and template by itself."
            ));
        }
        return table;
    }
    table.add_notes(ownership_note(selections));
    let unknown = selections.iter().find(|selection| !selection.functions().ownership_known());
    if let Some(unknown) = unknown.filter(|_| name_other_source(findings)) {
        table.note(note!(
            Hint,
            "Name your own code, perhaps with `{}`: findings then name your function and not a library's.",
            ownership_option(unknown)
        ));
    }
    table
}

/// Whether a time has an interval: a total of one recording has none.
fn has_interval(time: &Estimate) -> bool {
    time.low < time.high
}

/// Whether a finding names a function without a source file, or with one of the system's. Without any finding, ownership may find one.
fn name_other_source(findings: &[Finding]) -> bool {
    let own = |one: &Finding| one.place.as_ref().is_some_and(|(file, _)| !file.starts_with("/usr/"));
    let mut of_functions = findings.iter().filter(|one| one.function.is_some());
    findings.is_empty() || of_functions.any(|one| !own(one))
}

/// What the findings of a scenario gain together. Gains that are no CPU time cannot be added to it.
fn total_note(total: &Total, findings: &[Finding]) -> Note {
    let is_other = |one: &Finding| one.scenario == total.scenario && one.found.without.is_empty() && one.gain.is_some();
    let all = if findings.iter().any(is_other) { "The findings of CPU time" } else { "All findings" };
    let share = total.gain.share().value;
    let percent = NoteValue::percent(share);
    let Some(time) = total.gain.known_time() else {
        return note!(Fact, "{} together gain {}.", all, percent);
    };
    let gain = NoteValue::ns(time.value);
    match total.real_time_factor.filter(|_| share < 100.0) {
        None => note!(Fact, "{} together gain {} ({}).", all, gain, percent),
        Some(factor) => {
            let after = NoteValue::number(factor / (1.0 - share / 100.0));
            let factor = NoteValue::number(factor);
            note!(Fact, "{} together gain {} ({}): RTF {} could be {}.", all, gain, percent, factor, after)
        }
    }
}

type Row<'a> = (usize, &'a Finding);

fn findings_columns<'a>(all: &'a [Finding]) -> Columns<'a, Row<'a>> {
    let place = |finding: &Finding| finding.place.as_ref().map(|(file, line)| format!("{file}:{line}"));
    let within = move |finding: &Finding| {
        let outer = finding.within.as_ref()?;
        let same =
            |one: &Finding| one.cause() == *outer && one.scenario == finding.scenario && one.phase == finding.phase;
        all.iter().position(same).map(|index| index + 1)
    };
    Columns::<Row<'a>>::new()
        .with(Column::count("number", "", "Place by gain.").labelled("#").essential(), |(index, _)| (index + 1).into())
        .prose("finding", "What happens.", |(_, one)| one.found.title.as_str().into())
        .with(
            Column::duration("gain", "Time that a change would gain: per step, or of the phase where it has no steps.")
                .labelled(gain_label(all)),
            |(_, one)| one.gain.and_then(|gain| Some(gain.known_time()?.value)).into(),
        )
        .duration("gain_low", "Lower bound of its 95 % confidence interval.", |(_, one)| {
            one.gain.and_then(|gain| Some(gain.known_time().filter(has_interval)?.low))
        })
        .duration("gain_high", "Upper bound of its 95 % confidence interval.", |(_, one)| {
            one.gain.and_then(|gain| Some(gain.known_time().filter(has_interval)?.high))
        })
        .with(
            Column::percentage(
                "gain_share",
                "The gain in percent of the step or phase, without waits for CPUs that other programs had and sleeps that keep the pace.",
            )
            .labelled(share_label(all))
            .essential(),
            |(_, one)| one.gain.map(|gain| gain.share().value).into(),
        )
        .duration(
            "gain_at_2x",
            "Predicted gain at twice the largest size of the sweep; missing without a law.",
            |(_, one)| one.gain_at_twice().map(|gain| gain.value),
        )
        .with_all(bounds("gain_at_2x_", Column::duration, |(_, one): &Row<'a>| one.gain_at_twice()))
        .number(
            "rtf_after",
            "",
            "Real-time factor with that gain, if the program runs as fast as it can.",
            |(_, one)| one.real_time_factor_after(),
        )
        .text(
            "confidence",
            "strong: the evidence shows it. fair: little else looks like it. weak: see what would confirm it.",
            |(_, one)| one.found.confidence.name().into(),
        )
        .text("function", "The owned function that decides it.", |(_, one)| {
            one.function.as_ref().map(|function| function.name.to_string()).into()
        })
        .text("module", "File name of its module.", |(_, one)| {
            one.function.as_ref().map(|function| function.module.to_string()).into()
        })
        .with(
            Column::prose("place", "Source file and line of the function's heaviest place.").labelled("at").below(),
            move |(_, one)| place(one).into(),
        )
        .text("kind", "Kind of finding: see docs/analyses/diagnose.md.", |(_, one)| one.kind.name().into())
        .text("scenario", "Scenario in which it gains most.", |(_, one)| one.scenario.as_str().into())
        .text("phase", "Phase of the recording.", |(_, one)| one.phase.map(|phase| phase.to_string()).into())
        .text("also_in", "Other scenarios that show it.", |(_, one)| one.also_in.join(", ").into())
        .count(
            "within",
            "",
            "Number of the finding that has most of this one's gain: do not add them.",
            move |(_, one)| within(one),
        )
        .text("how", "How the gain was estimated.", |(_, one)| one.gain.map(|gain| gain.basis.name()).into())
        .text("captures", "How many captures of the scenario show it.", |(_, one)| {
            format!("{} of {}", one.captures.0, one.captures.1).into()
        })
        .with(Column::prose("advice", "What to do.").labelled("to do").below(), |(_, one)| {
            one.found.advice.unwrap_or(one.kind.advice()).into()
        })
        .with(
            Column::prose("why", "The evidence: a sentence and the command that shows it a line.").below(),
            |(_, one)| evidence(&one.found.evidence).into(),
        )
        .with(
            Column::prose("confirm", "What would confirm it; missing if it was recorded, and does.")
                .labelled("to confirm")
                .below(),
            |(_, one)| (!one.found.is_confirmed).then(|| one.kind.confirm()).into(),
        )
        .essential("finding gain scenario")
        .detail("gain_low gain_high gain_at_2x function module kind also_in within how captures")
}

/// Whether all known gains are per step, or none is. Of tables with both, the columns say what they are.
fn is_per_step(all: &[Finding]) -> Option<bool> {
    let mut each = all.iter().filter_map(|one| one.gain).map(|gain| gain.basis.is_per_step());
    let first = each.next()?;
    each.all(|other| other == first).then_some(first)
}

fn gain_label(all: &[Finding]) -> &'static str {
    match is_per_step(all) {
        Some(true) => "gain per step",
        _ => "gain",
    }
}

fn share_label(all: &[Finding]) -> &'static str {
    match is_per_step(all) {
        Some(true) => "of the step",
        Some(false) => "of the time",
        None => "share",
    }
}

/// Each piece of evidence on a line, with the command that shows it.
fn evidence(evidence: &[Evidence]) -> String {
    let line = |one: &Evidence| match &one.command {
        Some(command) => format!("{} See `stepscope {}`.", one.text, with_source(command)),
        None => one.text.clone(),
    };
    evidence.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A command with the place of the run or capture: after the name and pattern of `explain`, else after the subcommand.
fn with_source(command: &str) -> String {
    match command.split_once(' ') {
        Some((name, options)) if name != "explain" => format!("{name} RUN {options}"),
        _ => format!("{command} RUN"),
    }
}

impl Finding {
    /// The gain at twice the largest size of a sweep.
    fn gain_at_twice(&self) -> Option<Estimate> {
        Some(self.found.twice?.times(self.gain?.known_time()?.value))
    }

    /// The real-time factor with the gain. It is per step, so a gain of a phase changes nothing.
    fn real_time_factor_after(&self) -> Option<f64> {
        let share = self.gain?.share().value;
        (share < 100.0).then_some(self.real_time_factor? / (1.0 - share / 100.0))
    }
}
