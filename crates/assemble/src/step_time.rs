//! The simulated time of a step, from an argument of the function that begins it.

use std::path::PathBuf;
use std::str::FromStr;

/// The instruction at which each step of the simulation starts: the first of a function that its loop calls once a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPoint {
    /// The function's name.
    pub function: String,
    /// The file that holds it.
    pub module: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// The simulated time at that instant, where it is known.
    pub time: Option<StepTime>,
}

/// The simulated time at the start of a step, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepTime {
    /// The function receives it as an argument.
    Argument(TimeArgument),
    /// Each step takes as long.
    Every {
        /// How long.
        step_ns: u64,
    },
}

/// Where the function that begins a step finds the simulated time.
///
/// Written as the kernel's uprobes fetch arguments (kernel documentation, `trace/uprobetracer.rst`), with one type of
/// ours, `f64`, and the unit after a space: `%di:s64` (nanoseconds), `%si:u64 us`, `+8(%di):f64 s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeArgument {
    fetched: String,
    kind: NumberKind,
    unit_ns: u64,
}

/// Why that is no such argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` does not locate the simulated time: {why}; write for example `%di:s64 ns`, `%si:u64 us` or `+8(%di):f64 s`"
)]
pub struct TimeArgumentError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Signed { bytes: usize },
    Unsigned { bytes: usize },
    Float,
}

impl NumberKind {
    fn parse(name: &str) -> Option<Self> {
        if name == "f64" {
            return Some(Self::Float);
        }
        let bytes = match name.get(1..)? {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            _ => return None,
        };
        match name.as_bytes()[0] {
            b's' => Some(Self::Signed { bytes }),
            b'u' | b'x' => Some(Self::Unsigned { bytes }),
            _ => None,
        }
    }

    /// The kernel's name for as many bits.
    fn kernel_type(self) -> String {
        match self {
            Self::Signed { bytes } => format!("s{}", bytes * 8),
            Self::Unsigned { bytes } => format!("u{}", bytes * 8),
            Self::Float => "u64".to_owned(),
        }
    }
}

impl TimeArgument {
    /// What the kernel is asked to fetch.
    pub fn kernel_argument(&self) -> String {
        format!("{}:{}", self.fetched, self.kind.kernel_type())
    }

    /// How to read the fetched number, at this offset of the raw data.
    pub fn value_at(&self, offset: usize) -> TimeValue {
        TimeValue { offset, kind: self.kind, unit_ns: self.unit_ns }
    }
}

impl FromStr for TimeArgument {
    type Err = TimeArgumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why| TimeArgumentError { text: text.to_owned(), why };
        let mut words = text.split_whitespace();
        let argument = words.next().ok_or_else(|| wrong("it is empty"))?;
        let unit_ns = match words.next() {
            None | Some("ns") => 1,
            Some("us" | "µs") => 1_000,
            Some("ms") => 1_000_000,
            Some("s") => 1_000_000_000,
            Some(_) => return Err(wrong("the unit must be ns, us, ms or s")),
        };
        if words.next().is_some() {
            return Err(wrong("something follows the unit"));
        }
        let (fetched, kind) = argument.rsplit_once(':').unwrap_or((argument, "s64"));
        let kind = NumberKind::parse(kind).ok_or_else(|| wrong("the type must be s8 to s64, u8 to u64, or f64"))?;
        // What else the kernel's syntax has is text, symbols of the kernel, or numbers that never change.
        let belongs = |c: char| c.is_ascii_alphanumeric() || "%$+-()".contains(c);
        if !fetched.starts_with(['%', '+', '-', '$']) || !fetched.chars().all(belongs) {
            return Err(wrong("it names no register, nor memory at one"));
        }
        Ok(Self { fetched: fetched.to_owned(), kind, unit_ns })
    }
}

/// How a simulated time is read from the raw data of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeValue {
    offset: usize,
    kind: NumberKind,
    unit_ns: u64,
}

impl TimeValue {
    /// The time in nanoseconds; `None` if the data end before it, and for times that are negative, no number, or longer
    /// than five centuries.
    pub fn read(&self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..)?;
        let bytes_of = |count: usize| bytes.get(..count);
        let unsigned = |count: usize| {
            let mut word = [0; 8];
            word[..count].copy_from_slice(bytes_of(count)?);
            Some(u64::from_le_bytes(word))
        };
        let number = match self.kind {
            NumberKind::Unsigned { bytes } => unsigned(bytes)?,
            NumberKind::Signed { bytes } => {
                let unused = 64 - 8 * bytes as u32;
                u64::try_from((unsigned(bytes)? << unused) as i64 >> unused).ok()?
            }
            NumberKind::Float => {
                let ns = (f64::from_bits(unsigned(8)?) * self.unit_ns as f64).round();
                return (0.0..u64::MAX as f64).contains(&ns).then_some(ns as u64);
            }
        };
        number.checked_mul(self.unit_ns)
    }
}

/// How the record of a step's begin tells the simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepTimeSource {
    /// Not at all.
    Unknown,
    /// By its number: each step takes as long.
    Every {
        /// How long.
        step_ns: u64,
    },
    /// By a number in its raw data.
    Value(TimeValue),
}

impl StepTimeSource {
    /// The simulated time when a process starts a step, after a number of others.
    pub(crate) fn read(self, begun_before: u64, raw: Option<&[u8]>) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Every { step_ns } => begun_before.checked_mul(step_ns),
            Self::Value(value) => raw.and_then(|raw| value.read(raw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(argument: &str, bytes: &[u8]) -> Option<u64> {
        argument.parse::<TimeArgument>().unwrap().value_at(0).read(bytes)
    }

    #[test]
    fn times_are_read_in_their_type_and_unit() {
        assert_eq!(read("%di", &1500u64.to_le_bytes()), Some(1500));
        assert_eq!(read("%si:u32 us", &7u64.to_le_bytes()), Some(7_000));
        assert_eq!(read("%di:s32 ms", &(-1i32).to_le_bytes()), None, "before the simulation began");
        assert_eq!(read("%di:s8", &[0x7f]), Some(127));
        assert_eq!(read("+8(%di):f64 s", &0.002f64.to_le_bytes()), Some(2_000_000));
        assert_eq!(read("%di:f64 s", &f64::NAN.to_le_bytes()), None);
        assert_eq!(read("%di:f64 s", &1e300f64.to_le_bytes()), None);
        assert_eq!(read("%di:u64 s", &u64::MAX.to_le_bytes()), None);
        assert_eq!(read("%di:u64", &[1, 2, 3]), None, "the data end before it");
    }

    #[test]
    fn arguments_are_written_in_the_kernels_types() {
        let kernel = |text: &str| text.parse::<TimeArgument>().unwrap().kernel_argument();
        assert_eq!(kernel("+8(%si):f64 s"), "+8(%si):u64");
        assert_eq!(kernel("%di"), "%di:s64");
        assert_eq!(kernel("$stack1:x32"), "$stack1:u32");
    }

    #[test]
    fn an_invalid_argument_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "empty"),
            ("%di:s64 h", "unit"),
            ("%di:s64 ns ns", "follows"),
            ("%di:string", "type"),
            ("di:s64", "register"),
            ("@0x10:s64", "register"),
            ("%di\\n-:sched/x:s64", "register"),
        ] {
            let error = text.parse::<TimeArgument>().unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
