//! [`Outcome`]: how a trial ended. It is kept in `run.json` and determines the exit code.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// It has not run yet, or the run ended before it.
    NotRun,
    /// Every requested phase was recorded.
    Recorded,
    /// It failed; phases recorded before that are kept.
    Failed(Failure),
    /// The user interrupted it; earlier recordings are kept.
    Interrupted,
}

/// Why a trial failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stage that failed.
    pub stage: Stage,
    /// What happened and what may help, in sentences.
    pub reason: String,
    /// Exit code, or 128 + signal, of the program that ended, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// Last lines of the output of the program at fault, oldest first.
    #[serde(default)]
    pub last_lines: Vec<String>,
}

/// The stages of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its revision is checked out and built.
    Build,
    /// The program is launched.
    Launch,
    /// The program is not ready yet.
    Loading,
    /// Drivers have started; the steady recording has not.
    WarmUp,
    /// The steady recording.
    Steady,
    /// The programs are stopped.
    Stop,
    /// Addresses are resolved and captures are written.
    Finish,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stage::Build => "build",
            Stage::Launch => "launch",
            Stage::Loading => "loading",
            Stage::WarmUp => "warm-up",
            Stage::Steady => "steady",
            Stage::Stop => "stop",
            Stage::Finish => "finish",
        })
    }
}

impl Outcome {
    /// Whether every requested phase was recorded.
    pub fn is_recorded(&self) -> bool {
        *self == Outcome::Recorded
    }

    /// One line: `recorded`, `interrupted`, `failed (loading): ...`.
    pub fn summary(&self) -> String {
        match self {
            Outcome::NotRun => "not run".to_owned(),
            Outcome::Recorded => "recorded".to_owned(),
            Outcome::Failed(failure) => format!("failed ({}): {}", failure.stage, failure.reason),
            Outcome::Interrupted => "interrupted".to_owned(),
        }
    }
}

/// The exit code of `stepscope run`, as `docs/lab-file.md` documents it: 0 if all trials were recorded, 130 if the run
/// was interrupted, else 1.
pub fn exit_code<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> u8 {
    let mut code = 0;
    for outcome in outcomes {
        match outcome {
            Outcome::Recorded => {}
            Outcome::Interrupted => return 130,
            Outcome::Failed(_) | Outcome::NotRun => code = 1,
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Outcome {
        Outcome::Failed(Failure { stage: Stage::Loading, reason: "x".into(), status: Some(3), last_lines: Vec::new() })
    }

    #[test]
    fn the_exit_code_differs_for_all_recorded_some_failed_and_interrupted() {
        assert_eq!(exit_code(&[Outcome::Recorded, Outcome::Recorded]), 0);
        assert_eq!(exit_code(&[failed(), Outcome::Recorded]), 1);
        assert_eq!(exit_code(&[failed(), Outcome::Interrupted, Outcome::NotRun]), 130);
    }

    #[test]
    fn an_outcome_is_written_flat() {
        let text = serde_json::to_string(&failed()).unwrap();
        assert_eq!(text, r#"{"outcome":"failed","stage":"loading","reason":"x","status":3,"last_lines":[]}"#);
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), failed());
    }
}
