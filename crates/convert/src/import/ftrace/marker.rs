//! Texts that programs write to `trace_marker` in the format of systrace: `B|PID|NAME`, `E|PID`, `C|PID|NAME|VALUE`.

use std::borrow::Cow;

use crate::import::text::text;

/// A text of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker<'a> {
    /// A scope starts on the writing thread.
    Begin { pid: Option<u32>, name: Cow<'a, str> },
    /// The innermost scope of the writing thread ends.
    End { pid: Option<u32> },
    /// A reading.
    Counter { pid: Option<u32>, name: Cow<'a, str>, value: i64 },
}

impl<'a> Marker<'a> {
    /// `None` if it has another format.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let bytes = bytes.trim_ascii_end();
        let (kind, rest) = bytes.split_first()?;
        let rest = match rest.split_first() {
            Some((b'|', rest)) => rest,
            None => rest,
            Some(_) => return None,
        };
        let (pid, rest) = match rest.iter().position(|&byte| byte == b'|') {
            Some(at) => (number(&rest[..at]), &rest[at + 1..]),
            None => (number(rest), &[][..]),
        };
        let pid = pid.and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid != 0);
        match kind {
            b'B' if !rest.is_empty() => Some(Marker::Begin { pid, name: text(rest) }),
            b'E' => Some(Marker::End { pid }),
            b'C' => {
                let mut parts = rest.split(|&byte| byte == b'|');
                let name = parts.next().filter(|name| !name.is_empty())?;
                Some(Marker::Counter { pid, name: text(name), value: number(parts.next()?)? })
            }
            _ => None,
        }
    }

    /// The process of the writing thread.
    pub fn pid(&self) -> Option<u32> {
        let (Marker::Begin { pid, .. } | Marker::End { pid } | Marker::Counter { pid, .. }) = self;
        *pid
    }
}

/// A whole number; the nearest one of a decimal number.
fn number(digits: &[u8]) -> Option<i64> {
    let digits = std::str::from_utf8(digits).ok()?.trim();
    digits
        .parse()
        .ok()
        .or_else(|| digits.parse::<f64>().ok().filter(|value| value.is_finite()).map(|it| it.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_readings_of_systrace_are_read() {
        let begin = Marker::Begin { pid: Some(12), name: "draw|all".into() };
        assert_eq!(Marker::parse(b"B|12|draw|all\n"), Some(begin));
        for end in ["E|12", "E|12|draw"] {
            assert_eq!(Marker::parse(end.as_bytes()), Some(Marker::End { pid: Some(12) }));
        }
        assert_eq!(Marker::parse(b"E"), Some(Marker::End { pid: None }));
        let counter = |value| Some(Marker::Counter { pid: Some(3), name: "queue".into(), value });
        assert_eq!(Marker::parse(b"C|3|queue|-7"), counter(-7));
        assert_eq!(Marker::parse(b"C|3|queue|2.6|x"), counter(3));
        for other in ["", "B", "B|12", "B|12|", "C|3|queue|", "C|3|queue|x", "S|1|a|2", "hello", "Error: x", "End"] {
            assert_eq!(Marker::parse(other.as_bytes()), None, "{other}");
        }
    }
}
