//! `stepscope completions` and `stepscope man`, from the definition of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::CommandLine;
use crate::failure::Failure;
use crate::output::Target;

/// Print a completion script for a shell.
///
/// bash: stepscope completions bash > ~/.local/share/bash-completion/completions/stepscope.
/// zsh: stepscope completions zsh > a file _stepscope in a folder of $fpath.
/// fish: stepscope completions fish > ~/.config/fish/completions/stepscope.fish.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "stepscope", &mut script);
        Target::Stdout.write(|out| out.write_all(&script).map_err(Failure::writing("standard output")))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Print the manual page, or write one page per subcommand into a folder.
#[derive(Debug, Args)]
pub struct Man {
    /// Folder for stepscope.1, stepscope-show.1, ..., e.g. ~/.local/share/man/man1 [default: print stepscope.1].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let command = CommandLine::command();
        let Some(folder) = self.output else {
            let text = page(command)?;
            Target::Stdout.write(|out| out.write_all(&text).map_err(Failure::writing("standard output")))?;
            return Ok(ExitCode::SUCCESS);
        };
        let name = folder.display().to_string();
        std::fs::create_dir_all(&folder).map_err(Failure::writing(&name))?;
        for (path, command) in pages(&command, &[]) {
            let title = path.join("-");
            let file = folder.join(format!("{title}.1"));
            let text = page(command.clone().display_name(title).bin_name(path.join(" ")))?;
            Target::File(file).write(|out| out.write_all(&text).map_err(Failure::writing(&name)))?;
        }
        println!("{name}");
        Ok(ExitCode::SUCCESS)
    }
}

/// A command and all below it, each with its words; hidden ones have no page.
fn pages<'c>(command: &'c Command, above: &[&'c str]) -> Vec<(Vec<&'c str>, &'c Command)> {
    let path = [above, &[command.get_name()]].concat();
    let below = command.get_subcommands().filter(|one| !one.is_hide_set()).flat_map(|one| pages(one, &path));
    below.chain([(path.clone(), command)]).collect()
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text).map_err(Failure::writing("the manual page"))?;
    Ok(text)
}
