//! `[gate]`: the largest change for the worse of metrics, functions and threads.

use std::fmt;

use stepscope_analyze::metrics::{self, Better};
use stepscope_analyze::{Pattern, PatternError};

use super::decode::{Field, Fields, Problems};
use super::metric::MetricSettings;
use super::problem::did_you_mean;

const LIMIT: &str = r#"a tolerated change, e.g. "+5%" or "+2ms", or "off""#;

/// The metrics whose number itself can be limited: no sampling is in them, and they are the same on every machine.
const EXACT_COUNTS: [&str; 6] =
    ["memory_errors", "heap.allocations", "heap.temporary", "syscalls.count", "syscalls.errors", "instructions"];

/// `[gate]`, overridden by the scenario's own `gate`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Functions, threads, then metrics, in the order of the file. Each is limited once.
    pub limits: Vec<Limit>,
    /// What an inconclusive limit counts as.
    pub inconclusive: Inconclusive,
}

/// The largest tolerated change for the worse.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// What it limits.
    pub of: Limited,
    /// The largest change for the worse.
    pub allowed: Allowed,
}

/// What a limit applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limited {
    /// A metric of the whole recording, one of [`metrics::NAMES`].
    Metric(String),
    /// A statistic of one of the user's own metrics.
    Own {
        /// Its name: `metric.NAME.STATISTIC`.
        name: String,
        /// Which way it should go.
        better: Better,
        /// Unit of amounts.
        unit: Unit,
    },
    /// The attributed cost per step (or second) of each function that this name, glob or `/regex/` fits.
    Function(String),
    /// The allocations per step (or second) of each function that this name, glob or `/regex/` fits.
    Allocations(String),
    /// The system calls per step (or second) of each function that this name, glob or `/regex/` fits.
    SystemCalls(String),
    /// The CPU time per step (or second) of the threads that this name, glob or `/regex/` fits.
    Thread(String),
}

/// How far a value may change for the worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// Percent of the baseline; not negative.
    Percent(f64),
    /// An amount in a unit; not negative.
    Amount {
        /// The amount.
        value: f64,
        /// Its unit.
        unit: Unit,
    },
    /// The value itself may be at most this, whatever it was before. Only for exact counts.
    AtMost(f64),
}

/// Units of amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Time.
    Nanoseconds,
    /// Memory or data.
    Bytes,
    /// A count or a ratio.
    Plain,
}

/// What an inconclusive limit counts as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Inconclusive {
    /// `"pass"`: the limit is kept.
    Pass,
    /// `"fail"`: the limit is broken.
    Fail,
    /// `"report"`: neither; the gate has its own exit code for it.
    #[default]
    Report,
}

impl Limited {
    /// The direction of improvement: lower for costs.
    pub fn better(&self) -> Better {
        match self {
            Limited::Metric(name) => metrics::better(name),
            Limited::Own { better, .. } => *better,
            _ => Better::Lower,
        }
    }

    /// Whether its values are exact, so that they need no interval.
    fn is_exact_count(&self) -> bool {
        matches!(self, Limited::Metric(name) if EXACT_COUNTS.contains(&name.as_str()))
    }

    /// Unit of its amounts.
    pub fn unit(&self) -> Unit {
        let name = match self {
            Limited::Metric(name) => name,
            Limited::Own { unit, .. } => return *unit,
            Limited::Allocations(_) | Limited::SystemCalls(_) => return Unit::Plain,
            Limited::Function(_) | Limited::Thread(_) => return Unit::Nanoseconds,
        };
        match name.as_str() {
            "rss.peak" | "io.read" | "io.written" | "heap.allocated" | "heap.peak" | "heap.leaked" => Unit::Bytes,
            "rtf" | "cores" | "faults.minor" | "faults.major" | "switches" => Unit::Plain,
            name if EXACT_COUNTS.contains(&name) => Unit::Plain,
            "flows.late" | "flows.lost" | "timers.missed" => Unit::Plain,
            name if ["cache.", "sharing."].iter().any(|prefix| name.starts_with(prefix)) => Unit::Plain,
            _ => Unit::Nanoseconds,
        }
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limited::Metric(name) | Limited::Own { name, .. } => f.write_str(name),
            Limited::Function(name) => write!(f, "function {name}"),
            Limited::Allocations(name) => write!(f, "allocations of {name}"),
            Limited::SystemCalls(name) => write!(f, "system calls of {name}"),
            Limited::Thread(name) => write!(f, "thread {name}"),
        }
    }
}

impl Limit {
    /// As in a lab file: `-3%` if it should rise, `+5%` if it should fall.
    pub fn text(&self) -> String {
        let sign = if self.of.better() == Better::Higher { '-' } else { '+' };
        match self.allowed {
            Allowed::AtMost(value) => format!("at most {value}"),
            Allowed::Percent(percent) => format!("{sign}{percent}%"),
            Allowed::Amount { value, unit: Unit::Plain } => format!("{sign}{value}"),
            Allowed::Amount { value, unit } => {
                let units = if unit == Unit::Bytes { ["GB", "MB", "kB", "B"] } else { ["s", "ms", "us", "ns"] };
                let scaled = [1e9, 1e6, 1e3].into_iter().zip(units).find(|(scale, _)| value >= *scale);
                let (scale, unit) = scaled.unwrap_or((1.0, units[3]));
                format!("{sign}{}{unit}", value / scale)
            }
        }
    }
}

/// The given keys of a `[gate]`; `None` removes a limit of all scenarios.
#[derive(Debug, Default)]
pub(super) struct PartialLimits {
    limits: Vec<(Limited, Option<Allowed>)>,
    inconclusive: Option<Inconclusive>,
}

impl PartialLimits {
    /// Reads a table of limits.
    pub(super) fn read(mut fields: Fields, own: &[MetricSettings], problems: &mut Problems) -> Self {
        // The key's name in older versions.
        let earlier = fields.take("cannot_tell");
        let field = fields.take("inconclusive").or(earlier);
        let inconclusive = field.and_then(|field| inconclusive(&field, problems));
        let mut partial = Self { inconclusive, ..Self::default() };
        type Of = fn(String) -> Limited;
        const NAMED: [(&str, Of); 4] = [
            ("function", Limited::Function),
            ("allocations", Limited::Allocations),
            ("system_calls", Limited::SystemCalls),
            ("thread", Limited::Thread),
        ];
        for (kind, of) in NAMED {
            if let Some(field) = fields.take(kind) {
                partial.read_named(&field, kind, of, problems);
            }
        }
        for (name, field) in fields.take_all() {
            partial.read_metric(name, &field, own, problems);
        }
        partial
    }

    /// A metric, whose name has a dot or is spread over tables: `"step.p99" = ...` and `step.p99 = ...`.
    fn read_metric(&mut self, name: &str, field: &Field, own: &[MetricSettings], problems: &mut Problems) {
        if field.is_table() {
            let Some(mut inner) = field.table(problems, format!("`{name}`"), LIMIT) else { return };
            for (rest, field) in inner.take_all() {
                self.read_metric(&format!("{name}.{rest}"), &field, own, problems);
            }
            return;
        }
        if let Some(metric) = own_metric(name, own) {
            return self.read_limit(metric, field, problems);
        }
        let Some(known) = metrics::NAMES.into_iter().find(|known| *known == name) else {
            let others = ["inconclusive", "function", "allocations", "system_calls", "thread"];
            let own = own_metrics(own);
            let hint = match did_you_mean(name, metrics::NAMES.into_iter().chain(others)) {
                _ if name.starts_with(metrics::OWN_PREFIX) && own.is_empty() => {
                    "; define one in a section [metric.NAME]".to_owned()
                }
                _ if name.starts_with(metrics::OWN_PREFIX) => format!("; your metrics are `{}`", own.join("`, `")),
                none if none.is_empty() => {
                    format!("; metrics are `{}`; functions go below [gate.function]", metrics::NAMES.join("`, `"))
                }
                nearest => nearest,
            };
            problems.add(field.key_span.clone(), format!("there is no metric `{name}`{hint}"));
            return;
        };
        self.read_limit(Limited::Metric(known.to_owned()), field, problems);
    }

    fn read_named(&mut self, field: &Field, kind: &str, of: fn(String) -> Limited, problems: &mut Problems) {
        let expected = format!(r#"a table of names and tolerated changes, e.g. [gate.{kind}] "NAME" = "+5%""#);
        let Some(mut fields) = field.table(problems, format!("`{kind}`"), &expected) else { return };
        for (name, field) in fields.take_all() {
            let pattern: Result<Pattern, PatternError> = name.parse();
            match pattern {
                Ok(_) => self.read_limit(of(name.to_owned()), &field, problems),
                Err(error) => problems.add(field.key_span.clone(), error.to_string()),
            }
        }
    }

    fn read_limit(&mut self, of: Limited, field: &Field, problems: &mut Problems) {
        if field.is_integer() && of.is_exact_count() {
            let Some(most) = field.integer(problems, 0..=u64::from(u32::MAX)) else { return };
            return self.add(of, Some(Allowed::AtMost(most as f64)), field, problems);
        }
        let Some(text) = field.string(problems, LIMIT) else { return };
        let allowed = match text.as_str() {
            "off" => Ok(None),
            text => allowed(&of, text).map(Some),
        };
        match allowed {
            Ok(allowed) => self.add(of, allowed, field, problems),
            Err(reason) => problems.add(field.span(), format!("{} is \"{text}\": {reason}", field.what)),
        }
    }

    fn add(&mut self, of: Limited, allowed: Option<Allowed>, field: &Field, problems: &mut Problems) {
        match self.limits.iter().any(|(there, _)| *there == of) {
            true => problems.add(field.key_span.clone(), format!("{of} has two limits")),
            false => self.limits.push((of, allowed)),
        }
    }

    /// These keys; missing ones are those of `general`.
    pub(super) fn over(self, general: &Limits) -> Limits {
        let mut merged = general.clone();
        merged.inconclusive = self.inconclusive.unwrap_or(merged.inconclusive);
        for (of, allowed) in self.limits {
            let there = merged.limits.iter().position(|limit| limit.of == of);
            match (there, allowed) {
                (Some(index), Some(allowed)) => merged.limits[index].allowed = allowed,
                (Some(index), None) => drop(merged.limits.remove(index)),
                (None, Some(allowed)) => merged.limits.push(Limit { of, allowed }),
                (None, None) => {}
            }
        }
        merged
    }
}

/// The names of all metrics that the lab file defines.
fn own_metrics(own: &[MetricSettings]) -> Vec<String> {
    let names = |metric: &MetricSettings| {
        metrics::OWN_STATISTICS.map(|statistic| format!("{}{}.{statistic}", metrics::OWN_PREFIX, metric.name))
    };
    own.iter().flat_map(names).collect()
}

/// The statistic in `metric.NAME.STATISTIC`.
fn own_metric(name: &str, own: &[MetricSettings]) -> Option<Limited> {
    let (metric, statistic) = name.strip_prefix(metrics::OWN_PREFIX)?.rsplit_once('.')?;
    let metric = own.iter().find(|known| known.name == metric)?;
    let unit = match metric.unit.as_str() {
        "ns" => Unit::Nanoseconds,
        "bytes" => Unit::Bytes,
        _ => Unit::Plain,
    };
    let known = metrics::OWN_STATISTICS.contains(&statistic);
    known.then(|| Limited::Own { name: name.to_owned(), better: metric.better, unit })
}

fn inconclusive(field: &Field, problems: &mut Problems) -> Option<Inconclusive> {
    const EXPECTED: &str = r#""pass", "fail" or "report""#;
    let text = field.string(problems, EXPECTED)?;
    let known =
        [("pass", Inconclusive::Pass), ("fail", Inconclusive::Fail), ("report", Inconclusive::Report)].into_iter();
    let found = known.clone().find(|(name, _)| *name == text).map(|(_, found)| found);
    if found.is_none() {
        let hint = did_you_mean(&text, known.map(|(name, _)| name));
        problems.add(field.span(), format!("{} must be {EXPECTED}, not \"{text}\"{hint}", field.what));
    }
    found
}

/// A percentage without a sign, such as `5%`.
pub(super) fn percent(text: &str) -> Option<f64> {
    number(text.strip_suffix('%')?.trim_end()).filter(|percent| (0.0..=1e6).contains(percent))
}

/// `+5%`, `-3 %`, `+2ms`, `10MB`: the largest change of `of` for the worse.
///
/// # Errors
/// Why the text is not such a change.
fn allowed(of: &Limited, text: &str) -> Result<Allowed, String> {
    let (sign, rest) = match text.strip_prefix(['+', '-', '\u{2212}']) {
        Some(rest) => (text.chars().next().map(|sign| if sign == '+' { '+' } else { '-' }), rest.trim_start()),
        None => (None, text),
    };
    let wanted = if of.better() == Better::Higher { '-' } else { '+' };
    let allowed = magnitude(of, rest)?;
    match sign {
        Some(sign) if sign != wanted => {
            let (should, may) = if wanted == '-' { ("rise", "fall") } else { ("fall", "rise") };
            Err(format!("{of} should {should}; its limit is how far it may {may}: \"{wanted}{rest}\""))
        }
        _ => Ok(allowed),
    }
}

fn magnitude(of: &Limited, text: &str) -> Result<Allowed, String> {
    let expected = match of.unit() {
        Unit::Nanoseconds => "expected percent or time, e.g. \"5%\" or \"2ms\" (ns, us, ms, s)",
        Unit::Bytes => "expected percent or bytes, e.g. \"5%\" or \"20MB\" (B, kB, KiB, MB, MiB, GB, GiB)",
        Unit::Plain => "expected percent or a number, e.g. \"5%\" or \"2\"",
    };
    if text.ends_with('%') {
        return percent(text).map(Allowed::Percent).ok_or_else(|| expected.to_owned());
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let scale = match (of.unit(), unit.trim()) {
        (Unit::Nanoseconds, "ns") | (Unit::Bytes, "B") | (Unit::Plain, "") => 1.0,
        (Unit::Nanoseconds, "us" | "\u{b5}s" | "\u{3bc}s") | (Unit::Bytes, "kB" | "KB") => 1e3,
        (Unit::Nanoseconds, "ms") | (Unit::Bytes, "MB") => 1e6,
        (Unit::Nanoseconds, "s") | (Unit::Bytes, "GB") => 1e9,
        (Unit::Bytes, "KiB") => 1024.0,
        (Unit::Bytes, "MiB") => 1_048_576.0,
        (Unit::Bytes, "GiB") => 1_073_741_824.0,
        _ => return Err(expected.to_owned()),
    };
    let value = number(digits).ok_or_else(|| expected.to_owned())? * scale;
    Ok(Allowed::Amount { value, unit: of.unit() })
}

/// A number without a sign and exponent.
fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(of: Limited, text: &str) -> Result<Allowed, String> {
        allowed(&of, text)
    }

    #[test]
    fn a_tolerated_change_is_a_part_or_an_amount_with_its_unit() {
        let p99 = || Limited::Metric("step.p99".into());
        assert_eq!(read(p99(), "+5%"), Ok(Allowed::Percent(5.0)));
        assert_eq!(read(p99(), "2.5 %"), Ok(Allowed::Percent(2.5)));
        assert_eq!(read(p99(), "+2ms"), Ok(Allowed::Amount { value: 2e6, unit: Unit::Nanoseconds }));
        let memory = Limited::Metric("rss.peak".into());
        assert_eq!(read(memory, "+1.5 MiB"), Ok(Allowed::Amount { value: 1_572_864.0, unit: Unit::Bytes }));
        let faults = Limited::Metric("faults.major".into());
        assert_eq!(read(faults, "+2"), Ok(Allowed::Amount { value: 2.0, unit: Unit::Plain }));
    }

    #[test]
    fn the_sign_must_be_that_of_a_worsening() {
        assert_eq!(read(Limited::Metric("rtf".into()), "-3%"), Ok(Allowed::Percent(3.0)));
        assert_eq!(read(Limited::Metric("rtf".into()), "\u{2212}3%"), Ok(Allowed::Percent(3.0)));
        let error = read(Limited::Metric("rtf".into()), "+3%").unwrap_err();
        assert_eq!(error, "rtf should rise; its limit is how far it may fall: \"-3%\"");
        let error = read(Limited::Function("f".into()), "-5%").unwrap_err();
        assert_eq!(error, "function f should fall; its limit is how far it may rise: \"+5%\"");
    }

    #[test]
    fn an_invalid_limit_is_refused_with_the_expected_form() {
        for (name, text) in [("wall", "5"), ("wall", "2MB"), ("rtf", "2ms"), ("rss.peak", "%"), ("cores", "1e3")] {
            let error = read(Limited::Metric(name.into()), text).unwrap_err();
            assert!(error.starts_with("expected percent or "), "{name} = {text}: {error}");
        }
    }

    #[test]
    fn a_limit_is_shown_as_written() {
        let none = Limit { of: Limited::Metric("memory_errors".into()), allowed: Allowed::AtMost(0.0) };
        assert_eq!(none.text(), "at most 0");
        let limit = |of, allowed| Limit { of, allowed }.text();
        assert_eq!(limit(Limited::Metric("rtf".into()), Allowed::Percent(3.0)), "-3%");
        let amount = |value, unit| Allowed::Amount { value, unit };
        assert_eq!(limit(Limited::Metric("wall".into()), amount(2.5e6, Unit::Nanoseconds)), "+2.5ms");
        assert_eq!(limit(Limited::Metric("rss.peak".into()), amount(20e6, Unit::Bytes)), "+20MB");
        assert_eq!(limit(Limited::Metric("switches".into()), amount(2.0, Unit::Plain)), "+2");
    }
}
