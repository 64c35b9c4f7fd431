//! Tables as Parquet files, for pandas, polars, DuckDB and the like.
//!
//! A column of integers becomes `INT64`, one with other numbers `DOUBLE`, one of text `STRING`, one of yes and no `BOOLEAN`. All
//! are optional: unknown cells are null. Integers beyond 64 bits make a column `DOUBLE`. For datasets of many files,
//! [`write_by_kind`] takes the types from the columns alone, so that all files have one schema. The file's metadata has the table's
//! title and notes, and the unit and definition of each column, as JSON under the key `stepscope`.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::json;
use stepscope_model::quantity::number;
use stepscope_model::{Column, Kind, Table, Value};

/// Key of the metadata.
const KEY: &str = "stepscope";

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellType {
    Bool,
    Integer,
    Number,
    Text,
}

impl CellType {
    fn of(cells: impl Iterator<Item = Value>) -> Self {
        cells.fold(None, |found: Option<Self>, cell| Self::joined(found, &cell)).unwrap_or(Self::Text)
    }

    /// The type of all columns of a kind, whatever their values.
    fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Text | Kind::Prose => Self::Text,
            Kind::Flag => Self::Bool,
            _ => Self::Number,
        }
    }

    fn joined(found: Option<Self>, cell: &Value) -> Option<Self> {
        let of = match cell {
            Value::Missing => return found,
            Value::Bool(_) => Self::Bool,
            Value::Int(value) if i64::try_from(*value).is_ok() => Self::Integer,
            Value::Int(_) | Value::Float(_) => Self::Number,
            Value::Text(_) => Self::Text,
        };
        Some(match found {
            None => of,
            Some(before) if before == of => of,
            Some(Self::Integer | Self::Number) if matches!(of, Self::Integer | Self::Number) => Self::Number,
            Some(_) => Self::Text,
        })
    }

    fn physical(self) -> PhysicalType {
        match self {
            Self::Bool => PhysicalType::BOOLEAN,
            Self::Integer => PhysicalType::INT64,
            Self::Number => PhysicalType::DOUBLE,
            Self::Text => PhysicalType::BYTE_ARRAY,
        }
    }
}

/// Writes a table as one Parquet file. A table without columns gets none.
///
/// # Errors
/// Those of writing to `out`.
pub fn write(table: &Table, out: &mut (impl Write + Send)) -> io::Result<()> {
    let types = (0..table.columns.len()).map(|index| CellType::of(cells(table, index))).collect();
    try_write(table, types, out).map_err(io::Error::other)
}

/// As [`write()`], but all numbers are `DOUBLE`, and the type of a column does not depend on its values: files of one analysis
/// have one schema. Doubles are exact up to 2^53: 104 days in ns.
///
/// # Errors
/// Those of writing to `out`.
pub fn write_by_kind(table: &Table, out: &mut (impl Write + Send)) -> io::Result<()> {
    let types = table.columns.iter().map(|column| CellType::of_kind(column.kind)).collect();
    try_write(table, types, out).map_err(io::Error::other)
}

/// `text`, `number` or `flag`: the type that [`write_by_kind`] gives a column.
pub fn type_name(column: &Column) -> &'static str {
    match CellType::of_kind(column.kind) {
        CellType::Text => "text",
        CellType::Bool => "flag",
        CellType::Integer | CellType::Number => "number",
    }
}

fn cells(table: &Table, index: usize) -> impl Iterator<Item = Value> + '_ {
    table.rows.iter().map(move |row| row.get(index).cloned().unwrap_or(Value::Missing))
}

fn try_write(table: &Table, types: Vec<CellType>, out: &mut (impl Write + Send)) -> Result<(), ParquetError> {
    let field = |(column, cell): (&Column, &CellType)| {
        let text = (*cell == CellType::Text).then_some(LogicalType::String);
        let builder = Type::primitive_type_builder(&column.name, cell.physical());
        builder.with_repetition(Repetition::OPTIONAL).with_logical_type(text).build().map(Arc::new)
    };
    let fields = table.columns.iter().zip(&types).map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), metadata(table))]))
        .build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    if !types.is_empty() && !table.rows.is_empty() {
        let mut group = writer.next_row_group()?;
        for (index, cell) in types.iter().enumerate() {
            let cells = || cells(table, index);
            match cell {
                CellType::Bool => write_column::<BoolType, _>(
                    &mut group,
                    cells().map(|cell| match cell {
                        Value::Bool(value) => Some(value),
                        _ => None,
                    }),
                ),
                CellType::Integer => write_column::<Int64Type, _>(
                    &mut group,
                    cells().map(|cell| match cell {
                        Value::Int(value) => i64::try_from(value).ok(),
                        _ => None,
                    }),
                ),
                CellType::Number => write_column::<DoubleType, _>(&mut group, cells().map(|cell| number(&cell))),
                CellType::Text => write_column::<ByteArrayType, _>(&mut group, cells().map(text)),
            }?;
        }
        group.close()?;
    }
    writer.finish()?;
    Ok(())
}

fn text(cell: Value) -> Option<ByteArray> {
    let text = match cell {
        Value::Missing => return None,
        Value::Text(text) => text,
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
    };
    Some(ByteArray::from(text.into_bytes()))
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let cells: Vec<Option<T::T>> = cells.collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let mut column = group.next_column()?.expect("the schema has a column for each of ours");
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn metadata(table: &Table) -> String {
    let columns: Vec<serde_json::Value> = table
        .columns
        .iter()
        .map(|column| json!({"name": column.name, "unit": column.unit, "doc": column.doc}))
        .collect();
    let notes: Vec<String> = table.notes.iter().map(ToString::to_string).collect();
    json!({"table": table.name, "title": table.title, "columns": columns, "notes": notes}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    fn read(table: &Table) -> (SerializedFileReader<Bytes>, Vec<String>) {
        let mut bytes = Vec::new();
        write(table, &mut bytes).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        (reader, rows)
    }

    #[test]
    fn each_kind_of_value_keeps_its_type_and_unknown_cells_are_null() {
        let names = ["function", "count", "share", "owned", "share.a b", "mixed", "empty"];
        let columns = names.map(|name| Column::new(name, Kind::Number, "ns", "What it is.")).to_vec();
        let mut table = Table::new("t", "T", columns);
        let empty = Value::Missing;
        table.push(vec![
            "a\"b".into(),
            7_u64.into(),
            0.5.into(),
            true.into(),
            1_u64.into(),
            1_u64.into(),
            empty.clone(),
        ]);
        let missing = || Value::Missing;
        table.push(vec!["".into(), missing(), missing(), missing(), 0.25.into(), "x".into(), missing()]);
        let (reader, rows) = read(&table);
        assert_eq!(
            rows,
            [
                r#"{function: "a"b", count: 7, share: 0.5, owned: true, share.a b: 1.0, mixed: "1", empty: null}"#,
                r#"{function: "", count: null, share: null, owned: null, share.a b: 0.25, mixed: "x", empty: null}"#,
            ]
        );
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(metadata[0].value.as_ref().unwrap().contains(r#""unit":"ns""#));
    }

    #[test]
    fn types_by_kind_are_the_same_for_integers_fractions_and_no_values() {
        let schema_of = |value: Value| {
            let mut table =
                Table::new("t", "T", vec![Column::duration("self", "Self."), Column::text("name", "Name.")]);
            table.push(vec![value, Value::Missing]);
            let mut bytes = Vec::new();
            write_by_kind(&table, &mut bytes).unwrap();
            let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
            let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap().to_string();
            (reader.metadata().file_metadata().schema().clone(), row)
        };
        let (integer, row) = schema_of(7_u64.into());
        assert_eq!(row, "{self: 7.0, name: null}");
        assert_eq!(schema_of(0.5.into()).0, integer);
        assert_eq!(schema_of(Value::Missing).0, integer);
    }

    #[test]
    fn a_table_without_rows_or_columns_is_a_file_too() {
        assert!(read(&Table::new("t", "T", vec![Column::new("a", Kind::Number, "", "")])).1.is_empty());
        assert!(read(&Table::new("t", "T", Vec::new())).1.is_empty());
    }
}
