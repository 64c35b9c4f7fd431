//! What a report of recorded scenarios holds, in which order: the same tables that every other output shows.
//!
//! First the verdict, then what to change (the findings), then the variants side by side, then what decides (the rank over all scenarios), then what
//! happened to each trial, then each capture by itself: summary, steps, hot spots, flame graphs, threads, wall. Rendering is [`stepscope_view::report`]'s business.

mod comparison;
mod speed;
mod sweep;
mod verdict;

use stepscope_analyze::analysis::{Part, ReportSection};
use stepscope_analyze::rank::pairing;
use stepscope_analyze::{ANALYSES, Selection, cost_tree, parallel, rank, summary, variants};
use stepscope_app::document::section_anchor;
use stepscope_model::command_line::quoted;
use stepscope_model::quantity::plural;
use stepscope_model::{CaptureInfo, Column, Columns, Importance, Kind, Machine, Note, NoteValue, Phase, Table, note};
use stepscope_view::chart::Chart;
use stepscope_view::report::{Report, Section};

use self::speed::Repeated;

pub use self::comparison::{Compared, comparison};
pub use self::sweep::sweep;
pub use self::verdict::of_sides;
use crate::outcome::Outcome;
use crate::run::{RunInfo, TrialInfo};

/// A report on captures, and on the run that they are of, if they are of one.
///
/// Its first section are the findings of [`stepscope_analyze::diagnose`]. That of a sweep has its laws in place of the
/// sections of each capture.
pub fn report(run: Option<&RunInfo>, selections: &[Selection<'_>], findings: Table) -> Report {
    if run.is_some_and(|run| run.sweep.is_some()) {
        return sweep(run, selections, findings);
    }
    let report = verdict_first(run, selections, findings);
    let report = variants_section(selections).into_iter().chain(ranks(selections)).fold(report, Report::section);
    let shown = shown(run, selections);
    let report = report.section(with_hidden(overview(run, selections), selections.len(), shown.len()));
    shown.iter().map(capture).fold(report, Report::section)
}

/// A report with its first two sections only: the verdict and the findings. They are there long before the rest.
pub fn verdict_first(run: Option<&RunInfo>, selections: &[Selection<'_>], findings: Table) -> Report {
    let verdict = verdict::verdict(run.and_then(|run| run.ab.as_ref()), selections, &findings);
    heading(run, selections).section(verdict).section(findings_section(findings))
}

/// The captures that a report shows one by one: all if they are few, else of each scenario, variant and phase the run whose
/// steps take the median time; of a sweep those of its smallest and its largest point.
pub fn shown<'a>(run: Option<&RunInfo>, selections: &[Selection<'a>]) -> Vec<Selection<'a>> {
    const FEW: usize = 8;
    match run.is_some_and(|run| run.sweep.is_some()) {
        true => sweep::ends(selections),
        false if selections.len() <= FEW => selections.to_vec(),
        false => typical(selections),
    }
}

/// Of each scenario, variant and phase the capture whose steps take the median time.
pub fn typical<'a>(selections: &[Selection<'a>]) -> Vec<Selection<'a>> {
    let all: Vec<&Selection<'a>> = selections.iter().collect();
    Repeated::all(&all).iter().map(|repeated| repeated.typical.clone()).collect()
}

fn with_hidden(section: Section, all: usize, shown: usize) -> Section {
    if shown == all {
        return section;
    }
    section.note(note!(
        Hint,
        "Shows {} of {}; `stepscope view CAPTURE` shows any other.",
        NoteValue::number(shown),
        plural(all, "capture")
    ))
}

/// The title of a report and what it is about, without its sections. It takes no time.
pub fn heading(run: Option<&RunInfo>, selections: &[Selection<'_>]) -> Report {
    let infos: Vec<&CaptureInfo> = selections.iter().map(|selection| &selection.capture().info).collect();
    let title = match (run, selections) {
        (Some(run), _) => run.name.clone(),
        (None, [only]) => only.capture().info.name(),
        (None, _) => "Stepscope report".to_owned(),
    };
    let scenarios = run.map_or(0, |run| run.trials.len());
    let mut parts = Vec::new();
    if scenarios > 0 {
        parts.push(plural(scenarios, "trial"));
    }
    parts.push(plural(selections.len(), "capture"));
    let mut report = Report::new(title).subtitle(parts.join(", "));
    let started = run.map(|run| &run.started_at).or_else(|| infos.iter().find_map(|info| info.started_at.as_ref()));
    if let Some(started) = started {
        report = report.fact("began", started.as_str());
    }
    let machines = infos.iter().filter_map(|info| info.machine.as_ref());
    let mut described: Vec<String> =
        run.and_then(|run| run.machine.as_ref()).into_iter().chain(machines).map(machine).collect();
    described.dedup();
    for machine in described {
        report = report.fact("machine", machine);
    }
    if let (None, [only]) = (run, infos.as_slice()) {
        report = report.fact("command", quoted(&only.command));
    }
    report.fact("made by", run.map_or(concat!("stepscope ", env!("CARGO_PKG_VERSION")), |run| run.tool.as_str()))
}

fn machine(machine: &Machine) -> String {
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    let mut text =
        format!("{}: {} cores of {}, {gib:.0} GiB, Linux {}", machine.host, machine.cores, machine.cpu, machine.kernel);
    if let Some(hypervisor) = &machine.virtualization {
        text.push_str(&format!(", virtual ({hypervisor})"));
    }
    if let Some(governor) = &machine.governor {
        text.push_str(&format!(", governor {governor}"));
    }
    if !machine.pmu {
        text.push_str(", no hardware counters");
    }
    text
}

/// A table without the columns for programs. Numbers keep the unit of their row.
fn essential(mut table: Table) -> Table {
    table.retain_columns(|column| column.importance > Importance::Detail || column.name == "unit");
    table
}

/// What to change first, and why.
fn findings_section(mut table: Table) -> Section {
    let section = Section::new("Findings").note(
        "Known kinds of performance defects, by what a change would gain. Findings overlap: the notes have the gain of all together.",
    );
    table.retain_columns(|column| column.importance > Importance::Detail);
    section.table(table)
}

/// What each variant costs, if scenarios have several.
fn variants_section(selections: &[Selection<'_>]) -> Option<Section> {
    Some(Section::new("Variants").table(essential(variants::table(selections)?)))
}

/// A section per group of captures that are [known to be alike](pairing::alike) and of one phase, steady first.
fn ranks(selections: &[Selection<'_>]) -> Vec<Section> {
    let groups = pairing::alike(selections);
    let mut sections = Vec::new();
    for group in &groups {
        for phase in phases(group) {
            let is_of_phase = |selection: &&Selection<'_>| selection.capture().info.phase == phase;
            let of_phase: Vec<Selection<'_>> = group.iter().filter(is_of_phase).cloned().collect();
            let mut title = phase.map_or("Rank".to_owned(), |phase| format!("Rank: {phase}"));
            if groups.len() > 1 {
                title.push_str(&format!(" of {}", pairing::group_label(&of_phase)));
            }
            let section = rank_section(title, &of_phase, phase);
            sections.push(if groups.len() > 1 { section.note(pairing::apart_note()) } else { section });
        }
    }
    sections
}

/// The cost tree, external code, the rank by cost, and the rank by score.
fn rank_section(title: String, selections: &[Selection<'_>], phase: Option<Phase>) -> Section {
    let orders = [rank::Order::Cost, rank::Order::Score];
    let ranks = rank::in_orders(selections, phase, orders).into_iter().zip(orders);
    let section = Section::new(title).note(
        "Cost of your code. Each sample counts once, for the nearest of your functions on its stack; a scenario's rows \
         add up to its total.",
    );
    let options = cost_tree::Options { phase, ..cost_tree::Options::default() };
    let trees = [cost_tree::table(selections, &options), cost_tree::external_code(selections, &options)];
    let shown = |mut table: Table| {
        // The rank below has the same notes. Detail columns are for programs.
        table.notes.clear();
        table.retain_columns(|column| column.importance > Importance::Detail);
        table
    };
    let section = trees.into_iter().map(shown).fold(section, Section::table);
    ranks.map(|(table, by)| titled(table, by)).fold(section, Section::table)
}

/// The rank under a heading of its order, without the columns that only the other order needs.
fn titled(mut table: Table, by: rank::Order) -> Table {
    let (title, without): (_, &[&str]) = match by {
        rank::Order::Cost => ("By cost, the mean over scenarios", BY_SCORE),
        rank::Order::Inclusive => ("By inclusive cost, the mean over scenarios", BY_SCORE),
        rank::Order::Score => ("By score: evidence of all dimensions", BY_COST),
    };
    table.title = title.to_owned();
    // The cost tree has a column for each scenario.
    let by_scenario = |name: &str| name.starts_with("share.") || name.starts_with("inclusive_share.");
    table.retain_columns(|column| !without.contains(&column.name.as_str()) && !by_scenario(&column.name));
    table
}

/// Columns of a rank that explain its order by cost.
const BY_COST: &[&str] =
    &["inclusive", "worst_scenario", "share", "inclusive_share", "scenarios", "cost_min", "cost_max"];

/// Columns of a rank that explain its order by score.
const BY_SCORE: &[&str] =
    &["score", "score_max", "score_scenario", "evidence", "cache_ratio", "offcpu_place", "blocked", "delayed"];

/// The phases of captures, steady first; `None` for an unknown one.
fn phases(selections: &[Selection<'_>]) -> Vec<Option<Phase>> {
    let mut phases: Vec<Option<Phase>> = selections.iter().map(|selection| selection.capture().info.phase).collect();
    phases.sort_by_key(|phase| std::cmp::Reverse(*phase));
    phases.dedup();
    phases
}

fn overview(run: Option<&RunInfo>, selections: &[Selection<'_>]) -> Section {
    let mut section = Section::new("Overview");
    if let Some(run) = run {
        section = section.table(trials(run));
        for (trial, last_lines) in run.trials.iter().filter_map(|trial| Some((trial, last_lines(trial)?))) {
            section = section.note(format!("Last output of {}: {last_lines}", trial.label()));
        }
    }
    section.table(summary::table(selections)).table(summary::dimensions(selections))
}

fn last_lines(trial: &TrialInfo) -> Option<String> {
    match &trial.result {
        Outcome::Failed(failure) if !failure.last_lines.is_empty() => Some(failure.last_lines.join(" ⏎ ")),
        _ => None,
    }
}

/// The table `trials`: a row per trial.
fn trials(run: &RunInfo) -> Table {
    let text = |name, doc: &str| Column::new(name, Kind::Text, "", doc);
    let ready_after =
        Column::new("ready_after", Kind::Duration, "ns", "Time from launch until ready: the loading phase.");
    let mut table = Columns::<TrialInfo>::new()
        .with(text("trial", "Scenario, and variant if there are several."), |trial| trial.label().into())
        .with(Column::new("outcome", Kind::Prose, "", "How the trial ended."), |trial| trial.result.summary().into())
        .with(ready_after, |trial| trial.ready_after_ns.into())
        .with(text("ready_by", "The condition that made it ready."), |trial| trial.ready_by.as_deref().into())
        .with(Column::new("stresses", Kind::Prose, "", "What the scenario stresses."), |trial| {
            trial.axis.as_deref().into()
        })
        .with(text("command", "The launched command."), |trial| quoted(&trial.command).into())
        .with(text("attached", "Running processes that were recorded, as flags of `record`."), |trial| {
            (!trial.attached.is_empty()).then(|| quoted(&trial.attached)).into()
        })
        .table("trials", "Trials", &run.trials);
    let notes = run
        .trials
        .iter()
        .flat_map(|trial| trial.notes.iter().map(|note| Note::from(note.as_str()).about(trial.label())));
    table.add_notes(notes);
    table
}

/// The sections of a capture: those of each analysis, in the order of [`ANALYSES`].
fn capture(selection: &Selection<'_>) -> Section {
    let label = selection.capture().info.name();
    let run = selection.capture().info.repetition.map_or(String::new(), |repetition| format!(" #{repetition}"));
    let title = format!("{}{run}", label.replace('/', " · "));
    let mut section = Section::new(title).anchor(section_anchor(selection.capture()));
    section.notes = selection.capture().info.notes.iter().map(|note| note.as_str().into()).collect();
    let sections = parallel::map(ANALYSES, |analysis| (analysis.report)(selection));
    sections.into_iter().flatten().map(section_of).fold(section, Section::section)
}

fn section_of(section: ReportSection) -> Section {
    let show = |shown: Section, part| match part {
        Part::Figures(table) => shown.figures(table),
        Part::Table(table) => shown.table(shortened(table, section.most_rows)),
        Part::Chart { table, across, marks, caption } => shown.chart(Chart::new(table, across, marks).caption(caption)),
        Part::FlameGraph(tree) => shown.flame_graph(tree),
        Part::Difference(difference) => shown.difference(difference),
    };
    section.parts.into_iter().fold(Section::new(section.title), show)
}

/// The first rows of a table, and a note if there are more.
fn shortened(mut table: Table, most: usize) -> Table {
    if table.rows.len() > most {
        let hidden = NoteValue::number(table.rows.len() - most);
        table.rows.truncate(most);
        table.note(note!(Hint, "{} more rows: `stepscope show` lists all.", hidden));
    }
    table
}
