//! The tables of compared scenarios.

use stepscope_model::{Column, Note, Table, Value};

use super::chain;
use super::reduction::ComparedScenario;
use super::tables::tables;

/// The tables of compared scenarios: every pair, and with three sides or more a table of the whole chain.
///
/// Several scenarios or pairs share tables, whose first columns then say `scenario` and `variants`.
pub fn of_scenarios(scenarios: &[ComparedScenario]) -> Vec<Table> {
    let several_scenarios = scenarios.len() > 1;
    let several_pairs = scenarios.iter().any(|one| one.sides.len() > 2);
    let mut leading = Vec::new();
    if several_scenarios {
        leading.push(("scenario", "The scenario and phase."));
    }
    let scenario = |one: &ComparedScenario| several_scenarios.then(|| one.label.clone());
    let chains = scenarios.iter().filter(|_| several_pairs).map(|one| Part {
        labels: scenario(one).into_iter().collect(),
        tables: chain::tables(&one.sides, &one.to_first, &one.to_previous),
    });
    let mut all = stacked(&leading, chains.collect());
    if several_pairs {
        leading.push(("variants", "The compared variants: `before -> after`."));
    }
    let pairs = scenarios.iter().flat_map(|one| one.pairs().map(move |pair| (one, pair)));
    let parts = pairs.map(|(one, pair)| {
        let variants = several_pairs.then(|| format!("{} -> {}", pair.before, pair.after));
        Part { labels: scenario(one).into_iter().chain(variants).collect(), tables: tables(pair) }
    });
    all.extend(stacked(&leading, parts.collect()));
    all
}

/// The tables of one comparison, and the values of its leading columns.
struct Part {
    labels: Vec<String>,
    tables: Vec<Table>,
}

/// The tables of several comparisons, those of one name as one table with these leading columns.
fn stacked(leading: &[(&str, &str)], parts: Vec<Part>) -> Vec<Table> {
    let mut stacked: Vec<Table> = Vec::new();
    for Part { labels, tables } in parts {
        let subject = labels.join(", ");
        for table in tables {
            let known = stacked.iter().position(|known| known.name == table.name).unwrap_or_else(|| {
                let lead = leading.iter().map(|(name, doc)| Column::text(name, doc).essential().grouping());
                let all = lead.chain(table.columns.iter().cloned()).collect();
                // With several comparisons in it, the columns name them.
                let general = table.title.split(": ").next().unwrap_or(&table.title);
                let title = if leading.is_empty() { table.title.as_str() } else { general };
                stacked.push(Table::new(&table.name, title, all));
                stacked.len() - 1
            });
            let into = &mut stacked[known];
            for (column, other) in into.columns[leading.len()..].iter_mut().zip(&table.columns) {
                if column.label != other.label {
                    column.label = None;
                }
            }
            let lead: Vec<Value> = labels.iter().map(|label| label.as_str().into()).collect();
            table.rows.into_iter().for_each(|row| into.push(lead.iter().cloned().chain(row).collect()));
            let about = |note: Note| if subject.is_empty() { note } else { note.about(subject.as_str()) };
            into.add_notes(table.notes.into_iter().map(about));
        }
    }
    stacked
}
