//! What a report of a comparison holds, in which order: the verdict in one sentence, then the whole run, functions, the
//! differential flame graph, and the rest.
//!
//! It is made of the tables of [`compare`](stepscope_analyze::compare), as every other output shows them. Where they hold
//! several comparisons, distinguished by columns before the first that every comparison has, each has sections of its own.

use stepscope_analyze::metrics;
use stepscope_model::quantity::{self, grouped};
use stepscope_model::{Importance, Note, Table, TreeDifference, Value};
use stepscope_view::chart::Forest;
use stepscope_view::report::{Report, Section};
use stepscope_view::sentence;

use stepscope_analyze::analysis::MOST_ROWS;
use stepscope_analyze::hotspots::MOST_ROWS as MOST_HOTSPOTS;

/// What was compared, and what came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compared {
    /// Heading, e.g. `before against after`.
    pub title: String,
    /// What a reader needs to know to place the rest: sides, machine, conditions, seed.
    pub facts: Vec<(String, String)>,
    /// What limits all of the comparison, e.g. that the machines differ.
    pub warnings: Vec<Note>,
    /// The tables of the comparison.
    pub tables: Vec<Table>,
    /// Both call trees as one, a heading with each where there are several.
    pub flame_graphs: Vec<(String, TreeDifference)>,
    /// What does not matter, e.g. 0.05: the band of the pictures.
    pub tolerance: f64,
}

/// Functions in the picture of ratios: those that changed come first.
const MOST_DRAWN: usize = 25;

/// The first columns of the tables of one comparison.
const FIRST: [&str; 4] = ["metric", "function", "thread", "category"];

/// A report on a comparison.
pub fn comparison(compared: &Compared) -> Report {
    let groups = groups(&compared.tables);
    let verdicts: Vec<(String, String)> =
        groups.iter().filter_map(|(label, tables)| Some((label.clone(), verdict(tables)?))).collect();
    let mut report = Report::new(&compared.title);
    if let [(_, only)] = verdicts.as_slice() {
        report = report.subtitle(only);
    }
    report = compared.facts.iter().fold(report, |report, (name, value)| report.fact(name, value));
    report = compared.warnings.iter().cloned().fold(report, Report::warning);
    report = in_short(&verdicts).into_iter().fold(report, Report::section);
    let several = groups.len() > 1;
    for (label, tables) in groups {
        let parts: Vec<Section> = tables.into_iter().filter_map(|table| part(table, compared.tolerance)).collect();
        let graphs = compared.flame_graphs.iter().filter(|(of, _)| !several || *of == label);
        let graph = graphs.fold(Section::new("Differential flame graph"), |section, (_, difference)| {
            section.difference(difference.clone())
        });
        let sections = in_order(parts, graph);
        report = match several {
            true => report.section(sections.into_iter().fold(Section::new(label), Section::section)),
            false => sections.into_iter().fold(report, Report::section),
        };
    }
    report
}

/// A sentence per comparison. `None` for one, which has it as heading.
fn in_short(verdicts: &[(String, String)]) -> Option<Section> {
    let sentence = |(label, verdict): &(String, String)| match label.as_str() {
        "" => verdict.clone(),
        label => format!("{label}: {verdict}"),
    };
    (verdicts.len() > 1).then(|| verdicts.iter().map(sentence).fold(Section::new("In short"), Section::note))
}

/// Headline figures that the verdict names if they changed, and functions.
const MOST_NAMED: usize = 3;

/// What changed and by how much; or that nothing did, and the smallest change that the runs could have shown.
fn verdict(tables: &[Table]) -> Option<String> {
    let runs = Verdicts::of(tables.iter().find(|table| table.name == "compare_runs")?);
    let of_own = runs.rows().filter(|&row| runs.text(row, "metric").is_some_and(metrics::is_own_headline));
    let known = metrics::HEADLINES.iter().filter_map(|name| runs.rows().find(|&row| runs.is(row, "metric", name)));
    let headlines: Vec<usize> = of_own.chain(known).collect();
    let changed: Vec<usize> = headlines.iter().copied().filter(|&row| runs.is(row, "verdict", "changed")).collect();
    let functions = tables.iter().find(|table| table.name == "compare_attributed").map(Verdicts::of);
    let functions_changed = functions.as_ref().is_some_and(|functions| functions.changed().next().is_some());
    let mut sentences = Vec::new();
    if !changed.is_empty() {
        let named: Vec<String> = changed.iter().take(MOST_NAMED).filter_map(|&row| runs.change(row)).collect();
        sentences.push(format!("Changed: {}.", named.join("; ")));
    } else if let Some(&first) = headlines.first() {
        let lead = if functions_changed { "No headline figure changed" } else { "Nothing changed significantly" };
        let verdict = runs.text(first, "verdict").unwrap_or_default();
        sentences.push(format!("{lead}: {}, {verdict}.", runs.change(first)?));
        if let Some(percent) = runs.number(first, "detectable").filter(|percent| percent.is_finite()) {
            let percent = quantity::weight(percent, "percent");
            sentences.push(format!("These runs detect a change of {percent} or more in four of five cases."));
        }
    }
    sentences.extend(functions.map(|functions| functions.summary()));
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The rows of a table of a comparison.
struct Verdicts<'a>(&'a Table);

impl<'a> Verdicts<'a> {
    fn of(table: &'a Table) -> Self {
        Self(table)
    }

    fn rows(&self) -> impl Iterator<Item = usize> + 'a {
        0..self.0.rows.len()
    }

    fn text(&self, row: usize, column: &str) -> Option<&'a str> {
        self.0.get(row, column).and_then(text_of)
    }

    fn is(&self, row: usize, column: &str, text: &str) -> bool {
        self.text(row, column) == Some(text)
    }

    fn number(&self, row: usize, column: &str) -> Option<f64> {
        match self.0.get(row, column) {
            Some(Value::Float(number)) => Some(*number),
            _ => None,
        }
    }

    fn change(&self, row: usize) -> Option<String> {
        sentence::change(self.0, row)
    }

    fn changed(&self) -> impl Iterator<Item = usize> {
        self.rows().filter(|&row| self.is(row, "verdict", "changed"))
    }

    /// The rows that were tested: those with an adjusted p-value, where the table has them.
    fn tested(&self) -> usize {
        match self.0.column("q") {
            Some(_) => self.rows().filter(|&row| self.number(row, "q").is_some()).count(),
            None => self.0.rows.len(),
        }
    }

    /// `2 of 45 tested functions changed: `a` x0.50, `b` x1.20.`
    fn summary(&self) -> String {
        let named = |row: usize| {
            let ratio = self.number(row, "ratio").map_or(String::new(), |ratio| format!(" \u{d7}{ratio:.2}"));
            format!("`{}`{ratio}", self.text(row, "function").unwrap_or_default())
        };
        let changed = self.changed().count();
        let names: Vec<String> = self.changed().take(MOST_NAMED).map(named).collect();
        let more = if changed > MOST_NAMED { format!(", {} more", changed - MOST_NAMED) } else { String::new() };
        let of = quantity::plural(self.tested(), "tested function");
        match changed {
            0 => format!("0 of {of} changed."),
            changed => format!("{changed} of {of} changed: {}{more}.", names.join(", ")),
        }
    }
}

/// The tables of each comparison, with what it is called; tables that are not of one comparison come first, without a
/// name, if there are any.
fn groups(tables: &[Table]) -> Vec<(String, Vec<Table>)> {
    let mut groups: Vec<(String, Vec<Table>)> = Vec::new();
    for table in tables {
        let first = table.columns.iter().position(|column| FIRST.contains(&column.name.as_str())).unwrap_or(0);
        let mut parts: Vec<(String, Table)> = Vec::new();
        for row in &table.rows {
            let label = row[..first].iter().filter_map(text_of).collect::<Vec<_>>().join(" \u{b7} ");
            let place = parts.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
                let mut part = Table::new(&table.name, &table.title, table.columns[first..].to_vec());
                part.notes = notes_of(table, &row[..first]);
                parts.push((label, part));
                parts.len() - 1
            });
            parts[place].1.push(row[first..].to_vec());
        }
        if table.rows.is_empty() && !table.notes.is_empty() {
            parts.push((String::new(), table.clone()));
        }
        for (label, part) in parts {
            match groups.iter_mut().find(|(known, _)| *known == label) {
                Some((_, tables)) => tables.push(part),
                None => groups.push((label, vec![part])),
            }
        }
    }
    groups
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The notes of a table that are about this comparison or about all of them.
fn notes_of(table: &Table, leading: &[Value]) -> Vec<Note> {
    let own = leading.iter().filter_map(text_of).collect::<Vec<_>>().join(", ");
    let is_of_this = |note: &&Note| leading.is_empty() || [own.as_str(), ""].contains(&note.subject());
    table.notes.iter().filter(is_of_this).map(|note| note.clone().about("")).collect()
}

/// A table as a section, with a picture of its ratios if these are its main content. None if it is empty and says nothing.
fn part(mut table: Table, tolerance: f64) -> Option<Section> {
    if table.rows.is_empty() && table.notes.is_empty() {
        return None;
    }
    let (title, label) = match table.name.as_str() {
        "compare_runs" => ("Whole run", Some("metric")),
        "compare_attributed" => ("Functions", Some("function")),
        "compare_self" => ("Functions by self cost", None),
        "compare_inclusive" => ("Functions by inclusive cost", None),
        "compare_threads" => ("Threads", Some("thread")),
        "compare_categories" => ("Kinds of code", Some("category")),
        "compare_waits" => ("Waits", None),
        "compare_chain" => ("Variant by variant", None),
        _ => (table.title.as_str(), None),
    };
    let mut section = Section::new(title).anchor(table.name.replace('_', "-"));
    if let Some(label) = label {
        let mut drawn = table.clone();
        drawn.title = match drawn.name.as_str() {
            "compare_attributed" => "Ratios of the functions that changed most".to_owned(),
            _ => "Ratios".to_owned(),
        };
        section = section.forest(Forest::new(drawn, label).tolerance(tolerance).most(MOST_DRAWN));
    }
    verdict_in_view(&mut table);
    let most = if table.name == "compare_attributed" { MOST_HOTSPOTS } else { MOST_ROWS };
    if table.rows.len() > most {
        let left_out = grouped((table.rows.len() - most) as i128);
        table.rows.truncate(most);
        table.note(format!("{left_out} more rows: `stepscope compare --format tsv` lists all."));
    }
    Some(section.table(table))
}

/// What a reader looks for first, after the name, in this order; other columns follow in their own.
const IN_VIEW: [&str; 12] = [
    "unit",
    "before",
    "after",
    "difference",
    "difference_low",
    "difference_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "q",
    "more_runs",
];

/// Puts first what must be seen without scrolling sideways.
fn verdict_in_view(table: &mut Table) {
    if table.column("verdict").is_none() {
        return;
    }
    let rank = |index: usize| IN_VIEW.iter().position(|name| *name == table.columns[index].name);
    let mut order: Vec<usize> = (0..table.columns.len()).collect();
    order.sort_by_key(|&index| (index > 0, rank(index).unwrap_or(IN_VIEW.len())));
    let columns = order.iter().map(|&index| table.columns[index].clone()).collect();
    table.rows.iter_mut().for_each(|row| *row = order.iter().map(|&index| row[index].clone()).collect());
    table.columns = columns;
    // A verdict is read with the probability that it is a false one.
    table
        .columns
        .iter_mut()
        .filter(|column| column.name == "q")
        .for_each(|column| column.importance = Importance::Essential);
}

/// The flame graph stands after the functions that it shows, or last.
fn in_order(parts: Vec<Section>, graph: Section) -> Vec<Section> {
    let mut sections = parts;
    if !graph.blocks.is_empty() {
        let after = sections.iter().position(|section| section.anchor == "compare-attributed");
        sections.insert(after.map_or(sections.len(), |place| place + 1), graph);
    }
    sections
}

#[cfg(test)]
mod tests {
    use stepscope_app::page;
    use stepscope_model::{Column, Kind};
    use stepscope_view::report::Block;

    use super::*;

    /// A table of this name, with a row of numbers for each name: before, after, ratio with interval, verdict.
    fn table(name: &str, first: &str, rows: &[(&str, &str, [f64; 5], &str)], leading: &[(&str, &str)]) -> Table {
        let text = |name: &str| Column::new(name, Kind::Text, "", "");
        let mut columns: Vec<Column> = leading.iter().map(|(name, _)| text(name)).collect();
        columns.extend([text(first), text("unit")]);
        columns.extend(["before", "after"].map(|name| Column::new(name, Kind::InRowUnit, "", "")));
        columns.extend(["ratio", "ratio_low", "ratio_high"].map(|name| Column::new(name, Kind::Number, "", "")));
        columns.push(text("verdict"));
        let mut table = Table::new(name, name, columns);
        for (label, unit, numbers, verdict) in rows {
            let lead = leading.iter().map(|(_, value)| Value::from(*value));
            let names = lead.chain([(*label).into(), (*unit).into()]);
            table.push(names.chain(numbers.map(Value::from)).chain([(*verdict).into()]).collect());
        }
        table
    }

    const RUNS: [(&str, &str, [f64; 5], &str); 2] = [
        ("rtf", "", [0.9, 1.8, 2.0, 1.9, 2.1], "changed"),
        ("step.median", "ns", [4.21e6, 2.1e6, 0.5, 0.48, 0.52], "changed"),
    ];

    const FUNCTIONS: [(&str, &str, [f64; 5], &str); 2] = [
        ("gz::Step", "ns/step", [2e6, 1e6, 0.5, 0.45, 0.55], "changed"),
        ("gz::Load", "ns/step", [1e6, 1e6, 1.0, 0.98, 1.02], "equivalent"),
    ];

    #[test]
    fn the_verdict_is_the_first_sentence_and_the_flame_graph_stands_after_the_functions() {
        let compared = Compared {
            title: "after against before".into(),
            tables: vec![
                table("compare_runs", "metric", &RUNS, &[]),
                table("compare_attributed", "function", &FUNCTIONS, &[]),
                table("compare_threads", "thread", &FUNCTIONS, &[]),
            ],
            warnings: vec!["the machines differ.".into()],
            tolerance: 0.05,
            ..Compared::default()
        };
        let report = comparison(&compared);
        assert_eq!(
            report.subtitle,
            "Changed: step.median 4.21 ms → 2.10 ms: ×0.50 [0.48, 0.52]; rtf 0.90 → 1.80: ×2.00 [1.90, 2.10]. \
             1 of 2 tested functions changed: `gz::Step` ×0.50."
        );
        let titles: Vec<&str> = report.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["Whole run", "Functions", "Threads"]);
        assert_eq!(report.warnings, ["the machines differ."]);
        assert!(matches!(report.sections[0].blocks.as_slice(), [Block::Forest(_), Block::Table(_)]));
        let mut page = Vec::new();
        page::write(&report, &[], page::BUDGET, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(r#""kind":"forest""#) && page.contains(r#""gz::Step","gz::Load""#));
    }

    #[test]
    fn without_a_change_the_sentence_says_which_change_the_runs_could_have_shown() {
        let runs = [("step.median", "ns", [4e6, 4.1e6, 1.025, 0.97, 1.08], "inconclusive")];
        let mut runs = table("compare_runs", "metric", &runs, &[]);
        runs.columns.push(Column::new("detectable", Kind::Percent, "percent", ""));
        runs.rows[0].push(4.25.into());
        let functions = table("compare_attributed", "function", &FUNCTIONS[1..], &[]);
        let subtitle = |tables: Vec<Table>| comparison(&Compared { tables, ..Compared::default() }).subtitle;
        assert_eq!(
            subtitle(vec![runs.clone(), functions]),
            "Nothing changed significantly: step.median 4.00 ms → 4.10 ms: ×1.02 [0.97, 1.08], inconclusive. These runs \
             detect a change of 4.25 % or more in four of five cases. 0 of 1 tested function changed."
        );
        let changed = table("compare_attributed", "function", &FUNCTIONS, &[]);
        assert!(subtitle(vec![runs, changed]).starts_with("No headline figure changed: step.median"));
    }

    #[test]
    fn several_comparisons_have_sections_of_their_own_and_their_own_notes() {
        let mut tables = vec![table("compare_runs", "metric", &RUNS, &[("variants", "A -> B")])];
        tables[0].rows.extend(table("compare_runs", "metric", &RUNS[..1], &[("variants", "A -> C")]).rows);
        tables[0].notes = vec![
            Note::from("few runs.").about("A -> B"),
            Note::from("other machine.").about("A -> C"),
            Note::from("All are short."),
        ];
        let report = comparison(&Compared { tables, ..Compared::default() });
        let titles: Vec<&str> = report.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["In short", "A -> B", "A -> C"]);
        assert_eq!(report.sections[0].notes.len(), 2, "a sentence each");
        let notes = |section: &Section| match section.sections[0].blocks.last() {
            Some(Block::Table(table)) => table.notes.clone(),
            _ => Vec::new(),
        };
        assert_eq!(notes(&report.sections[1]), ["few runs.", "All are short."]);
        let Some(Block::Table(first)) = report.sections[1].sections[0].blocks.last() else { panic!("a table") };
        let names: Vec<&str> = first.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names[1..4], ["unit", "before", "after"]);
        assert_eq!(notes(&report.sections[2]), ["other machine.", "All are short."]);
    }

    #[test]
    fn a_comparison_of_nothing_is_an_empty_report() {
        assert!(comparison(&Compared::default()).sections.is_empty());
    }
}
