//! The grammar of a line.

use std::borrow::Cow;

use super::super::text::{number, text};

/// A line.
pub(super) struct Parsed<'a> {
    pub tid: Option<u32>,
    pub time: Option<Time>,
    pub event: Event<'a>,
}

/// When the line was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Since 1970.
    Epoch(u64),
    /// Since midnight.
    OfDay(u64),
    /// Since the line before.
    Since(u64),
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    Call {
        name: &'a [u8],
        arguments: &'a [u8],
        outcome: Outcome<'a>,
    },
    /// The rest of a call whose line another thread's interrupted.
    Resumed {
        name: &'a [u8],
        arguments: &'a [u8],
        outcome: Outcome<'a>,
    },
    /// A thread ended, with the exit status if it has one.
    Exited(Option<i32>),
    /// A signal, or a remark of strace.
    Other,
}

/// How a call ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    Returned(Returned<'a>),
    /// It never returns: `exit`.
    NoReturn,
    Unfinished,
}

/// What a call returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Returned<'a> {
    pub value: Option<i64>,
    /// The file of a returned descriptor.
    pub file: Option<&'a [u8]>,
    pub has_failed: bool,
    pub duration_ns: Option<u64>,
}

/// A frame of `strace -k`.
pub(super) struct StackFrame<'a> {
    pub module: &'a [u8],
    pub function: &'a [u8],
    pub address: Option<u64>,
}

/// `None` if it is no line of strace.
pub(super) fn parse(line: &[u8]) -> Option<Parsed<'_>> {
    let (tid, rest) = tid(line);
    let (mut tid, mut time, mut rest) = (tid, None, rest);
    loop {
        rest = rest.trim_ascii_start();
        let end = memchr::memchr2(b' ', b'(', rest).filter(|&end| rest[end] == b' ').unwrap_or(0);
        let word = &rest[..end];
        if let Some(after) = rest.strip_prefix(b"(+") {
            // Relative to the line before, beside another time.
            let close = memchr::memchr(b')', after)?;
            let since = seconds(after[..close].trim_ascii()).map(Time::Since);
            time = time.or(since);
            rest = &after[close + 1..];
        } else if word.is_empty() {
            break;
        } else if let Some(read) = time_of(word, tid.is_some()) {
            time = time.or(Some(read));
            rest = &rest[end..];
        } else if let (None, None, Some(read)) = (tid, time, number(word)) {
            tid = Some(u32::try_from(read).ok()?);
            rest = &rest[end..];
        } else if word.starts_with(b"[") && (word.ends_with(b"]") || word == b"[") {
            // An instruction's address, or the number of the call.
            rest = &rest[memchr::memchr(b']', rest)? + 1..];
        } else {
            break;
        }
    }
    Some(Parsed { tid, time, event: event(rest)? })
}

/// `[pid 123] `
fn tid(line: &[u8]) -> (Option<u32>, &[u8]) {
    let inside = line.strip_prefix(b"[pid").and_then(|rest| Some((rest, memchr::memchr(b']', rest)?)));
    let read = inside.and_then(|(rest, close)| {
        let tid = u32::try_from(number(rest[..close].trim_ascii())?).ok()?;
        Some((Some(tid), &rest[close + 1..]))
    });
    read.unwrap_or((None, line))
}

fn time_of(word: &[u8], has_tid: bool) -> Option<Time> {
    /// Larger than any thread id, and a time in 1973.
    const A_TIME: u64 = 100_000_000;
    if memchr::memchr(b':', word).is_some() {
        let mut parts = word.split(|&byte| byte == b':');
        let (hours, minutes, seconds_) = (number(parts.next()?)?, number(parts.next()?)?, seconds(parts.next()?)?);
        let is_time = hours < 24 && minutes < 60 && parts.next().is_none();
        return is_time
            .then(|| Time::OfDay((hours * 3600 + minutes * 60) * 1_000_000_000 + seconds_.min(60_999_999_999)));
    }
    let ns = seconds(word)?;
    let has_point = word.iter().any(|byte| b".,".contains(byte));
    match ns / 1_000_000_000 >= A_TIME {
        true => Some(Time::Epoch(ns)),
        false if has_point || has_tid => Some(Time::Since(ns)),
        false => None,
    }
}

/// Seconds with a decimal point or comma, in nanoseconds.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| b".,".contains(byte));
    let (whole, fraction) = point.map_or((text, &b""[..]), |point| (&text[..point], &text[point + 1..]));
    let mut ns = number(whole)?.checked_mul(1_000_000_000)?;
    let mut digit_ns = 100_000_000;
    for byte in fraction {
        ns = ns.checked_add(u64::from(byte.is_ascii_digit().then(|| byte - b'0')?) * digit_ns)?;
        digit_ns /= 10;
    }
    Some(ns)
}

fn event(rest: &[u8]) -> Option<Event<'_>> {
    if let Some(exit) = rest.strip_prefix(b"+++ ") {
        let status = exit.strip_prefix(b"exited with ").and_then(|rest| {
            let end = memchr::memchr(b' ', rest)?;
            i32::try_from(number(&rest[..end])?).ok()
        });
        let is_end = exit.starts_with(b"exited") || exit.starts_with(b"killed");
        return Some(if is_end { Event::Exited(status) } else { Event::Other });
    }
    if rest.starts_with(b"--- ") || rest.starts_with(b"strace: ") {
        return Some(Event::Other);
    }
    if let Some(resumed) = rest.strip_prefix(b"<... ") {
        let end = memchr::memchr(b' ', resumed)?;
        let (name, after) = resumed.split_at(end);
        let after = after.strip_prefix(b" resumed>")?;
        let (arguments, outcome) = outcome(after)?;
        return Some(Event::Resumed { name, arguments, outcome });
    }
    let open = memchr::memchr(b'(', rest)?;
    let name = &rest[..open];
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_?".contains(byte));
    if !is_name {
        return None;
    }
    let (arguments, outcome) = outcome(&rest[open + 1..])?;
    Some(Event::Call { name, arguments, outcome })
}

/// The arguments of a call, and how it ends.
fn outcome(text: &[u8]) -> Option<(&[u8], Outcome<'_>)> {
    if let Some(arguments) = text.trim_ascii_end().strip_suffix(b"<unfinished ...>") {
        return Some((arguments, Outcome::Unfinished));
    }
    // Text arguments may look like a result, so the last one counts.
    let mut end = text.len();
    let (arguments, result) = loop {
        let equals = memchr::memmem::rfind(&text[..end], b" = ")?;
        let before = text[..equals].trim_ascii_end();
        if let Some(arguments) = before.strip_suffix(b")") {
            break (arguments, &text[equals + 3..]);
        }
        end = equals;
    };
    let (result, duration_ns) = duration(result.trim_ascii())?;
    if result == b"?" {
        return Some((arguments, Outcome::NoReturn));
    }
    Some((arguments, Outcome::Returned(returned(result, duration_ns)?)))
}

/// The result without its duration, `<0.000022>`.
fn duration(result: &[u8]) -> Option<(&[u8], Option<u64>)> {
    let Some(inside) = result.strip_suffix(b">") else {
        // A line that is cut within its duration is no call.
        let is_cut =
            memchr::memmem::rfind(result, b" <").is_some_and(|at| memchr::memchr(b'>', &result[at..]).is_none());
        return (!is_cut).then_some((result, None));
    };
    let Some(open) = memchr::memmem::rfind(inside, b" <") else { return Some((result, None)) };
    let text = &inside[open + 2..];
    if text == b"unavailable" {
        return Some((result[..open].trim_ascii_end(), None));
    }
    // The file of a descriptor is not a duration.
    Some(seconds(text).map_or((result, None), |ns| (result[..open].trim_ascii_end(), Some(ns))))
}

fn returned(result: &[u8], duration_ns: Option<u64>) -> Option<Returned<'_>> {
    let end = result.iter().position(|byte| b" <".contains(byte)).unwrap_or(result.len());
    let (word, after) = result.split_at(end);
    let after = after.trim_ascii_start();
    let is_error = after.first() == Some(&b'E') || after.starts_with(b"(errno");
    if word == b"?" {
        return Some(Returned { value: None, file: None, has_failed: is_error, duration_ns });
    }
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let value = match digits.strip_prefix(b"0x") {
        // A pointer is no number.
        Some(hexadecimal) => {
            if hexadecimal.is_empty() || !hexadecimal.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            None
        }
        None => Some(i64::try_from(number(digits)?).unwrap_or(i64::MAX)),
    };
    let is_negative = digits.len() < word.len();
    let value = value.map(|value| if is_negative { -value } else { value });
    let file = after.strip_prefix(b"<").filter(|_| end == word.len()).and_then(annotation);
    Some(Returned { value, file, has_failed: is_negative && is_error, duration_ns })
}

/// Text up to the `>` that closes it: `TCP:[127.0.0.1:1->127.0.0.1:2]>`, `/dev/pts/0<char 136:0>>`.
fn annotation(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if at > 0 && text[at - 1] == b'-' => {}
            b'>' if depth == 0 => return Some(&text[..at]),
            b'>' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The file of a call: that of the descriptor that it returned, the path that it was given, or that of its first descriptor.
pub(super) fn file<'a>(name: &str, arguments: &'a [u8], returned: &Returned<'a>) -> Option<Cow<'a, str>> {
    if let Some(file) = returned.file {
        return Some(text(file));
    }
    let (descriptor, rest) = descriptor(arguments);
    let is_by_path = rest.len() == arguments.len() || name.contains("at") || name.ends_with("statx");
    let path = rest.trim_ascii_start().strip_prefix(b"\"").filter(|_| is_by_path).and_then(string);
    path.filter(|path| !path.is_empty()).or(descriptor).map(text)
}

/// The file of the first argument, if it is a descriptor, and the arguments behind it.
fn descriptor(arguments: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let number = match arguments.strip_prefix(b"AT_FDCWD") {
        Some(rest) => rest,
        None => &arguments[arguments.iter().take_while(|byte| byte.is_ascii_digit()).count()..],
    };
    if number.len() == arguments.len() {
        return (None, arguments);
    }
    let file = number.strip_prefix(b"<").and_then(annotation);
    let rest = file.map_or(number, |file| &number[file.len() + 2..]);
    (file, rest.strip_prefix(b",").unwrap_or(rest))
}

/// The content of a quoted text, after its first quote.
pub(super) fn string(text: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => return Some(&text[..at]),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// ` > /lib/libc.so.6(write+0x14) [0xf7ac4]`
pub(super) fn frame(line: &[u8]) -> Option<StackFrame<'_>> {
    let rest = line.strip_prefix(b" > ")?;
    let open = memchr::memmem::rfind(rest, b" [");
    let (place, address) = match open {
        Some(open) => {
            let digits = rest[open + 2..].strip_suffix(b"]").and_then(|text| text.strip_prefix(b"0x"));
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            (&rest[..open], digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()))
        }
        None => (rest, None),
    };
    let inside = place.strip_suffix(b")").and_then(|place| Some((place, memchr::memchr(b'(', place)?)));
    let (module, function) = inside.map_or((&b""[..], place), |(place, open)| (&place[..open], &place[open + 1..]));
    let end = memchr::memmem::rfind(function, b"+0x").unwrap_or(function.len());
    Some(StackFrame { module, function: &function[..end], address })
}
