//! The summary of captures: one line each, with what a reader needs before trusting any other table.
//!
//! - *RTF*: simulated over wall time, where steps say what they simulated.
//! - *cores used*: exact CPU time over wall time.
//! - *coverage*: sampled time over exact CPU time. Shares of a capture with low coverage are shares of what was sampled,
//!   and must not be turned into seconds (erratum 3 of the Gazebo study: a profile that held 0.4 s of 26 s was).
//! - *losses*: records that the kernel dropped, stacks that end before a root, weight in code without a name.
//!
//! [`dimensions`] lists what was asked for and what came of it, with the reason and the remedy where it did not.

use stepscope_model::{Capture, DimensionStatus, FrameKind, Origin, Table, Value, quantity};

use crate::analyses::hotspots::Hotspots;
use crate::analyses::resources;
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::columns;
use crate::query::coverage;
use crate::query::select::Selection;
use crate::query::steps::Steps;
use crate::query::weights::percent;

/// A short name of the capture: scenario, variant and phase, else the imported file, else the command.
pub fn label(capture: &Capture) -> String {
    if let Some(label) = capture.info.label() {
        return label;
    }
    if let Origin::Imported { file, .. } = &capture.info.origin {
        return file.rsplit('/').next().unwrap_or(file).to_owned();
    }
    match capture.info.command.first() {
        Some(program) => program.rsplit('/').next().unwrap_or(program).to_owned(),
        None => "capture".to_owned(),
    }
}

/// The table `summary`: a row a capture, in the order given.
pub fn table(selections: &[Selection<'_>]) -> Table {
    let mut table = Table::new(
        "summary",
        "Summary",
        vec![
            columns::text("capture", "Scenario, variant and phase; for imported evidence its file."),
            columns::duration("wall", "Length of the recording."),
            columns::number("rtf", "", "Real-time factor: simulated time over wall time."),
            columns::count("steps", "steps", "Simulation steps."),
            columns::duration("step_median", "Median time of a step."),
            columns::duration("step_p95", "95th percentile of the steps' times.").detail(),
            columns::duration("step_p99", "99th percentile."),
            columns::duration("step_max", "The longest step.").detail(),
            columns::duration("cpu", "Exact CPU time of all threads, from context switches."),
            columns::number("cores", "cores", "CPU time over wall time: 1 is one core kept busy."),
            columns::count("processes", "processes", "Number of processes.").detail(),
            columns::count("threads", "threads", "Number of threads."),
            columns::bytes("rss_peak", "Largest resident memory of all processes together."),
            columns::count(
                "samples",
                "samples",
                "Number of samples; missing where only sums of weights were imported.",
            ),
            columns::percent("coverage", "Sampled time in percent of exact CPU time."),
            columns::percent("owned_share", "Weight under owned code in percent of all."),
            columns::percent("unknown_share", "Weight of samples whose leaf has no name, in percent of all.").detail(),
            columns::percent("truncated_share", "Samples whose stack ends before a root, in percent of all.").detail(),
            columns::count("lost_records", "records", "Records that the kernel dropped.").detail(),
            columns::percent("overhead", "CPU time of the recorder in percent of the program's.").detail(),
        ],
    );
    for selection in selections {
        table.push(row(selection));
        table.add_notes(notes(selection, selections.len() > 1));
    }
    table
}

fn row(selection: &Selection<'_>) -> Vec<Value> {
    let capture = selection.capture();
    let losses = &capture.info.losses;
    let steps = Steps::of(selection);
    let step = |of: fn(&Steps) -> Option<u64>| Value::from(steps.as_ref().and_then(of));
    let wall = selection.wall_ns();
    let cpu = coverage::cpu_ns(selection);
    let hotspots = Hotspots::of(selection);
    let cores = cpu.zip(wall.filter(|wall| *wall > 0)).map(|(cpu, wall)| cpu as f64 / wall as f64);
    let known = |number: usize| (number > 0).then_some(number);
    let owned = selection.functions().ownership_known();
    let truncated = percent(u128::from(losses.truncated_stacks), u128::from(losses.samples));
    let overhead = capture.info.recording_cost.zip(cpu).and_then(|(cost, cpu)| percent(cost.cpu_ns.into(), cpu.into()));
    vec![
        label(capture).into(),
        wall.into(),
        steps.as_ref().and_then(|steps| steps.real_time_factor).into(),
        steps.as_ref().map(Steps::count).into(),
        step(|steps| steps.times.median()),
        step(|steps| steps.times.percentile(95.0)),
        step(|steps| steps.times.percentile(99.0)),
        step(|steps| steps.times.max()),
        cpu.into(),
        cores.into(),
        known(capture.processes.len()).into(),
        known(selection.threads().count()).into(),
        resources::peak_rss_together(selection).into(),
        hotspots.counts_known.then_some(hotspots.total.count).into(),
        coverage::percent(selection).into(),
        owned.then(|| hotspots.under_owned.percent_of(hotspots.total)).flatten().into(),
        unknown_share(selection, &hotspots).into(),
        truncated.into(),
        if capture.info.origin == Origin::Recorded || losses.lost_records > 0 {
            losses.lost_records.into()
        } else {
            Value::Missing
        },
        overhead.into(),
    ]
}

fn unknown_share(selection: &Selection<'_>, hotspots: &Hotspots) -> Option<f64> {
    let functions = selection.functions();
    let is_unknown = |id| functions.get(id).kind == FrameKind::Unknown;
    let unknown = hotspots.costs.iter().filter(|cost| cost.function.is_none_or(is_unknown));
    percent(unknown.map(|cost| cost.own.weight).sum(), hotspots.total.weight)
}

fn notes(selection: &Selection<'_>, several: bool) -> Vec<String> {
    let capture = selection.capture();
    let losses = &capture.info.losses;
    let mut notes = capture.info.notes.clone();
    if let Some(coverage) = coverage::percent(selection).filter(|percent| *percent < coverage::LEAST_PERCENT) {
        notes.push(format!(
            "Coverage is {coverage:.1} %: shares are of what was sampled, and are not turned into time."
        ));
    }
    if losses.throttled > 0 {
        notes.push(format!("The kernel throttled sampling {}.", quantity::plural(losses.throttled as usize, "time")));
    }
    if losses.malformed_records > 0 {
        notes.push(format!(
            "{} of the imported file could not be read.",
            quantity::plural(losses.malformed_records as usize, "record"),
        ));
    }
    if matches!(capture.info.origin, Origin::Recovered) {
        notes.push("Recovered from a recording that did not finish: its end may be missing.".to_owned());
    }
    if several {
        let label = label(capture);
        notes.iter_mut().for_each(|note| *note = format!("{label}: {note}"));
    }
    notes
}

/// The table `dimensions`: what each capture was asked for, and what came of it.
pub fn dimensions(selections: &[Selection<'_>]) -> Table {
    let mut table = Table::new(
        "dimensions",
        "What was recorded",
        vec![
            columns::text("capture", "Scenario, variant and phase; for imported evidence its file."),
            columns::text("dimension", "Kind of evidence."),
            columns::text("status", "recorded, partial or missing."),
            columns::text("detail", "What is missing, and why."),
            columns::text("remedy", "The command or change that would enable it."),
        ],
    );
    for capture in selections.iter().map(Selection::capture) {
        for (dimension, status) in &capture.info.dimensions {
            let (status, detail, remedy) = match status {
                DimensionStatus::Recorded => ("recorded", String::new(), None),
                DimensionStatus::Partial { lacks } => ("partial", lacks.join(" "), None),
                DimensionStatus::Missing { reason, remedy } => ("missing", reason.clone(), remedy.clone()),
            };
            table.push(vec![
                label(capture).into(),
                dimension.name().into(),
                status.into(),
                detail.into(),
                remedy.unwrap_or_default().into(),
            ]);
        }
    }
    table
}

/// How much of a capture was recorded.
pub struct Summary;

impl Analysis for Summary {
    fn title(&self) -> &'static str {
        "Summary and dimensions"
    }

    fn views(&self) -> &'static [View] {
        &[
            View {
                name: "summary",
                question: "How long is the recording, and how much of it is covered or lost?",
                tables: |selection, _| vec![table(std::slice::from_ref(selection))],
            },
            View {
                name: "dimensions",
                question: "What was recorded, and why was the rest not?",
                tables: |selection, _| vec![dimensions(std::slice::from_ref(selection))],
            },
        ]
    }

    fn report(&self, selection: &Selection<'_>) -> Vec<ReportSection> {
        vec![ReportSection::new("Summary", vec![Part::Figures(table(std::slice::from_ref(selection)))])]
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Dimension, Event, Phase, RecordingCost};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn::{self, Drawing};

    fn recorded() -> Capture {
        let mut capture = Drawing::new()
            .window(0..10_000)
            .process(7, "/usr/bin/gz")
            .lived("main", 0..10_000, 8_000)
            .lived("worker", 0..10_000, 2_000)
            .folded(Event::sampled("cpu-clock", "ns"), "main;gz::Run;find 7000\nmain;[unknown] 1000\nworker;poll 1500")
            .steps("main", 0, 1_000, 10, 500)
            .capture;
        capture.info.scenario = Some("shapes".to_owned());
        capture.info.phase = Some(Phase::Steady);
        capture.info.losses.samples = 200;
        capture.info.losses.truncated_stacks = 3;
        capture.info.recording_cost = Some(RecordingCost { cpu_ns: 100, ..RecordingCost::default() });
        capture
    }

    fn summary(capture: &Capture) -> Table {
        drawn::selected(capture, &["gz::"], |selection| table(std::slice::from_ref(selection)))
    }

    #[test]
    fn a_recorded_capture_is_summed_up() {
        let table = summary(&recorded());
        assert_eq!(
            cells(&table, &["capture", "wall", "rtf", "steps", "step_median", "cpu", "cores", "processes", "threads"]),
            ["shapes/steady | 10000 | 0.5 | 10 | 1000 | 10000 | 1 | 1 | 2"]
        );
        assert_eq!(
            cells(
                &table,
                &["samples", "coverage", "owned_share", "unknown_share", "truncated_share", "lost_records", "overhead"]
            ),
            ["3 | 95 | 73.684211 | 10.526316 | 1.5 | 0 | 1"]
        );
        assert!(table.notes.is_empty());
    }

    /// Erratum 3.
    #[test]
    fn low_coverage_is_said() {
        let capture = Drawing::new()
            .window(0..26_000)
            .lived("main", 0..26_000, 26_000)
            .folded(Event::sampled("cpu-clock", "ns"), "main;a 400")
            .capture;
        assert_eq!(
            summary(&capture).notes,
            ["Coverage is 1.5 %: shares are of what was sampled, and are not turned into time."]
        );
    }

    #[test]
    fn what_imported_evidence_does_not_say_is_missing_and_not_zero() {
        let mut capture = Drawing::new().folded(Event::weighed("cycles", "cycles"), "main;a 5").capture;
        capture.info.origin = Origin::Imported { format: "folded".to_owned(), file: "runs/jetty.folded".to_owned() };
        let table = summary(&capture);
        assert_eq!(
            cells(&table, &["capture", "wall", "rtf", "cpu", "samples", "coverage", "lost_records", "rss_peak"]),
            ["jetty.folded | - | - | - | - | - | - | -"]
        );
    }

    #[test]
    fn dimensions_are_listed_with_reason_and_remedy() {
        let mut capture = recorded();
        capture.info.dimensions.insert(Dimension::Cpu, DimensionStatus::Recorded);
        capture.info.dimensions.insert(
            Dimension::Cache,
            DimensionStatus::Missing { reason: "This machine has no PMU.".to_owned(), remedy: None },
        );
        let table = drawn::selected(&capture, &[], |selection| dimensions(std::slice::from_ref(selection)));
        assert_eq!(
            cells(&table, &["dimension", "status", "detail"]),
            ["cpu | recorded | ", "cache | missing | This machine has no PMU."]
        );
    }
}
