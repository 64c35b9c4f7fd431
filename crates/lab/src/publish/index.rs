//! The pages of a site: static HTML, without scripts.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use stepscope_analyze::history::{ChangeSearch, History, Options, Recording, Series};
use stepscope_analyze::metrics;
use stepscope_model::Mark;
use stepscope_model::quantity::{self, kind_of_unit, plural};
use stepscope_view::chart::{self, Chart, Floor};
use stepscope_view::embed::{code_spans, markup};

use super::files::PublishedFile;
use super::publication::{Listed, Publication};

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1a1e24; --soft: #545d69; --line: #dde1e7; --link: #0b5cad; --ground: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --soft: #9ca6b3; --line: #2b313a; --link: #7cb7f5; --ground: #14171c; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 1100px; margin: 32px auto; padding: 0 20px; }
a { color: var(--link); } h1 { font-size: 22px; } h2 { font-size: 17px; margin-top: 32px; } h3 { font-size: 14px; margin: 20px 0 4px; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; } td { overflow-wrap: break-word; } .number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.keep { white-space: nowrap; } .soft { color: var(--soft); } img { max-width: 100%; height: auto; } .wide { overflow-x: auto; }
.files td:first-child { width: 24em; } code { font-family: ui-monospace, monospace; font-size: 0.95em; }
@media (max-width: 700px) { tr:first-child:has(th) { display: none; } tr { display: block; padding: 8px 0; border-bottom: 1px solid var(--line); }
td { display: block; padding: 1px 0; border: 0; overflow-wrap: anywhere; } td.number { text-align: left; } td.keep { white-space: normal; } }
";

/// Start of the mark that all pages have.
const GENERATOR: &str = "<meta name=\"generator\" content=\"stepscope ";

fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         {GENERATOR}{}\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        markup(title)
    )
}

/// A text with names between backticks, as HTML.
fn prose(text: &str) -> String {
    let tagged = |(is_code, part): (bool, &str)| match is_code {
        true => format!("<code>{}</code>", markup(part)),
        false => markup(part).into_owned(),
    };
    code_spans(text).map(tagged).collect()
}

/// Whether a page is one of a site.
pub(super) fn is_of_site(page: &str) -> bool {
    page.contains(GENERATOR)
}

/// The page of one run: what it is, and its files.
pub(super) fn of_run(publication: &Publication) -> String {
    let mut body =
        format!("<p><a href=\"../../index.html\">All runs</a></p>\n<h1>{}</h1>\n", markup(&publication.name));
    let facts = [
        ("Started", Some(publication.started_at.as_str())),
        ("Note", publication.note.as_deref()),
        ("Result", publication.headline.as_deref()),
        ("Published by", Some(publication.tool.as_str())),
    ];
    for (name, value) in
        facts.into_iter().filter_map(|(name, value)| Some((name, value.filter(|text| !text.is_empty())?)))
    {
        let _ = writeln!(body, "<p><span class=\"soft\">{name}:</span> {}</p>", prose(value));
    }
    let title = |file: &PublishedFile| match file.path.split_once('/') {
        None => "Pages and data",
        Some(("flamegraphs" | "folded", _)) => "Flame graphs and folded stacks",
        Some(_) => "Tables",
    };
    for files in publication.files.chunk_by(|a, b| title(a) == title(b)) {
        let _ = writeln!(body, "<h2>{}</h2>\n<table class=\"files\">", title(&files[0]));
        for file in files {
            let size = quantity::weight(file.bytes as f64, "bytes");
            let _ = writeln!(
                body,
                "<tr><td><a href=\"{0}\">{0}</a></td><td>{1}</td><td class=\"number\">{size}</td></tr>",
                markup(&file.path),
                markup(&file.title)
            );
        }
        body.push_str("</table>\n");
    }
    page(&publication.name, &body)
}

/// The page of all runs: trends, then a row per run, the latest first.
pub(super) fn of_site(listed: &[Listed]) -> String {
    let known: Vec<(&str, &Publication)> =
        listed.iter().filter_map(|one| Some((one.name.as_str(), one.publication.as_ref()?))).collect();
    let title = match known.first() {
        Some((_, first)) if known.iter().all(|(_, other)| other.name == first.name) => {
            format!("Runs of {}", first.name)
        }
        _ => "Published runs".to_owned(),
    };
    let mut body = format!("<h1>{}</h1>\n<p class=\"soft\">{}</p>\n", markup(&title), plural(listed.len(), "run"));
    push_trends(&known, &mut body);
    body.push_str("<h2>Runs</h2>\n<div class=\"wide\"><table>\n<tr><th>Start</th><th>Run</th><th>Note</th><th>Figures</th><th>Pages</th></tr>\n");
    for one in listed {
        match &one.publication {
            Some(publication) => push_run(&one.name, publication, &mut body),
            None => {
                let name = markup(&one.name);
                let _ = writeln!(
                    body,
                    "<tr><td></td><td><a href=\"runs/{name}/\">{name}</a></td><td>This version cannot read its publication.json.</td><td></td><td></td></tr>"
                );
            }
        }
    }
    body.push_str("</table></div>\n");
    page(&title, &body)
}

fn push_run(name: &str, publication: &Publication, body: &mut String) {
    let name = markup(name);
    let start = publication.started_at.split('.').next().unwrap_or_default().replace('T', " ");
    let scenarios = publication.scenarios.join(", ");
    let text = [publication.note.as_deref(), publication.headline.as_deref()];
    let note: Vec<String> = text.into_iter().flatten().map(prose).collect();
    let pages =
        [("report.html", "", "report"), ("report.html", "#compare", "comparison"), ("stepscope.toml", "", "lab file")];
    let is_there = |(path, place, _): &&(&str, &str, &str)| {
        publication.has(path) && (place.is_empty() || publication.headline.is_some())
    };
    let link = |(path, place, what): &(&str, &str, &str)| format!("<a href=\"runs/{name}/{path}{place}\">{what}</a>");
    let links: Vec<String> = pages.iter().filter(is_there).map(link).collect();
    let _ = writeln!(
        body,
        "<tr><td class=\"keep\">{}</td><td><a href=\"runs/{name}/index.html\">{}</a><br><span class=\"soft\">{}</span></td><td>{}</td><td class=\"keep\">{}</td><td class=\"keep\">{}</td></tr>",
        markup(&start),
        markup(&publication.name),
        markup(&scenarios),
        note.join("<br>"),
        figures(&publication.recordings),
        links.join("<br>")
    );
}

/// The main figure of each capture of a run: mean over repetitions.
fn figures(recordings: &[Recording]) -> String {
    const MOST: usize = 4;
    let mut lines = Vec::new();
    for recording in recordings {
        let label = label_of(recording);
        let main = metrics::HEADLINES.iter().find_map(|name| recording.figures.iter().find(|one| one.name == *name));
        let Some(main) = main.filter(|_| !lines.iter().any(|(known, _)| *known == label)) else { continue };
        let alike = recordings.iter().filter(|other| label_of(other) == label);
        let values: Vec<f64> =
            alike.filter_map(|other| Some(other.figures.iter().find(|one| one.name == main.name)?.value)).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        lines.push((
            label.clone(),
            format!("{}: {} {}", markup(&label), markup(&main.name), quantity::weight(mean, &main.unit)),
        ));
    }
    let more = lines.len().saturating_sub(MOST);
    let mut shown: Vec<String> = lines.into_iter().take(MOST).map(|(_, line)| line).collect();
    if more > 0 {
        shown.push(format!("<span class=\"soft\">{more} more</span>"));
    }
    shown.join("<br>")
}

fn label_of(recording: &Recording) -> String {
    let phase = recording.phase.map(|phase| phase.to_string());
    [Some(recording.scenario.as_str()), recording.variant.as_deref(), phase.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("/")
}

/// A chart for each main figure that two runs or more have.
fn push_trends(known: &[(&str, &Publication)], body: &mut String) {
    let named = |(name, publication): &(&str, &Publication)| {
        let name = (*name).to_owned();
        publication.recordings.clone().into_iter().map(move |recording| Recording { run: name.clone(), ..recording })
    };
    let recordings: Vec<Recording> = known.iter().flat_map(named).collect();
    let history =
        History::of(&recordings, &Options { search: ChangeSearch::default(), ..Options::default() }, Vec::new());
    let main = history.series.iter().filter(|series| metrics::is_headline(series.key.metric(), true));
    let several: Vec<&Series> = main.filter(|series| series.points.len() > 1).collect();
    if several.is_empty() {
        return;
    }
    body.push_str("<h2>Trends</h2>\n");
    for series in several {
        let label = format!("{}: {}", series.key.label().replace('/', " · "), series.key.metric());
        let last = series.points.last().map_or(String::new(), |point| quantity::weight(point.value, &series.key.unit));
        let marks = vec![Mark::Rules("environment".into()), Mark::Steps("level".into()), Mark::Points("value".into())];
        let svg = Chart::new(series.table(kind_of_unit(&series.key.unit)), "number", marks).floor(Floor::Least).svg();
        let of = [series.key.machine.as_deref(), series.key.build.as_deref()];
        let of: Vec<String> = of.into_iter().flatten().map(|text| markup(text).into_owned()).collect();
        let picture = chart::document(&svg);
        let _ = writeln!(
            body,
            "<h3>{}</h3>\n<p class=\"soft\">{} · last: {}</p>\n<img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">",
            markup(&label),
            of.join(" · "),
            markup(&last),
            markup(&values_of(series)),
            BASE64.encode(picture)
        );
    }
}

/// The values in words, for screen readers.
fn values_of(series: &Series) -> String {
    let value = |point: &stepscope_analyze::history::Point| quantity::weight(point.value, &series.key.unit);
    let values: Vec<String> = series.points.iter().map(value).collect();
    format!("{} by run: {}", series.key.metric(), values.join(", "))
}
