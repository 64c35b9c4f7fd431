//! Files of records, one line per record.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::account::{self, Counter};

/// Names of the files.
const NAMES: [&str; 5] =
    ["DlTxPhyStats.txt", "UlTxPhyStats.txt", "DlMacStats.txt", "UlMacStats.txt", "DlRsrpSinrStats.txt"];

/// When files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Openness {
    /// For each record.
    Reopened,
    /// Once; a file is written when its buffer is full.
    KeptOpen,
}

/// Files to which records are appended round-robin.
pub struct RecordFiles {
    paths: Vec<PathBuf>,
    openness: Openness,
    /// The open files, if they are kept open.
    open: Vec<BufWriter<CountedFile>>,
}

impl RecordFiles {
    /// Creates empty files in a folder.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn create(folder: &Path, openness: Openness) -> io::Result<Self> {
        let paths = NAMES.iter().map(|name| folder.join(name)).collect();
        let mut files = Self { paths, openness, open: Vec::new() };
        files.restart()?;
        Ok(files)
    }

    /// Empties the files.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn restart(&mut self) -> io::Result<()> {
        self.open.clear();
        for path in &self.paths {
            account::count(Counter::FileOpens);
            let file = CountedFile(File::create(path)?);
            if self.openness == Openness::KeptOpen {
                self.open.push(BufWriter::new(file));
            }
        }
        Ok(())
    }

    /// Appends records, which end in a line break.
    ///
    /// # Errors
    /// If a file cannot be written.
    #[inline(never)]
    pub fn write_stats(&mut self, records: &[String]) -> io::Result<()> {
        let _timed = account::scope("ground::stats::record_files::RecordFiles::write_stats");
        for (number, record) in records.iter().enumerate() {
            let file = number % self.paths.len();
            match self.openness {
                Openness::Reopened => append_record(&self.paths[file], record)?,
                Openness::KeptOpen => self.open[file].write_all(record.as_bytes())?,
            }
        }
        Ok(())
    }

    /// Writes buffered records.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn complete(&mut self) -> io::Result<()> {
        self.open.iter_mut().try_for_each(Write::flush)
    }
}

fn append_record(path: &Path, record: &str) -> io::Result<()> {
    account::count(Counter::FileOpens);
    let mut file = CountedFile(OpenOptions::new().append(true).open(path)?);
    file.0.seek(SeekFrom::End(0))?;
    file.write_all(record.as_bytes())
}

/// A file whose `write` calls are counted.
struct CountedFile(File);

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        account::count(Counter::FileWrites);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;

    #[test]
    fn both_ways_to_open_files_write_the_same() {
        let written = |openness: Openness| {
            let folder = TemporaryFolder::new("records").unwrap();
            let mut files = RecordFiles::create(folder.path(), openness).unwrap();
            files.write_stats(&["lost\n".to_owned()]).unwrap();
            files.restart().unwrap();
            for step in 0..3 {
                let records: Vec<_> = (0..7).map(|number| format!("{step} {number}\n")).collect();
                files.write_stats(&records).unwrap();
            }
            files.complete().unwrap();
            NAMES.map(|name| std::fs::read_to_string(folder.path().join(name)).unwrap())
        };
        let kept = written(Openness::KeptOpen);
        assert_eq!(kept[1], "0 1\n0 6\n1 1\n1 6\n2 1\n2 6\n");
        assert_eq!(kept[2], "0 2\n1 2\n2 2\n");
        assert_eq!(written(Openness::Reopened), kept);
    }
}
