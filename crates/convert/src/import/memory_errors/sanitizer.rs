//! Logs of sanitizers: AddressSanitizer with LeakSanitizer, UndefinedBehaviorSanitizer, ThreadSanitizer, MemorySanitizer.
//!
//! A report is a headline, then stacks, each below a title. Frames are `#N 0xADDRESS in FUNCTION FILE:LINE`, ThreadSanitizer's
//! `#N FUNCTION FILE:LINE (MODULE+0xOFFSET)`. The first stack is where it happened. UndefinedBehaviorSanitizer writes one line,
//! `FILE:LINE:COLUMN: runtime error: MESSAGE`, and a stack if `print_stacktrace=1`.

use stepscope_model::Capture;

use super::super::text::text;
use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, each_line};
use super::{Report, ReportFrame, capture_of, kind};

/// Logs of sanitizers.
pub struct Sanitizer;

impl InputFormat for Sanitizer {
    fn name(&self) -> &'static str {
        "sanitizer"
    }

    fn describe(&self) -> &'static str {
        "Logs of AddressSanitizer, LeakSanitizer, UBSan, ThreadSanitizer and MemorySanitizer (`log_path=FILE`)."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        head.is_text() && head.lines().any(|line| headline(&text(line)).is_some())
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        let file = input.name().to_owned();
        let mut reports = Vec::new();
        let malformed = read(input, &mut reports)?;
        let mut capture = capture_of(&reports);
        malformed.settle(&mut capture, &file, self.name(), !reports.is_empty())?;
        Ok(capture)
    }
}

/// Reads all reports. One that is cut has the stacks before the cut.
pub(super) fn read(input: Input<'_>, reports: &mut Vec<Report>) -> Result<Malformed, ImportError> {
    let mut reader = Reader::default();
    let mut offset = 0;
    let malformed = each_line(input, |line, malformed| {
        offset += line.bytes.len() as u64 + 1;
        if !line.ended {
            malformed.add(line.number, "the data end within it");
        }
        reader.line(&text(line.bytes), offset, reports);
    })?;
    reader.end(reports);
    Ok(malformed)
}

/// The start of a report.
struct Headline {
    tool: &'static str,
    kind: String,
    message: String,
    pid: Option<u32>,
    /// UBSan's line has the place itself.
    frame: Option<ReportFrame>,
}

/// A report without its stacks; `None` if the line starts none.
fn headline(line: &str) -> Option<Headline> {
    if let Some((place, message)) = line.split_once(": runtime error: ") {
        return Some(Headline {
            tool: "ubsan",
            kind: kind::of_undefined_behaviour(message),
            message: message.to_owned(),
            pid: None,
            frame: Some(place_frame(place)),
        });
    }
    let tools = [
        ("AddressSanitizer: ", "asan"),
        ("ThreadSanitizer: ", "tsan"),
        ("MemorySanitizer: ", "msan"),
        ("LeakSanitizer: ", "lsan"),
    ];
    let (mark, tool) = tools.into_iter().find(|(mark, _)| line.contains(mark))?;
    let (before, message) = line.split_once(mark)?;
    let (before, pid) = match before.strip_prefix("==").and_then(|rest| rest.split_once("==")) {
        Some((pid, rest)) => (rest, pid.parse().ok()),
        None => (before, None),
    };
    if !matches!(before, "ERROR: " | "WARNING: " | "FATAL: ") {
        return None;
    }
    let in_message = |mark: &str| message.split_once(mark).and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    let pid = pid.or_else(|| in_message("(pid="));
    // `heap-use-after-free on address ...`, `data race (pid=1)`, `attempting double-free on 0x...`.
    let end = [" on ", " (", ": "].iter().filter_map(|mark| message.find(mark)).min().unwrap_or(message.len());
    let kind = kind::of_sanitizer(&message[..end]);
    Some(Headline { tool, kind, message: message.to_owned(), pid, frame: None })
}

/// `FILE:LINE:COLUMN`, `FILE:LINE` or `FILE`.
fn place_frame(place: &str) -> ReportFrame {
    let (mut file, mut line) = (place, None);
    for _ in 0..2 {
        match file.rsplit_once(':').and_then(|(file, number)| Some((file, number.parse::<u32>().ok()?))) {
            Some((rest, number)) => (file, line) = (rest, Some(number)),
            None => break,
        }
    }
    let file = (!file.is_empty() && file != "<null>").then(|| file.to_owned());
    ReportFrame { line: line.filter(|_| file.is_some()), file, ..ReportFrame::default() }
}

/// `#0 0x55d in leak() /src/a.cc:19:5`, `#1 count() /src/a.cc:29 (tsan+0x24f7)`, `#2 0x7f (/lib/libc.so.6+0x27) (BuildId: ...)`
fn frame(line: &str) -> Option<ReportFrame> {
    let rest = line.trim_start().strip_prefix('#')?;
    let (number, mut rest) = rest.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let mut address = None;
    if let Some(hexadecimal) = rest.trim_start().strip_prefix("0x") {
        let (digits, after) = hexadecimal.split_once(' ').unwrap_or((hexadecimal, ""));
        address = u64::from_str_radix(digits, 16).ok();
        rest = after.trim_start();
        rest = rest.strip_prefix("in ").unwrap_or(rest);
    }
    let rest = rest.split(" (BuildId:").next().unwrap_or(rest).trim();
    // The module is the last thing, if it is there.
    let module = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
    let module = module.and_then(|(before, inside)| Some((before, inside.rsplit_once("+0x")?)));
    let (rest, module) = match module {
        Some((before, (path, offset))) => {
            address = u64::from_str_radix(offset, 16).ok();
            (before.trim_end(), Some(path.to_owned()))
        }
        None => (rest, None),
    };
    // A place has no space, a function may.
    let (function, place) = match rest.rsplit_once(' ') {
        Some((function, place)) if place == "<null>" || place.contains('/') || is_place(place) => (function, place),
        _ => (rest, ""),
    };
    let function = if function == "<null>" { "" } else { function };
    Some(ReportFrame { function: function.to_owned(), module, address, ..place_frame(place) })
}

/// Whether a word is `FILE:LINE`.
fn is_place(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok())
}

#[derive(Default)]
struct Reader {
    report: Option<Report>,
    /// What the stack that is being read is.
    role: Role,
    /// The last title.
    title: String,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Role {
    #[default]
    Place,
    Allocated,
    Other,
    /// Stacks of no column, such as where a thread was created.
    Ignored,
}

impl Reader {
    fn line(&mut self, line: &str, offset: u64, reports: &mut Vec<Report>) {
        if let Some(frame) = frame(line) {
            self.add(frame, offset);
            return;
        }
        if let Some(head) = headline(line) {
            self.end(reports);
            let stack = head.frame.into_iter().collect();
            let Headline { tool, kind, message, pid, .. } = head;
            self.role = Role::Place;
            self.report = Some(Report { tool, kind, message, pid, stack, count: 1, end: offset, ..Report::default() });
            return;
        }
        let title = line.trim();
        if title.is_empty() || self.report.is_none() {
            return;
        }
        if title.starts_with("SUMMARY:") || title.starts_with("====") {
            self.end(reports);
        } else if let Some(leak) = leak(title) {
            self.leak(leak, offset, reports);
        } else {
            self.role = role(title, self.report.as_ref().is_some_and(|report| report.stack.is_empty()));
            self.title = title.to_owned();
        }
    }

    fn add(&mut self, frame: ReportFrame, offset: u64) {
        let Some(report) = &mut self.report else { return };
        report.end = offset;
        match self.role {
            // The place of UBSan's line again, with the function.
            Role::Place if report.tool == "ubsan" && report.stack.len() == 1 && report.stack[0].function.is_empty() => {
                report.stack = vec![frame];
            }
            Role::Place => report.stack.push(frame),
            Role::Allocated => report.allocated.push(frame),
            Role::Other => report.other.push(frame),
            Role::Ignored => {}
        }
    }

    /// A leak is a report of its own, below the headline of all.
    fn leak(&mut self, leak: Leak, offset: u64, reports: &mut Vec<Report>) {
        let pid = self.report.as_ref().and_then(|report| report.pid);
        self.end(reports);
        let Leak { kind, message, blocks, bytes } = leak;
        self.role = Role::Place;
        self.report = Some(Report {
            tool: "lsan",
            kind,
            message,
            pid,
            count: blocks,
            bytes: Some(bytes),
            end: offset,
            ..Report::default()
        });
    }

    fn end(&mut self, reports: &mut Vec<Report>) {
        let Some(mut report) = self.report.take() else { return };
        // `detected memory leaks` is only the headline of leaks.
        if report.tool == "lsan" && report.bytes.is_none() {
            return;
        }
        if report.bytes.is_some() {
            report.allocated.clone_from(&report.stack);
        }
        reports.push(report);
    }
}

struct Leak {
    kind: String,
    message: String,
    blocks: u64,
    bytes: u64,
}

/// `Direct leak of 99 byte(s) in 3 object(s) allocated from:`
fn leak(title: &str) -> Option<Leak> {
    let rest = title.strip_prefix("Direct leak of ").or_else(|| title.strip_prefix("Indirect leak of "))?;
    let (bytes, rest) = rest.split_once(" byte(s) in ")?;
    let blocks = rest.split_once(" object(s)")?.0;
    let message = title.trim_end_matches(':').to_owned();
    Some(Leak { kind: "leak".to_owned(), message, blocks: blocks.parse().ok()?, bytes: bytes.parse().ok()? })
}

fn role(title: &str, is_first: bool) -> Role {
    let has = |text: &str| title.contains(text);
    match () {
        () if has("previously allocated") || has("allocated by") || has("allocated from") || has("was created by") => {
            if has("Thread ") || has("Mutex ") {
                Role::Ignored
            } else {
                Role::Allocated
            }
        }
        () if has("Thread T") || has("Mutex M") || title.starts_with("Location is global") => Role::Ignored,
        () if has("freed by") || title.starts_with("Previous") || has("previous") => Role::Other,
        () if is_first => Role::Place,
        () if title.starts_with("Read of") || title.starts_with("Write of") || has("READ of") || has("WRITE of") => {
            Role::Place
        }
        () => Role::Ignored,
    }
}
