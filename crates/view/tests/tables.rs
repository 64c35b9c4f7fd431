//! One table in every text format, against golden files.
//!
//! The table holds what makes formats differ: names longer than a line, wide and hostile characters, missing values,
//! integers beyond 2^53, shares that round to zero, notes longer than a line.

mod golden;

use golden::assert_golden;
use stepscope_model::{Column, Kind, Table, Value};
use stepscope_view::{Colour, Format, Style, TableQuery, render};

fn hotspots() -> Table {
    let mut table = Table::new(
        "hotspots",
        "On-CPU time by function",
        vec![
            Column::new("function", Kind::Text, "", "The function."),
            Column::new("module", Kind::Text, "", "The module its code is in."),
            Column::new("owned", Kind::Flag, "", "Your team can change it."),
            Column::new("count", Kind::Count, "", "Samples that end in it."),
            Column::new("self", Kind::Duration, "ns", "Time in the function itself."),
            Column::new("self_share", Kind::Percent, "percent", "Self time of the whole."),
            Column::new("cycles", Kind::Number, "cycles", "Cycles in the function itself."),
            Column::new("rss", Kind::Bytes, "bytes", "Resident memory when it was first seen."),
        ],
    );
    let mut row = |function: &str, module: &str, owned: bool, count: Value, ns: u64, share: f64, rss: u64| {
        let cycles = u128::from(ns) * 5_200_000_001;
        table.push(vec![
            function.into(),
            module.into(),
            owned.into(),
            count,
            ns.into(),
            share.into(),
            cycles.into(),
            rss.into(),
        ]);
    };
    row(
        "std::_Hashtable<unsigned long, std::pair<unsigned long const, gz::math::Pose3<double> >, std::allocator<std::pair<unsigned long const, gz::math::Pose3<double> > > >::find(unsigned long const&) const",
        "libgz-sim8.so.8.6.0",
        false,
        12_345_u32.into(),
        12_345_678_901,
        65.437,
        1 << 31,
    );
    row("gz::sim::v8::Physics::Update", "libgz-sim8.so.8.6.0", true, 816_u32.into(), 816_000_000, 4.325, 0);
    row("行列<長い引数>::積算する", "libmatrix.so", true, 1_u32.into(), 1_002_003, 0.0049, 1536);
    row("std::function<bool ", "a|b,\"c\".so", false, Value::Missing, 999, 0.0, 1023);
    row("evil\x1b[31m\n\u{202e}name\t`x`", "back\\slash", false, 0_u32.into(), 0, 0.0, 1);
    table.note(
        "The samples stand for 18.9 s of 20.1 s on the CPU (coverage 94.1 %): threads that lived shorter than the sampling period have no samples."
            .to_owned(),
    );
    table.note("12 records were lost.".to_owned());
    table
}

fn rendered(table: &Table, format: Format, style: Style) -> String {
    let mut out = Vec::new();
    render(table, format, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_table_for_a_file_has_whole_names() {
    assert_golden("table.plain.txt", &rendered(&hotspots(), Format::Table, Style::PLAIN));
}

#[test]
fn a_table_for_a_narrow_terminal_has_shorter_names_and_colour() {
    let style = Style { width: Some(120), colour: Colour::Always };
    assert_golden("table.120-columns-colour.txt", &rendered(&hotspots(), Format::Table, style));
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    use unicode_width::UnicodeWidthStr;
    let table = hotspots();
    for width in 40..260 {
        let text = rendered(&table, Format::Table, Style { width: Some(width), colour: Colour::Never });
        for line in text.lines() {
            assert!(line.width() <= width, "{width} columns: {line}");
        }
    }
}

/// The column headers of a table at this width, and its notes.
fn shown_at(table: &Table, width: usize) -> (Vec<String>, String) {
    let text = rendered(table, Format::Table, Style { width: Some(width), colour: Colour::Never });
    let header = text.lines().nth(1).unwrap().split_whitespace();
    let names = header.map(|name| name.split('[').next().unwrap().to_owned()).collect();
    let notes = text.split_once("note: ").map_or("", |(_, notes)| notes);
    (names, notes.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// ```text
/// function (essential, 60 wide)  module (10)  calls (detail, 5)  self (6)  late (all missing, 4)
/// ```
fn of_importances() -> Table {
    let column = |name: &str, kind| Column::new(name, kind, "", "");
    let mut table = Table::new(
        "t",
        "T",
        vec![
            column("function", Kind::Text).essential(),
            column("module", Kind::Text),
            column("calls", Kind::Count).detail(),
            column("self", Kind::Count),
            column("late", Kind::Count),
        ],
    );
    for _ in 0..2 {
        table.push(vec!["f".repeat(60).into(), "libsim.so1".into(), 1.into(), 123_456.into(), Value::Missing]);
    }
    table
}

#[test]
fn columns_are_left_out_by_importance_and_the_last_line_says_which() {
    let table = of_importances();
    let all = ["function", "module", "calls", "self", "late"];
    assert_eq!(shown_at(&table, 100).0, all);
    // Names keep 16 columns beside normal columns, three fifths of the line beside details.
    let (names, notes) = shown_at(&table, 50);
    assert_eq!(names, ["function", "module", "self"]);
    assert_eq!(notes, "2 columns hidden to fit the line. Show them with `--columns all`.");
    let (names, notes) = shown_at(&table, 70);
    assert_eq!(names, ["function", "module", "calls", "self"]);
    assert_eq!(notes, "1 column hidden to fit the line. Show it with `--columns all`.");
    let (names, _) = shown_at(&table, 40);
    assert_eq!(names, ["function", "module", "self"]);
}

#[test]
fn essential_columns_without_values_and_columns_of_zeros_give_way_first() {
    let column = |name: &str| Column::new(name, Kind::Count, "", "");
    let function = Column::new("function", Kind::Text, "", "").essential();
    let columns =
        vec![function, column("attributed").essential(), column("waits"), column("inclusive").detail(), column("self")];
    let mut table = Table::new("t", "T", columns);
    for _ in 0..2 {
        table.push(vec!["f".repeat(30).into(), Value::Missing, 0.into(), 7.into(), 5.into()]);
    }
    assert_eq!(shown_at(&table, 70).0, ["function", "attributed", "waits", "inclusive", "self"]);
    assert_eq!(shown_at(&table, 58).0, ["function", "waits", "inclusive", "self"]);
    assert_eq!(shown_at(&table, 51).0, ["function", "inclusive", "self"]);
}

#[test]
fn columns_that_were_asked_for_are_not_left_out() {
    let mut table = of_importances();
    let query = TableQuery { columns: Some("all".parse().unwrap()), ..TableQuery::default() };
    query.apply(std::slice::from_mut(&mut table)).unwrap();
    assert_eq!(shown_at(&table, 40).0, ["function", "module", "calls", "self", "late"]);
}

#[test]
fn one_row_that_does_not_fit_is_a_list() {
    let mut table = of_importances();
    table.rows.truncate(1);
    table.columns[3] = Column::new("self", Kind::Duration, "ns/step", "");
    let text = |width| rendered(&table, Format::Table, Style { width: Some(width), colour: Colour::Never });
    assert_eq!(
        text(40),
        "T\nfunction  fffffffffff…ffffffffffffffffff\nmodule    libsim.so1\ncalls     1\nself      123 µs/step\nunknown: late\n"
    );
    assert_eq!(text(120).lines().count(), 3);
}

#[test]
fn a_limited_table_says_what_was_left_out() {
    let mut table = hotspots();
    let sort = Some("self_share:asc".parse().unwrap());
    TableQuery { sort, limit: Some(2), ..TableQuery::default() }.apply(std::slice::from_mut(&mut table)).unwrap();
    let style = Style { width: Some(100), colour: Colour::Never };
    assert_golden("table.limited.txt", &rendered(&table, Format::Table, style));
}

#[test]
fn an_empty_table_has_its_column_headers_and_says_that_it_is_empty() {
    let mut table = hotspots();
    table.rows.clear();
    assert_golden("table.empty.txt", &rendered(&table, Format::Table, Style::PLAIN));
    table.columns = table.columns.into_iter().map(Column::essential).collect();
    let narrow = rendered(&table, Format::Table, Style { width: Some(40), ..Style::PLAIN });
    assert_eq!(narrow.lines().nth(1), Some("(no rows)"), "headers that do not fit are left out: {narrow}");
    assert!(!narrow.contains("hidden") && narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn tab_separated_values() {
    assert_golden("table.tsv", &rendered(&hotspots(), Format::Tsv, Style::PLAIN));
}

#[test]
fn comma_separated_values() {
    assert_golden("table.csv", &rendered(&hotspots(), Format::Csv, Style::PLAIN));
}

#[test]
fn markdown() {
    assert_golden("table.md", &rendered(&hotspots(), Format::Markdown, Style::PLAIN));
}

#[test]
fn json_of_both_layouts_holds_the_same_exact_values() {
    let table = hotspots();
    let compact = rendered(&table, Format::JsonCompact, Style::PLAIN);
    let indented = rendered(&table, Format::Json, Style::PLAIN);
    assert_golden("table.json", &indented);
    let values = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(values(&compact), values(&indented));
    assert_eq!(compact.lines().count(), 1);
    assert!(compact.contains(r#""self":12345678901,"#));
}

/// What a comparison gives: numbers in the unit of their row, estimates with intervals, verdicts.
fn comparison() -> Table {
    let text = |name: &str| Column::new(name, Kind::Text, "", "");
    let in_row_unit = |name: &str| Column::new(name, Kind::InRowUnit, "", "");
    let columns = vec![
        text("metric").essential(),
        text("unit").detail(),
        in_row_unit("before").essential(),
        in_row_unit("difference"),
        in_row_unit("difference_low").detail(),
        in_row_unit("difference_high").detail(),
        Column::new("ratio", Kind::Number, "", "").essential(),
        Column::new("ratio_low", Kind::Number, "", ""),
        Column::new("ratio_high", Kind::Number, "", ""),
        text("verdict").essential(),
    ];
    let mut table = Table::new("compare_runs", "Whole run: after against before", columns);
    let rows = [
        ("step.p99", "ns/step", 4.2e6, [-2.05e6, -2.3e6, -1.84e6], [0.512, 0.4801, 0.5534], "changed"),
        ("rtf", "", 0.71, [0.7, 0.39, 1.22], [2.0, 1.54, 2.91], "changed"),
        ("rss.peak", "bytes", 31e6, [98_304.0, -20_480.0, 204_800.0], [1.0032, 0.9993, 1.0066], "equivalent"),
        ("faults.major", "faults/step", 0.0, [0.0, 0.0, 0.0], [f64::NAN; 3], "inconclusive"),
    ];
    for (metric, unit, before, difference, ratio, verdict) in rows {
        let numbers = [before].into_iter().chain(difference).chain(ratio).map(Value::from);
        let names = [metric, unit].map(Value::from).into_iter();
        table.push(names.chain(numbers).chain([verdict.into()]).collect());
    }
    table
}

#[test]
fn for_people_an_estimate_and_its_interval_are_one_and_numbers_have_the_unit_of_their_row() {
    assert_golden("comparison.plain.txt", &rendered(&comparison(), Format::Table, Style::PLAIN));
    let narrow = Style { width: Some(60), colour: Colour::Always };
    assert_golden("comparison.60-columns-colour.txt", &rendered(&comparison(), Format::Table, narrow));
    assert_golden("comparison.md", &rendered(&comparison(), Format::Markdown, Style::PLAIN));
}

#[test]
fn bounds_of_a_ratio_beyond_a_factor_of_a_thousand_are_shown_as_0_and_unknown() {
    let mut table = comparison();
    table.rows.truncate(1);
    let [low, high] = ["ratio_low", "ratio_high"].map(|name| table.column(name).unwrap());
    table.rows[0][low] = Value::Float(3.2e-13);
    table.rows[0][high] = Value::Float(1.31e9);
    let text = rendered(&table, Format::Table, Style::PLAIN);
    assert!(text.contains("[0, –]"), "{text}");
    assert!(rendered(&table, Format::Tsv, Style::PLAIN).contains("1310000000"), "programs get what was computed");
}

#[test]
fn formats_for_programs_have_every_column_with_exact_values() {
    assert_golden("comparison.tsv", &rendered(&comparison(), Format::Tsv, Style::PLAIN));
    let json: serde_json::Value = serde_json::from_str(&rendered(&comparison(), Format::Json, Style::PLAIN)).unwrap();
    assert_eq!(json["rows"][0]["ratio_high"], 0.5534);
    assert_eq!(json["columns"].as_array().unwrap().len(), 10);
}

#[test]
fn no_row_of_a_comparison_is_wider_than_the_terminal_and_no_interval_stands_without_its_estimate() {
    use unicode_width::UnicodeWidthStr;
    // The essential columns, the unit among them, take 56.
    for width in 56..120 {
        let text = rendered(&comparison(), Format::Table, Style { width: Some(width), colour: Colour::Never });
        assert!(text.lines().all(|line| line.width() <= width), "{width} columns:\n{text}");
        let header = text.lines().nth(1).unwrap();
        let estimates = header.matches("difference").count() + header.matches("ratio").count();
        assert!(header.matches("[low, high]").count() <= estimates, "{header}");
    }
}
