//! Columns of plain values to a Parquet file, one group of rows after the other.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};

use super::dictionary;

/// A named column to write.
pub(super) struct Column {
    name: &'static str,
    /// Of a column with empty cells: 1 for each cell with a value, 0 for each other one.
    levels: Option<Vec<i16>>,
    values: Values,
}

/// The values of a column without its empty cells.
enum Values {
    U32(Vec<i32>),
    /// Numbers of rows, of which neighbours are alike.
    Ids(Vec<i32>),
    U64(Vec<i64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
    /// Texts that many rows share, and which of them each has.
    Shared(Vec<ByteArray>, Vec<u32>),
}

/// Constructors for a type, without and with empty cells.
macro_rules! columns {
    ($($name:ident $maybe_name:ident $variant:ident $type:ty, $convert:expr;)*) => {
        impl Column { $(
            pub(super) fn $name(name: &'static str, values: impl Iterator<Item = $type>) -> Self {
                Self { name, levels: None, values: Values::$variant(values.map($convert).collect()) }
            }

            #[allow(dead_code, reason = "some types have no empty cells so far")]
            pub(super) fn $maybe_name(name: &'static str, cells: impl Iterator<Item = Option<$type>>) -> Self {
                let (levels, values) = split(cells.map(|cell| cell.map($convert)));
                Self { name, levels: Some(levels), values: Values::$variant(values) }
            }
        )* }
    };
}

columns! {
    u32s maybe_u32s U32 u32, |value| value as i32;
    ids maybe_ids Ids u32, |value| value as i32;
    u64s maybe_u64s U64 u64, |value| value as i64;
    i64s maybe_i64s I64 i64, |value| value;
    bools maybe_bools Bool bool, |value| value;
    texts maybe_texts Text Arc<str>, |text| ByteArray::from(&*text);
}

fn split<T>(cells: impl Iterator<Item = Option<T>>) -> (Vec<i16>, Vec<T>) {
    let (mut levels, mut values) = (Vec::with_capacity(cells.size_hint().0), Vec::new());
    for cell in cells {
        levels.push(cell.is_some().into());
        values.extend(cell);
    }
    (levels, values)
}

/// A column that is made cell by cell. Several are made beside each other where rows are large: memory is read once.
pub(super) trait Cells {
    type Cell;

    fn with_capacity(rows: usize) -> Self;
    fn push(&mut self, cell: Self::Cell);
    fn column(self, name: &'static str) -> Column;
}

/// Numbers for a column with empty cells.
pub(super) struct MaybeU64s(Vec<i16>, Vec<i64>);

/// Texts that many rows share: each is copied once.
pub(super) struct SharedTexts<'a>(Copies<'a>, Vec<u32>);

/// The same, with empty cells.
pub(super) struct MaybeSharedTexts<'a>(Copies<'a>, Vec<i16>, Vec<u32>);

/// Numbers for a column without empty cells, by the kind of its values.
macro_rules! numbers {
    ($($name:ident $variant:ident $type:ty => $stored:ty;)*) => { $(
        pub(super) struct $name(Vec<$stored>);

        impl Cells for $name {
            type Cell = $type;

            fn with_capacity(rows: usize) -> Self {
                Self(Vec::with_capacity(rows))
            }

            #[inline]
            fn push(&mut self, cell: $type) {
                self.0.push(cell as $stored);
            }

            fn column(self, name: &'static str) -> Column {
                Column { name, levels: None, values: Values::$variant(self.0) }
            }
        }
    )* };
}

numbers! {
    U32s U32 u32 => i32;
    Ids Ids u32 => i32;
    U64s U64 u64 => i64;
}

impl Cells for MaybeU64s {
    type Cell = Option<u64>;

    fn with_capacity(rows: usize) -> Self {
        Self(Vec::with_capacity(rows), Vec::with_capacity(rows))
    }

    #[inline]
    fn push(&mut self, cell: Option<u64>) {
        self.0.push(cell.is_some().into());
        self.1.extend(cell.map(|number| number as i64));
    }

    fn column(self, name: &'static str) -> Column {
        Column { name, levels: Some(self.0), values: Values::U64(self.1) }
    }
}

impl<'a> Cells for SharedTexts<'a> {
    type Cell = &'a str;

    fn with_capacity(rows: usize) -> Self {
        Self(Copies::default(), Vec::with_capacity(rows))
    }

    #[inline]
    fn push(&mut self, cell: &'a str) {
        self.1.push(self.0.number(cell));
    }

    fn column(self, name: &'static str) -> Column {
        Column { name, levels: None, values: Values::Shared(self.0.texts, self.1) }
    }
}

impl<'a> Cells for MaybeSharedTexts<'a> {
    type Cell = Option<&'a str>;

    fn with_capacity(rows: usize) -> Self {
        Self(Copies::default(), Vec::with_capacity(rows), Vec::with_capacity(rows))
    }

    #[inline]
    fn push(&mut self, cell: Option<&'a str>) {
        self.1.push(cell.is_some().into());
        self.2.extend(cell.map(|text| self.0.number(text)));
    }

    fn column(self, name: &'static str) -> Column {
        Column { name, levels: Some(self.1), values: Values::Shared(self.0.texts, self.2) }
    }
}

impl Column {
    /// Texts that many rows share: each is copied once.
    pub(super) fn shared_texts<'a>(name: &'static str, texts: impl Iterator<Item = &'a Arc<str>>) -> Self {
        Self::shared(name, texts.map(|text| &**text))
    }

    /// Names that the program knows.
    pub(super) fn names(name: &'static str, names: impl Iterator<Item = &'static str>) -> Self {
        Self::shared(name, names)
    }

    fn shared<'a>(name: &'static str, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut cells = SharedTexts::with_capacity(texts.size_hint().0);
        texts.for_each(|text| cells.push(text));
        cells.column(name)
    }

    fn rows(&self) -> usize {
        let values = || match &self.values {
            Values::U32(values) | Values::Ids(values) => values.len(),
            Values::U64(values) | Values::I64(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Shared(_, numbers) => numbers.len(),
        };
        self.levels.as_ref().map_or_else(values, Vec::len)
    }

    /// The column's line in Parquet's schema language.
    fn schema(&self) -> String {
        let (physical, logical) = match self.values {
            Values::U32(_) | Values::Ids(_) => ("INT32", " (INTEGER(32,false))"),
            Values::U64(_) => ("INT64", " (INTEGER(64,false))"),
            Values::I64(_) => ("INT64", ""),
            Values::Bool(_) => ("BOOLEAN", ""),
            Values::Text(_) | Values::Shared(..) => ("BYTE_ARRAY", " (STRING)"),
        };
        let repetition = if self.levels.is_some() { "OPTIONAL" } else { "REQUIRED" };
        format!("{repetition} {physical} {}{logical};", self.name)
    }

    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, Output>,
        description: ColumnDescPtr,
    ) -> parquet::errors::Result<()> {
        match &self.values {
            Values::U32(values) | Values::Ids(values) => self.write_as::<Int32Type>(group, values),
            Values::U64(values) | Values::I64(values) => self.write_as::<Int64Type>(group, values),
            Values::Bool(values) => self.write_as::<BoolType>(group, values),
            Values::Text(values) => self.write_as::<ByteArrayType>(group, values),
            Values::Shared(texts, numbers) => {
                let cells = dictionary::Cells { texts, numbers, levels: self.levels.as_deref() };
                match cells.dictionary_bytes() {
                    1..=dictionary::MOST_BYTES => cells.write(group, description, level()),
                    _ => self.write_shared(group, texts, numbers),
                }
            }
        }
    }

    /// Writes texts that are hardly shared, some at a time, so that their handles stay in the CPU's cache.
    fn write_shared(
        &self,
        group: &mut SerializedRowGroupWriter<'_, Output>,
        texts: &[ByteArray],
        numbers: &[u32],
    ) -> parquet::errors::Result<()> {
        const BATCH: usize = 1_024;
        let mut column = group.next_column()?.expect("the schema has a column for each of ours");
        let mut numbers = numbers.iter();
        let mut batch = Vec::with_capacity(BATCH);
        for first in (0..self.rows()).step_by(BATCH) {
            let rows = first..self.rows().min(first + BATCH);
            let levels = self.levels.as_ref().map(|levels| &levels[rows.clone()]);
            let present = levels.map_or(rows.len(), |levels| levels.iter().filter(|level| **level > 0).count());
            batch.clear();
            batch.extend(numbers.by_ref().take(present).map(|number| texts[*number as usize].clone()));
            column.typed::<ByteArrayType>().write_batch(&batch, levels, None)?;
        }
        column.close()
    }

    fn write_as<T: DataType>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, Output>,
        values: &[T::T],
    ) -> parquet::errors::Result<()> {
        let mut column = group.next_column()?.expect("the schema has a column for each of ours");
        column.typed::<T>().write_batch(values, self.levels.as_deref(), None)?;
        column.close()
    }
}

/// Numbers of texts, by their places in memory. The texts are borrowed, so no other one takes such a place.
#[derive(Default)]
struct Copies<'a> {
    texts: Vec<ByteArray>,
    known: HashMap<(*const u8, usize), u32, foldhash::fast::RandomState>,
    /// The last one of those whose places are alike.
    last: [Option<(&'a str, u32)>; 16],
}

impl<'a> Copies<'a> {
    #[inline]
    fn number(&mut self, text: &'a str) -> u32 {
        let place = text.as_ptr();
        // Mixed, because places of names that the program knows differ in their last bits alone.
        let last = &mut self.last[(place as usize as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 60];
        match last {
            Some((known, number)) if std::ptr::eq(*known, text) => *number,
            _ => {
                let number = *self.known.entry((place, text.len())).or_insert_with(|| {
                    self.texts.push(ByteArray::from(text));
                    self.texts.len() as u32 - 1
                });
                *last = Some((text, number));
                number
            }
        }
    }
}

type Output = Checksummed<BufWriter<File>>;

/// A writer that knows the size and the checksum of what went through it.
pub(super) struct Checksummed<W> {
    inner: W,
    bytes: u64,
    hasher: crc32fast::Hasher,
}

impl<W: Write> Write for Checksummed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Writes a table, one group of rows after the other.
pub(super) struct TableWriter {
    writer: SerializedFileWriter<Output>,
    rows: u64,
}

impl TableWriter {
    /// `columns` give the names and types. Their rows are not written.
    pub(super) fn create(path: &Path, table: &str, columns: &[Column]) -> io::Result<Self> {
        let fields: String = columns.iter().map(Column::schema).collect();
        let schema = Arc::new(parse_message_type(&format!("message {table} {{ {fields} }}")).map_err(io_error)?);
        let inner = BufWriter::new(File::create(path)?);
        let output = Checksummed { inner, bytes: 0, hasher: crc32fast::Hasher::new() };
        let writer = SerializedFileWriter::new(output, schema, Arc::new(properties(columns))).map_err(io_error)?;
        Ok(Self { writer, rows: 0 })
    }

    /// Adds columns of equal length, if they have rows.
    pub(super) fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        let rows = columns.first().map_or(0, Column::rows);
        if rows == 0 {
            return Ok(());
        }
        let descriptions = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group().map_err(io_error)?;
        let written = columns.iter().zip(descriptions).try_for_each(|(column, its)| column.write(&mut group, its));
        written.map_err(io_error)?;
        group.close().map_err(io_error)?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Completes the file.
    pub(super) fn close(self) -> io::Result<Written> {
        let mut output = self.writer.into_inner().map_err(io_error)?;
        output.flush()?;
        Ok(Written { rows: self.rows, bytes: output.bytes, crc32: output.hasher.finalize() })
    }
}

/// What was written to a table's file.
pub(super) struct Written {
    pub rows: u64,
    pub bytes: u64,
    pub crc32: u32,
}

/// The system's error inside an error of the Parquet library, or else that error.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

fn level() -> ZstdLevel {
    ZstdLevel::try_new(3).expect("3 is a zstd level")
}

/// Times, weights and numbers of rows are stored as differences, which repeat more often than the values.
fn properties(columns: &[Column]) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level()))
        .set_created_by(concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in columns {
        let path = ColumnPath::from(column.name);
        builder = match column.values {
            Values::U64(_) | Values::I64(_) | Values::Ids(_) => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // The least and the greatest name say nothing.
            Values::Text(_) | Values::Shared(..) => {
                builder.set_column_statistics_enabled(path, EnabledStatistics::None)
            }
            Values::U32(_) | Values::Bool(_) => builder,
        };
    }
    builder.build()
}
