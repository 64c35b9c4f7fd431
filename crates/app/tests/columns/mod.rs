//! Tables of the page as a reader of Parquet sees them.

use std::collections::BTreeMap;

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use stepscope_app::ParquetTable;
use stepscope_app::parquet_table::Storage;

/// Columns by name.
#[derive(Default)]
pub struct Columns {
    integers: BTreeMap<String, Vec<i32>>,
    numbers: BTreeMap<String, Vec<f64>>,
    texts: BTreeMap<String, Vec<String>>,
}

impl Columns {
    pub fn rows(&self) -> usize {
        let integers = self.integers.values().map(Vec::len).next();
        integers.or(self.texts.values().map(Vec::len).next()).unwrap_or(0)
    }

    pub fn integers(&self, name: &str) -> &[i32] {
        &self.integers[name]
    }

    pub fn numbers(&self, name: &str) -> &[f64] {
        &self.numbers[name]
    }

    pub fn texts(&self, name: &str) -> &[String] {
        &self.texts[name]
    }
}

pub fn decoded(table: &ParquetTable) -> Columns {
    let reader = SerializedFileReader::new(Bytes::from(table.encode(Storage::Small))).unwrap();
    let (group, mut columns) = (reader.get_row_group(0).unwrap(), Columns::default());
    let rows = reader.metadata().file_metadata().num_rows() as usize;
    for (index, column) in reader.metadata().file_metadata().schema_descr().columns().iter().enumerate() {
        let name = column.name().to_owned();
        match group.get_column_reader(index).unwrap() {
            ColumnReader::Int32ColumnReader(mut reader) => {
                let values = columns.integers.entry(name).or_default();
                while values.len() < rows {
                    reader.read_records(rows, None, None, values).unwrap();
                }
            }
            ColumnReader::DoubleColumnReader(mut reader) => {
                let values = columns.numbers.entry(name).or_default();
                while values.len() < rows {
                    reader.read_records(rows, None, None, values).unwrap();
                }
            }
            ColumnReader::ByteArrayColumnReader(mut reader) => {
                let mut values = Vec::new();
                while values.len() < rows {
                    reader.read_records(rows, None, None, &mut values).unwrap();
                }
                let texts = values.iter().map(|text| text.as_utf8().unwrap().to_owned());
                columns.texts.insert(name, texts.collect());
            }
            _ => panic!("{name} is of a type that the page does not know"),
        }
    }
    columns
}
