//! `stepscope`: the performance lab for simulators and robotics software.
//!
//! Reads the command line, calls the crates below and prints. One short file per subcommand.

// First: its macros hide those of the standard library.
#[macro_use]
mod print;

mod arguments;
mod browser;
mod commands;
mod failure;
mod interrupt;
mod load;
mod output;
mod progress;
#[cfg(feature = "record")]
mod run_progress;

use std::process::ExitCode;

use clap::Parser;
use stepscope_analyze::analysis::OF_SEVERAL;

use commands::Command;

/// Record, rank, explain and compare the performance of simulators and robotics software.
#[derive(Parser)]
#[command(name = "stepscope", version, max_term_width = 100, after_help = EXIT_CODES, mut_subcommands(described))]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    display: output::DisplayArguments,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 failure, also of a scenario; 2 wrong usage or lab file; 130 interrupted.
`record` exits with 0 after Ctrl-C, because the capture is kept. `gate` has its own codes: `stepscope gate --help`.
Start with `stepscope demo`, or `stepscope record -- YOUR-SIMULATOR`, then `stepscope diagnose CAPTURE`.";

/// A subcommand with the help that the registry of analyses has for it.
fn described(command: clap::Command) -> clap::Command {
    match OF_SEVERAL.iter().find(|analysis| analysis.name == command.get_name()) {
        Some(analysis) => command.about(analysis.about),
        None => command,
    }
}

fn main() -> ExitCode {
    #[cfg(feature = "record")]
    if let Some(code) = stepscope_record::compiler_shim::run() {
        return code;
    }
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return print_help_or_error(&error),
    };
    output::set_display(line.display);
    match line.command.run() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Prints the requested help or the usage error. `gate` and `ci` have their own exit code for usage errors.
fn print_help_or_error(error: &clap::Error) -> ExitCode {
    #[cfg(not(feature = "record"))]
    if error.kind() == clap::error::ErrorKind::InvalidSubcommand {
        eprintln!("stepscope: this build is a viewer: it has no commands that record or run programs");
    }
    // A closed standard output is no error here.
    let _ = error.print();
    let is_gate = std::env::args_os().nth(1).is_some_and(|command| command == "gate" || command == "ci");
    match (error.use_stderr(), is_gate) {
        (false, _) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(commands::gate::NOT_JUDGED),
        (true, false) => ExitCode::from(2),
    }
}

/// The viewer lacks some subcommands, so the reference is that of the whole program.
#[cfg(all(test, feature = "record"))]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_analysis_of_several_captures_is_a_subcommand_with_its_help() {
        use clap::CommandFactory;

        let program = CommandLine::command();
        for analysis in OF_SEVERAL {
            let command = program.find_subcommand(analysis.name).expect("a subcommand");
            assert_eq!(command.get_about().map(ToString::to_string).as_deref(), Some(analysis.about));
        }
    }

    /// `BLESS=1 cargo test -p stepscope` writes the page again.
    #[test]
    fn the_reference_of_commands_is_up_to_date() {
        let options = clap_markdown::MarkdownOptions::new()
            .title("Commands".to_owned())
            .show_footer(false)
            .show_table_of_contents(true);
        let page = clap_markdown::help_markdown_custom::<CommandLine>(&options);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(path.parent().expect("the page is in a folder")).expect("docs/ is writable");
            fs::write(&path, page).expect("docs/ is writable");
        } else {
            let committed = fs::read_to_string(&path).unwrap_or_default();
            assert!(page == committed, "docs/reference/commands.md is outdated; run: BLESS=1 cargo test -p stepscope");
        }
    }
}
