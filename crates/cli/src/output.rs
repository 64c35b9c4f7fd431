//! Tables on standard output, and files that are written atomically.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use clap::Args;
use stepscope_model::Table;
use stepscope_model::output_file::OutputFile;
use stepscope_view::{ColourChoice, ColumnChoice, Filter, Format, Sort, Style, TableQuery, render_all};

use crate::failure::Failure;

/// How output looks on a terminal.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Display")]
pub struct DisplayArguments {
    /// When to use colours: auto (on a terminal), always or never.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    color: ColourChoice,
    /// Do not use a pager ($PAGER, else less -FRX) for tables longer than the terminal.
    #[arg(long, global = true)]
    no_pager: bool,
}

static DISPLAY: OnceLock<DisplayArguments> = OnceLock::new();

/// Sets how all output looks. The first call counts.
pub fn set_display(display: DisplayArguments) {
    let _ = DISPLAY.set(display);
}

fn display() -> DisplayArguments {
    DISPLAY.get().copied().unwrap_or_default()
}

/// How tables are shown.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct TableArguments {
    /// table (for people), tsv, csv, json, json-compact, markdown, or sarif (findings of `diagnose`, for code hosts).
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    format: Format,
    /// Order the rows by this column, largest first; `COLUMN:asc` for smallest first.
    #[arg(long, value_name = "COLUMN")]
    sort: Option<Sort>,
    /// Rows of each table, counted for each capture or scenario if it has several; 0 for all [default: 30 in tables for
    /// people, all in other formats].
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    /// Only rows that meet this condition: `COLUMN~REGEX`, `COLUMN=VALUE`, `COLUMN>5%`; repeat for "and".
    #[arg(long = "filter", value_name = "CONDITION")]
    filters: Vec<Filter>,
    /// Columns to show, in this order, or `all` [default: in tables for people, those that fit the terminal, or 120 characters
    /// in a file or pipe (COLUMNS sets another width); in other formats, all].
    #[arg(long, value_name = "NAME,...|all")]
    columns: Option<ColumnChoice>,
}

/// Default number of rows of a table for people.
const ROWS_FOR_PEOPLE: usize = 30;

impl TableArguments {
    /// All rows and columns in this format.
    #[cfg(feature = "record")]
    pub fn of(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// Whether the reader is a program.
    pub fn for_programs(&self) -> bool {
        !matches!(self.format, Format::Table | Format::Markdown)
    }

    /// Selects rows of the tables and prints them. The order, filters and limit apply to each table that has the
    /// columns. As JSON, several tables are one object `{"tables": [...]}`.
    pub fn print(&self, tables: Vec<Table>) -> Result<(), Failure> {
        self.print_at_most(ROWS_FOR_PEOPLE, tables)
    }

    /// Prints the tables, with at most `rows_for_people` rows each in tables for people, unless `--limit` is given.
    pub fn print_at_most(&self, rows_for_people: usize, mut tables: Vec<Table>) -> Result<(), Failure> {
        self.query(rows_for_people).apply(&mut tables).map_err(|error| Failure::Usage(error.to_string()))?;
        let stdout = io::stdout();
        let mut style = Style::chosen(&stdout, display().color);
        if self.columns.is_some() && !stdout.is_terminal() {
            style.width = None;
        }
        let mut text = Vec::new();
        render_all(&tables, self.format, &style, &mut text).map_err(Failure::writing("standard output"))?;
        if stdout.is_terminal() && !display().no_pager && !self.for_programs() && page(&text) {
            return Ok(());
        }
        let mut out = stdout.lock();
        out.write_all(&text).and_then(|()| out.flush()).map_err(Failure::writing("standard output"))
    }

    fn query(&self, rows_for_people: usize) -> TableQuery {
        let default_limit = (!self.for_programs()).then_some(rows_for_people);
        let limit = match self.limit {
            Some(0) => None,
            Some(rows) => Some(rows),
            None => default_limit,
        };
        TableQuery { filters: self.filters.clone(), sort: self.sort.clone(), limit, columns: self.columns.clone() }
    }
}

/// Shows text that is longer than the terminal in the pager. False if it is short, or there is no pager.
fn page(text: &[u8]) -> bool {
    let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
    if text.iter().filter(|byte| **byte == b'\n').count() < height {
        return false;
    }
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less -FRX".to_owned());
    let Ok(mut child) = Command::new("sh").arg("-c").arg(&pager).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // The reader may leave the pager before the end.
        let _ = input.write_all(text);
    }
    // The shell reports 127 if there is no such pager.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// Where a subcommand writes output that is not a table.
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, replaced only when it is complete; or a device or FIFO, written into.
    File(PathBuf),
}

impl Target {
    /// `-` and nothing mean standard output.
    pub fn of(path: Option<&Path>) -> Self {
        match path {
            Some(path) if path != Path::new("-") => Target::File(path.to_owned()),
            _ => Target::Stdout,
        }
    }

    /// Lets `write` write there. A file appears under its name only after `write` succeeded. Gives the path of the file;
    /// `None` for what is no regular file.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<Option<&Path>, Failure> {
        let path = match self {
            Target::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                write(&mut out)?;
                out.flush().map_err(Failure::writing("standard output"))?;
                return Ok(None);
            }
            Target::File(path) => path,
        };
        let name = path.display().to_string();
        if path.is_dir() {
            return Err(Failure::Usage(format!("{name}: a folder; name a file to write")));
        }
        let mut out = OutputFile::create(path).map_err(Failure::writing(&name))?;
        write(&mut out)?;
        let is_regular = out.is_regular();
        out.finish().map_err(Failure::writing(&name))?;
        Ok(is_regular.then_some(path))
    }
}
