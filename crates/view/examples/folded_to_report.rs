//! Writes a report about folded stacks, to look at the page with real input, to test it in browsers and to measure it.
//!
//! ```text
//! cargo run -p stepscope-view --example folded_to_report -- out.html stacks.folded...
//! ```
//!
//! Each file is a section with figures, hot spots, threads and two flame graphs. `stepscope report` writes the real ones.

mod folded;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;

use folded::{Order, tree_of};
use stepscope_model::{CallTree, Column, Kind, Table, Value};
use stepscope_view::report::{Report, Section, write_html};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [output, inputs @ ..] = arguments.as_slice() else {
        eprintln!("usage: folded_to_report OUT STACKS...");
        return ExitCode::from(2);
    };
    let mut report = Report::new("Nightly run")
        .subtitle("Costs of owned code per step, and where they arise")
        .fact("Stepscope", env!("CARGO_PKG_VERSION"))
        .fact("machine", "2 cores, virtual machine, no PMU, Linux 6.18")
        .fact("command", "stepscope run stepscope.toml");
    for input in inputs {
        let bytes = std::fs::read(input).expect("the input can be read");
        let text = String::from_utf8_lossy(&bytes);
        let title = input.rsplit('/').next().unwrap_or(input).trim_end_matches(".folded");
        report = report.section(section(title, &text, input));
    }
    let mut out = BufWriter::new(File::create(output).expect("the output can be created"));
    write_html(&report, &mut out).and_then(|()| out.flush()).expect("the output is written");
    ExitCode::SUCCESS
}

fn section(title: &str, text: &str, input: &str) -> Section {
    let tree = tree_of(text, input, "gz::", Order::FromRoot);
    let whole = tree.nodes[0].total.max(1);
    Section::new(title)
        .note("Sums of weights were imported: there are no counts, and shares are of the sampled weight.")
        .figures(figures(&tree))
        .section(Section::new("Hot spots").table(hotspots(&tree, whole)))
        .section(Section::new("Threads").table(threads(&tree, whole)))
        .section(Section::new("Flame graph").flame_graph(tree).flame_graph(tree_of(
            text,
            input,
            "gz::",
            Order::FromLeaf,
        )))
}

fn figures(tree: &CallTree) -> Table {
    let columns = vec![
        Column::new("rtf", Kind::Number, "", "Real-time factor: simulated time over wall time."),
        Column::new("cpu", Kind::Number, "cycles", "Weight of all samples."),
        Column::new("frames", Kind::Count, "frames", "Nodes of the call tree."),
        Column::new("coverage", Kind::Percent, "percent", "Sampled time in percent of exact CPU time."),
        Column::new("rss_peak", Kind::Bytes, "bytes", "Largest resident memory of all processes together."),
    ];
    let mut table = Table::new("summary", "Summary", columns);
    let nodes = tree.nodes.len();
    table.push(vec![Value::Missing, tree.nodes[0].total.into(), nodes.into(), 97.3.into(), 734_003_200_u64.into()]);
    table
}

/// Self and inclusive weight by function, recursion counted once.
fn hotspots(tree: &CallTree, whole: u64) -> Table {
    #[derive(Default)]
    struct Cost {
        own: u64,
        inclusive: u64,
        owned: bool,
        kind: &'static str,
    }
    let mut costs: BTreeMap<Arc<str>, Cost> = BTreeMap::new();
    for node in tree.nodes.iter().skip(1) {
        let mut caller = node.parent;
        let mut recursive = false;
        while let Some(parent) = caller {
            recursive |= tree.nodes[parent as usize].name == node.name;
            caller = tree.nodes[parent as usize].parent;
        }
        let cost = costs.entry(node.name.clone()).or_default();
        cost.own += node.own;
        cost.inclusive += if recursive { 0 } else { node.total };
        cost.owned = node.owned;
        cost.kind = node.kind.name();
    }
    let mut costs: Vec<(Arc<str>, Cost)> = costs.into_iter().collect();
    costs.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.own));
    let columns = vec![
        Column::new("function", Kind::Text, "", "The function's qualified name."),
        Column::new("owned", Kind::Flag, "", "Whether your team can change it."),
        Column::new("category", Kind::Text, "", "What kind of code it is."),
        Column::new("self", Kind::Duration, "ns", "Weight of the samples whose leaf is the function."),
        Column::new("inclusive", Kind::Number, "cycles", "Weight of the samples that hold it, recursion counted once."),
        Column::new("self_share", Kind::Percent, "percent", "Self in percent of the total."),
        Column::new("inclusive_share", Kind::Percent, "percent", "Inclusive in percent of the total."),
    ];
    let mut table = Table::new("hotspots", "On-CPU time by function", columns);
    let share = |weight: u64| Value::from(weight as f64 * 100.0 / whole as f64);
    for (name, cost) in costs {
        table.push(vec![
            name.as_ref().into(),
            cost.owned.into(),
            cost.kind.into(),
            (cost.own / 5).into(),
            cost.inclusive.into(),
            share(cost.own),
            share(cost.inclusive),
        ]);
    }
    table.note("12 records were lost.".to_owned());
    table
}

fn threads(tree: &CallTree, whole: u64) -> Table {
    let columns = vec![
        Column::new("thread", Kind::Text, "", "Name of the thread."),
        Column::new("weight", Kind::Number, "cycles", "Weight of its samples."),
        Column::new("share", Kind::Percent, "percent", "The same in percent of the total."),
    ];
    let mut table = Table::new("threads", "Threads", columns);
    for node in tree.nodes.iter().filter(|node| node.parent == Some(0)) {
        let share = node.total as f64 * 100.0 / whole as f64;
        table.push(vec![node.name.as_ref().into(), node.total.into(), share.into()]);
    }
    table
}
