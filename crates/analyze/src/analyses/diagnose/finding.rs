//! [`Finding`]: what could be changed, with its evidence and what it would gain.

use stepscope_model::NoteValue;
use stepscope_stats::Estimate;

use super::gain::Gain;
use super::seen::Seen;
use crate::query::functions::FunctionId;

/// How sure it is that a finding is what its title says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Something else could look the same. The finding says what to record to know.
    Weak,
    /// The evidence fits, and little else looks like it.
    Fair,
    /// The evidence shows it.
    Strong,
}

impl Confidence {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Fair => "fair",
            Self::Strong => "strong",
        }
    }
}

/// A number that a finding rests on, and where to see it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evidence {
    /// One sentence.
    pub text: String,
    /// The command that shows it, without the sources; none if calls were looked at, which nothing else shows.
    pub command: Option<String>,
}

/// What a detector found in one capture.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The owned function that decides it; none if it is about the whole program.
    pub function: Option<FunctionId>,
    /// One sentence: what happens.
    pub title: String,
    /// The part of each stack's cost that a change takes away; empty if the gain is not of CPU time.
    pub without: Vec<f32>,
    /// What it gains; `None` if that is unknown.
    pub gain: Option<Gain>,
    pub confidence: Confidence,
    pub evidence: Vec<Evidence>,
    /// What it gains at twice the largest size of a sweep, over what it gains at that size.
    pub twice: Option<Estimate>,
    /// Whether what would confirm it was recorded, and does.
    pub is_confirmed: bool,
    /// What to do, if that is another thing than for others of the kind.
    pub advice: Option<&'static str>,
}

impl Found {
    /// A finding about a function whose change takes away these parts of the stacks.
    pub fn of(seen: &Seen<'_, '_>, function: FunctionId, title: String, without: Vec<f32>) -> Self {
        let gain = Some(seen.gain(&without));
        Self {
            function: Some(function),
            title,
            without,
            gain,
            confidence: Confidence::Fair,
            evidence: Vec::new(),
            twice: None,
            is_confirmed: false,
            advice: None,
        }
    }

    /// A finding without a function.
    pub fn of_program(title: String, gain: Option<Gain>) -> Self {
        Self {
            function: None,
            title,
            without: Vec::new(),
            gain,
            confidence: Confidence::Fair,
            evidence: Vec::new(),
            twice: None,
            is_confirmed: false,
            advice: None,
        }
    }

    /// The recording that would confirm it is there, and does: it is sure, and this is why.
    #[must_use]
    pub fn confirmed(self, text: impl Into<String>, command: impl Into<String>) -> Self {
        Self { confidence: Confidence::Strong, is_confirmed: true, ..self.because(text, command) }
    }

    #[must_use]
    pub fn advising(self, advice: &'static str) -> Self {
        Self { advice: Some(advice), ..self }
    }

    #[must_use]
    pub fn about(self, function: Option<FunctionId>) -> Self {
        Self { function, ..self }
    }

    #[must_use]
    pub fn sure(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// A hint: what a change would gain is unknown.
    #[must_use]
    pub fn without_gain(self) -> Self {
        Self { gain: None, without: Vec::new(), twice: None, confidence: Confidence::Weak, ..self }
    }

    /// The gain may be this many times as large: what a change takes away also slows other code, which samples attribute to that code.
    #[must_use]
    pub fn up_to(mut self, times: f64, why: &str, command: impl Into<String>) -> Self {
        if let Some(gain) = &mut self.gain {
            gain.time.high = gain.time.high.max(gain.time.value * times).min(gain.whole_ns);
        }
        self.because(why, command)
    }

    /// Predicts the gain at twice the largest size, from what a change takes away there and at the largest size.
    #[must_use]
    pub fn at_twice(mut self, now: Estimate, twice: Estimate) -> Self {
        self.twice = (now.value > 0.0).then(|| twice.times(1.0 / now.value));
        self
    }

    /// Adds evidence from calls that were looked at: [`Calls`](super::calls::Calls).
    #[must_use]
    pub fn because_of_calls(mut self, text: impl Into<String>) -> Self {
        self.evidence.push(Evidence { text: text.into(), command: None });
        self
    }

    /// Adds evidence: a sentence and the command that shows it.
    #[must_use]
    pub fn because(mut self, text: impl Into<String>, command: impl Into<String>) -> Self {
        self.evidence.push(Evidence { text: text.into(), command: Some(command.into()) });
        self
    }
}

/// Of candidates that share their cost, the innermost that has `nearly` the gain of its callers, as a part of theirs. They come from the inside out; `shares`
/// says whether the first has the cost of the second.
pub(super) fn innermost<C>(
    candidates: Vec<C>,
    nearly: f64,
    gain: impl Fn(&C) -> f64,
    shares: impl Fn(&C, &C) -> bool,
) -> Vec<C> {
    let mut chosen: Vec<C> = Vec::new();
    for one in candidates {
        if chosen.iter().any(|other| shares(&one, other) && gain(other) >= gain(&one) * nearly) {
            continue;
        }
        chosen.retain(|other| !shares(&one, other));
        chosen.push(one);
    }
    chosen
}

/// A power of a size with the interval of its exponent, as text.
pub(super) fn power(axis: &str, exponent: Estimate) -> String {
    format!("{axis}^{:.2} ({:.2} to {:.2})", exponent.value, exponent.low, exponent.high)
}

/// A percentage as text.
pub(super) fn percent(share: f64) -> String {
    NoteValue::percent(share).to_string()
}

/// A duration as text.
pub(super) fn ns(ns: f64) -> String {
    NoteValue::ns(ns).to_string()
}

/// The command that explains a function.
pub(super) fn explain(seen: &Seen<'_, '_>, function: FunctionId) -> String {
    format!("explain '{}'", seen.name(function))
}
