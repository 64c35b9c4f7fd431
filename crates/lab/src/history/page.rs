//! The one HTML page about a history: what changed, then each series as a chart.

use stepscope_analyze::history::{History, Series};
use stepscope_model::quantity::kind_of_unit;
use stepscope_view::chart::{Chart, Floor, Mark};
use stepscope_view::report::{Report, Section};

/// The page. `store` says which file it is made of.
pub fn report(history: &History, store: &str) -> Report {
    let runs = history.runs();
    let changes = history.changes();
    let overview = history.notes().iter().cloned().fold(Section::new("Overview"), Section::note);
    let overview = [changes, history.environment(), history.trend()]
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .fold(overview, Section::table);
    let report = Report::new("History")
        .subtitle(match runs.rows.len() {
            1 => format!("1 run, {} series", history.series.len()),
            several => format!("{several} runs, {} series", history.series.len()),
        })
        .fact("store", store)
        .fact("made by", concat!("stepscope ", env!("CARGO_PKG_VERSION")))
        .section(overview);
    let charted = history.series.chunk_by(|a, b| subject(a) == subject(b)).map(charts);
    charted.fold(report, Report::section).section(Section::new("Runs").table(runs))
}

/// What a section is of: all metrics of a scenario, phase and variant on one machine, of one kind of build.
fn subject(series: &Series) -> (String, Option<&str>, Option<&str>) {
    (series.key.label(), series.key.machine.as_deref(), series.key.build.as_deref())
}

fn charts(series: &[Series]) -> Section {
    let (label, machine, build) = subject(&series[0]);
    let mut section = Section::new(label.replace('/', " · ")).anchor(label.replace('/', "-"));
    let of: Vec<&str> = [machine, build].into_iter().flatten().collect();
    if !of.is_empty() {
        section = section.note(of.join(", "));
    }
    // One run is no history, but its figure is worth a row: in the table of the overview.
    series.iter().filter(|series| series.points.len() > 1).map(chart).fold(section, Section::chart)
}

fn chart(series: &Series) -> Chart {
    let marks = vec![Mark::Rules("environment".into()), Mark::Steps("level".into()), Mark::Points("value".into())];
    Chart::new(series.table(kind_of_unit(&series.key.unit)), "number", marks).floor(Floor::Least).caption(
        "run by run: dots are runs, the line the level between lasting changes, dashed where the environment changed",
    )
}
