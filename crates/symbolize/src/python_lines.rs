//! The lines of CPython's code objects.
//!
//! Three forms: `co_lnotab` of 3.9, `co_linetable` of 3.10 (both in `Objects/lnotab_notes.txt` of CPython's sources), and
//! `co_linetable` since 3.11 (`Objects/locations.md`, later `InternalDocs/code_objects.md`).

/// Bytes of an instruction.
const INSTRUCTION: u64 = 2;

/// The table of lines of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PythonLines {
    form: Form,
    table: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// 3.9: where each line starts.
    Starts,
    /// 3.10: how far each line reaches.
    Lengths,
    /// Since 3.11: lines and columns.
    Locations,
}

impl PythonLines {
    /// From the text of a map: the form, and the table in hexadecimal.
    pub fn parse(text: &str) -> Option<Self> {
        let (form, digits) = text.split_once(' ')?;
        let form = match form {
            "a" => Form::Starts,
            "b" => Form::Lengths,
            "c" => Form::Locations,
            _ => return None,
        };
        let (pairs, []) = digits.trim_end().as_bytes().as_chunks::<2>() else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let table =
            pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect::<Option<_>>()?;
        Some(Self { form, table })
    }

    /// The line of an instruction, counted from zero. `None` if it has none.
    pub fn line(&self, first: u32, instruction: u64) -> Option<u32> {
        let at = instruction * INSTRUCTION;
        let line = match self.form {
            Form::Starts => starts(&self.table, at),
            Form::Lengths => lengths(&self.table, at),
            Form::Locations => locations(&self.table, instruction),
        };
        u32::try_from(i64::from(first).checked_add(line?)?).ok()
    }
}

/// Pairs: bytes to the next start, and lines to it.
fn starts(table: &[u8], at: u64) -> Option<i64> {
    let (mut start, mut line) = (0, 0);
    for [bytes, lines] in table.as_chunks().0 {
        start += u64::from(*bytes);
        if start > at {
            break;
        }
        line += i64::from(lines.cast_signed());
    }
    Some(line)
}

/// Pairs: lines from the one before, and for how many bytes. Some bytes have no line.
fn lengths(table: &[u8], at: u64) -> Option<i64> {
    const NONE: i8 = -128;
    let (mut end, mut line) = (0, 0);
    for [bytes, lines] in table.as_chunks().0 {
        end += u64::from(*bytes);
        let lines = lines.cast_signed();
        line += if lines == NONE { 0 } else { i64::from(lines) };
        if at < end {
            return (lines != NONE).then_some(line);
        }
    }
    None
}

/// Entries: a byte with the kind and the number of instructions, then what the kind has. Only first bytes have the highest bit.
fn locations(table: &[u8], at: u64) -> Option<i64> {
    let mut rest = table.iter().copied().peekable();
    let (mut end, mut line) = (0, 0_i64);
    while let Some(first) = rest.next() {
        let kind = first >> 3 & 15;
        end += u64::from(first & 7) + 1;
        let lines = match kind {
            0..=9 | 15 => 0,
            10..=12 => i64::from(kind) - 10,
            _ => signed(&mut rest)?,
        };
        while rest.next_if(|byte| byte & 0x80 == 0).is_some() {}
        line = line.checked_add(lines)?;
        if at < end {
            return (kind != 15).then_some(line);
        }
    }
    None
}

/// A number of 6 bits a byte, the lowest first, with its sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let (mut number, mut shift) = (0_i64, 0);
    loop {
        let byte = bytes.next()?;
        number |= i64::from(byte & 63) << shift;
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
        // Lines have 32 bits.
        if shift > 36 {
            return None;
        }
    }
    Some(if number & 1 == 1 { -(number >> 1) } else { number >> 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the first instructions, from the first line 1.
    fn lines(text: &str, instructions: u64) -> Vec<Option<u32>> {
        let table = PythonLines::parse(text).unwrap();
        (0..instructions).map(|instruction| table.line(1, instruction)).collect()
    }

    // Tables of `def f(x):\n    y = x\n    for i in y:\n        g(\n            i)\n    return y`, and what Python says of them.
    #[test]
    fn each_form_gives_the_lines_that_python_gives() {
        let expected = [2, 2, 3, 3, 3, 3, 4, 5, 4, 4, 4, 6, 6];
        assert_eq!(lines("a 000104010801020102ff0602", 13), expected.map(Some));
        let expected = [2, 2, 3, 3, 3, 3, 4, 5, 4, 4, 4, 6, 6];
        assert_eq!(lines("b 040108010201020106ff0402", 13), expected.map(Some));
        let expected = [1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 6, 6];
        assert_eq!(
            lines(
                "c 8000d808098041d80d0ef00002050ff00002050f8801dd0809d80c0df10301090ff40001090ff00001090ff00001090fe00b0c8048",
                25
            ),
            expected.map(Some)
        );
        let expected = [1, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 3, 3, 6, 6];
        assert_eq!(
            lines("c 8000d808098041db0d0e8801dc0809d80c0df60301090ff103000e0ff006000c0d8048", 25),
            expected.map(Some)
        );
    }

    #[test]
    fn damaged_tables_have_no_lines() {
        for text in ["", "c", "d 00", "c 0", "c 0g", "a \u{e9}0"] {
            assert_eq!(PythonLines::parse(text), None, "{text:?}");
        }
        assert_eq!(lines("c ", 1), [None], "empty");
        assert_eq!(lines("c e8", 1), [None], "cut off");
        assert_eq!(lines("c e87f7f7f7f7f7f7f7f7f", 1), [None], "a number without end");
        assert_eq!(lines("b 0280", 2), [None, None], "no line, and the end");
    }
}
