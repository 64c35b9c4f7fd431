//! The small texts: `stat`, `status`, `io`, `schedstat`, and lists of strings and numbers.

/// The state of a task (`proc(5)`, field 3 of `stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// `R`: on a CPU or waiting for one.
    Running,
    /// `S`: waits, and a signal ends the waiting.
    Sleeping,
    /// `D`: waits, and nothing ends the waiting; usually for a disk.
    Uninterruptible,
    /// `T` or `t`: stopped by a signal or a debugger.
    Stopped,
    /// `Z`: has ended and its parent has not asked for its status.
    Zombie,
    /// `X` or `x`: ended.
    Dead,
    /// `I`: an idle kernel thread.
    Idle,
    /// A letter that is not known.
    Other(u8),
}

impl State {
    fn from_letter(letter: u8) -> Self {
        match letter {
            b'R' => State::Running,
            b'S' => State::Sleeping,
            b'D' => State::Uninterruptible,
            b'T' | b't' => State::Stopped,
            b'Z' => State::Zombie,
            b'X' | b'x' => State::Dead,
            b'I' => State::Idle,
            other => State::Other(other),
        }
    }

    /// The kernel's letter.
    pub fn letter(self) -> u8 {
        match self {
            State::Running => b'R',
            State::Sleeping => b'S',
            State::Uninterruptible => b'D',
            State::Stopped => b'T',
            State::Zombie => b'Z',
            State::Dead => b'X',
            State::Idle => b'I',
            State::Other(letter) => letter,
        }
    }

    /// Whether it can run no more.
    pub fn has_ended(self) -> bool {
        matches!(self, State::Zombie | State::Dead)
    }
}

/// `/proc/PID/stat` or `/proc/PID/task/TID/stat`: what we use of its 52 fields. Times and faults are totals since the
/// process (or thread) began, without those of its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process or thread id.
    pub pid: u32,
    /// Its name (`comm`), which may hold any character.
    pub name: String,
    /// What it does.
    pub state: State,
    /// The parent's process id; 0 for init and where the parent is outside of our pid namespace.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session.
    pub session: u32,
    /// Page faults without reading from a disk.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// CPU time in user mode, in ticks (see [`ticks_per_second`](super::ticks_per_second)).
    pub user_ticks: u64,
    /// CPU time in the kernel, in ticks.
    pub system_ticks: u64,
    /// Number of threads.
    pub threads: u64,
    /// When it started, in ticks since boot: with the pid, the identity of a process.
    pub start_ticks: u64,
    /// Resident memory, in pages.
    pub rss_pages: u64,
}

impl Stat {
    /// Whether the process can run no more. The first thread may have ended while others run: the process is then shown
    /// as a zombie with several threads.
    pub fn process_has_ended(&self) -> bool {
        self.state.has_ended() && self.threads <= 1
    }

    /// Parses the file's text. `None` if it is not of this form, or cut short.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::parse_with(text, |name| String::from_utf8_lossy(name).into_owned())
    }

    /// As [`parse`](Self::parse), with an empty name: allocates nothing.
    pub fn parse_numbers(text: &[u8]) -> Option<Self> {
        Self::parse_with(text, |_| String::new())
    }

    fn parse_with(text: &[u8], name_of: impl Fn(&[u8]) -> String) -> Option<Self> {
        // The name may itself hold parentheses and spaces, so it ends at the *last* closing one.
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let name = text.get(open + 1..close)?;
        let mut rest = fields(&text[close + 1..]);
        let state = State::from_letter(*rest.next()?.first()?);
        let mut skip = |count: usize| number(rest.nth(count)?);
        Some(Self {
            pid: number(text[..open].trim_ascii())?,
            name: name_of(name),
            state,
            parent: narrow(skip(0)?)?,
            group: narrow(skip(0)?)?,
            session: narrow(skip(0)?)?,
            minor_faults: skip(3)?,
            major_faults: skip(1)?,
            user_ticks: skip(1)?,
            system_ticks: skip(0)?,
            threads: skip(4)?,
            start_ticks: skip(1)?,
            rss_pages: skip(1)?,
        })
    }
}

/// `/proc/PID/status`: what we use of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Id of the process that the thread belongs to.
    pub process: u32,
    /// Real, effective, saved and file-system user id.
    pub uids: [u32; 4],
    /// Largest resident memory so far. Absent for zombies and kernel threads.
    pub peak_rss_bytes: Option<u64>,
    /// Memory that was swapped out. Absent as the peak is.
    pub swap_bytes: Option<u64>,
    /// Number of threads.
    pub threads: u64,
    /// Ids of the process in the pid namespaces from ours inwards: more than one if it is in a container.
    pub namespace_pids: Vec<u32>,
    /// Effective capabilities, one bit each.
    pub effective_capabilities: u64,
    /// Whether a seccomp filter is in force.
    pub seccomp_filter: bool,
    /// Voluntary context switches of this thread.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Status {
    /// Parses the file's text. Lines that are missing leave their default; `None` if the user ids are missing, as then
    /// it is no status at all.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut status = Self::default();
        let mut has_uids = false;
        for line in text.split(|&byte| byte == b'\n') {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let value = line[colon + 1..].trim_ascii();
            let count = || fields(value).next().and_then(number);
            match &line[..colon] {
                b"Uid" => {
                    status.uids = four(value)?;
                    has_uids = true;
                }
                b"Tgid" => status.process = count().and_then(narrow).unwrap_or(0),
                b"VmHWM" => status.peak_rss_bytes = count().and_then(|kib: u64| kib.checked_mul(1024)),
                b"VmSwap" => status.swap_bytes = count().and_then(|kib: u64| kib.checked_mul(1024)),
                b"Threads" => status.threads = count().unwrap_or(0),
                b"NSpid" => status.namespace_pids = numbers(value).collect(),
                b"CapEff" => status.effective_capabilities = hexadecimal(value).unwrap_or(0),
                b"Seccomp" => status.seccomp_filter = count() == Some(2),
                b"voluntary_ctxt_switches" => status.voluntary_switches = count().unwrap_or(0),
                b"nonvoluntary_ctxt_switches" => status.involuntary_switches = count().unwrap_or(0),
                _ => {}
            }
        }
        has_uids.then_some(status)
    }
}

/// `/proc/PID/io`: totals since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes that read calls returned, from whatever (`rchar`): files in the page cache, pipes, terminals; not sockets.
    pub read_call_bytes: u64,
    /// Bytes given to write calls (`wchar`).
    pub write_call_bytes: u64,
    /// Bytes fetched from storage (`read_bytes`).
    pub read_bytes: u64,
    /// Bytes to be sent to storage (`write_bytes`), those of pages cancelled later included.
    pub write_bytes: u64,
}

impl Io {
    /// Parses the file's text. `None` if one of the four is missing.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let find = |key: &[u8]| {
            let line = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(key))?;
            number(line[key.len()..].trim_ascii())
        };
        Some(Self {
            read_call_bytes: find(b"rchar:")?,
            write_call_bytes: find(b"wchar:")?,
            read_bytes: find(b"read_bytes:")?,
            write_bytes: find(b"write_bytes:")?,
        })
    }
}

/// `/proc/PID/task/TID/schedstat` (`Documentation/scheduler/sched-stats.rst`): totals since the thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time runnable, waiting for a CPU: the run-queue delay. The current wait is not included.
    pub run_queue_delay_ns: u64,
    /// Times it was scheduled. All three are 0 if the kernel keeps no such statistics.
    pub timeslices: u64,
}

impl SchedStat {
    /// Parses the file's text.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = fields(text).map(number);
        Some(Self { cpu_ns: numbers.next()??, run_queue_delay_ns: numbers.next()??, timeslices: numbers.next()?? })
    }
}

/// Strings that end in NUL, as in `cmdline` and `environ`. A last one without its NUL counts too: programs overwrite
/// their command line (`setproctitle`).
pub(super) fn strings(text: &[u8]) -> Vec<String> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|&byte| byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Numbers between white space, as in `children`. Anything else is skipped.
pub(super) fn numbers(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    fields(text).filter_map(number)
}

fn fields(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Negative numbers (of a process without a terminal, say) are no number here: none of the fields we read can be.
fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

fn narrow(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

fn four(text: &[u8]) -> Option<[u32; 4]> {
    let mut numbers = numbers(text);
    Some([numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "4242 (a) b (c) R 17 4242 4200 34816 4300 4194304 1234 5678 9 10 111 22 33 44 20 0 7 0 987654 \
                        123456789 2048 18446744073709551615 1 2 3 4 5 0 0 0 0 0 0 0 17 1 0 0 77 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_name_with_spaces_and_parentheses_ends_at_the_last_parenthesis() {
        assert_eq!(
            Stat::parse(STAT.as_bytes()),
            Some(Stat {
                pid: 4242,
                name: "a) b (c".into(),
                state: State::Running,
                parent: 17,
                group: 4242,
                session: 4200,
                minor_faults: 1234,
                major_faults: 9,
                user_ticks: 111,
                system_ticks: 22,
                threads: 7,
                start_ticks: 987_654,
                rss_pages: 2048,
            })
        );
    }

    #[test]
    fn a_name_that_looks_like_fields_does_not_shift_them() {
        let stat = Stat::parse(STAT.replace("a) b (c", "1 S 2 3 4").as_bytes()).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent), ("1 S 2 3 4", 17));
        let stat = Stat::parse(STAT.replace("a) b (c", "").as_bytes()).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent), ("", 17));
    }

    #[test]
    fn a_name_that_is_not_utf8_is_kept_readable() {
        let mut text = b"1 (".to_vec();
        text.extend([0xff, b'x', b'\n']);
        text.extend(&STAT.as_bytes()[STAT.rfind(')').unwrap()..]);
        assert_eq!(Stat::parse(&text).unwrap().name, "\u{fffd}x\n");
    }

    #[test]
    fn a_stat_that_was_cut_short_is_no_stat() {
        let rss = STAT.find(" 2048").unwrap();
        for end in 0..=rss {
            assert_eq!(Stat::parse(&STAT.as_bytes()[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_runs_as_long_as_it_has_others() {
        let ended = |text: String| Stat::parse(text.as_bytes()).unwrap().process_has_ended();
        assert!(!ended(STAT.to_owned()));
        assert!(!ended(STAT.replace(" R ", " Z ")), "it has seven threads");
        assert!(ended(STAT.replace(" R ", " Z ").replace(" 20 0 7 ", " 20 0 1 ")));
    }

    #[test]
    fn a_session_outside_of_our_namespace_is_zero_and_a_missing_terminal_negative() {
        let text = STAT.replace("R 17 4242 4200 34816 4300", "R 0 0 0 0 -1");
        let stat = Stat::parse(text.as_bytes()).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session, stat.minor_faults), (0, 0, 0, 1234));
    }

    #[test]
    fn a_status_gives_ids_memory_and_switches() {
        let text = b"Name:\tx: Uid:\t9\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t7\nUid:\t1000\t1001\t1002\t1003\n\
            Gid:\t100\t100\t100\t100\nNSpid:\t7\t1\nVmHWM:\t    5120 kB\nThreads:\t3\nCapEff:\t000001fffeffffff\n\
            Seccomp:\t2\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(
            Status::parse(text),
            Some(Status {
                process: 7,
                uids: [1000, 1001, 1002, 1003],
                peak_rss_bytes: Some(5_242_880),
                swap_bytes: None,
                threads: 3,
                namespace_pids: vec![7, 1],
                effective_capabilities: 0x1ff_feff_ffff,
                seccomp_filter: true,
                voluntary_switches: 150,
                involuntary_switches: 545,
            })
        );
    }

    #[test]
    fn the_status_of_a_zombie_has_no_memory() {
        let status = Status::parse(b"Uid:\t0\t0\t0\t0\nThreads:\t1\n").unwrap();
        assert_eq!(status.peak_rss_bytes, None);
        assert_eq!(Status::parse(b""), None);
        assert_eq!(Status::parse(b"Uid:\t0\t0\n"), None);
    }

    #[test]
    fn bytes_of_calls_and_of_storage_are_kept_apart() {
        let text = b"rchar: 3980\nwchar: 18446744073709551615\nsyscr: 9\nsyscw: 0\nread_bytes: 4096\n\
            write_bytes: 8192\ncancelled_write_bytes: 100\n";
        let expected = Io { read_call_bytes: 3980, write_call_bytes: u64::MAX, read_bytes: 4096, write_bytes: 8192 };
        assert_eq!(Io::parse(text), Some(expected));
        assert_eq!(Io::parse(&text[..40]), None);
    }

    #[test]
    fn a_schedstat_has_three_numbers() {
        let expected = SchedStat { cpu_ns: 401_000, run_queue_delay_ns: 90, timeslices: 5 };
        assert_eq!(SchedStat::parse(b"401000 90 5\n"), Some(expected));
        assert_eq!(SchedStat::parse(b"401000 90"), None);
        assert_eq!(SchedStat::parse(b""), None);
    }

    #[test]
    fn arguments_may_be_empty_and_the_last_may_lack_its_nul() {
        assert_eq!(strings(b"sh\0-c\0\0"), ["sh", "-c", ""]);
        assert_eq!(strings(b"postgres: idle"), ["postgres: idle"]);
        assert_eq!(strings(b""), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (Stat::parse(&text), Status::parse(&text), Io::parse(&text), SchedStat::parse(&text));
            let _ = (strings(&text), numbers(&text).count());
        }

        #[test]
        fn any_name_is_read_back(name in "[^\0]{0,15}") {
            let text = STAT.replace("a) b (c", &name);
            prop_assert_eq!(Stat::parse(text.as_bytes()).unwrap().name, name);
        }
    }
}
