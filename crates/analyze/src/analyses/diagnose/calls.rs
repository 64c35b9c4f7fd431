//! [`Calls`]: how often functions are called per step, and how many of their calls repeat others, found out apart from the recording.

use serde::{Deserialize, Serialize};
use stepscope_model::{Capture, NoteValue, Phase};

use crate::query::functions::FunctionId;

/// Calls in the steady phase of scenarios.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// One count per scenario, variant and function.
    pub functions: Vec<FunctionCalls>,
    /// Calls that were replayed, one per scenario, variant and function.
    #[serde(default)]
    pub repeats: Vec<FunctionRepeats>,
}

/// Replayed calls of a function: how many have the inputs and the results of an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionRepeats {
    /// The scenario.
    pub scenario: Option<String>,
    /// The variant.
    pub variant: Option<String>,
    /// Full name of the function.
    pub function: String,
    /// Calls that were replayed.
    pub followed: u64,
    /// Of these, calls that repeat an earlier one.
    pub repeated: u64,
    /// The part of the function's work that these do, 0 to 1, as far as they tell.
    pub part: f64,
    /// Instructions of a call (median).
    pub instructions: u64,
    /// Bytes that a repeated call reads (median).
    pub input_bytes: u64,
    /// Bytes that a repeated call writes (median).
    pub output_bytes: u64,
    /// Of a Python function, whose calls have no such numbers: their arguments and what they read were compared by value.
    #[serde(default)]
    pub python: Option<PythonRepeats>,
    /// What its calls read; all zero in older files, and of Python functions.
    #[serde(default)]
    pub scans: FunctionScans,
    /// Calls of mathematical functions within them; all zero in older files, and of Python functions.
    #[serde(default)]
    pub mathematics: FunctionMathematics,
    /// What its calls leave behind; all zero in older files, and of Python functions.
    #[serde(default)]
    pub effects: FunctionEffects,
}

/// What the replayed calls of a function leave behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionEffects {
    /// Calls that write what is there already, but for the last digits of numbers.
    pub kept: u64,
    /// The part of the function's work that these do, 0 to 1.
    pub kept_part: f64,
    /// Bytes that such a call writes (median).
    pub kept_bytes: u64,
    /// Calls that leave all memory as it was.
    pub silent: u64,
    /// Different answers of these that their callers use; 0 if none is used.
    pub answers: u64,
}

/// Calls of functions of the mathematics library within the replayed calls of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionMathematics {
    /// How many there were.
    pub calls: u64,
    /// Of these, calls of different functions or with different numbers.
    pub different: u64,
    /// The part of their work that is for the numbers of an earlier call, 0 to 1.
    pub part: f64,
}

/// Compared calls of a Python function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PythonRepeats {
    /// CPU time of a call (median).
    pub call_ns: u64,
    /// What its calls read: arguments, attributes of `self`, globals.
    pub reads: Vec<String>,
}

/// What the replayed calls of a function read, and what of it their results depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionScans {
    /// Bytes that a call reads (median).
    pub read_bytes: u64,
    /// Bytes that a call writes (median).
    pub written_bytes: u64,
    /// The part of these bytes that an earlier call has read, too, with the same values, 0 to 1 (median).
    pub shared: f64,
    /// Different arguments of the calls.
    pub arguments: u64,
    /// Words of these bytes that were changed, one at a time.
    pub changed: u64,
    /// Of these, words whose change had another result.
    pub mattered: u64,
}

/// How often a function is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionCalls {
    /// The scenario.
    pub scenario: Option<String>,
    /// The variant.
    pub variant: Option<String>,
    /// Full name of the function.
    pub function: String,
    /// Calls per step.
    pub per_step: f64,
    /// Whether it was counted for a moment only, because counting its calls costs too much.
    #[serde(default)]
    pub briefly: bool,
}

impl Calls {
    /// Whether nothing was found out.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.repeats.is_empty()
    }

    /// The counts that belong to a capture.
    pub(super) fn of<'c>(&'c self, capture: &'c Capture) -> impl Iterator<Item = &'c FunctionCalls> {
        self.functions.iter().filter(|one| is_of(capture, &one.scenario, &one.variant))
    }

    /// The replays that belong to a capture.
    pub(super) fn repeats_of<'c>(&'c self, capture: &'c Capture) -> impl Iterator<Item = &'c FunctionRepeats> {
        self.repeats.iter().filter(|one| is_of(capture, &one.scenario, &one.variant))
    }
}

/// Whether a capture is of the scenario, and not of its loading. Both are absent for a capture of one command.
fn is_of(capture: &Capture, scenario: &Option<String>, variant: &Option<String>) -> bool {
    let info = &capture.info;
    (scenario, variant) == (&info.scenario, &info.variant) && info.phase != Some(Phase::Loading)
}

/// The calls of a function in a capture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub function: FunctionId,
    pub per_step: f64,
    briefly: bool,
    /// CPU time of a call with all it calls.
    pub call_ns: f64,
}

impl Rate {
    /// The rate of a function, each of whose calls takes this CPU time.
    pub fn of(function: FunctionId, calls: &FunctionCalls, call_ns: f64) -> Self {
        Self { function, per_step: calls.per_step, briefly: calls.briefly, call_ns }
    }

    /// How often, as text: `once`, `2.5 times`, `12 times`, `about 11,000 times`.
    pub fn times(&self) -> String {
        let rounded = |number: f64| {
            let unit = 10_f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
            (number / unit).round() * unit
        };
        match self.per_step {
            one if (one - 1.0).abs() < 0.02 => "once".to_owned(),
            few if few < 10.0 => format!("{few:.1} times"),
            many if self.briefly => format!("about {} times", NoteValue::number(rounded(many) as u64)),
            many => format!("{} times", NoteValue::number(many.round() as u64)),
        }
    }

    /// As a sentence.
    pub fn sentence(&self) -> String {
        let call = NoteValue::ns(self.call_ns);
        if self.per_step < 0.5 {
            let steps = NoteValue::number((1.0 / self.per_step).round() as u64);
            return format!("It is called once in {steps} steps; a call takes {call}.");
        }
        format!("It is called {} a step; a call takes {call}.", self.times())
    }
}
