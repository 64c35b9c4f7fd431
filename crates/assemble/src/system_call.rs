//! Sums of system calls, as the program in the kernel keeps and writes them.

use syscalls::x86_64::Sysno;

/// Most bytes of a record: a [`Sum`], what the call returned, its duration and descriptor, the length of its path, and the path as far as it goes.
pub const BYTES: usize = 8 * (Sum::KEY_WORDS + Sum::VALUE_WORDS + 4) + PATH_BYTES;
const PATH_BYTES: usize = 256;

/// The calls so far of one thread, at one place, to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    pub(crate) key: [u64; Sum::KEY_WORDS],
    value: [u64; Sum::VALUE_WORDS],
}

impl Sum {
    /// Words of its key: thread and call, instruction, stack pointer, inode, device.
    pub const KEY_WORDS: usize = 5;
    /// The first of them, which are its place: thread and call, instruction, stack pointer.
    pub const PLACE_WORDS: usize = 3;
    /// Words of its value.
    pub const VALUE_WORDS: usize = 7;
    /// The inode of all files of a place that have no sum of their own: it has too many.
    pub const MANY_FILES: i64 = -1;
    /// Offset in the value of the number of calls.
    pub const COUNT: i16 = 0;
    /// Of the number of those that failed.
    pub const ERRORS: i16 = 8;
    /// Of their time, in nanoseconds.
    pub const TOTAL: i16 = 16;
    /// Of the time of the longest.
    pub const LONGEST: i16 = 24;
    /// Of the bytes that they moved.
    pub const BYTES: i16 = 32;
    /// Of the time of its last record.
    pub const WRITTEN: i16 = 40;
    /// Of the end of the last call; in a record, of the one before it.
    pub const LAST: i16 = 48;

    /// The sum of a key.
    pub fn new(key: [u64; Self::KEY_WORDS], value: [u64; Self::VALUE_WORDS]) -> Self {
        Self { key, value }
    }

    fn word(&self, at: i16) -> u64 {
        self.value[at as usize / 8]
    }

    /// The thread.
    pub fn tid(&self) -> u32 {
        self.key[0] as u32
    }

    /// The call's number.
    pub fn call(&self) -> u32 {
        (self.key[0] >> 32) as u32
    }

    /// The file's device and inode, if the call has a file.
    pub fn file(&self) -> Option<(u64, u64)> {
        (self.key[3] != 0 && !self.is_of_many_files()).then_some((self.key[4], self.key[3]))
    }

    /// Whether it is of several files: those of a place with very many.
    pub(crate) fn is_of_many_files(&self) -> bool {
        self.key[3] == Self::MANY_FILES as u64
    }

    /// Whether it is of any place of a thread: what had no room among the sums by place.
    pub(crate) fn is_of_any_place(&self) -> bool {
        self.key[1..] == [0; Self::KEY_WORDS - 1]
    }

    /// The sum with some more calls.
    pub(crate) fn and(&self, more: &Amount) -> Self {
        let mut sum = *self;
        let added = [
            (Self::COUNT, more.count),
            (Self::ERRORS, more.errors),
            (Self::TOTAL, more.total_ns),
            (Self::BYTES, more.bytes),
        ];
        for (at, by) in added {
            sum.value[at as usize / 8] = sum.word(at).saturating_add(by);
        }
        sum
    }

    /// The end of its last call; in a record, of the one before it.
    pub(crate) fn last_ns(&self) -> u64 {
        self.word(Self::LAST)
    }

    /// What was added since an earlier state of it.
    pub fn since(&self, before: Option<&Sum>) -> Amount {
        let more = |at| self.word(at).saturating_sub(before.map_or(0, |before| before.word(at)));
        Amount {
            count: more(Self::COUNT),
            errors: more(Self::ERRORS),
            total_ns: more(Self::TOTAL),
            longest_ns: self.word(Self::LONGEST),
            bytes: more(Self::BYTES),
        }
    }
}

/// The calls so far of a [`Sum`] whose times are in one [bucket](stepscope_model::call_time_bucket).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeCount {
    /// The key of the sum, then the bucket.
    pub(crate) key: [u64; TimeCount::KEY_WORDS],
    pub(crate) count: u64,
}

impl TimeCount {
    /// Words of its key: that of the sum, and the bucket.
    pub const KEY_WORDS: usize = Sum::KEY_WORDS + 1;
    /// Words of the key of times that had no room: thread and call, and the bucket.
    pub const REST_WORDS: usize = 2;

    /// Of a sum.
    pub fn new(key: [u64; Self::KEY_WORDS], count: u64) -> Self {
        Self { key, count }
    }

    /// Of a thread and call.
    pub fn rest([thread, bucket]: [u64; Self::REST_WORDS], count: u64) -> Self {
        Self { key: [thread, 0, 0, 0, 0, bucket], count }
    }

    /// The key of its sum, and the bucket.
    pub(crate) fn place(&self) -> ([u64; Sum::KEY_WORDS], u64) {
        let [sum @ .., bucket] = self.key;
        (sum, bucket)
    }
}

/// Some calls, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Their time, waits included.
    pub total_ns: u64,
    /// The longest so far; at most that of an earlier record of the same calls.
    pub longest_ns: u64,
    /// The bytes that they moved.
    pub bytes: u64,
}

impl Amount {
    /// The calls that others are not.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let total_ns = self.total_ns.saturating_sub(others.total_ns);
        Self {
            count: self.count.saturating_sub(others.count),
            errors: self.errors.saturating_sub(others.errors),
            total_ns,
            longest_ns: self.longest_ns.min(total_ns),
            bytes: self.bytes.saturating_sub(others.bytes),
        }
    }
}

/// A record of a sum: that of the call which just ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallRecord {
    pub sum: Sum,
    pub returned: i64,
    pub duration_ns: u64,
    pub descriptor: Option<u32>,
    pub path: Option<String>,
}

impl CallRecord {
    /// What it adds to a sum that has these calls more: itself alone.
    pub fn own(&self, of: &Amount) -> Amount {
        let is_error = (-4095..0).contains(&self.returned);
        // Sums of calls that return no bytes have none.
        let bytes = u64::try_from(self.returned).unwrap_or(0).min(of.bytes);
        let (total_ns, longest_ns) = (self.duration_ns, self.duration_ns);
        Amount { count: 1, errors: u64::from(is_error), total_ns, longest_ns, bytes }
    }

    /// Of the raw data of a sample. `None` if they are no such record.
    pub fn read(raw: &[u8]) -> Option<Self> {
        let (words, path) = raw.split_at_checked(BYTES - PATH_BYTES)?;
        let mut words = words.as_chunks::<8>().0.iter().map(|&bytes| u64::from_ne_bytes(bytes));
        let mut next = || words.next().expect("as many words as a record has");
        let (key, value) = (std::array::from_fn(|_| next()), std::array::from_fn(|_| next()));
        let (returned, duration_ns, descriptor, length) = (next() as i64, next(), next(), next() as i64);
        // The length counts the zero at the end; a negative one is an error.
        let path = usize::try_from(length).ok().and_then(|length| path.get(..length.checked_sub(1)?));
        Some(Self {
            sum: Sum { key, value },
            returned,
            duration_ns,
            descriptor: u32::try_from(descriptor).ok(),
            path: path.filter(|path| !path.is_empty()).map(|path| String::from_utf8_lossy(path).into_owned()),
        })
    }
}

/// The name of a call.
pub(crate) fn name(call: u32) -> String {
    Sysno::new(call as usize).map_or_else(|| format!("syscall_{call}"), |call| call.name().to_owned())
}
