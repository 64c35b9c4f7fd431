//! The table of `strace -c`.

use stepscope_model::{Capture, Dimension, DimensionStatus, Process, SystemCalls, Thread};

use super::super::lines::Line;
use super::super::text::{number, text};
use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_line};
use super::line::seconds;

/// The table of `strace -c`.
pub struct StraceSummary;

impl InputFormat for StraceSummary {
    fn name(&self) -> &'static str {
        "strace-c"
    }

    fn describe(&self) -> &'static str {
        "Tables of `strace -c` (also `-w`, `-U`): calls, errors and time of each system call."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        let lines: Vec<&[u8]> = head.lines().collect();
        let table = lines.windows(2).position(|pair| Columns::of(pair[0]).is_some() && is_ruler(pair[1]));
        // Behind a log (`strace -C`), the log says more.
        head.is_text() && table.is_some_and(|at| lines[..at].iter().all(|line| super::line::parse(line).is_none()))
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reader = Reader::new();
        let malformed = each_line(input, |line, malformed| reader.line(line, malformed))?;
        reader.finish(malformed, &file)
    }
}

fn is_ruler(line: &[u8]) -> bool {
    line.starts_with(b"---") && line.iter().all(|byte| b"- ".contains(byte))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Share,
    Seconds,
    Mean,
    Shortest,
    Longest,
    Calls,
    Errors,
    Name,
}

/// The columns of a table, in its order (`-U`).
struct Columns(Vec<Column>);

impl Columns {
    fn of(header: &[u8]) -> Option<Self> {
        let mut words = header.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let mut columns = Vec::new();
        while let Some(word) = words.next() {
            columns.push(match word {
                b"%" => {
                    words.next().filter(|word| *word == b"time")?;
                    Column::Share
                }
                b"seconds" => Column::Seconds,
                b"usecs/call" => Column::Mean,
                b"shortest" => Column::Shortest,
                b"longest" => Column::Longest,
                b"calls" => Column::Calls,
                b"errors" => Column::Errors,
                b"syscall" => Column::Name,
                _ => return None,
            });
        }
        (columns.contains(&Column::Calls) && columns.contains(&Column::Name)).then_some(Self(columns))
    }
}

/// A row of a table.
#[derive(Debug, Default)]
struct Row {
    name: String,
    calls: u64,
    errors: u64,
    total_ns: Option<u64>,
    mean_ns: Option<u64>,
    longest_ns: Option<u64>,
}

impl Row {
    fn of(line: &[u8], Columns(columns): &Columns) -> Option<Self> {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect();
        // A call without errors has nothing in their column.
        let has_errors = words.len() == columns.len();
        if !has_errors && words.len() + 1 != columns.len() {
            return None;
        }
        let columns = columns.iter().filter(|&&column| has_errors || column != Column::Errors);
        let mut row = Self::default();
        for (column, word) in columns.zip(words) {
            match column {
                Column::Share | Column::Shortest => drop(seconds(word)?),
                Column::Seconds => row.total_ns = Some(seconds(word)?),
                Column::Mean => row.mean_ns = Some(number(word)?.saturating_mul(1000)),
                Column::Longest => row.longest_ns = Some(seconds(word)?),
                Column::Calls => row.calls = number(word)?,
                Column::Errors => row.errors = number(word)?,
                Column::Name => row.name = text(word).into_owned(),
            }
        }
        Some(row)
    }

    fn total_ns(&self) -> Option<u64> {
        self.total_ns.or_else(|| Some(self.mean_ns?.saturating_mul(self.calls)))
    }
}

struct Reader {
    capture: Capture,
    columns: Option<Columns>,
    rows: Vec<Row>,
    /// The table's own sum.
    total: Option<Row>,
}

impl Reader {
    fn new() -> Self {
        Self { capture: Capture::default(), columns: None, rows: Vec::new(), total: None }
    }

    fn line(&mut self, line: Line<'_>, malformed: &mut Malformed) {
        // The program's own output may come before the table.
        if line.bytes.trim_ascii().is_empty() || is_ruler(line.bytes) || self.total.is_some() {
            return;
        }
        let Some(columns) = &self.columns else {
            self.columns = Columns::of(line.bytes);
            return;
        };
        match Row::of(line.bytes, columns) {
            _ if !line.ended => malformed.add(line.number, "the data end within it"),
            Some(row) if row.name == "total" => self.total = Some(row),
            Some(row) => self.rows.push(row),
            None => malformed.add(line.number, "it is no row of the table"),
        }
    }

    fn finish(mut self, malformed: Malformed, file: &str) -> Result<Capture, ImportError> {
        let capture = &mut self.capture;
        let process = Some(capture.add_process(Process::default()));
        let thread = capture.add_thread(Thread { process, ..Thread::default() });
        let calls: u64 = self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.calls));
        let has_longest = self.rows.iter().any(|row| row.longest_ns.is_some());
        for row in &self.rows {
            let total_ns = row.total_ns().unwrap_or(0);
            let mean_ns = total_ns.checked_div(row.calls).unwrap_or(0);
            let call = capture.intern_text(&row.name);
            capture.system_calls.push(SystemCalls {
                start_ns: 0,
                end_ns: 0,
                thread,
                call,
                stack: None,
                file: None,
                count: row.calls,
                errors: row.errors,
                total_ns,
                longest_ns: row.longest_ns.unwrap_or(mean_ns),
                bytes: 0,
                last_ns: None,
            });
        }
        let info = &mut capture.info;
        let mut lacks = vec!["strace -c does not record files, stacks, threads and bytes.".to_owned()];
        if !has_longest {
            lacks.push(
                "The longest call is not in the table; the mean is shown (`-U` with `max-time` records it).".into(),
            );
        }
        info.notes.push(format!(
            "{file}: times are system CPU time, or elapsed time if `strace -w` wrote them; the table does not say which."
        ));
        match &self.total {
            None => lacks.push("The table has no sum at its end: it may be truncated.".to_owned()),
            Some(total) if total.calls != calls => {
                lacks.push(format!("The table's rows have {calls} calls, its sum {}.", total.calls));
            }
            Some(_) => {}
        }
        info.dimensions.insert(Dimension::Syscalls, DimensionStatus::Partial { lacks });
        malformed.settle(capture, file, StraceSummary.name(), !self.rows.is_empty())?;
        Ok(self.capture)
    }
}
