//! Reading what other tools wrote.
//!
//! A format is an [`InputFormat`]: a name, a way to recognise it by its first bytes, and a reader from a stream of
//! bytes to a [`Capture`]. [`FORMATS`] lists them in the order in which they are asked; a format that can tell itself
//! for sure comes before one that guesses.

mod call_tree;
mod error;
pub mod folded;
mod lines;
pub mod perf_data;
pub mod perf_event;
pub mod perf_script;
mod source;
mod text;

use std::fmt;

use stepscope_model::{Capture, Origin};

pub use error::ImportError;
pub use source::{HEAD_BYTES, Head, Input, Source};

/// A format that can be read.
pub trait InputFormat: Sync {
    /// Its name, as in `capture.json` and on the command line.
    fn name(&self) -> &'static str;

    /// What it is and who writes it, in a line.
    fn describe(&self) -> &'static str;

    /// Whether an input that begins like this is of this format.
    fn recognises(&self, head: Head<'_>) -> bool;

    /// Reads it. The caller fills in the capture's origin and checks its handles.
    ///
    /// # Errors
    /// If nothing could be read. Where something could, what could not is counted in
    /// [`Losses::malformed_records`](stepscope_model::Losses::malformed_records) and said in the capture's notes.
    fn read(&self, input: Input<'_>, options: &ImportOptions) -> Result<Capture, ImportError>;
}

impl fmt::Debug for dyn InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every format that can be read, in the order in which they are asked whether they recognise an input.
pub const FORMATS: &[&dyn InputFormat] = &[
    // A magic number.
    &perf_data::PerfData,
    // Headers and frames in a layout that nothing else has.
    &perf_script::PerfScript,
    // Any text whose lines end in numbers.
    &folded::Folded,
];

/// The format of this [name](InputFormat::name).
pub fn format_named(name: &str) -> Option<&'static dyn InputFormat> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

/// How to read an input.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The format, where the caller knows better than the content says.
    pub format: Option<&'static dyn InputFormat>,
    /// What folded stacks do not say about themselves.
    pub folded: folded::FoldedOptions,
    /// Where to look for the programs and libraries whose addresses are to be named.
    pub symbols: stepscope_symbolize::Options,
}

/// Reads a capture out of what another tool wrote.
///
/// The format is recognised by content unless the options name it; gzip and zstd around it are unpacked. Malformed
/// records are counted and the good ones kept.
///
/// # Errors
/// See [`ImportError`]: the input cannot be read, is of no known format, or holds nothing that can be read.
pub fn import(source: Source<'_>, options: &ImportOptions) -> Result<Capture, ImportError> {
    let input = source.into_input()?;
    let file = input.name().to_owned();
    if input.head().bytes.is_empty() {
        return Err(ImportError::Empty { file });
    }
    let format = match options.format {
        Some(format) => format,
        None => recognise(input.head()).ok_or_else(|| ImportError::unrecognised(&file, input.head()))?,
    };
    let mut capture = format.read(input, options)?;
    capture.info.origin = Origin::Imported { format: format.name().to_owned(), file: file.clone() };
    capture.check().map_err(|rule| ImportError::Inconsistent { file, rule })?;
    Ok(capture)
}

fn recognise(head: Head<'_>) -> Option<&'static dyn InputFormat> {
    FORMATS.iter().copied().find(|format| format.recognises(head))
}

/// What went wrong with the records of a text, for the capture's losses and notes.
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

    /// The first one, in words: `line 7: no count after the last space`.
    fn first(&self) -> Option<String> {
        self.first.as_ref().map(|(line, what)| format!("line {line}: {what}"))
    }

    /// Counts and notes them; if nothing `was_read`, they are the error.
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
            let (records, were) = if self.count == 1 { ("record", "was") } else { ("records", "were") };
            capture
                .info
                .notes
                .push(format!("{} malformed {records} of {file} {were} left out; the first is {first}.", self.count));
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
    fn every_format_has_a_name_of_its_own_and_a_line_of_prose() {
        for format in FORMATS {
            assert_eq!(format_named(format.name()).unwrap().describe(), format.describe());
            assert!(format.describe().ends_with('.') && format.describe().len() < 120, "{format:?}");
        }
    }

    #[test]
    fn an_empty_input_says_so_and_what_to_do() {
        assert_eq!(error(b""), "it is empty: check the command that wrote it, and that it had ended when this read it");
    }

    #[test]
    fn an_input_of_no_known_format_says_what_it_looks_like_and_what_can_be_read() {
        assert_eq!(
            error(b"\x7fELF..."),
            "it is not of a format that can be imported (it is a program or library; `stepscope record -- PROGRAM` \
             records one): import one of perf.data, perf-script, folded, or name the format if the content hides it"
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
    fn a_folder_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let error = Source::open(folder.path()).err().unwrap().to_string();
        assert!(error.ends_with("is a folder: if it is a capture, it needs no import; open it with `stepscope show`"));
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_the_reason() {
        let error = Source::open("/nowhere/x.folded".as_ref()).err().unwrap().to_string();
        assert!(error.starts_with("cannot open /nowhere/x.folded: No such file or directory"), "{error}");
    }

    #[test]
    fn a_stream_that_breaks_off_is_an_error_with_its_offset() {
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
        assert_eq!(
            error,
            "cannot read it beyond byte 6: the disk is gone; nothing was imported, try a fresh copy of it"
        );
    }
}
