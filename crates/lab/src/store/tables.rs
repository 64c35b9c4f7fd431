//! The tables of a run, by partition.

use std::collections::BTreeMap;

use stepscope_analyze::analysis::{self, OptionValues};
use stepscope_analyze::diagnose::Calls;
use stepscope_analyze::history::Figure;
use stepscope_analyze::{ANALYSES, Pattern, Selection};
use stepscope_model::{Column, Columns, Table, Value};
use stepscope_store::{Cell, KEYS, REPETITION, RUN_KEY, StoredCapture, TableColumn};
use stepscope_view::parquet;

use crate::findings::findings;
use crate::history::Entry;

/// Columns that each table has before its own: which capture a row is of.
const CAPTURE: &str = "capture_id";

/// The table with a row per capture, which makes a run visible in a bucket.
const CAPTURES: &str = "captures";

/// The table with a row per metric of a capture.
const METRICS: &str = "metrics";

/// Tables that are being collected: the rows of all repetitions of a cell are one file.
#[derive(Debug, Default)]
pub(super) struct Tables(BTreeMap<(String, Cell), Table>);

/// A capture as a row of the table `captures`.
pub(super) struct CaptureRow<'a> {
    pub capture: &'a StoredCapture,
    pub entry: &'a Entry,
    pub wall_ns: Option<u64>,
    pub step_count: usize,
}

impl Tables {
    /// Adds a capture: its tables, findings and metrics. `only` chooses tables by name.
    pub fn add(&mut self, selection: &Selection<'_>, row: &CaptureRow<'_>, only: &[Pattern]) {
        self.push(row.capture, captures_table(row));
        self.push(row.capture, metrics_table(&row.entry.recording.figures));
        let is_wanted = |name: &str| only.is_empty() || only.iter().any(|pattern| pattern.matches(name));
        for analysis in ANALYSES {
            for view in analysis.views.iter().filter(|view| is_wanted(view.name)) {
                for (index, mut table) in
                    analysis::tables(analysis, view, selection, &OptionValues::default()).into_iter().enumerate()
                {
                    // Named as `show --view` names it. Further tables of a view have their own name behind it.
                    table.name = match index {
                        0 => identifier(view.name),
                        _ => format!("{}_{}", identifier(view.name), identifier(&table.name)),
                    };
                    self.push(row.capture, table);
                }
            }
        }
        if is_wanted("diagnose") {
            let mut found = findings(std::slice::from_ref(selection), &Calls::default());
            found.name = "diagnose".to_owned();
            self.push(row.capture, found);
        }
    }

    fn push(&mut self, capture: &StoredCapture, table: Table) {
        if table.rows.is_empty() {
            return;
        }
        let key = (table.name.clone(), capture.cell.clone());
        let all = self.0.entry(key).or_insert_with(|| Table::new(&table.name, table.title.clone(), own_columns()));
        let to: Vec<usize> = table.columns.iter().map(|column| place_of(all, column)).collect();
        for row in &table.rows {
            let mut whole = vec![Value::Missing; all.columns.len()];
            whole[0] = capture.id.as_str().into();
            whole[1] = capture.repetition.into();
            for (value, place) in row.iter().zip(&to) {
                whole[*place] = value.clone();
            }
            all.rows.push(whole);
        }
    }

    /// The columns of each table, those of all cells together.
    pub fn columns(&self) -> BTreeMap<String, Vec<TableColumn>> {
        let mut found: BTreeMap<String, Vec<TableColumn>> = BTreeMap::new();
        for ((name, _), table) in &self.0 {
            let known = found.entry(name.clone()).or_default();
            for column in &table.columns {
                if !known.iter().any(|one| one.name == column.name) {
                    let kind = parquet::type_name(column).to_owned();
                    known.push(TableColumn { name: column.name.clone(), kind, unit: column.unit.clone() });
                }
            }
        }
        found
    }

    /// Each table as the bytes of a Parquet file, with its path in the run.
    pub fn files(self) -> impl Iterator<Item = (String, Vec<u8>)> {
        self.0.into_iter().map(|((name, cell), table)| {
            let mut bytes = Vec::new();
            parquet::write_by_kind(&table, &mut bytes).expect("memory takes all bytes");
            (cell.file(&name), bytes)
        })
    }
}

fn own_columns() -> Vec<Column> {
    vec![
        Column::text(CAPTURE, "The capture: start, machine, scenario, variant, phase and repetition."),
        Column::count(REPETITION, "", "Number of the repetition."),
    ]
}

/// The index of a column in the table of all repetitions, which gets it if it does not have it. A column that has the name of a key of
/// folders is prefixed, because engines would take the one for the other.
fn place_of(all: &mut Table, column: &Column) -> usize {
    let is_key =
        KEYS.contains(&column.name.as_str()) || [RUN_KEY, REPETITION, "table", CAPTURE].contains(&&*column.name);
    let name = if is_key { format!("row_{}", column.name) } else { column.name.clone() };
    if let Some(place) = all.column(&name) {
        return place;
    }
    all.columns.push(Column { name, ..column.clone() });
    all.rows.iter_mut().for_each(|row| row.push(Value::Missing));
    all.columns.len() - 1
}

/// A name that SQL takes without quotes.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

fn captures_table(row: &CaptureRow<'_>) -> Table {
    let recording = |row: &CaptureRow<'_>| row.entry.recording.clone();
    let machine = |row: &CaptureRow<'_>| row.entry.recording.machine.clone();
    Columns::new()
        .text("started_at", "Start, RFC 3339 in UTC.", move |row| recording(row).at.into())
        .text("revision", "Revision of the source.", move |row| recording(row).revision.into())
        .text("build", "Kind of build.", move |row| recording(row).build.into())
        .text("tool", "Program and version of the recorder.", move |row| recording(row).tool.into())
        .text("cpu", "CPU model.", move |row| machine(row).map(|machine| machine.cpu).into())
        .count("cores", "", "Online logical CPUs.", move |row| machine(row).map(|machine| machine.cores))
        .bytes("memory", "Installed memory.", move |row| machine(row).map(|machine| machine.memory_bytes))
        .text("kernel", "Kernel release.", move |row| machine(row).map(|machine| machine.kernel).into())
        .text("governor", "Frequency governor.", move |row| machine(row).and_then(|machine| machine.governor).into())
        .text("hypervisor", "Hypervisor.", move |row| machine(row).and_then(|machine| machine.virtualization).into())
        .duration("wall", "Length of the recording.", |row: &CaptureRow<'_>| row.wall_ns)
        .count("steps", "", "Steps.", |row: &CaptureRow<'_>| row.step_count)
        .flag("samples", "Whether the capture is in the store.", |row: &CaptureRow<'_>| row.capture.samples)
        .table(CAPTURES, "Captures", std::iter::once(row))
}

fn metrics_table(figures: &[Figure]) -> Table {
    let better = |figure: &Figure| figure.better.map(|better| better.name());
    Columns::<Figure>::new()
        .text("metric", "The metric.", |figure| figure.name.as_str().into())
        .text("unit", "Its unit.", |figure| figure.unit.as_str().into())
        .text("better", "`lower` or `higher`, unless the metric's name implies it.", move |figure| {
            better(figure).into()
        })
        .with(Column::number("value", "", "Its value."), |figure: &Figure| figure.value.into())
        .table(METRICS, "Metrics", figures)
}
