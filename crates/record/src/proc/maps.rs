//! `/proc/PID/maps`.

use std::path::PathBuf;

use super::path_from_bytes;

/// One mapping of a process's address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What may be done with it.
    pub access: Access,
    /// Offset of its first byte in the file. 0 where there is none.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// Inode of the file; 0 where there is none.
    pub inode: u64,
    /// What is mapped.
    pub backing: Backing,
}

/// What may be done with a mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
    /// Running as code.
    pub execute: bool,
    /// Whether writes are seen by others and go to the file (`MAP_SHARED`).
    pub shared: bool,
}

/// What is mapped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Backing {
    /// Memory without a name.
    Anonymous,
    /// A file.
    File {
        /// Its path when it was mapped, as seen from its mount namespace.
        path: PathBuf,
        /// Whether that path no longer leads to it: it was removed or replaced (as by a rebuild), or never had one
        /// (`memfd`). A file whose name really ends in ` (deleted)` looks the same.
        deleted: bool,
    },
    /// What the kernel names itself: `[vdso]`, `[heap]`, `[stack]`, `[anon:...]`, `anon_inode:...`.
    Special(String),
}

impl Backing {
    /// The file's path, if it is a file.
    pub fn path(&self) -> Option<&std::path::Path> {
        match self {
            Backing::File { path, .. } => Some(path),
            _ => None,
        }
    }

    fn from_bytes(name: &[u8]) -> Self {
        if name.is_empty() {
            return Backing::Anonymous;
        }
        if name.first() != Some(&b'/') {
            return Backing::Special(String::from_utf8_lossy(name).into_owned());
        }
        let name = unescaped(name);
        match name.strip_suffix(b" (deleted)") {
            Some(path) => Backing::File { path: path_from_bytes(path), deleted: true },
            None => Backing::File { path: path_from_bytes(&name), deleted: false },
        }
    }
}

impl Mapping {
    /// Where the byte at an offset of the file is; `None` if this does not map it.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = offset.checked_sub(self.offset)?;
        (inside < self.end - self.start).then_some(self.start + inside)
    }

    /// Parses the whole file. `None` if a complete line is not of this form; a last line that was cut short (the
    /// process ended in mid-read) is left out.
    pub fn parse_all(text: &[u8]) -> Option<Vec<Self>> {
        let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(&[][..], |end| &text[..end]);
        if complete.is_empty() {
            return Some(Vec::new());
        }
        complete.split(|&byte| byte == b'\n').map(Self::parse).collect()
    }

    /// Parses one line, without its newline: `start-end access offset device inode  name`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        // Five fields are separated by single spaces; the name is what follows the padding, and may hold spaces.
        let mut parts = line.splitn(6, |&byte| byte == b' ');
        let (start, end) = pair(parts.next()?, b'-')?;
        let access = Access::parse(parts.next()?)?;
        let offset = hexadecimal(parts.next()?)?;
        let (major, minor) = pair(parts.next()?, b':')?;
        let inode = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let name = parts.next().unwrap_or_default();
        let padding = name.iter().take_while(|&&byte| byte == b' ').count();
        Some(Self {
            start,
            end: (end >= start).then_some(end)?,
            access,
            offset,
            device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
            inode,
            backing: Backing::from_bytes(&name[padding..]),
        })
    }
}

impl Access {
    fn parse(text: &[u8]) -> Option<Self> {
        let &[read, write, execute, shared] = text else { return None };
        Some(Self { read: read == b'r', write: write == b'w', execute: execute == b'x', shared: shared == b's' })
    }
}

fn pair(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let middle = text.iter().position(|&byte| byte == separator)?;
    Some((hexadecimal(&text[..middle])?, hexadecimal(&text[middle + 1..])?))
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    // `from_str_radix` would also take a sign.
    text.first().filter(|byte| byte.is_ascii_hexdigit())?;
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// Undoes the kernel's escape of a newline in a path, its only one here (`\012`).
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, tail)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(tail) => {
                path.push(b'\n');
                rest = tail;
            }
            None => {
                path.push(byte);
                rest = tail;
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn backing(line: &str) -> Backing {
        Mapping::parse(line.as_bytes()).unwrap().backing
    }

    fn file(path: &str, deleted: bool) -> Backing {
        Backing::File { path: path.into(), deleted }
    }

    #[test]
    fn a_line_has_addresses_access_offset_device_inode_and_path() {
        let line = b"7f0000001000-7f0000003000 r-xp 0000a000 fd:1e 1837          /usr/lib/my lib  (v2).so";
        assert_eq!(
            Mapping::parse(line),
            Some(Mapping {
                start: 0x7f00_0000_1000,
                end: 0x7f00_0000_3000,
                access: Access { read: true, write: false, execute: true, shared: false },
                offset: 0xa000,
                device: (0xfd, 0x1e),
                inode: 1837,
                backing: file("/usr/lib/my lib  (v2).so", false),
            })
        );
    }

    #[test]
    fn removed_files_anonymous_memory_and_kernel_names_are_distinguished() {
        let with = |name: &str| format!("1000-2000 rw-s 00000000 00:00 0 {name}");
        assert_eq!(backing(&with("                    /opt/sim (deleted)")), file("/opt/sim", true));
        assert_eq!(backing(&with("  /memfd:jit code (deleted)")), file("/memfd:jit code", true));
        assert_eq!(backing(&with("  [vdso]")), Backing::Special("[vdso]".into()));
        assert_eq!(backing(&with("  [anon: my heap]")), Backing::Special("[anon: my heap]".into()));
        assert_eq!(backing(&with("  anon_inode:[perf_event]")), Backing::Special("anon_inode:[perf_event]".into()));
        assert_eq!(backing(&with("")), Backing::Anonymous);
        assert_eq!(backing("1000-2000 rw-p 00000000 00:00 0"), Backing::Anonymous);
    }

    #[test]
    fn a_newline_in_a_path_is_given_back() {
        assert_eq!(backing(r"1000-2000 r--p 00000000 08:01 7 /tmp/a\012b\134"), file("/tmp/a\nb\\134", false));
    }

    #[test]
    fn the_vsyscall_page_at_the_top_of_the_address_space_is_read() {
        let line = b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.access.execute), (0xffff_ffff_ff60_0000, true));
    }

    #[test]
    fn a_last_line_cut_short_is_left_out_and_any_other_damage_refused() {
        let good = "1000-2000 r--p 00000000 08:01 7 /a\n";
        assert_eq!(Mapping::parse_all(format!("{good}{}", &good[..20]).as_bytes()).unwrap().len(), 1);
        assert_eq!(Mapping::parse_all(b""), Some(vec![]));
        assert_eq!(Mapping::parse_all(b"1000-20"), Some(vec![]));
        for bad in ["2000-1000 r--p 0 08:01 7 /a", "x-2 r--p 0 0:0 7", "1-2 r-- 0 0:0 7", "+1-2 r--p 0 0:0 7", ""] {
            assert_eq!(Mapping::parse_all(format!("{good}{bad}\n").as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Mapping::parse_all(&text);
        }
    }
}
