//! The summary of captures: one row each. Read it before any other table.
//!
//! - *RTF*: simulated over wall time, if steps carry simulated time.
//! - *cores used*: exact CPU time over wall time.
//! - *coverage*: sampled time over exact CPU time. With low coverage, shares are of the sampled time and must not be turned
//!   into seconds (erratum 3 of the Gazebo study: a profile held 0.4 s of 26 s).
//! - *losses*: records that the kernel dropped, stacks that end before a root, weight in code without a name.
//!
//! [`machines`] lists the machines of a merged capture, with the error of their clocks.
//!
//! [`dimensions`] lists each dimension that was requested, whether it was recorded, and if not the reason and the fix.

use stepscope_model::{
    Capture, Columns, Dimension, DimensionStatus, FrameKind, Losses, MergedMachine, NO_ROS2, Note, NoteValue, Origin,
    Process, ProcessId, Table, Value, note,
};

use stepscope_stats::Distribution;

use crate::analyses::hotspots::Hotspots;
use crate::analyses::resources;
use crate::analysis::{Analysis, Part, ReportSection, View};
use crate::query::coverage;
use crate::query::select::Selection;
use crate::query::steps::Steps;
use crate::query::weights::percent;

/// What the table shows of a capture.
struct Row<'s, 'a> {
    selection: &'s Selection<'a>,
    steps: Option<Steps>,
    /// Of the steps but the loop's first one.
    step_times: Option<Distribution>,
    wall_ns: Option<u64>,
    cpu_ns: Option<u64>,
    hotspots: Hotspots,
}

impl<'s, 'a> Row<'s, 'a> {
    fn of(selection: &'s Selection<'a>) -> Self {
        let steps = Steps::of(selection);
        Self {
            selection,
            step_times: steps.as_ref().map(Steps::times_after_first),
            steps,
            wall_ns: selection.wall_ns(),
            cpu_ns: coverage::cpu_ns(selection),
            hotspots: Hotspots::of(selection),
        }
    }

    fn capture(&self) -> &'a Capture {
        self.selection.capture()
    }

    fn step(&self, of: fn(&Distribution) -> Option<u64>) -> Value {
        self.step_times.as_ref().and_then(of).into()
    }

    fn cores(&self) -> Option<f64> {
        let wall_ns = self.wall_ns.filter(|wall| *wall > 0)?;
        Some(self.cpu_ns? as f64 / wall_ns as f64)
    }

    fn lost_records(&self) -> Option<u64> {
        let info = &self.capture().info;
        let lost = info.losses.lost_records;
        (info.origin == Origin::Recorded || lost > 0).then_some(lost)
    }
}

/// The table `summary`: one row per capture, in the order given.
pub fn table(selections: &[Selection<'_>]) -> Table {
    let rows: Vec<Row<'_, '_>> = selections.iter().map(Row::of).collect();
    let mut table = table_columns().table("summary", "Summary", &rows);
    for row in &rows {
        table.add_notes(notes(row, selections.len() > 1));
    }
    table
}

fn table_columns<'s, 'a>() -> Columns<'s, Row<'s, 'a>>
where
    'a: 's,
{
    let positive = |number: usize| (number > 0).then_some(number);
    Columns::<Row<'s, 'a>>::new()
        .text("capture", "Scenario, variant and phase; the file of imported evidence.", |row| {
            row.capture().info.name().into()
        })
        .duration("wall", "Length of the recording.", |row| row.wall_ns)
        .number("rtf", "", "Real-time factor: simulated time over wall time.", |row| {
            row.steps.as_ref().and_then(|steps| steps.real_time_factor)
        })
        .count("steps", "steps", "Simulation steps.", |row| row.steps.as_ref().map(Steps::count))
        .duration("step_median", "Median step time, without the loop's first step.", |row| {
            row.step(Distribution::median)
        })
        .duration("step_p95", "95th percentile of step time, without the first.", |row| {
            row.step(|times| times.percentile(95.0))
        })
        .duration("step_p99", "99th percentile of step time, without the first.", |row| {
            row.step(|times| times.percentile(99.0))
        })
        .duration("step_max", "Longest step, without the first.", |row| row.step(Distribution::max))
        .duration("cpu", "CPU time of all threads, from context switches: exact unless a note says otherwise.", |row| {
            row.cpu_ns
        })
        .number("cores", "cores", "CPU time over wall time: 1 is one core kept busy.", |row| row.cores())
        .count("processes", "processes", "Number of processes.", move |row| positive(row.capture().processes.len()))
        .count("threads", "threads", "Number of threads.", move |row| positive(row.selection.threads().count()))
        .bytes("rss_peak", "Largest resident memory of all processes together.", |row| {
            resources::peak_rss_together(row.selection)
        })
        .count("samples", "samples", "Number of samples; missing if only sums of weights were imported.", |row| {
            row.hotspots.counts_known.then_some(row.hotspots.total.count)
        })
        .percentage("coverage", "Sampled time in percent of exact CPU time.", |row| coverage::percent(row.selection))
        .percentage("owned_share", "Weight under owned code in percent of all.", |row| {
            let owned = row.selection.functions().ownership_known();
            owned.then(|| row.hotspots.under_owned.percent_of(row.hotspots.total)).flatten()
        })
        .percentage("unknown_share", "Weight of samples whose leaf has no name, in percent of all.", |row| {
            unknown_share(row.selection, &row.hotspots)
        })
        .percentage("truncated_share", "Samples whose stack ends before a root, in percent of all.", |row| {
            let losses = &row.capture().info.losses;
            percent(u128::from(losses.truncated_stacks), u128::from(losses.samples))
        })
        .count("lost_records", "records", "Records that the kernel dropped.", |row| row.lost_records())
        .percentage("overhead", "CPU time of the recorder in percent of the program's.", |row| {
            let cost = row.capture().info.recording_cost.zip(row.cpu_ns);
            cost.and_then(|(cost, cpu_ns)| percent(cost.cpu_ns.into(), cpu_ns.into()))
        })
        .essential("rtf step_median coverage")
        .detail("step_p95 step_max processes unknown_share truncated_share lost_records overhead")
}

fn unknown_share(selection: &Selection<'_>, hotspots: &Hotspots) -> Option<f64> {
    let functions = selection.functions();
    let is_unknown = |id| functions.get(id).kind == FrameKind::Unknown;
    let unknown = hotspots.costs.iter().filter(|cost| cost.function.is_none_or(is_unknown));
    percent(unknown.map(|cost| cost.own.weight).sum(), hotspots.total.weight)
}

/// A smaller part of CPU time that is estimated or not sampled is not noted.
const LEAST_NOTED_PERCENT: f64 = 5.0;

/// CPU time that timers of threads miss.
fn short_thread_notes(losses: &Losses) -> Vec<Note> {
    let noted = |ns: Option<u64>| -> Option<(NoteValue, NoteValue)> {
        let share = percent(ns?.into(), losses.cpu_time_ns?.into()).filter(|share| *share >= LEAST_NOTED_PERCENT)?;
        Some((NoteValue::percent(share), NoteValue::ns(ns?)))
    };
    let estimated = noted(losses.estimated_sample_ns).map(|(share, time)| {
        note!(
            Limit,
            "{} of the CPU time ({}) is estimated: kernel time, and short threads. Other samples of the thread, or of similar \
             threads, stand for it.",
            share,
            time
        )
    });
    let not_sampled = noted(losses.not_sampled_ns).map(|(share, time)| {
        note!(
            Loss,
            "{} of the CPU time ({}) is in the frame [not sampled]: kernel time, and threads that ended before their first \
             sample. Record as root, or with CAP_PERFMON, to sample it.",
            share,
            time
        )
    });
    estimated.into_iter().chain(not_sampled).collect()
}

fn notes(row: &Row<'_, '_>, several: bool) -> Vec<Note> {
    let (selection, capture) = (row.selection, row.capture());
    let losses = &capture.info.losses;
    let of_recorder = |text: &String| match text.starts_with(NO_ROS2) {
        true => note!(Loss, "{}", text),
        false => text.as_str().into(),
    };
    let mut notes: Vec<Note> = capture.info.notes.iter().map(of_recorder).collect();
    if let Some(coverage) = coverage::percent(selection).filter(|percent| *percent < coverage::LEAST_PERCENT) {
        let coverage = NoteValue::percent(coverage);
        notes.push(note!(
            Loss,
            "Coverage is {}: shares are of the sampled time, and are not turned into time.",
            coverage
        ));
    }
    notes.extend(coverage::cpu_notes(capture));
    notes.extend(short_thread_notes(losses));
    if losses.throttled > 0 {
        notes.push(note!(
            Loss,
            "The kernel throttled sampling {}.",
            NoteValue::plural(losses.throttled as usize, "time")
        ));
    }
    notes.extend(stack_notes(losses));
    if losses.malformed_records > 0 {
        let records = NoteValue::plural(losses.malformed_records as usize, "record");
        notes.push(note!(Loss, "{} of the imported file could not be read.", records));
    }
    if matches!(capture.info.origin, Origin::Recovered) {
        notes.push(note!(Loss, "Recovered from a recording that did not finish: its end may be missing."));
    }
    notes.extend(row.hotspots.unnamed_note(selection));
    match several {
        true => notes.into_iter().map(|note| note.about(capture.info.name())).collect(),
        false => notes,
    }
}

/// Stacks that are not what the program had.
fn stack_notes(losses: &Losses) -> Vec<Note> {
    let share =
        |stacks: u64| percent(stacks.into(), losses.samples.into()).filter(|_| stacks > 0).map(NoteValue::percent);
    let mut notes = Vec::new();
    if let Some(share) = share(losses.guessed_stacks) {
        notes.push(note!(
            Limit,
            "{} of the stacks have a guessed caller: code without unwind tables made the call. Frames above \
             `[callers guessed]` may be wrong.",
            share
        ));
    }
    if let Some(share) = share(losses.shortened_stacks) {
        notes.push(note!(
            Limit,
            "{} of the stacks have more than 1,024 frames: `[frames omitted]` stands for their middle.",
            share
        ));
    }
    if let Some(share) = share(losses.stacks_of_32_bit_code) {
        notes.push(note!(
            Limit,
            "{} of the stacks are of 32-bit code: their callers come from frame pointers alone. Build it with \
             `-fno-omit-frame-pointer`, or for 64 bits.",
            share
        ));
    }
    notes
}

/// The table `machines`: what a capture was merged from, in the order given. `None` for captures of one machine.
pub fn machines(selection: &Selection<'_>) -> Option<Table> {
    struct Row<'a> {
        machine: &'a MergedMachine,
        start_ns: u64,
        processes: usize,
        threads: usize,
        cpu_ns: Option<u64>,
    }
    let capture = selection.capture();
    let merged = capture.info.merged.as_ref()?;
    let rows = merged.machines.iter().map(|machine| {
        let is_its = |process: &Process| process.machine.as_ref() == Some(&machine.name);
        let of_process = |id: Option<ProcessId>| id.is_some_and(|id| is_its(&capture.processes[id.index()]));
        let threads = || capture.threads.iter().filter(|thread| of_process(thread.process));
        Row {
            machine,
            start_ns: capture.info.start_ns.unwrap_or(0),
            processes: capture.processes.iter().filter(|process| is_its(process)).count(),
            threads: threads().count(),
            cpu_ns: threads().map(|thread| thread.cpu_ns).sum(),
        }
    });
    let machine = |row: &Row<'_>| row.machine.machine.clone().unwrap_or_default();
    let table = Columns::<Row<'_>>::new()
        .text("machine", "Name of the machine, which starts the labels of its processes.", |row| {
            row.machine.name.as_str().into()
        })
        .text("source", "Its capture.", |row| row.machine.capture.as_str().into())
        .text("model", "Its CPU.", move |row| machine(row).cpu.into())
        .count("cpus", "CPUs", "Number of its CPUs.", move |row| machine(row).cores)
        .number("first_cpu", "", "The number that its CPU 0 has in this capture.", |row| row.machine.first_cpu)
        .duration("start", "Start of its recording, since that of the first one.", |row| {
            row.machine.start_ns.saturating_sub(row.start_ns)
        })
        .duration("wall", "Length of its recording.", |row| row.machine.end_ns.saturating_sub(row.machine.start_ns))
        .count("processes", "processes", "Number of processes.", |row| row.processes)
        .count("threads", "threads", "Number of threads.", |row| row.threads)
        .duration("cpu", "CPU time of all threads, from context switches: exact unless a note says otherwise.", |row| {
            row.cpu_ns
        })
        .text(
            "clock",
            "How its clock was aligned: reference (times are of this clock), same_clock (same boot), exchange (datagrams), \
             wall_clock (NTP or PTP), given_error.",
            |row| row.machine.clock.method.name().into(),
        )
        .duration("clock_offset", "What was added to its times.", |row| row.machine.clock.offset_ns)
        .number("drift", "ppm", "Parts per million by which its clock was too slow.", |row| row.machine.clock.drift_ppm)
        .duration("clock_error", "Largest error of its times.", |row| row.machine.clock.error_ns)
        .count("exchanges", "exchanges", "Exchanged datagrams that the alignment is from.", |row| {
            row.machine.clock.exchanges
        })
        .duration("round_trip", "The shortest round trip of these.", |row| row.machine.clock.round_trip_ns)
        .essential("machine clock clock_error drift start wall")
        .detail("source model first_cpu exchanges")
        .table("machines", "Machines", rows);
    Some(table)
}

/// The table `dimensions`: what was recorded of each capture, and why the rest was not.
pub fn dimensions(selections: &[Selection<'_>]) -> Table {
    struct Row<'a> {
        capture: &'a Capture,
        dimension: Dimension,
        status: &'a DimensionStatus,
    }
    let rows = selections.iter().map(Selection::capture).flat_map(|capture| {
        let dimensions = capture.info.dimensions.iter();
        dimensions.map(move |(dimension, status)| Row { capture, dimension: *dimension, status })
    });
    Columns::<Row<'_>>::new()
        .text("capture", "Scenario, variant and phase; the file of imported evidence.", |row| {
            row.capture.info.name().into()
        })
        .text("dimension", "Kind of evidence.", |row| row.dimension.name().into())
        .text("status", "recorded, partial or missing.", |row| {
            match row.status {
                DimensionStatus::Recorded => "recorded",
                DimensionStatus::Partial { .. } => "partial",
                DimensionStatus::Missing { .. } => "missing",
            }
            .into()
        })
        .text("detail", "What is missing, and why.", |row| match row.status {
            DimensionStatus::Recorded => "".into(),
            DimensionStatus::Partial { lacks } => lacks.join(" ").into(),
            DimensionStatus::Missing { reason, .. } => reason.as_str().into(),
        })
        .text("remedy", "The command or change that would enable it.", |row| match row.status {
            DimensionStatus::Missing { remedy: Some(remedy), .. } => remedy.as_str().into(),
            _ => "".into(),
        })
        .essential("dimension status")
        .table("dimensions", "What was recorded", rows)
}

/// How much of a capture was recorded.
pub const ANALYSIS: Analysis = Analysis {
    title: "Summary and dimensions",
    views: &[
        View {
            name: "summary",
            question: "How long is the recording, and how much of it is covered or lost?",
            tables: |selection, _| {
                [table(std::slice::from_ref(selection))].into_iter().chain(machines(selection)).collect()
            },
        },
        View {
            name: "dimensions",
            question: "What was recorded, and why was the rest not?",
            tables: |selection, _| vec![dimensions(std::slice::from_ref(selection))],
        },
    ],
    report: |selection| {
        let figures = Part::Figures(table(std::slice::from_ref(selection)));
        let machines = machines(selection).map(Part::Table);
        vec![ReportSection::new("Summary", [figures].into_iter().chain(machines).collect())]
    },
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{AlignmentMethod, ClockAlignment, Event, Merged, Phase, RecordingCost};

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
    fn step_times_are_those_of_the_view_of_steps() {
        // The first step loads what the others use.
        let drawing = Drawing::new().window(0..10_000).lived("main", 0..10_000, None);
        let capture = drawing.steps("main", 0, 4_000, 1, 500).steps("main", 4_000, 1_000, 2, 500).capture;
        let shown = drawn::selected(&capture, &[], crate::analyses::step_times::tables);
        let (summary, loops) = (summary(&capture), &shown[0]);
        assert_eq!(cells(&summary, &["steps", "step_median"]), ["3 | 1000"]);
        assert_eq!(cells(loops, &["steps", "first_step", "median"]), ["3 | 4000 | 1000"]);
        assert_eq!(
            cells(&summary, &["step_p95", "step_p99", "step_max"]),
            cells(&shown[1], &["p95", "p99", "max"])[..1]
        );
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
    fn low_coverage_has_a_note() {
        let capture = Drawing::new()
            .window(0..26_000)
            .lived("main", 0..26_000, 26_000)
            .folded(Event::sampled("cpu-clock", "ns"), "main;a 400")
            .capture;
        assert_eq!(
            summary(&capture).notes,
            ["Coverage is 1.54 %: shares are of the sampled time, and are not turned into time."]
        );
    }

    #[test]
    fn the_machines_of_a_merged_capture_have_a_table() {
        let mut capture = recorded();
        assert!(drawn::selected(&capture, &[], machines).is_none());
        capture.processes[0].machine = Some("robot".into());
        let clock = ClockAlignment {
            method: AlignmentMethod::Exchange,
            offset_ns: -7,
            drift_ppm: 12.5,
            error_ns: 30,
            exchanges: 9,
            round_trip_ns: Some(50),
        };
        let machine =
            |name: &str, clock| MergedMachine { name: name.into(), end_ns: 100, clock, ..MergedMachine::default() };
        let machines_of = vec![machine("base", ClockAlignment::default()), machine("robot", clock)];
        capture.info.merged = Some(Merged { machines: machines_of, ..Merged::default() });
        let table = drawn::selected(&capture, &[], machines).unwrap();
        let columns =
            ["machine", "threads", "cpu", "clock", "clock_offset", "drift", "clock_error", "exchanges", "round_trip"];
        assert_eq!(
            cells(&table, &columns),
            ["base | 0 | 0 | reference | 0 | 0 | 0 | 0 | -", "robot | 2 | 10000 | exchange | -7 | 12.5 | 30 | 9 | 50"]
        );
    }

    #[test]
    fn values_that_an_import_lacks_are_missing_and_not_zero() {
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
