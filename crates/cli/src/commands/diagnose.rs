//! `stepscope diagnose`: what to change first, why, and what it would gain.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::basis::is_build;
use stepscope_analyze::{Selection, cost_tree, diagnose};
use stepscope_lab::findings::findings;
use stepscope_model::{Table, Value, note};

use crate::arguments::analysed::AnalysedArguments;
use crate::failure::Failure;
use crate::output::TableArguments;

/// The arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct Diagnose {
    /// Run the scenarios of the run, or the command of the capture, again first: count calls of their functions (needs root), and replay
    /// some, or compare those of Python functions, to see which do the same work again. What is found is kept there and is evidence from then on.
    #[cfg(feature = "record")]
    #[arg(long)]
    deepen: bool,
    #[command(flatten)]
    analysed: AnalysedArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Diagnose {
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let loaded = self.analysed.load()?;
        let mut tables = self.analysed.analyse(&loaded, |selections| {
            #[cfg(feature = "record")]
            if self.deepen {
                let calls = deepened(&loaded, &self.analysed.sources, selections)?;
                return Ok(self.tables(selections, &calls));
            }
            Ok(self.tables(selections, &loaded.calls))
        })?;
        tables.iter_mut().for_each(|table| name_source(table, &self.analysed.sources));
        self.output.print(tables)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The findings. Where they explain less than half of the cost, people see what costs most, too: first, if no finding has a gain or names a
    /// function.
    fn tables(&self, selections: &[Selection<'_>], calls: &diagnose::Calls) -> Vec<Table> {
        /// Rows of the tree: the findings are on the same screen.
        const ROWS: usize = 12;
        /// Gains of all findings in percent from which on they say what costs most.
        const EXPLAINED: f64 = 50.0;
        let findings = findings(selections, calls);
        let gain = |row| match findings.get(row, "gain_share") {
            Some(Value::Float(share)) => Some(*share),
            _ => None,
        };
        let gains: Vec<f64> = (0..findings.rows.len()).filter_map(gain).collect();
        if self.output.for_programs() || gains.iter().sum::<f64>() >= EXPLAINED {
            return vec![findings];
        }
        let mut tree = cost_tree::table(selections, &cost_tree::Options::default());
        tree.notes.clear();
        // A build has no functions of yours.
        let can_run_again = |one: &Selection<'_>| !one.capture().info.command.is_empty() && !is_build(one.capture());
        if calls.is_empty()
            && cfg!(all(feature = "record", target_arch = "x86_64"))
            && selections.iter().all(can_run_again)
        {
            tree.notes.push(note!(
                Hint,
                "Samples do not show whether this work repeats earlier work. `stepscope diagnose --deepen RUN` runs the program again, \
                 and compares calls."
            ));
        }
        tree.keep_largest(ROWS);
        let names = |row| matches!(findings.get(row, "function"), Some(Value::Text(_)));
        let explain = !gains.is_empty() || (0..findings.rows.len()).any(names);
        let before = match findings.rows.is_empty() {
            true => "No known kind of defect was found. ",
            false if !explain => "No known kind of defect explains the cost. ",
            false => "",
        };
        tree.title = format!("{before}The functions that cost most, and the most that each could gain");
        if explain {
            return vec![findings, tree];
        }
        if findings.rows.is_empty() {
            // The title says so.
            tree.notes.extend(findings.notes.into_iter().filter(|note| *note != diagnose::none_found()));
            return vec![tree];
        }
        vec![tree, findings]
    }
}

/// Makes the commands of the evidence ready to be copied: the run or capture that was given stands for `RUN`.
fn name_source(table: &mut Table, sources: &[PathBuf]) {
    let is_plain = |path: &str| path.chars().all(|one| one.is_ascii_alphanumeric() || "/._-".contains(one));
    let [source] = sources else { return };
    let Some(source) = source.to_str().filter(|path| is_plain(path)) else { return };
    for value in table.rows.iter_mut().flatten() {
        if let Value::Text(text) = value {
            *text = text.replace(" RUN`", &format!(" {source}`")).replace(" RUN --", &format!(" {source} --"));
        }
    }
    table.notes.iter_mut().for_each(|note| note.replace(" RUN`", &format!(" {source}`")));
}

/// Looks at calls of the functions of a run, with progress.
#[cfg(feature = "record")]
fn deepened(
    loaded: &crate::load::Loaded,
    sources: &[PathBuf],
    selections: &[stepscope_analyze::Selection<'_>],
) -> Result<diagnose::Calls, Failure> {
    use stepscope_lab::deepen::{deepen, deepen_capture};
    if selections.iter().any(|one| is_build(one.capture())) {
        return Err(Failure::Usage(
            "--deepen compares calls of a program's functions, and a build has none".to_owned(),
        ));
    }
    let interrupted = crate::interrupt::flag();
    let progress = crate::run_progress::RunProgress::new();
    let deepened = match (&loaded.run, sources, selections) {
        (Some(run), ..) => progress.of(&interrupted, |context| deepen(run, selections, context)),
        (None, [folder], [selection]) if folder.is_dir() => {
            let command = selection.capture().info.command.join(" ");
            eprintln!("runs again: {}", command.replace(char::is_control, " "));
            progress.of(&interrupted, |context| deepen_capture(folder, selection, context))
        }
        _ => {
            let usage = "--deepen takes a run (the folder that `stepscope run` named) or one capture";
            return Err(Failure::Usage(usage.to_owned()));
        }
    }?;
    deepened.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(deepened.calls)
}
