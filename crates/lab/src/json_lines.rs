//! Files of one JSON object a line, that are only ever appended to.
//!
//! Writers do not disturb each other: lines are added in one write, by a writer that holds the file's lock, and a line that a
//! killed writer left unfinished is completed first. Each unreadable line, damaged or of a newer program, is reported with its
//! line number and skipped.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No line of ours is longer.
const LONGEST_LINE: u64 = 1 << 20;

/// A line that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// What is in a file: the objects that could be read, in their order, and the lines that were skipped.
pub(crate) type Found<T> = (Vec<T>, Vec<Damage>);

/// A file that is open, and locked.
pub(crate) struct JsonLines {
    file: File,
    schema: u32,
}

impl JsonLines {
    /// To be read, and nobody writes meanwhile. `None` where there is no such file. Lines whose `schema` is newer than
    /// this are skipped.
    pub(crate) fn open(path: &Path, schema: u32) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        // Where locks are not supported (some network file systems) an unfinished line may be visible, and is reported as such.
        let _ = file.lock_shared();
        Ok(Some(Self { file, schema }))
    }

    /// To be read and appended to, and nobody else reads or writes meanwhile. Made, with its folder, where it is not there.
    pub(crate) fn open_to_append(path: &Path, schema: u32) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options().read(true).append(true).create(true).open(path)?;
        // Released when the file is closed, however that comes about.
        file.lock()?;
        Ok(Self { file, schema })
    }

    /// All that is in it.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> io::Result<Found<T>> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(&mut self.file);
        let (mut found, mut damaged, mut line) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1.. {
            line.clear();
            if (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let is_whole = line.last() == Some(&b'\n');
            if !is_whole && line.len() as u64 == LONGEST_LINE {
                reader.skip_until(b'\n')?;
                damaged.push(Damage { line: number, reason: "it is too long to be an entry".to_owned() });
                continue;
            }
            match object(&line, self.schema) {
                Ok(object) => found.extend(object),
                Err(reason) => damaged.push(Damage { line: number, reason }),
            }
        }
        Ok((found, damaged))
    }

    /// Appends a line each.
    pub(crate) fn append<T: Serialize>(&mut self, objects: &[T]) -> io::Result<()> {
        let mut lines = String::new();
        if !self.ends_a_line()? {
            lines.push('\n');
        }
        for object in objects {
            lines.push_str(&serde_json::to_string(object).map_err(io::Error::other)?);
            lines.push('\n');
        }
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()
    }

    fn ends_a_line(&mut self) -> io::Result<bool> {
        if self.file.metadata()?.len() == 0 {
            return Ok(true);
        }
        let mut last = [0];
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }
}

/// The object of a line; `None` of an empty one.
fn object<T: DeserializeOwned>(line: &[u8], newest: u32) -> Result<Option<T>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let value: serde_json::Value = serde_json::from_slice(line).map_err(|error| format!("damaged: {error}"))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if schema > u64::from(newest) {
        return Err(format!("schema {schema} is newer than this program reads ({newest}); use a newer stepscope"));
    }
    serde_json::from_value(value).map(Some).map_err(|error| format!("damaged: {error}"))
}
