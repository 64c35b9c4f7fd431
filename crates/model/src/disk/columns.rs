//! Columns of plain values to and from the bytes of a Parquet file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, Type as PhysicalType, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescriptor, ColumnPath};

/// Values of a column; some may be absent.
pub(super) enum Cells {
    U32(Vec<Option<u32>>),
    U64(Vec<Option<u64>>),
    I64(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<Arc<str>>>),
}

/// A named column to write.
pub(super) struct Column {
    name: &'static str,
    optional: bool,
    cells: Cells,
}

/// Conversions for a type whose cells all have values.
macro_rules! required {
    ($($name:ident $variant:ident $type:ty;)*) => {
        impl Column { $(
            pub(super) fn $name(name: &'static str, values: impl Iterator<Item = $type>) -> Self {
                Self { name, optional: false, cells: Cells::$variant(values.map(Some).collect()) }
            }
        )* }

        impl Rows { $(
            pub(super) fn $name(&self, name: &str) -> Result<Vec<$type>, String> {
                let Some(Cells::$variant(cells)) = self.columns.get(name) else { return Err(self.misses(name)) };
                let present: Option<Vec<$type>> = cells.iter().cloned().collect();
                present.ok_or_else(|| format!("column `{name}` has empty cells"))
            }
        )* }
    };
}

/// Conversions for a type whose cells may be empty. A missing column counts as empty.
macro_rules! optional {
    ($($name:ident $variant:ident $type:ty;)*) => {
        impl Column { $(
            pub(super) fn $name(name: &'static str, values: impl Iterator<Item = Option<$type>>) -> Self {
                Self { name, optional: true, cells: Cells::$variant(values.collect()) }
            }
        )* }

        impl Rows { $(
            pub(super) fn $name(&self, name: &str) -> Result<Vec<Option<$type>>, String> {
                match self.columns.get(name) {
                    Some(Cells::$variant(cells)) => Ok(cells.clone()),
                    Some(_) => Err(self.misses(name)),
                    None => Ok(vec![None; self.rows]),
                }
            }
        )* }
    };
}

required! {
    u32s U32 u32;
    u64s U64 u64;
    i64s I64 i64;
    bools Bool bool;
    texts Text Arc<str>;
}

optional! {
    maybe_u32s U32 u32;
    maybe_u64s U64 u64;
    maybe_i64s I64 i64;
    maybe_texts Text Arc<str>;
}

impl Column {
    pub(super) fn rows(&self) -> usize {
        self.cells.len()
    }

    /// The column's line in Parquet's schema language.
    fn schema(&self) -> String {
        let (physical, logical) = match self.cells {
            Cells::U32(_) => ("INT32", " (INTEGER(32,false))"),
            Cells::U64(_) => ("INT64", " (INTEGER(64,false))"),
            Cells::I64(_) => ("INT64", ""),
            Cells::Bool(_) => ("BOOLEAN", ""),
            Cells::Text(_) => ("BYTE_ARRAY", " (STRING)"),
        };
        format!("{} {physical} {}{logical};", if self.optional { "OPTIONAL" } else { "REQUIRED" }, self.name)
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>) -> parquet::errors::Result<()> {
        match &self.cells {
            Cells::U32(cells) => self.write_as::<Int32Type, _>(group, cells, |&value| value as i32),
            Cells::U64(cells) => self.write_as::<Int64Type, _>(group, cells, |&value| value as i64),
            Cells::I64(cells) => self.write_as::<Int64Type, _>(group, cells, |&value| value),
            Cells::Bool(cells) => self.write_as::<BoolType, _>(group, cells, |&value| value),
            Cells::Text(cells) => self.write_as::<ByteArrayType, _>(group, cells, |text| ByteArray::from(&**text)),
        }
    }

    fn write_as<T: DataType, V>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
        cells: &[Option<V>],
        convert: impl Fn(&V) -> T::T,
    ) -> parquet::errors::Result<()> {
        let mut column = group.next_column()?.expect("the schema has a column for each of ours");
        let present: Vec<T::T> = cells.iter().flatten().map(convert).collect();
        let levels: Option<Vec<i16>> = self.optional.then(|| cells.iter().map(|cell| cell.is_some().into()).collect());
        column.typed::<T>().write_batch(&present, levels.as_deref(), None)?;
        column.close()
    }
}

/// Encodes columns of equal length as a Parquet file.
pub(super) fn encode(table: &str, columns: &[Column]) -> parquet::errors::Result<Vec<u8>> {
    let fields: String = columns.iter().map(Column::schema).collect();
    let schema = Arc::new(parse_message_type(&format!("message {table} {{ {fields} }}"))?);
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties(columns)))?;
    if columns.iter().any(|column| column.rows() > 0) {
        let mut group = writer.next_row_group()?;
        for column in columns {
            column.write(&mut group)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(bytes)
}

/// Times and weights are stored as differences, which repeat more often than the values.
fn properties(columns: &[Column]) -> WriterProperties {
    let level = ZstdLevel::try_new(3).expect("3 is a zstd level");
    let builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned());
    let wide = columns.iter().filter(|column| matches!(column.cells, Cells::U64(_) | Cells::I64(_)));
    wide.fold(builder, |builder, column| {
        let path = ColumnPath::from(column.name);
        builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    })
    .build()
}

/// The columns of a table as read.
pub(super) struct Rows {
    rows: usize,
    columns: HashMap<String, Cells>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    fn misses(&self, name: &str) -> String {
        match self.columns.contains_key(name) {
            true => format!("column `{name}` is of another type"),
            false => format!("there is no column `{name}`"),
        }
    }
}

/// Decodes the columns of a Parquet file. Columns of other types than captures use are skipped.
pub(super) fn decode(bytes: Vec<u8>) -> Result<Rows, String> {
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(|error| error.to_string())?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = HashMap::new();
    let mut rows = 0;
    for (index, descriptor) in schema.columns().iter().enumerate() {
        let Some(mut cells) = Cells::of_type(descriptor) else { continue };
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).map_err(|error| error.to_string())?;
            let column = group.get_column_reader(index).map_err(|error| error.to_string())?;
            cells.extend_from(column, descriptor.max_def_level() > 0)?;
        }
        rows = rows.max(cells.len());
        columns.insert(descriptor.name().to_owned(), cells);
    }
    match columns.iter().find(|(_, cells)| cells.len() != rows) {
        Some((name, cells)) => Err(format!("column `{name}` has {} rows, another {rows}", cells.len())),
        None => Ok(Rows { rows, columns }),
    }
}

impl Cells {
    /// Empty cells of the type in a column's description. `None` for types that captures do not use.
    fn of_type(descriptor: &ColumnDescriptor) -> Option<Self> {
        if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
            return None;
        }
        match (descriptor.physical_type(), descriptor.converted_type()) {
            (PhysicalType::INT32, ConvertedType::UINT_32) => Some(Cells::U32(Vec::new())),
            (PhysicalType::INT64, ConvertedType::UINT_64) => Some(Cells::U64(Vec::new())),
            (PhysicalType::INT64, _) => Some(Cells::I64(Vec::new())),
            (PhysicalType::BOOLEAN, _) => Some(Cells::Bool(Vec::new())),
            (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8) => Some(Cells::Text(Vec::new())),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match self {
            Cells::U32(cells) => cells.len(),
            Cells::U64(cells) => cells.len(),
            Cells::I64(cells) => cells.len(),
            Cells::Bool(cells) => cells.len(),
            Cells::Text(cells) => cells.len(),
        }
    }

    /// Appends the cells of this column in a row group.
    fn extend_from(&mut self, column: ColumnReader, optional: bool) -> Result<(), String> {
        match (self, column) {
            (Cells::U32(cells), ColumnReader::Int32ColumnReader(column)) => {
                extend(cells, column, optional, |value| Ok(value as u32))
            }
            (Cells::U64(cells), ColumnReader::Int64ColumnReader(column)) => {
                extend(cells, column, optional, |value| Ok(value as u64))
            }
            (Cells::I64(cells), ColumnReader::Int64ColumnReader(column)) => extend(cells, column, optional, Ok),
            (Cells::Bool(cells), ColumnReader::BoolColumnReader(column)) => extend(cells, column, optional, Ok),
            (Cells::Text(cells), ColumnReader::ByteArrayColumnReader(column)) => {
                let mut shared: HashSet<Arc<str>> = HashSet::new();
                extend(cells, column, optional, |value| {
                    let text = value.as_utf8().map_err(|error| error.to_string())?;
                    if let Some(known) = shared.get(text) {
                        return Ok(known.clone());
                    }
                    shared.insert(text.into());
                    Ok(shared.get(text).expect("it was just inserted").clone())
                })
            }
            _ => Err("a column's pages are of another type than its description says".to_owned()),
        }
    }
}

/// Rows per read. Memory is allocated for existing data, never by a header's claim.
const BATCH: usize = 1 << 16;

fn extend<T: DataType, V>(
    cells: &mut Vec<Option<V>>,
    mut column: ColumnReaderImpl<T>,
    optional: bool,
    mut convert: impl FnMut(T::T) -> Result<V, String>,
) -> Result<(), String> {
    loop {
        let mut levels = Vec::new();
        let mut values = Vec::new();
        let (rows, _, _) = column
            .read_records(BATCH, optional.then_some(&mut levels), None, &mut values)
            .map_err(|error| error.to_string())?;
        if rows == 0 {
            return Ok(());
        }
        let mut values = values.into_iter();
        for row in 0..rows {
            let present = !optional || levels.get(row) == Some(&1);
            let value = present.then(|| values.next().ok_or("a page is shorter than it says")).transpose()?;
            cells.push(value.map(&mut convert).transpose()?);
        }
    }
}
