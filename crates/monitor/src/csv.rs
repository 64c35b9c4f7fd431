//! Readings of processes as CSV: one row for each process and reading, one column for each figure.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::process::FIGURES;
use crate::sampler::Sampler;

/// A file that rows are appended to. They are in the file after each [`write`](Self::write).
pub struct Csv<W: Write = BufWriter<File>> {
    out: W,
    start_ns: u64,
}

impl Csv {
    /// Creates the file, with its header.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, start_ns: u64) -> io::Result<Self> {
        Self::to(BufWriter::new(File::create(path)?), start_ns)
    }
}

impl<W: Write> Csv<W> {
    /// Writes the header.
    pub(crate) fn to(mut out: W, start_ns: u64) -> io::Result<Self> {
        writeln!(out, "time_s,pid,process,{}", FIGURES.join(","))?;
        Ok(Self { out, start_ns })
    }

    /// Writes the last sample. The state is a letter; unknown values are empty.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, sampler: &Sampler, now_ns: u64) -> io::Result<()> {
        let time_s = now_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        for process in sampler.processes() {
            write!(self.out, "{time_s:.3},{},", process.pid())?;
            write_text(&mut self.out, sampler.label(process))?;
            for (name, value) in FIGURES.iter().zip(&process.values) {
                self.out.write_all(b",")?;
                match value {
                    Some(letter) if *name == "state" => self.out.write_all(&[*letter as u8])?,
                    Some(value) => write!(self.out, "{value}")?,
                    None => {}
                }
            }
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

/// Quotes a text that would end its cell early (RFC 4180).
fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    match text.contains([',', '"', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_end_a_cell_are_quoted() {
        let quoted = |text: &str| {
            let mut out = Vec::new();
            write_text(&mut out, text).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!((quoted("node"), quoted("a,\"b\"")), ("node".to_owned(), "\"a,\"\"b\"\"\"".to_owned()));
    }
}
