//! [`SelectError`]: a filter that a capture cannot satisfy, and what there is instead.

use stepscope_model::quantity;
use thiserror::Error;

/// A filter that the capture cannot satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// Nothing has a matching name.
    #[error("no {what} matches `{pattern}`; {}{}", suggested(.would_match), choices(.what, .pattern, .known))]
    NoMatch {
        /// What was sought, e.g. `thread`.
        what: &'static str,
        /// The pattern as written.
        pattern: String,
        /// A wider pattern that something matches.
        would_match: Option<String>,
        /// What there is.
        known: Vec<String>,
    },
    /// A range of time was asked of evidence that has no times.
    #[error("the samples of this capture have no times, so no range of time can be selected; leave the range out")]
    NoTimes,
    /// The range of time lies outside of the recording.
    #[error("{}", outside(*.from_ns, *.to_ns, *.length_ns))]
    OutsideRecording {
        /// Start of the range, after the recording's start.
        from_ns: u64,
        /// End of the range.
        to_ns: u64,
        /// Length of the recording.
        length_ns: u64,
    },
    /// Steps were asked for, and there are none, or none of these: the numbers of the first and the last step there are.
    #[error("{}", no_such_steps(.0.as_ref()))]
    NoSuchSteps(Option<(u64, u64)>),
    /// Owned code was requested, but ownership is not configured.
    #[error(
        "no code is marked as owned; name it with `--owned 'gz::*'`, `--owned-module` or `--owned-source`, or `owned` in the lab file"
    )]
    NothingOwned,
}

fn no_such_steps(known: Option<&(u64, u64)>) -> String {
    match known {
        Some((first, last)) => format!("no step has such a number: there are steps {first} to {last}"),
        None => "no steps were recorded here, so none can be selected; leave the range of steps out".to_owned(),
    }
}

fn outside(from_ns: u64, to_ns: u64, length_ns: u64) -> String {
    let [from, to, length] = [from_ns, to_ns, length_ns].map(quantity::duration);
    if from_ns >= length_ns {
        return format!("nothing was recorded {from} after the start or later: the recording lasted {length}");
    }
    format!("a range from {from} to {to} after the start holds nothing; its end must be after its start")
}

fn suggested(would_match: &Option<String>) -> String {
    would_match.as_ref().map_or(String::new(), |pattern| format!("did you mean `'{pattern}'`? "))
}

/// Some of the known names; those that contain the pattern's text come first.
fn choices(what: &&str, pattern: &str, known: &[String]) -> String {
    const SHOWN: usize = 8;
    if known.is_empty() {
        let plural = if *what == "process" { "processes".to_owned() } else { format!("{what}s") };
        return format!("the capture has no {plural}");
    }
    let text = pattern.trim_matches(['*', '/']).to_lowercase();
    let (alike, others): (Vec<_>, Vec<_>) = known.iter().partition(|name| name.to_lowercase().contains(&text));
    let shown: Vec<String> = alike.iter().chain(&others).take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = known.len().saturating_sub(SHOWN);
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are {}{and_more}", shown.join(", "))
}
