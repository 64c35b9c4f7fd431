//! A line of ftrace's text: `TASK-TID (TGID) [CPU] FLAGS TIME: EVENT: FIELDS`.

use crate::import::text::number;

/// An event, as a line draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLine<'a> {
    pub comm: &'a [u8],
    pub tid: u32,
    /// The process, where the kernel recorded it (`record-tgid`).
    pub pid: Option<u32>,
    pub cpu: u32,
    pub in_interrupt: bool,
    pub time_ns: u64,
    /// Empty for a call of the function tracer.
    pub event: &'a [u8],
    pub fields: &'a [u8],
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLine<'a> {
    Event(EventLine<'a>),
    /// Events of a CPU were lost; `None` if their number is unknown.
    Lost {
        cpu: u32,
        events: Option<u64>,
    },
    /// A header, a comment, or nothing.
    Remark,
}

/// Reads a line. `None` for other lines.
pub fn parse(line: &[u8]) -> Option<TextLine<'_>> {
    let trimmed = line.trim_ascii();
    if trimmed.is_empty() || trimmed.starts_with(b"#") || is_header(trimmed) {
        return Some(TextLine::Remark);
    }
    if let Some(lost) = lost(trimmed) {
        return Some(lost);
    }
    event(line).map(TextLine::Event)
}

/// `cpus=8` and `version = 7` of `trace-cmd report`, `CPU 3 is empty`.
fn is_header(line: &[u8]) -> bool {
    let is_value = |name: &[u8]| line.strip_prefix(name).is_some_and(|value| number(value.trim_ascii()).is_some());
    let is_empty = line.to_ascii_lowercase().starts_with(b"cpu ") && line.ends_with(b" is empty");
    is_value(b"cpus=") || is_value(b"version =") || is_empty || line.starts_with(b"tracer: ") || line == b"TRACE:"
}

/// `CPU:2 [LOST 4 EVENTS]` of the kernel, `CPU:2 [4 EVENTS DROPPED]` and `CPU:2 [EVENTS DROPPED]` of trace-cmd.
fn lost(line: &[u8]) -> Option<TextLine<'_>> {
    let rest = line.strip_prefix(b"CPU:")?;
    let at = memchr::memchr(b' ', rest)?;
    let cpu = small(&rest[..at])?;
    let inner = rest[at..].trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let words: Vec<&[u8]> = inner.split(|&byte| byte == b' ').collect();
    let events = match words[..] {
        [b"LOST", count, b"EVENTS"] | [count, b"EVENTS", b"DROPPED"] => Some(number(count)?),
        [b"LOST", b"EVENTS"] | [b"EVENTS", b"DROPPED"] => None,
        _ => return None,
    };
    Some(TextLine::Lost { cpu, events })
}

fn event(line: &[u8]) -> Option<EventLine<'_>> {
    // The name may have brackets, so the CPU is where all around it fits.
    let in_columns = memchr::memchr_iter(b'[', line).find_map(|at| {
        let end = at + memchr::memchr(b']', &line[at..])?;
        let cpu = small(line[at + 1..end].trim_ascii())?;
        let (task, pid) = without_tgid(line[..at].trim_ascii());
        let (comm, tid) = task_of(task)?;
        let rest = line[end + 1..].trim_ascii_start();
        let (flags, rest) = match timed(rest) {
            Some(_) => (&b""[..], rest),
            None => word(rest),
        };
        let (time_ns, rest) = timed(rest)?;
        Some((comm, tid, pid, cpu, flags, time_ns, rest))
    });
    let (comm, tid, pid, cpu, flags, time_ns, rest) = in_columns.or_else(|| with_latency(line))?;
    let (event, fields) = named(rest);
    Some(EventLine { comm, tid, pid, cpu, in_interrupt: in_interrupt(flags), time_ns, event, fields })
}

type Parts<'a> = (&'a [u8], u32, Option<u32>, u32, &'a [u8], u64, &'a [u8]);

/// With the option `latency-format`, and `trace-cmd report -l`: `TASK-TID CPUFLAGS TIME: EVENT`, such as `bash-12 0d..3 85.12: x`.
fn with_latency(line: &[u8]) -> Option<Parts<'_>> {
    memchr::memchr_iter(b'-', line).find_map(|at| {
        let comm = line[..at].trim_ascii();
        let (tid, rest) = word(&line[at + 1..]);
        let tid = small(tid).filter(|_| !comm.is_empty())?;
        let (column, rest) = word(rest.trim_ascii_start());
        let digits = column.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (cpu, flags) = column.split_at(digits);
        let (time_ns, rest) = timed(rest.trim_ascii_start())?;
        Some((comm, tid, None, small(cpu)?, flags, time_ns, rest))
    })
}

fn small(digits: &[u8]) -> Option<u32> {
    number(digits).and_then(|number| u32::try_from(number).ok())
}

/// The first word, and what follows its space.
fn word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len());
    (&bytes[..end], bytes[end..].trim_ascii_start())
}

/// `bash-12 (   10)`: the process is not known if it is `(-----)`.
fn without_tgid(task: &[u8]) -> (&[u8], Option<u32>) {
    let inner = task.strip_suffix(b")").and_then(|task| Some((task, memchr::memrchr(b'(', task)?)));
    match inner {
        Some((inside, at)) => (task[..at].trim_ascii(), small(inside[at + 1..].trim_ascii())),
        None => (task, None),
    }
}

/// `COMM-TID`; the name may have spaces and dashes.
fn task_of(task: &[u8]) -> Option<(&[u8], u32)> {
    let at = memchr::memrchr(b'-', task)?;
    Some((&task[..at], small(&task[at + 1..])?))
}

/// `85954.570844:` in seconds, or the count of a clock without a unit, such as `85954570844:`.
fn timed(rest: &[u8]) -> Option<(u64, &[u8])> {
    let at = memchr::memchr(b':', rest.get(..rest.len().min(40))?)?;
    let (time, after) = (&rest[..at], &rest[at + 1..]);
    let Some(dot) = memchr::memchr(b'.', time) else {
        return Some((number(time)?, after));
    };
    let (seconds, decimals) = (number(&time[..dot])?, &time[dot + 1..]);
    if decimals.len() > 9 {
        return None;
    }
    let fraction = number(decimals)?.checked_mul(10u64.pow(9 - decimals.len() as u32))?;
    Some((seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?, after))
}

/// `EVENT: FIELDS`. A call of the function tracer has no name.
fn named(rest: &[u8]) -> (&[u8], &[u8]) {
    let rest = rest.trim_ascii();
    let end =
        rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"_/".contains(byte))).unwrap_or(rest.len());
    match rest.get(end) {
        Some(b':') => (&rest[..end], rest[end + 1..].trim_ascii_start()),
        _ => (b"", rest),
    }
}

/// The third flag: `h` and `H` in a hard interrupt, `s` in a soft one, `z` and `Z` in one that cannot be masked.
fn in_interrupt(flags: &[u8]) -> bool {
    flags.get(2).is_some_and(|flag| b"hHszZ".contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> EventLine<'_> {
        match parse(line.as_bytes()) {
            Some(TextLine::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    fn shown(line: &str) -> String {
        let event = read(line);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let irq = if event.in_interrupt { " irq" } else { "" };
        let pid = event.pid.map_or(String::new(), |pid| format!(" of {pid}"));
        let (comm, name, fields) = (text(event.comm), text(event.event), text(event.fields));
        format!("{comm}/{}{pid} cpu {}{irq} {} {name}|{fields}", event.tid, event.cpu, event.time_ns)
    }

    #[test]
    fn lines_of_the_kernel_and_of_trace_cmd_are_read() {
        for (line, expected) in [
            (
                "            bash-26662   [000] d..2. 85954.570844: sched_switch: prev_comm=a",
                "bash/26662 cpu 0 85954570844000 sched_switch|prev_comm=a",
            ),
            ("          <idle>-0       [011] dNh4. 5.000001: x: y", "<idle>/0 cpu 11 irq 5000001000 x|y"),
            ("   gdb worker-1-77    (  70) [001] .... 5.000001: x:", "gdb worker-1/77 of 70 cpu 1 5000001000 x|"),
            ("   a-77    (-----) [001] .... 5.123456789: x:", "a/77 cpu 1 5123456789 x|"),
            ("  kworker/u8:2 [b]-9   [002]     7.000000: x:   z", "kworker/u8:2 [b]/9 cpu 2 7000000000 x|z"),
            ("bash-4251 [01] 10152.583854: path_put <-walk", "bash/4251 cpu 1 10152583854000 |path_put <-walk"),
            (
                "    trace-cmd-5  0d.s3 12.345678: sched_wakeup: b:6",
                "trace-cmd/5 cpu 0 irq 12345678000 sched_wakeup|b:6",
            ),
            ("  a-5 [000] d... 123456789: x: y", "a/5 cpu 0 123456789 x|y"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn losses_headers_and_other_text_are_distinguished() {
        assert_eq!(parse(b"CPU:2 [LOST 4 EVENTS]"), Some(TextLine::Lost { cpu: 2, events: Some(4) }));
        assert_eq!(parse(b"CPU:2 [1234 EVENTS DROPPED]"), Some(TextLine::Lost { cpu: 2, events: Some(1234) }));
        assert_eq!(parse(b"CPU:2 [EVENTS DROPPED]"), Some(TextLine::Lost { cpu: 2, events: None }));
        for remark in ["", "# tracer: nop", "cpus=2", "CPU 1 is empty", "TRACE:"] {
            assert_eq!(parse(remark.as_bytes()), Some(TextLine::Remark), "{remark}");
        }
        for other in
            ["hello", "a-b [000] 1.0: x", "bash 26662 [000] 85954.570844: cycles: ", "a-1 [000] x: y", "main;a 1"]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
