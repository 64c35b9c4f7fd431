//! Metrics of all runs over time: lasting changes, and what else changed with them.
//!
//! # Series
//! A *series* is one [metric](crate::analyses::metrics) of one scenario, phase and variant, in one unit. Machines and kinds of
//! build have their own series, because their differences are not those of the code. If the user joins them ([`Joined`]), a
//! note of every table says so.
//!
//! A *point* of a series is a run: the mean of its repetitions of the scenario, which share the conditions of that hour.
//!
//! # Changes
//! Change points of the series ([`stepscope_stats::change_points`]: E-divisive, a permutation test at the level of
//! [`Options::search`]), with the mean levels on both sides and their ratio. The ratio's interval is that of two sets of runs
//! ([`stepscope_stats::hierarchical`]). It is somewhat too narrow, because the same runs determined the position.
//!
//! # Environment
//! Differences between a point and the one before it, besides the code: kernel, governor, CPU model, recorder; machine and
//! build if they are joined. They may be the cause of a change that starts there.

mod recording;
mod series;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::{Note, NoteValue, note};
pub use stepscope_stats::ChangeSearch;

use crate::analyses::comparable;
use crate::parallel;
use crate::query::pattern::Pattern;

pub use recording::{Figure, Kept, Recording};
pub use series::{Change, Joined, Key, Options, Point, Series};

/// With fewer runs, no change can be significant at a level of 1 %.
pub const FEWEST: usize = 10;

/// All series of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The series, by scenario, phase, variant, machine, build and metric.
    pub series: Vec<Series>,
    runs: Vec<RunRow>,
    notes: Vec<Note>,
}

#[derive(Debug, Clone, PartialEq)]
struct RunRow {
    at: String,
    run: String,
    recordings: usize,
    gone: usize,
    revision: Option<String>,
    machine: Option<String>,
    build: Option<String>,
    tool: String,
}

impl History {
    /// The series of the selected recordings. `remarks` become notes of every table, such as unreadable lines of the store.
    pub fn of(recordings: &[Recording], options: &Options, remarks: Vec<Note>) -> Self {
        let matches =
            |pattern: &Option<Pattern>, name: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(name));
        let selected: Vec<&Recording> = recordings
            .iter()
            .filter(|one| matches(&options.scenario, &one.scenario))
            .filter(|one| matches(&options.variant, one.variant.as_deref().unwrap_or("")))
            .filter(|one| options.phase.is_none_or(|phase| one.phase == Some(phase)))
            .collect();
        let mut groups: BTreeMap<Key, Vec<&Recording>> = BTreeMap::new();
        for recording in &selected {
            let wanted = |figure: &&Figure| matches(&options.metric, &figure.name) && figure.value.is_finite();
            for figure in recording.figures.iter().filter(wanted) {
                groups.entry(Key::of(recording, figure, options)).or_default().push(recording);
            }
        }
        let series = in_parallel(groups.into_iter().collect(), &options.search);
        let notes = remarks.into_iter().chain(notes(&selected, options)).collect();
        Self { series, runs: run_rows(&selected), notes }
    }

    /// The notes of every table: joined or separate machines and builds, and recordings whose folder is gone.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

/// Makes the series on all CPUs, because the search for changes takes long.
fn in_parallel(groups: Vec<(Key, Vec<&Recording>)>, search: &ChangeSearch) -> Vec<Series> {
    let mut series = parallel::map(&groups, |(key, recordings)| Series::of(key.clone(), recordings, search));
    series.sort_by(|a, b| a.key.cmp(&b.key));
    series
}

fn run_rows(recordings: &[&Recording]) -> Vec<RunRow> {
    let mut runs: BTreeMap<&str, Vec<&Recording>> = BTreeMap::new();
    for recording in recordings {
        runs.entry(&recording.run).or_default().push(recording);
    }
    let mut rows: Vec<RunRow> = runs.into_iter().map(|(run, recordings)| run_row(run, &recordings)).collect();
    rows.sort_by(|a, b| (&b.at, &b.run).cmp(&(&a.at, &a.run)));
    rows
}

fn run_row(run: &str, recordings: &[&Recording]) -> RunRow {
    let all = |of: &dyn Fn(&Recording) -> Option<String>| {
        let texts: BTreeSet<String> = recordings.iter().filter_map(|recording| of(recording)).collect();
        (!texts.is_empty()).then(|| texts.into_iter().collect::<Vec<_>>().join(", "))
    };
    RunRow {
        at: recordings.iter().map(|recording| recording.at.clone()).min().unwrap_or_default(),
        run: run.to_owned(),
        recordings: recordings.len(),
        gone: recordings.iter().filter(|recording| recording.kept == Kept::Gone).count(),
        revision: all(&|recording| recording.revision.clone()),
        machine: all(&|recording| recording.machine.as_ref().map(comparable::machine)),
        build: all(&|recording| recording.build.clone()),
        tool: all(&|recording| Some(recording.tool.clone())).unwrap_or_default(),
    }
}

fn notes(recordings: &[&Recording], options: &Options) -> Vec<Note> {
    let texts = |of: &dyn Fn(&Recording) -> Option<String>| -> BTreeSet<String> {
        recordings.iter().filter_map(|recording| of(recording)).collect()
    };
    let machines = texts(&|recording| recording.machine.as_ref().map(comparable::machine));
    let builds = texts(&|recording| recording.build.clone());
    let mut notes = Vec::new();
    for (what, flag, joined, all) in [
        ("machines", "--across-machines", options.machines, machines),
        ("kinds of build", "--across-builds", options.builds, builds),
    ] {
        if all.len() < 2 {
            continue;
        }
        let names = all.into_iter().collect::<Vec<_>>().join("; ");
        notes.push(match joined {
            Joined::Yes => {
                note!(
                    Limit,
                    "Different {} are joined ({}): {}. Their differences are in these metrics.",
                    what,
                    flag,
                    names
                )
            }
            Joined::No => note!(Fact, "Different {} are kept apart: {}. `{}` joins them.", what, names, flag),
        });
    }
    let gone = recordings.iter().filter(|recording| recording.kept == Kept::Gone).count();
    if gone > 0 {
        notes.push(note!(Fact, "{} without a folder; their metrics are kept.", NoteValue::plural(gone, "recording")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Kind, Machine, Phase, Table, Value};

    use super::*;

    fn machine(host: &str, kernel: &str) -> Machine {
        Machine { host: host.into(), cpu: "EPYC".into(), cores: 2, kernel: kernel.into(), ..Machine::default() }
    }

    /// The `day`-th run: one recording of `shapes` with one figure.
    fn recording(day: usize, value: f64) -> Recording {
        Recording {
            run: format!("run-{day:02}"),
            at: format!("2026-11-{:02}T10:00:00Z", day + 1),
            scenario: "shapes".into(),
            variant: None,
            phase: Some(Phase::Steady),
            machine: Some(machine("lab", "6.1")),
            build: Some("release".into()),
            revision: Some(format!("abc{day:02}")),
            tool: "stepscope 0.1.0".into(),
            figures: vec![Figure { name: "step.p99".into(), unit: "ns".into(), better: None, value }],
            kept: Kept::There,
        }
    }

    /// Seven days of about 1 ms, seven of about 1.2 ms.
    fn worse() -> Vec<Recording> {
        let noise = [0.0, 3e3, -2e3, 5e3, -4e3, 1e3, 2e3];
        (0..14).map(|day| recording(day, if day < 7 { 1e6 } else { 1.2e6 } + noise[day % 7])).collect()
    }

    fn history(recordings: &[Recording]) -> History {
        History::of(recordings, &Options::default(), Vec::new())
    }

    fn text(table: &Table, row: usize, column: &str) -> String {
        match table.get(row, column) {
            Some(Value::Text(text)) => text.clone(),
            other => panic!("{column}: {other:?}"),
        }
    }

    fn float(table: &Table, row: usize, column: &str) -> f64 {
        match table.get(row, column) {
            Some(Value::Float(number)) => *number,
            other => panic!("{column}: {other:?}"),
        }
    }

    #[test]
    fn a_lasting_change_has_its_run_its_ratio_and_its_revisions() {
        let history = history(&worse());
        let changes = history.changes();
        assert_eq!(changes.rows.len(), 1);
        assert_eq!(text(&changes, 0, "run"), "run-07");
        assert_eq!(text(&changes, 0, "at"), "2026-11-08T10:00:00Z");
        assert_eq!(text(&changes, 0, "direction"), "worse");
        assert_eq!(
            (text(&changes, 0, "revision_before"), text(&changes, 0, "revision")),
            ("abc06".into(), "abc07".into())
        );
        let ratio = float(&changes, 0, "ratio");
        assert!((ratio - 1.2).abs() < 1e-3 && float(&changes, 0, "p") <= 0.01);
        assert!(float(&changes, 0, "ratio_low") < ratio && ratio < float(&changes, 0, "ratio_high"));
        let trend = history.trend();
        assert_eq!(trend.get(0, "runs"), Some(&14_usize.into()));
        assert_eq!(trend.get(0, "changes"), Some(&1_usize.into()));
        assert_eq!(float(&trend, 0, "first"), 1e6);
        assert_eq!(text(&trend, 0, "last_change"), "2026-11-08T10:00:00Z");
    }

    #[test]
    fn a_higher_real_time_factor_is_better() {
        let mut recordings = worse();
        recordings.iter_mut().for_each(|one| one.figures[0].name = "rtf".into());
        assert_eq!(text(&history(&recordings).changes(), 0, "direction"), "better");
    }

    #[test]
    fn machines_and_builds_are_joined_only_on_request_with_a_note_in_every_table() {
        let mut recordings = worse();
        for one in &mut recordings[7..] {
            one.machine = Some(machine("other", "6.1"));
            one.build = Some("debug".into());
        }
        let apart = history(&recordings);
        assert_eq!(apart.series.len(), 2);
        assert!(apart.series.iter().all(|series| series.changes.is_empty()));
        assert!(apart.notes()[0].contains("are kept apart") && apart.trend().column("machine").is_some());
        let options = Options { machines: Joined::Yes, builds: Joined::Yes, ..Options::default() };
        let joined = History::of(&recordings, &options, Vec::new());
        assert_eq!(joined.series.len(), 1);
        for table in [joined.trend(), joined.changes(), joined.environment(), joined.runs(), joined.values()] {
            assert!(table.notes.iter().any(|note| note.contains("joined (--across-machines)")), "{}", table.name);
            assert!(table.notes.iter().any(|note| note.contains("joined (--across-builds)")), "{}", table.name);
        }
        let environment = text(&joined.changes(), 0, "environment");
        assert!(
            environment.contains("machine: lab") && environment.contains("build: release -> debug"),
            "{environment}"
        );
    }

    #[test]
    fn changes_of_the_environment_are_marked_at_their_run() {
        let mut recordings = worse();
        for one in &mut recordings[7..] {
            one.machine = Some(machine("lab", "6.18"));
        }
        recordings[9].tool = "stepscope 0.2.0".into();
        let history = history(&recordings);
        assert_eq!(text(&history.changes(), 0, "environment"), "kernel: 6.1 -> 6.18");
        let environment = history.environment();
        let found: Vec<(String, String)> = (0..environment.rows.len())
            .map(|row| (text(&environment, row, "run"), text(&environment, row, "what")))
            .collect();
        assert_eq!(
            found,
            [
                ("run-10".into(), "recorder: stepscope 0.2.0 -> stepscope 0.1.0".to_owned()),
                ("run-09".into(), "recorder: stepscope 0.1.0 -> stepscope 0.2.0".into()),
                ("run-07".into(), "kernel: 6.1 -> 6.18".into()),
            ]
        );
    }

    #[test]
    fn repetitions_within_a_run_are_one_point() {
        let mut recordings = vec![recording(0, 10.0), recording(0, 20.0), recording(1, 30.0)];
        recordings[1].at = "2026-11-01T10:05:00Z".into();
        let history = history(&recordings);
        let points: Vec<(f64, usize)> =
            history.series[0].points.iter().map(|point| (point.value, point.recordings)).collect();
        assert_eq!(points, [(15.0, 2), (30.0, 1)]);
        assert!(history.trend().notes[0].contains("fewer than 10 runs"));
    }

    #[test]
    fn recordings_without_a_folder_are_counted_and_keep_their_metrics() {
        let mut recordings = worse();
        recordings[3].kept = Kept::Gone;
        let history = history(&recordings);
        assert_eq!(history.series[0].points.len(), 14);
        assert_eq!(history.notes(), ["1 recording without a folder; their metrics are kept."]);
        assert_eq!(history.runs().get(10, "gone"), Some(&1_usize.into()));
        assert_eq!(text(&history.values(), 3, "folder"), "gone");
    }

    #[test]
    fn series_are_selected_by_name_and_units_are_never_mixed() {
        let mut recordings = worse();
        recordings[0].figures[0].unit = "ns/step".into();
        recordings[1].scenario = "marina".into();
        recordings[2].variant = Some("after".into());
        assert_eq!(history(&recordings).series.len(), 4);
        let of = |options: Options| History::of(&recordings, &options, Vec::new()).series.len();
        let pattern = |text: &str| Some(text.parse().unwrap());
        assert_eq!(of(Options { scenario: pattern("mar*"), ..Options::default() }), 1);
        assert_eq!(of(Options { variant: pattern("after"), ..Options::default() }), 1);
        assert_eq!(of(Options { metric: pattern("rtf"), ..Options::default() }), 0);
        assert_eq!(of(Options { phase: Some(Phase::Loading), ..Options::default() }), 0);
    }

    #[test]
    fn points_have_the_level_between_changes() {
        let history = history(&worse());
        let levels = history.series[0].levels();
        assert_eq!(levels.len(), 14);
        assert!(levels[..7].iter().all(|level| *level == levels[0]) && levels[7] > 1.19e6);
        let table = history.series[0].table(Kind::Duration);
        assert_eq!((table.rows.len(), table.get(13, "number")), (14, Some(&14_usize.into())));
    }
}
