//! The pages that are generated from [`ANALYSES`]: the index of `docs/analyses/` and `docs/reference/analyses.md`.
//!
//! The tests compare the committed pages with the generated ones. `BLESS=1 cargo test -p stepscope-analyze docs` writes them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepscope_model::{Capture, Counter, Event, Kind, Merged, MergedMachine, ProcessId, Scope, Table, ThreadId};

use crate::analysis::{self, ANALYSES, Analysis, OF_SEVERAL, OptionValues, View};
use crate::drawn::{self, Drawing};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A capture with a little of each dimension.
fn example() -> Capture {
    let mut drawing = Drawing::new().window(0..2_400).process(7, "/usr/bin/sim").lived("main", 0..2_400, 1_800);
    drawing = drawing.lived("worker", 0..2_400, 1_000);
    drawing = drawing.steps("main", 100, 100, 22, 1_000);
    for step in 1..22_u64 {
        let start = 100 + step * 100;
        let text = format!("@{} main;gz::Run;gz::Step;find 40\n@{} worker;gz::Work;memset 30", start + 20, start + 30);
        drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).blocked_then_runnable(
            "main",
            start + 60..start + 90,
            5,
            "gz::Run;gz::Step;pthread_cond_wait;futex",
        );
    }
    drawing = drawing.preempted("worker", 300..310, "gz::Work");
    drawing = drawing.folded(Event::sampled("minor-faults", "faults"), "@150 worker;gz::Work;memset 3");
    let mut capture = drawing.capture;
    let name: Arc<str> = capture.intern_text("gz.physics");
    capture.scopes.push(Scope { thread: ThreadId(0), name, start_ns: 210, end_ns: 250, depth: 0 });
    let name: Arc<str> = capture.intern_text("rss_bytes");
    let process = Some(ProcessId(0));
    capture.counters.push(Counter { time_ns: 100, process, thread: None, name, value: 4096 });
    let name: Arc<str> = capture.intern_text("heap_live_bytes");
    capture.counters.push(Counter { time_ns: 100, process, thread: None, name, value: 64 });
    capture.info.merged = Some(Merged { machines: vec![MergedMachine::default()], ..Merged::default() });
    drawn::allocations(&mut capture, 1_000..2_000, "main;main;gz::Run;gz::Step;malloc 40 640 30 64 128");
    capture
}

/// The function that [`example`] explains.
const FUNCTION: &str = "gz::Step";

/// The tables of all analyses.
fn all_tables() -> Vec<Table> {
    drawn::selected(&example(), &["gz::"], |selection| {
        let views = ANALYSES.iter().flat_map(|analysis| analysis.views.iter().map(move |view| (analysis, view)));
        let of_views =
            views.flat_map(|(analysis, view)| analysis::tables(analysis, view, selection, &OptionValues::default()));
        let of_several = OF_SEVERAL.iter().filter_map(|one| one.tables);
        let of_several = of_several.flat_map(|tables| tables(std::slice::from_ref(selection), FUNCTION));
        of_views.chain(of_several).collect()
    })
}

/// The index: a row an analysis.
fn index() -> String {
    let mut rows = String::from("| analysis | question | command |\n|---|---|---|\n");
    for analysis in ANALYSES {
        for view in analysis.views {
            let mut commands = vec![match view.name {
                "hotspots" => "`show`".to_owned(),
                name => format!("`show --view {name}`"),
            }];
            if view.name == analysis.name() {
                commands.extend(analysis.also_in.iter().map(|command| format!("`{command}`")));
            }
            let (title, name) = (analysis.title, analysis.name());
            let _ = writeln!(rows, "| [{title}]({name}.md) | {} | {} |", view.question, commands.join("; "));
        }
    }
    for one in OF_SEVERAL {
        let commands = [one.name].into_iter().chain(one.also_in.iter().copied());
        let commands: Vec<String> = commands.map(|command| format!("`{command}`")).collect();
        let page = one.page.strip_prefix("analyses/").map_or(format!("../{}", one.page), str::to_owned);
        let _ = writeln!(rows, "| [{}]({page}) | {} | {} |", one.title, one.question, commands.join("; "));
    }
    rows
}

/// The reference: what each analysis needs, its options, and its tables.
fn reference() -> String {
    let mut page = String::from(
        "# Reference: analyses\n\n\
         Generated from the registry of analyses. Cells of `--format json` and `tsv` are in the unit of the column;\n\
         `table` and `markdown` choose a readable unit. Equal names mean equal things in all tables.\n",
    );
    let capture = example();
    drawn::selected(&capture, &["gz::"], |selection| {
        for analysis in ANALYSES {
            let _ = writeln!(page, "\n## {}\n", analysis.title);
            let _ = writeln!(page, "[How to read it](../analyses/{}.md).{}", analysis.name(), needs(analysis));
            for option in analysis.options {
                let (name, value, doc, default) = (option.name, option.value, option.doc, option.default);
                let _ = writeln!(page, "\n`--{name} {value}`: {doc} Default: {default}.");
            }
            for view in analysis.views {
                let _ = writeln!(page, "\n### `show --view {}`\n\n{}", view.name, view.question);
                for table in analysis::tables(analysis, view, selection, &OptionValues::default()) {
                    page.push_str(&columns(&table));
                }
            }
        }
        for one in OF_SEVERAL {
            let Some(tables) = one.tables else { continue };
            let (title, name, question) = (one.title, one.name, one.question);
            let _ = writeln!(page, "\n## {title}\n\n[How to read it](../{}).\n\n### `{name}`\n\n{question}", one.page);
            tables(std::slice::from_ref(selection), FUNCTION).iter().for_each(|table| page.push_str(&columns(table)));
        }
    });
    page
}

fn needs(analysis: &Analysis) -> String {
    match analysis.needs {
        [] => String::new(),
        needs => {
            let names: Vec<String> = needs.iter().map(|dimension| format!("`{dimension}`")).collect();
            format!(" Needs {}.", names.join(" and "))
        }
    }
}

/// A table's columns, a row each.
fn columns(table: &Table) -> String {
    let mut text = format!("\n`{}`: {}\n\n| column | unit | meaning |\n|---|---|---|\n", table.name, table.title);
    for column in &table.columns {
        let unit = if column.unit.is_empty() { "" } else { &column.unit };
        let _ = writeln!(text, "| `{}` | {unit} | {} |", column.name, column.doc.replace('|', "\\|"));
    }
    text
}

fn check(path: &Path, generated: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, generated).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(committed == generated, "{path} is stale; run `BLESS=1 cargo test -p stepscope-analyze docs`");
}

/// Text between two comments of a page.
fn replaced(page: &str, generated: &str) -> String {
    const START: &str = "<!-- generated: analyses -->\n";
    const END: &str = "<!-- end -->\n";
    let (before, rest) = page.split_once(START).expect("the index has a place for the generated table");
    let (_, after) = rest.split_once(END).expect("the generated table has an end");
    format!("{before}{START}{generated}{END}{after}")
}

#[test]
fn the_index_lists_every_analysis() {
    let path = folder().join("analyses/README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    check(&path, &replaced(&page, &index()));
}

#[test]
fn the_reference_has_every_column() {
    check(&folder().join("reference/analyses.md"), &reference());
}

#[test]
fn every_analysis_has_a_page() {
    let pages = ANALYSES.iter().map(|analysis| format!("analyses/{}.md", analysis.name()));
    let pages = pages.chain(OF_SEVERAL.iter().map(|one| one.page.to_owned()));
    let missing: Vec<String> = pages.filter(|page| !folder().join(page).exists()).collect();
    assert!(missing.is_empty(), "write docs/NAME for {missing:?}");
}

/// A name that is a count in one table and a time in another would be read wrongly in one of them.
#[test]
fn columns_of_one_name_are_of_one_kind_in_all_tables() {
    // The readings of counters have units of their own.
    let readings = |table: &Table| ["counters", "monitor_trends", "monitor_machine"].contains(&&*table.name);
    let mut kinds: BTreeMap<String, (String, Kind)> = BTreeMap::new();
    for table in all_tables().into_iter().filter(|table| !readings(table)) {
        for column in table.columns {
            let (first, kind) = kinds.entry(column.name.clone()).or_insert_with(|| (table.name.clone(), column.kind));
            let is_weight = |kind: Kind| matches!(kind, Kind::Duration | Kind::Count | Kind::Number);
            let weights = ["self", "inclusive", "attributed"].contains(&column.name.as_str()) && is_weight(column.kind);
            assert!(*kind == column.kind || weights, "`{}` in {first} and in {}", column.name, table.name);
        }
    }
}

#[test]
fn names_of_views_are_unique_and_questions_end_in_a_question_mark() {
    let views: Vec<&View> = ANALYSES.iter().flat_map(|analysis| analysis.views).collect();
    let mut names: Vec<&str> = views.iter().map(|view| view.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), views.len());
    assert!(views.iter().all(|view| view.question.ends_with('?')));
    assert!(OF_SEVERAL.iter().all(|one| one.question.ends_with('?')));
}
