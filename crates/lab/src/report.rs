//! What a report of recorded scenarios holds, in which order: the same tables that every other output shows.
//!
//! First what decides (the rank over all scenarios), then what happened to each trial, then each capture by itself:
//! summary, steps, hot spots, flame graphs, threads, wall. Rendering is [`stepscope_view::report`]'s business.

mod comparison;

use stepscope_analyze::{
    Selection, calltree, critical_path, hotspots, rank, scopes, slow_steps, step_times, steps_over_time, summary,
    threads, wall,
};
use stepscope_model::quantity::grouped;
use stepscope_model::{CallTree, CaptureInfo, Column, Kind, Machine, Phase, Table, TreeDifference};
use stepscope_view::chart::{Chart, Mark};
use stepscope_view::report::{Report, Section};

pub use self::comparison::{Compared, comparison};
use crate::outcome::Outcome;
use crate::run::{RunInfo, TrialInfo};

/// Rows of a capture's hot spots that a report holds. What is below them is in the capture.
const MOST_HOTSPOTS: usize = 500;

/// Rows of the other tables of a capture.
const MOST_ROWS: usize = 1000;

/// A report on captures, and on the run that they are of, if they are of one.
pub fn report(run: Option<&RunInfo>, selections: &[Selection<'_>]) -> Report {
    let report = head(run, selections);
    let report = ranks(selections).into_iter().fold(report, Report::section);
    let report = report.section(overview(run, selections));
    selections.iter().map(capture).fold(report, Report::section)
}

fn head(run: Option<&RunInfo>, selections: &[Selection<'_>]) -> Report {
    let infos: Vec<&CaptureInfo> = selections.iter().map(|selection| &selection.capture().info).collect();
    let title = match (run, selections) {
        (Some(run), _) => run.name.clone(),
        (None, [only]) => summary::label(only.capture()),
        (None, _) => "Stepscope report".to_owned(),
    };
    let scenarios = run.map_or(0, |run| run.trials.len());
    let mut parts = Vec::new();
    if scenarios > 0 {
        parts.push(number_of(scenarios, "trial"));
    }
    parts.push(number_of(selections.len(), "capture"));
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
        report = report.fact("command", shell_words(&only.command));
    }
    report.fact("made by", run.map_or(concat!("stepscope ", env!("CARGO_PKG_VERSION")), |run| run.tool.as_str()))
}

fn number_of(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as i128), if count == 1 { "" } else { "s" })
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

/// A command as one could type it.
fn shell_words(command: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    let quoted = command.iter().map(|word| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The rank by cost of each phase that there is, steady first; by score where that has anything to add.
fn ranks(selections: &[Selection<'_>]) -> Vec<Section> {
    let phases: Vec<Option<Phase>> = match phases(selections).as_slice() {
        [] => vec![None],
        phases => phases.iter().copied().map(Some).collect(),
    };
    let section = |phase: Option<Phase>| {
        let title = match phase {
            Some(phase) => format!("Rank: {phase}"),
            None => "Rank".to_owned(),
        };
        let of = |by| titled(rank::table(selections, &rank::Options { by, phase, ..rank::Options::default() }), by);
        let section = Section::new(title).note(
            "What your code decides: every sample is credited once, to its nearest owned function. Rows of a scenario \
             add up to the cost under owned code.",
        );
        section.table(of(rank::Order::Cost)).table(of(rank::Order::Score))
    };
    phases.into_iter().map(section).collect()
}

/// The rank under a heading of its order, without the columns that only the other order needs.
fn titled(mut table: Table, by: rank::Order) -> Table {
    let (title, without): (_, &[&str]) = match by {
        rank::Order::Cost => ("By cost, the mean over scenarios", BY_SCORE),
        rank::Order::Score => ("By score: evidence of all dimensions", BY_COST),
    };
    table.title = title.to_owned();
    table.drop_columns(without);
    table
}

/// Columns of a rank that explain its order by cost.
const BY_COST: &[&str] = &["worst_scenario", "share", "inclusive_share", "scenarios", "cost_min", "cost_max"];

/// Columns of a rank that explain its order by score.
const BY_SCORE: &[&str] =
    &["score", "score_max", "score_scenario", "evidence", "cache_ratio", "offcpu_place", "blocked", "delayed"];

fn phases(selections: &[Selection<'_>]) -> Vec<Phase> {
    let mut phases: Vec<Phase> = selections.iter().filter_map(|selection| selection.capture().info.phase).collect();
    phases.sort_by_key(|phase| *phase != Phase::Steady);
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

/// One row a trial: `trial, outcome, ready_after, ready_by, stresses, command`.
fn trials(run: &RunInfo) -> Table {
    let text = |name, doc: &str| Column::new(name, Kind::Text, "", doc);
    let columns = vec![
        text("trial", "Scenario, and variant where there are several."),
        text("outcome", "What came of it."),
        Column::new("ready_after", Kind::Duration, "ns", "Time from launch until it was ready: the loading phase."),
        text("ready_by", "What said that it was ready."),
        text("stresses", "What the scenario stresses."),
        text("command", "What was launched."),
    ];
    let mut table = Table::new("trials", "Trials", columns);
    for trial in &run.trials {
        table.push(vec![
            trial.label().into(),
            trial.result.summary().into(),
            trial.ready_after_ns.into(),
            trial.ready_by.as_deref().into(),
            trial.axis.as_deref().into(),
            shell_words(&trial.command).into(),
        ]);
        table.add_notes(trial.notes.iter().map(|note| format!("{}: {note}", trial.label())));
    }
    table
}

fn capture(selection: &Selection<'_>) -> Section {
    let label = summary::label(selection.capture());
    let mut section = Section::new(label.replace('/', " · ")).anchor(label.replace('/', "-"));
    section.notes = selection.capture().info.notes.iter().map(|note| note.as_str().into()).collect();
    let tree = calltree::Options::default();
    let on_cpu = calltree::of_samples(selection, &tree);
    let off_cpu = calltree::off_cpu(selection, &tree);
    let parts = [
        Some(Section::new("Summary").figures(summary::table(std::slice::from_ref(selection)))),
        steps(selection),
        slow_steps(selection),
        critical_path(selection),
        table_section("Scopes", scopes_of(selection), MOST_ROWS),
        table_section("Hot spots", hotspots::table(selection, &hotspots::Options::default()), MOST_HOTSPOTS),
        flame_graph("On-CPU flame graph", on_cpu),
        table_section("Threads", threads::table(selection), MOST_ROWS),
        table_section("Wall", wall::table(selection, wall::Grouping::Thread), MOST_ROWS),
        table_section("Blocked", wall::callers(selection), MOST_ROWS),
        flame_graph("Off-CPU flame graph", off_cpu),
    ];
    parts.into_iter().flatten().fold(section, Section::section)
}

/// How long steps take: the loop at a glance, over the recording, as a histogram, and the longest. None without steps.
fn steps(selection: &Selection<'_>) -> Option<Section> {
    let over_time = steps_over_time::table(selection)?;
    let lines = vec![
        Mark::Band("shortest".into(), "longest".into()),
        Mark::Line("median".into()),
        Mark::Points("stall".into()),
    ];
    let mut section = Section::new("Steps");
    let chart = Chart::new(over_time, "at", lines);
    let mut charted =
        Some(chart.caption("step time since the start: median as a line, shortest to longest, stalls as dots"));
    for table in step_times::tables(selection) {
        section = match table.name.as_str() {
            "step_histogram" => {
                let bars = Mark::Bars { to: "to".into(), height: "steps".into() };
                section.chart(Chart::new(table, "from", vec![bars]).caption("number of steps over their time"))
            }
            _ => section.table(table),
        };
        // Right after the row that sums it up.
        section = match charted.take() {
            Some(chart) => section.chart(chart),
            None => section,
        };
    }
    Some(section)
}

/// What happens in the slow steps and not in typical ones. None where that cannot be told.
fn slow_steps(selection: &Selection<'_>) -> Option<Section> {
    let options = slow_steps::Options::default();
    let evidence = calltree::Evidence::OnCpu;
    let trees = slow_steps::trees(selection, &options, &calltree::Options::default(), evidence);
    let section = Section::new("Slow steps").difference(slow_steps_difference(&trees.ok()?));
    Some(slow_steps::tables(selection, &options).into_iter().map(shortened).fold(section, Section::table))
}

/// Slow steps against typical ones, to be drawn as one.
pub fn slow_steps_difference((slow, typical): &(CallTree, CallTree)) -> TreeDifference {
    let mut difference = TreeDifference::of(("slow steps", slow), ("typical steps", typical));
    let tree = &mut difference.tree;
    tree.title = format!("Slow steps against typical ones: {}", lower_first(&slow.title));
    let told = [tree.subtitle.as_str(), &format!("against {}", lower_first(&typical.title))];
    tree.subtitle = told.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ");
    difference
}

/// A heading as a part of a sentence; abbreviations at its start are not there.
fn lower_first(title: &str) -> String {
    let mut characters = title.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// What steps wait for. None where wake-ups or steps are not known.
fn critical_path(selection: &Selection<'_>) -> Option<Section> {
    let tables = critical_path::tables(selection);
    if tables.iter().all(|table| table.rows.is_empty()) {
        return None;
    }
    Some(tables.into_iter().map(shortened).fold(Section::new("Critical path"), Section::table))
}

/// The scopes; without any, nothing is said of them.
fn scopes_of(selection: &Selection<'_>) -> Table {
    let mut table = scopes::table(selection);
    if table.rows.is_empty() {
        table.notes.clear();
    }
    table
}

fn shortened(mut table: Table) -> Table {
    shorten(&mut table, MOST_ROWS);
    table
}

/// A section of one table; none if it is empty and has nothing to say about that.
fn table_section(title: &str, mut table: Table, most: usize) -> Option<Section> {
    if table.rows.is_empty() && table.notes.is_empty() {
        return None;
    }
    shorten(&mut table, most);
    Some(Section::new(title).table(table))
}

/// Leaves the first rows, and says so.
fn shorten(table: &mut Table, most: usize) {
    if table.rows.len() > most {
        let left_out = grouped((table.rows.len() - most) as i128);
        table.rows.truncate(most);
        table.note(format!("{left_out} more rows are in the capture: `stepscope show` lists all."));
    }
}

fn flame_graph(title: &str, tree: CallTree) -> Option<Section> {
    (tree.nodes[0].total > 0).then(|| Section::new(title).flame_graph(tree))
}
