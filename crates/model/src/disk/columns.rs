//! Columns of plain values from a Parquet file, some rows at a time.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use bytes::Bytes;
use parquet::basic::{ConvertedType, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

/// Values of a column; some may be absent.
pub(super) enum Cells {
    U32(Vec<Option<u32>>),
    U64(Vec<Option<u64>>),
    I64(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<Arc<str>>>),
}

/// Conversions for a type whose cells all have values.
macro_rules! required {
    ($($name:ident $variant:ident $type:ty;)*) => {
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

/// Threads that decode a file, each with some 20 MB of decoded rows.
const MOST_THREADS: usize = 4;

/// Gives the columns of a Parquet file to `take`, some rows at a time. Columns of other types than captures use are
/// skipped, and so are those that are not `wanted`, where that is given.
///
/// Groups of rows are decoded side by side, and taken in order.
pub(super) fn decode(
    file: TableBytes,
    wanted: Option<&[&str]>,
    mut take: impl FnMut(Rows) -> Result<(), String>,
) -> Result<(), String> {
    let reader = open(&file)?;
    let groups = reader.num_row_groups();
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(groups);
    if threads < 2 {
        return (0..groups).try_for_each(|group| decode_group(&reader, group, wanted, &mut take));
    }
    thread::scope(|scope| {
        let start = |first: usize| {
            let (give, decoded) = mpsc::sync_channel(1);
            let file = &file;
            scope.spawn(move || {
                // Nobody receives after an error of another group.
                let give = |rows| give.send(rows).map_err(|_| String::new());
                let mut groups = (first..groups).step_by(threads);
                let all = open(file).and_then(|reader| {
                    groups.try_for_each(|group| {
                        decode_group(&reader, group, wanted, &mut |rows| give(Ok(Some(rows))))?;
                        give(Ok(None))
                    })
                });
                let _ = all.or_else(|why| give(Err(why)));
            });
            decoded
        };
        let decoding: Vec<Receiver<Result<Option<Rows>, String>>> = (0..threads).map(start).collect();
        for group in 0..groups {
            // A thread that panicked sends nothing more; the scope passes its panic on.
            while let Ok(decoded) = decoding[group % threads].recv() {
                match decoded? {
                    Some(rows) => take(rows)?,
                    None => break,
                }
            }
        }
        Ok(())
    })
}

fn open(file: &TableBytes) -> Result<SerializedFileReader<TableBytes>, String> {
    SerializedFileReader::new(file.clone()).map_err(|error| error.to_string())
}

fn decode_group(
    reader: &SerializedFileReader<TableBytes>,
    group: usize,
    wanted: Option<&[&str]>,
    take: &mut dyn FnMut(Rows) -> Result<(), String>,
) -> Result<(), String> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.contains(&name));
    let group = reader.get_row_group(group).map_err(|error| error.to_string())?;
    let mut open = Vec::new();
    for (index, descriptor) in schema.columns().iter().enumerate() {
        if !is_wanted(descriptor.name()) || Cells::of_type(descriptor).is_none() {
            continue;
        }
        let reader = group.get_column_reader(index).map_err(|error| error.to_string())?;
        open.push(OpenColumn { descriptor, reader, texts: HashSet::new() });
    }
    loop {
        let mut columns = HashMap::new();
        for column in &mut open {
            columns.insert(column.descriptor.name().to_owned(), column.next()?);
        }
        let rows = columns.values().map(Cells::len).max().unwrap_or(0);
        if let Some((name, cells)) = columns.iter().find(|(_, cells)| cells.len() != rows) {
            return Err(format!("column `{name}` has {} rows, another {rows}", cells.len()));
        }
        if rows == 0 {
            return Ok(());
        }
        take(Rows { rows, columns })?;
    }
}

/// The bytes of a table, on disk or in memory. A length is checked before memory is allocated for it.
#[derive(Clone)]
pub(super) enum TableBytes {
    OnDisk {
        file: Arc<File>,
        length: u64,
    },
    #[cfg(test)]
    InMemory(Bytes),
}

impl Length for TableBytes {
    fn len(&self) -> u64 {
        match self {
            TableBytes::OnDisk { length, .. } => *length,
            #[cfg(test)]
            TableBytes::InMemory(bytes) => bytes.len() as u64,
        }
    }
}

impl ChunkReader for TableBytes {
    type T = BufReader<TailReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(TailReader { bytes: self.clone(), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are more than the file has")));
        }
        let mut bytes = vec![0; length];
        TailReader { bytes: self.clone(), offset: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// The bytes of a table from an offset on.
pub(super) struct TailReader {
    bytes: TableBytes,
    offset: u64,
}

impl Read for TailReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match &self.bytes {
            TableBytes::OnDisk { file, .. } => file.read_at(into, self.offset)?,
            #[cfg(test)]
            TableBytes::InMemory(bytes) => bytes.get(self.offset as usize..).unwrap_or_default().read(into)?,
        };
        self.offset += read as u64;
        Ok(read)
    }
}

/// A column of a row group that is being read.
struct OpenColumn<'a> {
    descriptor: &'a ColumnDescriptor,
    reader: ColumnReader,
    texts: HashSet<Arc<str>>,
}

impl OpenColumn<'_> {
    /// The next cells; none at the end.
    fn next(&mut self) -> Result<Cells, String> {
        let mut cells = Cells::of_type(self.descriptor).ok_or("a column of an unknown type was opened")?;
        cells.extend_from(&mut self.reader, self.descriptor.max_def_level() > 0, &mut self.texts)?;
        Ok(cells)
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

    /// Appends the next cells of a column.
    fn extend_from(
        &mut self,
        column: &mut ColumnReader,
        optional: bool,
        shared: &mut HashSet<Arc<str>>,
    ) -> Result<(), String> {
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

/// Appends up to [`BATCH`] rows, fewer only at the end of the row group.
fn extend<T: DataType, V>(
    cells: &mut Vec<Option<V>>,
    column: &mut ColumnReaderImpl<T>,
    optional: bool,
    mut convert: impl FnMut(T::T) -> Result<V, String>,
) -> Result<(), String> {
    while cells.len() < BATCH {
        let mut levels = Vec::new();
        let mut values = Vec::new();
        let (rows, _, _) = column
            .read_records(BATCH - cells.len(), optional.then_some(&mut levels), None, &mut values)
            .map_err(|error| error.to_string())?;
        if rows == 0 {
            break;
        }
        let mut values = values.into_iter();
        for row in 0..rows {
            let present = !optional || levels.get(row) == Some(&1);
            let value = present.then(|| values.next().ok_or("a page is shorter than it says")).transpose()?;
            cells.push(value.map(&mut convert).transpose()?);
        }
    }
    Ok(())
}
