//! Findings as SARIF 2.1.0, which code hosts show at their source lines.
//!
//! Each row of the table `findings` is a result, each kind a rule. Other tables have no results. Relative paths stay as they
//! are; absolute ones become `file:` addresses. A finding without a line is at the lab file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value as Json, json};
use stepscope_model::{Table, Value, quantity};

/// The file of findings that are about no line: GitHub refuses a log with a result that has no location.
const WITHOUT_PLACE: &str = "stepscope.toml";

/// Writes the findings among these tables as one SARIF log.
///
/// # Errors
/// Those of writing to `out`.
pub fn render_all(tables: &[Table], out: &mut dyn Write) -> io::Result<()> {
    let mut rules: BTreeMap<String, Json> = BTreeMap::new();
    let mut results = Vec::new();
    for table in tables.iter().filter(|table| table.name == "findings") {
        for row in 0..table.rows.len() {
            let kind = text(table, row, "kind");
            rules.entry(kind.clone()).or_insert_with(|| {
                json!({
                    "id": kind,
                    "shortDescription": { "text": kind.replace('-', " ") },
                    "help": { "text": help(table, row) },
                })
            });
            results.push(result(table, row));
        }
    }
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stepscope",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            } },
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

/// What to do, and what would confirm the finding, unless it was recorded.
fn help(table: &Table, row: usize) -> String {
    match (text(table, row, "advice"), text(table, row, "confirm")) {
        (advice, confirm) if confirm.is_empty() => advice,
        (advice, confirm) => format!("{advice} To confirm: {confirm}"),
    }
}

fn result(table: &Table, row: usize) -> Json {
    let level = if text(table, row, "confidence") == "strong" { "warning" } else { "note" };
    let mut message = text(table, row, "finding");
    if let (Some(gain), Some(share)) = (number(table, row, "gain"), number(table, row, "gain_share")) {
        let (gain, share) =
            (quantity::weight(Value::from(gain), "ns"), quantity::weight(Value::from(share), "percent"));
        message.push_str(&format!(": {gain} to gain ({share})"));
    }
    message.push_str(". ");
    message.push_str(&text(table, row, "advice"));
    let mut result = json!({
        "ruleId": text(table, row, "kind"),
        "level": level,
        "message": { "text": message },
        "properties": {
            "scenario": text(table, row, "scenario"),
            "phase": text(table, row, "phase"),
            "gainPercent": number(table, row, "gain_share"),
        },
    });
    let place = text(table, row, "place");
    let line_of = |(file, line): (&str, &str)| Some((file.to_owned(), line.parse::<u32>().ok()?));
    let (file, line) = place.rsplit_once(':').and_then(line_of).unwrap_or((WITHOUT_PLACE.to_owned(), 1));
    let uri = if file.starts_with('/') { format!("file://{}", escaped(&file)) } else { escaped(&file) };
    let mut location =
        json!({ "physicalLocation": { "artifactLocation": { "uri": uri }, "region": { "startLine": line.max(1) } } });
    let function = text(table, row, "function");
    if !function.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": function }]);
    }
    result["locations"] = json!([location]);
    result
}

/// A path as a part of a URI.
fn escaped(path: &str) -> String {
    path.bytes().fold(String::new(), |mut uri, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'+' => uri.push(byte.into()),
            other => uri.push_str(&format!("%{other:02X}")),
        }
        uri
    })
}

fn text(table: &Table, row: usize, column: &str) -> String {
    table.text(row, column).unwrap_or_default().to_owned()
}

fn number(table: &Table, row: usize, column: &str) -> Option<f64> {
    match table.get(row, column)? {
        Value::Float(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Column, Kind};

    use super::*;

    #[test]
    fn findings_are_results_at_their_lines_and_kinds_are_rules() {
        let names = ["finding", "kind", "confidence", "place", "function", "scenario", "phase", "advice", "confirm"];
        let mut columns: Vec<Column> = names.iter().map(|name| Column::new(name, Kind::Text, "", "A text.")).collect();
        columns.push(Column::new("gain", Kind::Duration, "ns", "A gain."));
        columns.push(Column::new("gain_share", Kind::Percent, "percent", "A share."));
        let mut table = Table::new("findings", "Findings", columns);
        let row = |place: &str| {
            let texts = [
                "`sim::Save` opens a file",
                "file-opened",
                "strong",
                place,
                "sim::Save",
                "world",
                "steady",
                "Keep it open.",
                "Count.",
            ];
            let mut row: Vec<Value> = texts.iter().map(|text| (*text).into()).collect();
            row.extend([1_500_000.0.into(), 30.0.into()]);
            row
        };
        table.push(row("src/save file.cc:12"));
        table.push(row(""));
        let mut out = Vec::new();
        render_all(&[table, Table::new("rank", "Rank", Vec::new())], &mut out).unwrap();
        let log: Json = serde_json::from_slice(&out).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len(), 1);
        assert_eq!(results.len(), 2);
        assert_eq!(results[0]["message"]["text"], "`sim::Save` opens a file: 1.50 ms to gain (30.00 %). Keep it open.");
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "src/save%20file.cc");
        assert_eq!(place["region"]["startLine"], 12);
        let place = &results[1]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "stepscope.toml");
        assert_eq!(place["region"]["startLine"], 1);
        let help = &log["runs"][0]["tool"]["driver"]["rules"][0]["help"]["text"];
        assert_eq!(help, "Keep it open. To confirm: Count.");
    }
}
