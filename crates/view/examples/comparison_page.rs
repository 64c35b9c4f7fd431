//! Writes a page about an invented comparison, to look at how verdicts and intervals are shown.
//!
//! ```text
//! cargo run -p stepscope-view --example comparison_page -- OUT
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};

use stepscope_model::{Column, Kind, Table, Value};
use stepscope_view::chart::Forest;
use stepscope_view::report::{Report, Section, write_html};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).expect("usage: comparison_page OUT");
    let table = metrics();
    let forest = Forest::new(table.clone(), "metric").tolerance(0.05);
    let report = Report::new("after against before")
        .subtitle("step.p99 4.20 ms → 2.10 ms: ×0.50 [0.48, 0.52], changed")
        .section(Section::new("Whole run").forest(forest).table(table));
    let mut out = BufWriter::new(File::create(path)?);
    write_html(&report, &mut out)?;
    out.flush()
}

/// Metrics in units of their own, enough of them for a filter.
fn metrics() -> Table {
    let text = |name: &str| Column::new(name, Kind::Text, "", "");
    let columns = [text("metric"), text("unit")]
        .into_iter()
        .chain(["before", "after"].map(|name| Column::new(name, Kind::InRowUnit, "", "")))
        .chain(["ratio", "ratio_low", "ratio_high"].map(|name| Column::new(name, Kind::Number, "", "")))
        .chain([text("verdict"), Column::new("owned", Kind::Flag, "", ""), text("function")]);
    let mut table = Table::new("compare_runs", "Whole run", columns.collect());
    let rows = [
        ("step.p99", "ns/step", 4.2e6, 2.1e6, [0.5, 0.48, 0.52], "changed"),
        ("rtf", "", 0.9, 1.8, [2.0, 1.9, 2.1], "changed"),
        ("rss.peak", "bytes", 31e6, 31.1e6, [1.003, 0.998, 1.008], "equivalent"),
        ("wall", "ns", 3e9, 3.1e9, [1.03, 0.8, 1.3], "inconclusive"),
        ("faults.major", "faults/step", 0.0, 0.0, [f64::NAN; 3], "inconclusive"),
    ];
    for (metric, unit, before, after, ratio, verdict) in rows {
        let names = [metric, unit].map(Value::from).into_iter();
        let numbers = [before, after].into_iter().chain(ratio).map(Value::from);
        table.push(names.chain(numbers).chain([verdict.into(), true.into(), "gz::Step".into()]).collect());
    }
    for index in 0..5_u32 {
        let row: Vec<Value> = vec![format!("other{index}").into(), "".into(), index.into(), index.into()];
        let numbers = [Value::Missing, Value::Missing, Value::Missing];
        let verdict = [Value::from("inconclusive"), false.into(), "gz::Step".into()];
        table.push(row.into_iter().chain(numbers).chain(verdict).collect());
    }
    table
}
