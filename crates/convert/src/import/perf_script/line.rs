//! The grammar of one line of `perf script`.
//!
//! ```text
//! header = [COMM] [PID/TID | TID] ["[" CPU "]"] {FLAG} [TIME ":"] [PERIOD] [EVENT ":"] [rest]
//! frame  = ADDRESS [SYMBOL ["+0x" OFFSET]] ["(" MODULE ["+0x" OFFSET] ")"] ["(inlined)"]
//! source = FILE ":" LINE ["(inlined)"]
//! ```
//!
//! Fields are in this order for any `-F`, and each may be missing. `COMM` is the text before the first number from
//! which the rest parses as fields. `SYMBOL` is any text, including spaces and parentheses; so is `MODULE` if its
//! parentheses match.

use super::super::text::number;

/// The fields of a header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// Name of the thread; empty if not printed.
    pub comm: &'a [u8],
    /// Its ids.
    pub task: Task,
    /// CPU.
    pub cpu: Option<u32>,
    /// Time.
    pub time_ns: Option<u64>,
    /// Period.
    pub period: Option<u64>,
    /// Event, with its modifiers.
    pub event: Option<&'a [u8]>,
    /// Text after the fields: the frame of a sample without a call chain, or the text of a tracepoint.
    pub rest: &'a [u8],
}

/// The printed ids of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Process id.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
}

/// A `PERF_RECORD_...` line, which is not a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Number of lost records.
    pub lost: u64,
}

impl<'a> Header<'a> {
    /// Whether it has a field that only `perf script` prints.
    pub fn is_certain(&self) -> bool {
        self.time_ns.is_some() || (self.event.is_some() && self.task.tid.is_some())
    }

    /// The record of the line, if it is not of a sample.
    pub fn record(&self) -> Option<Record> {
        let (name, text) = match self.event {
            Some(event) => (event, self.rest),
            None => split_token(self.rest),
        };
        if !name.starts_with(b"PERF_RECORD_") {
            return None;
        }
        let lost = match name.strip_prefix(b"PERF_RECORD_LOST") {
            Some(_) => text.split(|&byte| byte == b' ').find_map(number).unwrap_or(0),
            None => 0,
        };
        Some(Record { lost })
    }

    /// The frame at the end of the header, for a sample without a call chain.
    pub fn frame(&self) -> Option<FrameLine<'a>> {
        let is_tracepoint = self.event.is_some_and(is_tracepoint);
        if is_tracepoint { None } else { frame(self.rest) }
    }
}

/// Whether the name is `group:name`, with more after the colon than modifiers.
fn is_tracepoint(event: &[u8]) -> bool {
    let colon = event.iter().position(|&byte| byte == b':');
    colon.is_some_and(|at| event.len() - at > 5) && !event.contains(&b'/')
}

/// Whether a word of the line ends in a colon, as times and events do. A certain header has one.
pub fn ends_a_field(line: &[u8]) -> bool {
    memchr::memchr_iter(b':', line).any(|at| line.get(at + 1).is_none_or(u8::is_ascii_whitespace))
}

/// Parses a header. Of several readings the first with a time is used: names contain anything, but hardly a time.
pub fn header(line: &[u8]) -> Option<Header<'_>> {
    let line = line.trim_ascii_end();
    let mut without_time = None;
    let mut at = 0;
    while at < line.len() {
        at += line[at..].iter().take_while(|&&byte| byte == b' ').count();
        let (token, rest) = split_token(&line[at..]);
        // Ids are printed five wide, periods ten.
        let is_period = line[..at].trim_ascii().is_empty() && at + token.len() >= 10 && !token.contains(&b'/');
        if let Some(task) = task(token).filter(|_| !is_period)
            && let Some(fields) = fields(rest)
        {
            let header = Header { comm: line[..at].trim_ascii(), task, ..fields };
            if header.time_ns.is_some() {
                return Some(header);
            }
            without_time = without_time.or(Some(header));
        }
        at += token.len().max(1);
    }
    // Without a thread: `-F time,event,...`.
    without_time.or_else(|| fields(line).filter(|fields| fields.time_ns.is_some() || fields.event.is_some()))
}

/// Parses `PID/TID` or `TID`; perf prints -1 for unknown ids.
fn task(token: &[u8]) -> Option<Task> {
    let id = |token: &[u8]| match token {
        b"-1" => Some(None),
        _ => u32::try_from(number(token)?).ok().map(Some),
    };
    match token.iter().position(|&byte| byte == b'/') {
        Some(slash) => Some(Task { pid: id(&token[..slash])?, tid: id(&token[slash + 1..])? }),
        None => Some(Task { pid: None, tid: id(token)? }),
    }
}

/// Parses the fields after the thread. `None` if some text is not a field.
fn fields(text: &[u8]) -> Option<Header<'_>> {
    let mut header = Header { rest: text.trim_ascii_start(), ..Header::default() };
    let (token, rest) = split_token(header.rest);
    if let Some(cpu) = token.strip_prefix(b"[").and_then(|token| token.strip_suffix(b"]")).and_then(number) {
        header.cpu = u32::try_from(cpu).ok();
        header.rest = rest;
    }
    if let Some((time_ns, rest)) = time_after_flags(header.rest) {
        header.time_ns = Some(time_ns);
        header.rest = rest;
    }
    let (token, rest) = split_token(header.rest);
    if let Some(period) = number(token)
        && let Some((event, rest)) = event(rest)
    {
        header.period = Some(period);
        header.event = Some(event);
        header.rest = rest;
    } else if let Some((event, rest)) = event(header.rest) {
        header.event = Some(event);
        header.rest = rest;
    }
    (header.time_ns.is_some() || header.event.is_some() || header.rest.is_empty()).then_some(header)
}

/// Parses the time and the short flags before it (`-F +misc`, latency format).
fn time_after_flags(text: &[u8]) -> Option<(u64, &[u8])> {
    const FLAGS: usize = 2;
    const LONGEST_FLAG: usize = 8;
    let mut text = text;
    for _ in 0..=FLAGS {
        let (token, rest) = split_token(text);
        if let Some(time_ns) = token.strip_suffix(b":").and_then(time) {
            return Some((time_ns, rest));
        }
        let is_flag = matches!(token.len(), 1..=LONGEST_FLAG) && !token.ends_with(b":") && task(token).is_none();
        if !is_flag {
            return None;
        }
        text = rest;
    }
    None
}

/// Parses `SECONDS.FRACTION` in micro- or nanoseconds, to ns.
fn time(token: &[u8]) -> Option<u64> {
    const DIGITS: usize = 9;
    let dot = token.iter().position(|&byte| byte == b'.')?;
    let (seconds, fraction) = (number(&token[..dot])?, &token[dot + 1..]);
    if fraction.len() > DIGITS {
        return None;
    }
    let fraction = number(fraction)? * 10u64.pow((DIGITS - fraction.len()) as u32);
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// The event's name, which ends in a colon.
fn event(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (token, rest) = split_token(text);
    let event = token.strip_suffix(b":").filter(|event| !event.is_empty())?;
    Some((event, rest))
}

/// Splits at the first run of spaces.
fn split_token(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// A frame's address and the rest of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLine<'a> {
    /// Whether the address is in the upper half of the address space, the kernel's on 64-bit machines.
    pub in_kernel_space: bool,
    /// Symbol, offset, module.
    pub text: &'a [u8],
}

/// Parses a frame.
pub fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let (address, text) = split_token(line);
    let is_address = matches!(address.len(), 1..=16) && address.iter().all(u8::is_ascii_hexdigit);
    let in_kernel_space = address.len() == 16 && address.starts_with(b"ffff");
    is_address.then_some(FrameLine { in_kernel_space, text: text.trim_ascii_end() })
}

/// The parts of a frame's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameText<'a> {
    /// The symbol without offset; empty if not printed.
    pub function: &'a [u8],
    /// The module, without the parentheses.
    pub module: Option<&'a [u8]>,
    /// Whether it is inlined into the next frame of the listing.
    pub inlined: bool,
}

/// Parses the text after a frame's address.
pub fn frame_text(text: &[u8]) -> FrameText<'_> {
    let (text, inlined) = strip_inlined(text);
    let (symbol, module) = split_module(text);
    FrameText { function: strip_offset(symbol), module: module.map(clean_module), inlined }
}

fn strip_inlined(text: &[u8]) -> (&[u8], bool) {
    match text.strip_suffix(b"(inlined)") {
        Some(text) => (text.trim_ascii_end(), true),
        None => (text, false),
    }
}

/// Splits off the last parenthesis. It holds the module if a space or nothing is before it.
fn split_module(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut depth = 0;
    if !text.ends_with(b")") {
        return (text, None);
    }
    for (at, &byte) in text.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let is_apart = at == 0 || text[at - 1] == b' ';
            let module = &text[at + 1..text.len() - 1];
            return if is_apart { (text[..at].trim_ascii_end(), Some(module)) } else { (text, None) };
        }
    }
    (text, None)
}

/// Removes the offset that `-F +dsoff` adds, and the mark of deleted files.
fn clean_module(module: &[u8]) -> &[u8] {
    let module = strip_offset(module);
    module.strip_suffix(b" (deleted)").unwrap_or(module)
}

fn strip_offset(symbol: &[u8]) -> &[u8] {
    let digits = symbol.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (before, offset) = symbol.split_at(symbol.len() - digits);
    if offset.is_empty() { symbol } else { before.strip_suffix(b"+0x").unwrap_or(symbol) }
}

/// A source line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// The file.
    pub file: &'a [u8],
    /// The line in it.
    pub line: u32,
    /// perf prints the mark of inlined frames after the source line.
    pub inlined: bool,
}

/// Parses the line that `-F +srcline` prints below a frame. perf's text for unknown lines is rejected.
pub fn source(text: &[u8]) -> Option<Source<'_>> {
    let (text, inlined) = strip_inlined(text.trim_ascii());
    let colon = memchr::memrchr(b':', text)?;
    let line = u32::try_from(number(&text[colon + 1..])?).ok()?;
    (colon > 0).then_some(Source { file: &text[..colon], line, inlined })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a header, as `comm|pid/tid|[cpu]|time_ns|period|event|rest`.
    fn read(line: &str) -> String {
        let Some(header) = header(line.as_bytes()) else { return "no header".to_owned() };
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let id = |id: Option<u32>| number(id.map(u64::from));
        format!(
            "{}|{}/{}|{}|{}|{}|{}|{}",
            show(header.comm),
            id(header.task.pid),
            id(header.task.tid),
            id(header.cpu),
            number(header.time_ns),
            number(header.period),
            header.event.map_or("-".to_owned(), show),
            show(header.rest)
        )
    }

    #[test]
    fn headers_are_read_with_any_of_their_fields() {
        for (line, expected) in [
            ("sim  4671  2712.229643:          1 page-faults: ", "sim|-/4671|-|2712229643000|1|page-faults|"),
            ("sim  4671  2712.229643596:     250000   cpu-clock: ", "sim|-/4671|-|2712229643596|250000|cpu-clock|"),
            ("sim 24636/25607 [003] 94.5: cycles: ", "sim|24636/25607|3|94500000000|-|cycles|"),
            ("sim 4671 [000] U 1.000000: 5 cycles:uppp: ", "sim|-/4671|0|1000000000|5|cycles:uppp|"),
            ("sim  4671 ", "sim|-/4671|-|-|-|-|"),
            ("sim  4671 cycles: ", "sim|-/4671|-|-|-|cycles|"),
            ("    250000   cpu-clock: ", "|-/-|-|-|250000|cpu-clock|"),
            (" 4671 cpu-clock: ", "|-/4671|-|-|-|cpu-clock|"),
            (" 2712.229643: page-faults: ", "|-/-|-|2712229643000|-|page-faults|"),
            ("   4671/4671  2712.229643:  7 cpu_core/cycles/u: ", "|4671/4671|-|2712229643000|7|cpu_core/cycles/u|"),
            (
                "   sim  4696  2719.157300:     250000 cpu-clock:pppH:      7fe850928316 f+0x1 (/lib/ld.so)",
                "sim|-/4696|-|2719157300000|250000|cpu-clock:pppH|7fe850928316 f+0x1 (/lib/ld.so)",
            ),
            ("   sim  46/47   2719.157300:      401234 main", "sim|46/47|-|2719157300000|-|-|401234 main"),
            (
                "swapper 0 [001] 5.0: sched:sched_switch: prev_comm=a b prev_pid=3 ==> next_comm=c",
                "swapper|-/0|1|5000000000|-|sched:sched_switch|prev_comm=a b prev_pid=3 ==> next_comm=c",
            ),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn thread_names_may_contain_anything() {
        for (line, expected) in [
            ("V8 Worker 12 24636/25607 [000] 9.5: cycles: ", "V8 Worker 12|24636/25607|0|9500000000|-|cycles|"),
            ("kworker/0:1-eve 77 [000] 9.5: 3 cycles: ", "kworker/0:1-eve|-/77|0|9500000000|3|cycles|"),
            ("a 1 [002] b: 77 [000] 9.5: 3 cycles: ", "a 1 [002] b:|-/77|0|9500000000|3|cycles|"),
            ("12 34 56 9.5: 3 cycles: ", "12 34|-/56|-|9500000000|3|cycles|"),
            (":-1    -1 9.5: 3 cycles: ", ":-1|-/-|-|9500000000|3|cycles|"),
            ("(sd-pam) 9 9.5: 3 cycles: ", "(sd-pam)|-/9|-|9500000000|3|cycles|"),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_headers() {
        for line in
            ["main;World::Run;operator new 3 x", "hello", "  main.cpp:42", "[unknown]", "  [k][ffffffff8175336a]"]
        {
            assert_eq!(read(line), "no header", "{line}");
        }
    }

    #[test]
    fn other_records_are_recognised_and_losses_counted() {
        let lost = |line: &str| header(line.as_bytes()).unwrap().record().map(|record| record.lost);
        assert_eq!(lost("sim  4732  2722.636915: PERF_RECORD_COMM exec: t prog:4732/4732"), Some(0));
        assert_eq!(lost("perf-exec 4732 0.000000: PERF_RECORD_COMM: perf-exec:4732/4732"), Some(0));
        assert_eq!(lost("sim  4732  2722.639460: PERF_RECORD_FORK(4732:4734):(4732:4732)"), Some(0));
        assert_eq!(lost("sim  4732  2722.639460: PERF_RECORD_LOST lost 17"), Some(17));
        assert_eq!(lost("sim  4732  2722.639460: 1 cs: "), None);
    }

    /// A frame as `function|module|inlined`.
    fn read_frame(line: &str) -> String {
        let Some(frame) = frame(line.as_bytes()) else { return "no frame".to_owned() };
        let text = frame_text(frame.text);
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}|{}|{}", show(text.function), text.module.map_or("-".to_owned(), show), text.inlined)
    }

    #[test]
    fn frames_may_contain_any_name() {
        for (line, expected) in [
            ("\tffffffff8175336a elf_load+0x28a ([kernel.kallsyms])", "elf_load|[kernel.kallsyms]|false"),
            ("\t    7fb1a3ef2ad7 [unknown] ([unknown])", "[unknown]|[unknown]|false"),
            ("\t           1a303 dl_platform_init+0x33 (inlined)", "dl_platform_init|-|true"),
            ("\t 55ba operator()(int) const+0x2 (/usr/lib/a b.so)", "operator()(int) const|/usr/lib/a b.so|false"),
            (
                "\t 55ba std::function<void (int)>::operator() (/lib/x)",
                "std::function<void (int)>::operator()|/lib/x|false",
            ),
            ("\t 55ba f (/tmp/sim (deleted))", "f|/tmp/sim|false"),
            ("\t 55ba f+0x1 (/tmp/sim+0x1234)", "f|/tmp/sim|false"),
            ("\t 55ba f(int)", "f(int)|-|false"),
            ("\t 55ba f", "f|-|false"),
            ("\t 55ba  (/lib/libc-2.15.so)", "|/lib/libc-2.15.so|false"),
            ("\t 55ba", "|-|false"),
            ("\t 55ba a+0xg (x)", "a+0xg|x|false"),
            ("\t                0 [unknown] ([unknown])", "[unknown]|[unknown]|false"),
            ("\tgarbage f (x)", "no frame"),
            ("\t00000000000000000 f (x)", "no frame"),
        ] {
            assert_eq!(read_frame(line), expected, "{line}");
        }
    }

    #[test]
    fn the_upper_half_of_the_address_space_is_the_kernel() {
        let high = |line: &str| frame(line.as_bytes()).unwrap().in_kernel_space;
        assert!(high("\tffffffff8175336a f ([k])"));
        assert!(high("\tffff800010081234 f ([k])"));
        assert!(!high("\tffffffff f ([k])"));
        assert!(!high("\t7fffffff8175336a f ([k])"));
    }

    #[test]
    fn source_lines_are_read_and_placeholders_rejected() {
        assert_eq!(source(b"  t.cpp:12"), Some(Source { file: b"t.cpp", line: 12, inlined: false }));
        assert_eq!(source(b"t a.h:1204 (inlined)"), Some(Source { file: b"t a.h", line: 1204, inlined: true }));
        assert_eq!(source(b"[kernel.kallsyms][ffffffff8175336a]"), None);
        assert_eq!(source(b"libc.so.6[1098d9]"), None);
    }
}
