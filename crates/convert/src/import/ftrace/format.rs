//! Formats of events, as the kernel describes them in `events/SYSTEM/EVENT/format`: where each field lies.

use linux_perf_event_reader::Endianness;

use super::event::{Fields, Kind, NUMBERS, TEXTS};

/// Where a field lies in an event, and how it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
    stored: Stored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Unsigned,
    Signed,
    /// A text in an array. One of size 0 goes on to the end of the event.
    Text,
    /// 16 bits of offset and 16 of length of a text in the event.
    Elsewhere,
    /// The same, with the offset after the field itself.
    ElsewhereAfter,
}

/// A class of events.
#[derive(Debug, Clone)]
pub struct Class {
    pub id: u32,
    /// `sched_switch`
    pub name: String,
    pub kind: Option<Kind>,
    numbers: [Option<Field>; NUMBERS],
    texts: [Option<Field>; TEXTS],
    tid: Option<Field>,
    flags: Option<Field>,
}

/// Bits of `common_flags` that say that an interrupt made the event: hard, soft, or not maskable.
pub const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;

impl Class {
    /// Reads the description of a class. `None` if it has no name or number.
    pub fn parse(format: &str) -> Option<Self> {
        let (mut name, mut id) = (None, None);
        let mut fields = Vec::new();
        for line in format.lines().map(str::trim) {
            if let Some(value) = line.strip_prefix("name:") {
                name = Some(value.trim().to_owned());
            } else if let Some(value) = line.strip_prefix("ID:") {
                id = value.trim().parse().ok();
            } else if let Some(field) = line.strip_prefix("field:") {
                fields.extend(field_of(field));
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        let name = name?;
        let kind = Kind::of(&name);
        let find = |wanted: &str| fields.iter().find(|(name, _)| *name == wanted).map(|(_, field)| field.clone());
        let named = |names: &[&str], at: usize| names.get(at).and_then(|name| find(name));
        let numbers = kind.map_or(&[][..], Kind::numbers);
        let texts = kind.map_or(&[][..], Kind::texts);
        Some(Self {
            id: id?,
            name,
            kind,
            numbers: std::array::from_fn(|at| named(numbers, at)),
            texts: std::array::from_fn(|at| named(texts, at)),
            tid: find("common_pid"),
            flags: find("common_flags"),
        })
    }

    /// The fields that its kind needs, as far as the event has them.
    pub fn fields<'a>(&self, event: &'a [u8], endian: Endianness) -> Fields<'a> {
        Fields {
            numbers: std::array::from_fn(|at| self.numbers[at].as_ref()?.number(event, endian)),
            texts: std::array::from_fn(|at| self.texts[at].as_ref()?.text(event, endian)),
        }
    }

    /// The thread that made the event; 0 if the CPU was idle.
    pub fn tid(&self, event: &[u8], endian: Endianness) -> u32 {
        let tid = self.tid.as_ref().and_then(|field| field.number(event, endian));
        tid.and_then(|tid| u32::try_from(tid).ok()).unwrap_or(0)
    }

    /// Whether an interrupt made the event.
    pub fn in_interrupt(&self, event: &[u8], endian: Endianness) -> bool {
        self.flags.as_ref().and_then(|field| field.number(event, endian)).is_some_and(|flags| flags & IN_INTERRUPT != 0)
    }
}

/// `char prev_comm[16]; offset:8; size:16; signed:0;`
fn field_of(line: &str) -> Option<(&str, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            Some(("signed", value)) => is_signed = value == "1",
            _ => {}
        }
    }
    let (declared, is_array) = match declared.strip_suffix(']').and_then(|declared| declared.rsplit_once('[')) {
        Some((declared, _)) => (declared.trim_end(), true),
        None => (declared, false),
    };
    let at = declared.rfind([' ', '*']).map_or(0, |at| at + 1);
    let (kind, name) = declared.split_at(at);
    let stored = match () {
        () if kind.contains("__data_loc") => Stored::Elsewhere,
        () if kind.contains("__rel_loc") => Stored::ElsewhereAfter,
        () if is_array && kind.contains("char") => Stored::Text,
        () if is_signed => Stored::Signed,
        () => Stored::Unsigned,
    };
    Some((name, Field { offset: offset?, size: size?, stored }))
}

impl Field {
    fn bytes<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }

    fn number(&self, event: &[u8], endian: Endianness) -> Option<i64> {
        let number = unsigned(self.bytes(event)?, endian)?;
        let unused = 64 - 8 * self.size as u32;
        Some(match self.stored {
            Stored::Signed => (number << unused) as i64 >> unused,
            _ => number as i64,
        })
    }

    fn text<'a>(&self, event: &'a [u8], endian: Endianness) -> Option<&'a [u8]> {
        let bytes = match self.stored {
            Stored::Text if self.size == 0 => event.get(self.offset..)?,
            Stored::Text => self.bytes(event)?,
            Stored::Elsewhere | Stored::ElsewhereAfter => {
                let place = unsigned(self.bytes(event)?, endian)? as usize;
                let after = if self.stored == Stored::ElsewhereAfter { self.offset + self.size } else { 0 };
                let (start, length) = (after + (place & 0xffff), (place >> 16) & 0xffff);
                event.get(start..start + length)?
            }
            Stored::Unsigned | Stored::Signed => return None,
        };
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

fn unsigned(bytes: &[u8], endian: Endianness) -> Option<u64> {
    let is_little = endian == Endianness::LittleEndian;
    Some(match *bytes {
        [byte] => byte.into(),
        [a, b] => u64::from(if is_little { u16::from_le_bytes([a, b]) } else { u16::from_be_bytes([a, b]) }),
        [a, b, c, d] => {
            let bytes = [a, b, c, d];
            u64::from(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
        }
        _ => {
            let bytes = bytes.try_into().ok()?;
            if is_little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Endianness = Endianness::LittleEndian;

    #[test]
    fn fields_are_read_where_their_format_says() {
        let class = Class::parse(
            "name: sched_switch\nID: 316\nformat:\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
             \tfield:long prev_state;\toffset:28;\tsize:8;\tsigned:1;\n\
             \tfield:__data_loc char[] next_comm;\toffset:36;\tsize:4;\tsigned:0;\n\n\
             print fmt: \"field:int next_pid; offset:0; size:4; signed:1;\"",
        )
        .unwrap();
        let mut event = vec![0, 0, 0x10, 0, 9, 0, 0, 0];
        event.extend(b"a b\0............");
        event.extend(7i32.to_le_bytes());
        event.extend((-2i64).to_le_bytes());
        event.extend((40u32 | 3 << 16).to_le_bytes());
        event.extend(b"xyz");
        let fields = class.fields(&event, LITTLE);
        assert_eq!((class.id, class.kind), (316, Some(Kind::Switch)));
        assert_eq!(fields.numbers, [Some(7), Some(-2), None]);
        assert_eq!(fields.texts, [Some(&b"a b"[..]), Some(b"xyz")]);
        assert_eq!((class.tid(&event, LITTLE), class.in_interrupt(&event, LITTLE)), (9, true));
        // A truncated event has the fields that are whole.
        let fields = class.fields(&event[..42], LITTLE);
        assert_eq!((fields.numbers[1], fields.texts[1]), (Some(-2), None));
    }

    #[test]
    fn a_format_without_a_name_or_number_is_none() {
        assert!(Class::parse("ID: 3\n").is_none());
        assert!(Class::parse("name: x\nID: y\n").is_none());
    }
}
