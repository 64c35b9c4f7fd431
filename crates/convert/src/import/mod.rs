//! Imports other tools' files.
//!
//! A format is an [`InputFormat`]: a name, a test of the first bytes, and a reader from a stream of bytes to a
//! [`Capture`]. [`FORMATS`] lists them in the order of recognition; certain formats come before guesses.

mod attach;
pub mod builds;
mod cachegrind;
mod call_tree;
mod callgrind;
mod content;
pub mod ctf;
mod cursor;
mod error;
pub mod folded;
pub mod ftrace;
mod heap_sums;
pub mod heaptrack;
mod json;
mod lines;
pub mod massif;
mod mcap;
pub mod memory_errors;
pub mod memray;
pub mod perf_data;
pub mod perf_event;
pub mod perf_script;
mod perf_stat;
pub mod perfetto;
mod simulated;
mod source;
pub mod strace;
mod text;
mod trace;
mod unrecognised;

use std::fmt;
use std::path::{Path, PathBuf};

use stepscope_model::{Capture, Origin, quantity::plural};

use lines::{Line, Lines};
use unrecognised::looks;

pub use attach::attach;
pub use error::ImportError;
pub use source::{HEAD_BYTES, Head, Input, Source};

/// An import format.
pub trait InputFormat: Sync {
    /// Its name, as in `capture.json` and on the command line.
    fn name(&self) -> &'static str;

    /// A line of description: what it is and which tools write it.
    fn describe(&self) -> &'static str;

    /// Whether an input with these first bytes has this format.
    fn recognises(&self, head: Head<'_>) -> bool;

    /// Whether an input of it is a folder, of which the head is that of its file `metadata`.
    fn is_a_folder(&self) -> bool {
        false
    }

    /// Reads the input. The caller sets the capture's origin and checks its handles.
    ///
    /// # Errors
    /// If no record could be read. Otherwise invalid records are counted in
    /// [`Losses::malformed_records`](stepscope_model::Losses::malformed_records) and noted in the capture.
    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError>;
}

impl fmt::Debug for dyn InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// All import formats, in the order of recognition.
pub const FORMATS: &[&dyn InputFormat] = &[
    // Has a magic number.
    &perf_data::PerfData,
    // Has a magic number.
    &ftrace::TraceDat,
    // Has a magic number.
    &mcap::Mcap,
    // Its first packets have known fields of the right types.
    &perfetto::Perfetto,
    // Its metadata have a magic number or name the format.
    &ctf::Ctf,
    // Its first line is its version.
    &heaptrack::Heaptrack,
    // Its first lines are a header with fixed words.
    &massif::Massif,
    // Its first line is its version.
    &builds::NinjaLog,
    // Their events have names and keys that no other tool writes.
    &builds::ClangTrace,
    &builds::CmakeProfile,
    // Its title names it.
    &builds::CargoTimings,
    // Its table has a header line of its own.
    &builds::GccReport,
    // Names itself, or has a header line of its own.
    &memray::Memray,
    // Its root element names it.
    &memory_errors::Valgrind,
    // Its headlines name it.
    &memory_errors::Sanitizer,
    // Has a ruler below its header.
    &strace::StraceSummary,
    // Its lines have a thread, a CPU in brackets and a time.
    &ftrace::FtraceText,
    // Its headers and frames have a unique layout.
    &perf_script::PerfScript,
    // Its lines are calls with their results.
    &strace::Strace,
    // Their headers have unique keys.
    &callgrind::Callgrind,
    &cachegrind::Cachegrind,
    // Its rows have a value, an event and a running time.
    &perf_stat::PerfStat,
    // Matches any text whose lines end in numbers.
    &folded::Folded,
];

/// The format with this [name](InputFormat::name).
pub fn format_named(name: &str) -> Option<&'static dyn InputFormat> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

/// Whether a folder is an input: it is a trace, or has one below it.
pub fn is_input_folder(folder: &Path) -> bool {
    folder.is_dir() && stepscope_ctf::first_trace(folder).is_some()
}

/// How to read an input.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The format, instead of the recognised one.
    pub format: Option<&'static dyn InputFormat>,
    /// Properties of folded stacks that the file does not state.
    pub folded: folded::FoldedOptions,
    /// Where to find the programs and libraries of the recorded addresses.
    pub symbols: stepscope_symbolize::Options,
    /// An existing folder for the long tables of the capture, which traces fill while they are read: memory is then bounded. They
    /// stay there, and the capture reads them when they are needed. Without it, all rows are in memory.
    pub folder: Option<PathBuf>,
}

/// Reads a capture from another tool's file.
///
/// The format is recognised by content unless the options name it. gzip and zstd are unpacked. Malformed records are
/// counted, valid ones kept. Of truncated and damaged gzip and zstd, the records before the damage are kept.
///
/// # Errors
/// See [`ImportError`]: the input cannot be read, has an unknown format, or has no valid record.
pub fn import(source: Source<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
    let input = source.into_input()?;
    let file = input.name().to_owned();
    if input.head().bytes.is_empty() {
        return Err(ImportError::Empty(file));
    }
    let format = match options.format {
        Some(format) => format,
        None => recognise(input.head()).ok_or_else(|| {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
            ImportError::Unrecognised { file: file.clone(), looks: looks(input.head()), known: known.join(", ") }
        })?,
    };
    let damage = input.damage();
    let mut capture = format.read(input, options)?;
    if let Some(damage) = damage.get() {
        capture.info.notes.insert(0, format!("{file}: {damage}; the records before were imported."));
    }
    capture.info.origin = Origin::Imported { format: format.name().to_owned(), file: file.clone() };
    capture.check().map_err(|rule| ImportError::Inconsistent { file, rule })?;
    Ok(capture)
}

fn recognise(head: Head<'_>) -> Option<&'static dyn InputFormat> {
    FORMATS.iter().copied().find(|format| format.recognises(head))
}

/// Gives each line of a text to `take`, and counts those that exceed the longest line.
fn each_line(input: Input<'_>, mut take: impl FnMut(Line<'_>, &mut Malformed)) -> Result<Malformed, ImportError> {
    let file = input.name().to_owned();
    let mut lines = Lines::new(input);
    let mut malformed = Malformed::default();
    loop {
        match lines.next_line() {
            Ok(Some(line)) if line.too_long => malformed.add(line.number, "it is longer than 16 MiB"),
            Ok(Some(line)) => take(line, &mut malformed),
            Ok(None) => return Ok(malformed),
            Err(source) => return Err(ImportError::Read { file, offset: lines.offset(), source }),
        }
    }
}

/// Gives each complete line to `take`, which says why a line is no record.
fn each_record(
    input: Input<'_>,
    mut take: impl FnMut(&[u8]) -> Result<(), &'static str>,
) -> Result<Malformed, ImportError> {
    each_line(input, |line, malformed| {
        let taken = if line.ended { take(line.bytes) } else { Err("the data end within it") };
        if let Err(fault) = taken {
            malformed.add(line.number, fault);
        }
    })
}

/// Malformed records of a text, for the capture's losses and notes.
#[derive(Debug, Default)]
struct Malformed {
    count: u64,
    first: Option<(u64, String)>,
}

impl Malformed {
    fn add(&mut self, line: u64, what: impl fmt::Display) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, what.to_string()));
    }

    /// The first one: `line 7: no count after the last space`.
    fn first(&self) -> Option<String> {
        self.first.as_ref().map(|(line, what)| format!("line {line}: {what}"))
    }

    /// Adds the count and a note to the capture. If nothing `was_read`, they are the error.
    fn settle(
        self,
        capture: &mut Capture,
        file: &str,
        format: &'static str,
        was_read: bool,
    ) -> Result<(), ImportError> {
        if !was_read {
            return Err(ImportError::Nothing { file: file.to_owned(), format, first: self.first() });
        }
        capture.info.losses.malformed_records += self.count;
        if let Some(first) = self.first() {
            let records = plural(self.count as usize, "malformed record");
            capture.info.notes.push(format!("{file}: {records} skipped; the first is {first}."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        import(Source::stream("it", bytes), &ImportOptions::default()).unwrap_err().to_string()
    }

    #[test]
    fn every_format_has_a_unique_name_and_a_line_of_description() {
        for format in FORMATS {
            assert_eq!(format_named(format.name()).unwrap().describe(), format.describe());
            assert!(format.describe().ends_with('.') && format.describe().len() < 120, "{format:?}");
        }
    }

    #[test]
    fn an_empty_input_is_an_error_with_a_remedy() {
        assert_eq!(error(b""), "it: is empty; check the command that wrote it, and that it had finished");
    }

    #[test]
    fn an_unknown_format_is_described_with_the_known_ones() {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
        assert_eq!(
            error(b"\x7fELF..."),
            format!(
                "it: unknown format (it is a program or library; `stepscope record -- PROGRAM` records one); import one of \
                 {}, or name the format",
                known.join(", ")
            )
        );
        assert!(error(b"PK\x03\x04").contains("a zip archive; unpack it first"));
        assert!(error(b"{\"traceEvents\":[]}").contains("it is JSON"));
        assert!(error(b"[1, 2]").contains("it is JSON") && error(b"[\"a\"]").contains("it is JSON"));
        for toml in ["# a lab\n\n[project]\nowned = {}\n", "[[scenario]]\n", "[scenario.a-b] # x\n", "name = 1.5\n"] {
            assert!(
                error(toml.as_bytes()).contains("it is TOML; if it is a lab file, `stepscope run` runs it"),
                "{toml}"
            );
        }
        assert!(error(b"no numbers here\nnor here\n").contains("it begins with `no numbers here`"));
    }

    #[test]
    fn a_folder_is_an_error_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let error = Source::open(folder.path()).err().unwrap().to_string();
        assert!(error.ends_with("is a folder; captures need no import, open them with `stepscope show`"));
    }

    #[test]
    fn a_missing_file_is_an_error_with_the_reason() {
        let error = Source::open("/nowhere/x.folded".as_ref()).err().unwrap().to_string();
        assert!(error.starts_with("/nowhere/x.folded: cannot be opened: No such file or directory"), "{error}");
    }

    #[test]
    fn truncated_and_damaged_packed_files_are_read_up_to_the_damage() {
        use std::io::Write as _;
        let text: String = (0..50_000).map(|line| format!("main;function{line} 10\n")).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        let mut damaged = gzip.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 64].fill(0xff);
        for (packed, what) in [
            (&gzip[..gzip.len() / 2], "the gzip data are truncated after "),
            (&zstd[..zstd.len() / 2], "the zstd data are truncated after "),
            (&damaged, "the gzip data are damaged after "),
        ] {
            let capture = import(Source::stream("it", packed), &ImportOptions::default()).unwrap();
            let found = capture.samples.len();
            assert!(found > 5_000 && found < 49_999, "{what}: {found}");
            // Damaged bytes may unpack to something before the decoder notices.
            let right = capture.samples.iter().filter(|sample| sample.weight == 10).count();
            assert!(right == found || (what.contains("damaged") && right > found / 2), "{what}: {right} of {found}");
            assert!(capture.info.notes[0].contains(what), "{:?}", capture.info.notes);
        }
        // Without a single record there is nothing to keep.
        assert!(import(Source::stream("it", &gzip[..12]), &ImportOptions::default()).is_err());
    }

    #[test]
    fn a_broken_stream_is_an_error_with_its_offset() {
        struct Broken(bool);
        impl std::io::Read for Broken {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(std::io::Error::other("the disk is gone"));
                }
                buffer[..6].copy_from_slice(b"a;b 1\n");
                Ok(6)
            }
        }
        let error = import(Source::stream("it", Broken(false)), &ImportOptions::default()).unwrap_err().to_string();
        assert_eq!(error, "it: cannot be read after byte 6: the disk is gone; nothing was imported, try a new copy");
    }
}
