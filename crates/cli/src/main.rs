//! `stepscope`: the performance lab for simulators and robotics software.
//!
//! The roof of the house: reads the command line, calls the rooms below, prints. One short file a verb.

mod arguments;
mod failure;
mod interrupt;
mod load;
mod output;
mod progress;
mod sides;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use verbs::Verb;

/// Record, rank, explain and compare the performance of simulators and robotics software.
#[derive(Parser)]
#[command(name = "stepscope", version, max_term_width = 100, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 failed, or a scenario of a run did; 2 wrong usage or lab file; 130 interrupted
(a recording that is interrupted is kept, and done). `gate` has its own: see `stepscope gate --help`.
The first minute: `stepscope demo`, or `stepscope record -- YOUR-SIMULATOR`, then `stepscope show CAPTURE`.";

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return told(&error),
    };
    match line.verb.run() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Help that was asked for, or what is wrong with the command line. A gate's exit code 2 has a meaning of its own.
fn told(error: &clap::Error) -> ExitCode {
    // Where standard output is closed there is nobody to tell.
    let _ = error.print();
    let of_gate = std::env::args_os().nth(1).is_some_and(|verb| verb == "gate");
    match (error.use_stderr(), of_gate) {
        (false, _) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(verbs::gate::NOT_JUDGED),
        (true, false) => ExitCode::from(2),
    }
}
