//! `stepscope ci`: a job of continuous integration: run, gate, and write what the job shows.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use stepscope_lab::lab_file::{FILE_NAME, LabFile};
use stepscope_lab::run::{LATEST, RUN_FILE};

use super::gate::NOT_JUDGED;
use crate::failure::Failure;
use crate::interrupt;

const AFTER_HELP: &str = "\
Exit codes are those of `stepscope gate`: 0 every limit is kept, or there is no baseline yet; 1 a limit is broken;
2 inconclusive; 3 not judged, or a scenario failed; 130 interrupted.
The folder receives summary.md, gate.json, gate.xml (JUnit), findings.sarif, report.html and runs/. If one of them fails,
the others are still written.";

/// Runs of the scenarios, unless the command line says otherwise.
const RUNS: u32 = 3;

/// Run the scenarios in a CI job, judge them by the limits of the lab file, and write summary, SARIF, JUnit and report.
///
/// Without --baseline, both variants of `[ab]` run alternately in this job (`stepscope ab`). Times can then be limited, because
/// both variants run on the same machine. With --baseline, this job's runs are compared with those of an earlier job: put limits
/// on counts.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Ci {
    /// The lab file.
    #[arg(default_value = FILE_NAME, value_name = "LAB")]
    lab: PathBuf,
    /// Folder with the runs of an earlier job. If it does not exist, nothing is judged, and the job passes.
    #[arg(long, value_name = "FOLDER")]
    baseline: Option<PathBuf>,
    /// Make this job's runs the new baseline, unless a limit is broken or a scenario failed.
    #[arg(long, requires = "baseline")]
    save_baseline: bool,
    /// Compare with a baseline of another machine. Only counts can be limited then.
    #[arg(long, requires = "baseline")]
    across_machines: bool,
    /// Runs of each scenario and variant [default: 3 with --baseline, else the lab file's].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// What an inconclusive limit counts as: pass, fail or report [default: the lab file's `inconclusive`, else report].
    #[arg(long, value_name = "AS")]
    inconclusive: Option<String>,
    /// Folder of the job's files. Those of an earlier job are replaced.
    #[arg(short, long, default_value = "stepscope-ci", value_name = "FOLDER")]
    output: PathBuf,
}

impl Ci {
    /// As with `gate`, a failure of the job itself is neither a pass nor a regression.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.job() {
            Ok(code) => Ok(ExitCode::from(code)),
            Err(failure) => {
                failure.report();
                Ok(ExitCode::from(NOT_JUDGED))
            }
        }
    }

    fn job(&self) -> Result<u8, Failure> {
        LabFile::read(&self.lab).map_err(|error| Failure::Usage(error.to_string()))?;
        let runs = self.runs_folder();
        prepare(&self.output, &runs)?;
        // A subcommand that is interrupted ends in order, and this one after it.
        let _interrupted = interrupt::flag();
        let recorded = self.record(&runs)?;
        if recorded == interrupt::EXIT_CODE {
            return Ok(recorded);
        }
        let (judged, headline) = self.gate(&runs)?;
        self.write_report(&runs)?;
        self.write_summary(&runs, headline)?;
        let code = if recorded == 0 || judged == 1 { judged } else { NOT_JUDGED };
        if self.save_baseline && (code == 0 || code == 2) {
            self.save(&runs)?;
        }
        Ok(code)
    }

    fn runs_folder(&self) -> PathBuf {
        self.output.join("runs")
    }

    /// Records both variants in turns, or the scenarios several times. Gives the exit code.
    fn record(&self, runs: &Path) -> Result<u8, Failure> {
        let count = |runs: u32| ["--runs".to_owned(), runs.to_string()];
        if self.baseline.is_none() {
            let more = self.runs.map(count).into_iter().flatten();
            return Step::new("ab").path(&self.lab).option("-o", runs).arguments(more).run_quietly();
        }
        let mut worst = 0;
        for _ in 0..self.runs.unwrap_or(RUNS) {
            worst = worst.max(Step::new("run").path(&self.lab).option("-o", runs).run_quietly()?);
            if worst == interrupt::EXIT_CODE {
                break;
            }
        }
        Ok(worst)
    }

    /// Judges the runs. Gives the exit code, and the line that stands before the summary if nothing was judged.
    fn gate(&self, runs: &Path) -> Result<(u8, Option<String>), Failure> {
        let mut gate = Step::new("gate");
        match &self.baseline {
            None => gate = gate.path(runs),
            Some(baseline) if !has_runs(baseline) => {
                let name = baseline.display();
                return Ok((0, Some(format!("**No baseline yet**: {name} has no runs, so nothing was judged."))));
            }
            Some(baseline) => {
                gate = gate.option("--lab", &self.lab).option("--baseline", &all_runs(baseline));
                gate = gate.option("--candidate", &all_runs(runs));
            }
        }
        if self.across_machines {
            gate = gate.arguments(["--across-machines".to_owned()]);
        }
        if let Some(inconclusive) = &self.inconclusive {
            gate = gate.arguments(["--inconclusive".to_owned(), inconclusive.clone()]);
        }
        let gate =
            gate.option("--markdown", &self.output.join("gate.md")).option("--junit", &self.output.join("gate.xml"));
        let code = gate.arguments(["--format", "json"].map(str::to_owned)).run_into(&self.output.join("gate.json"))?;
        let headline = (code == NOT_JUDGED).then(|| "**Not judged**: the log of the job says why.".to_owned());
        Ok((code, headline))
    }

    /// Findings for the code host, and the page. Without captures there are none, which the steps say.
    fn write_report(&self, runs: &Path) -> Result<(), Failure> {
        let sarif = ["--format", "sarif"].map(str::to_owned);
        Step::new("diagnose").path(runs).arguments(sarif).run_into(&self.output.join("findings.sarif"))?;
        Step::new("report").path(runs).option("-o", &self.output.join("report.html")).run()?;
        Ok(())
    }

    /// What a pull request shows: the gate, then the findings.
    fn write_summary(&self, runs: &Path, headline: Option<String>) -> Result<(), Failure> {
        let findings = self.output.join("findings.md");
        let most = ["--format", "markdown", "--limit", "5"].map(str::to_owned);
        Step::new("diagnose").path(runs).arguments(most).run_into(&findings)?;
        let parts = [headline, read(&self.output.join("gate.md")), read(&findings)];
        let text =
            parts.into_iter().flatten().map(|part| format!("{}\n", part.trim_end())).collect::<Vec<_>>().join("\n");
        let path = self.output.join("summary.md");
        fs::write(&path, &text).map_err(Failure::writing(&path.display().to_string()))?;
        println!("{text}");
        Ok(())
    }

    /// Replaces the baseline. It is complete at any time: the old one stays until the new one is copied.
    fn save(&self, runs: &Path) -> Result<(), Failure> {
        let Some(baseline) = &self.baseline else { return Ok(()) };
        let name = baseline.display().to_string();
        let copied = baseline.with_extension("new");
        let replaced = || -> io::Result<()> {
            remove(&copied)?;
            copy(runs, &copied)?;
            remove(baseline)?;
            fs::rename(&copied, baseline)
        };
        replaced().map_err(Failure::writing(&name))?;
        eprintln!("baseline: {name}");
        Ok(())
    }
}

/// One subcommand of this program, run and shown as a user would type it.
struct Step {
    arguments: Vec<String>,
}

impl Step {
    fn new(subcommand: &str) -> Self {
        Self { arguments: vec![subcommand.to_owned()] }
    }

    fn path(mut self, path: &Path) -> Self {
        self.arguments.push(path.display().to_string());
        self
    }

    fn option(mut self, flag: &str, path: &Path) -> Self {
        self.arguments.push(flag.to_owned());
        self.path(path)
    }

    fn arguments(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(more);
        self
    }

    /// Runs it with its output in the job's log.
    fn run(self) -> Result<u8, Failure> {
        self.spawn(Stdio::inherit())
    }

    fn run_quietly(self) -> Result<u8, Failure> {
        self.spawn(Stdio::null())
    }

    /// Runs it with its output in a file, which is removed if it stays empty.
    fn run_into(self, path: &Path) -> Result<u8, Failure> {
        let name = path.display().to_string();
        let code = self.spawn(File::create(path).map_err(Failure::writing(&name))?.into())?;
        if fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0) {
            fs::remove_file(path).map_err(Failure::writing(&name))?;
        }
        Ok(code)
    }

    fn spawn(self, output: Stdio) -> Result<u8, Failure> {
        eprintln!("$ stepscope {}", self.arguments.join(" "));
        let program = std::env::current_exe().map_err(Failure::writing("our own path"))?;
        let status = Command::new(program).args(&self.arguments).stdin(Stdio::null()).stdout(output).status();
        let status = status.map_err(Failure::writing("stepscope"))?;
        // A subcommand that a signal ended judged nothing.
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_JUDGED))
    }
}

/// Makes the job's folder, without the runs of an earlier job.
fn prepare(output: &Path, runs: &Path) -> Result<(), Failure> {
    let files = ["summary.md", "gate.md", "gate.json", "gate.xml", "findings.md", "findings.sarif", "report.html"];
    let prepared = || -> io::Result<()> {
        remove(runs)?;
        fs::create_dir_all(output)?;
        files.iter().try_for_each(|file| remove(&output.join(file)))
    };
    prepared().map_err(Failure::writing(&output.display().to_string()))
}

/// Whether a folder of runs has any.
fn has_runs(folder: &Path) -> bool {
    let is_run = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.path().join(RUN_FILE).is_file());
    fs::read_dir(folder).is_ok_and(|mut entries| entries.any(is_run))
}

/// A pattern for all runs in a folder: their names are dates, and the link to the latest has another name.
fn all_runs(folder: &Path) -> PathBuf {
    folder.join("[0-9]*")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Removes a file or folder, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Copies a folder of runs, without the link to the latest.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() && entry.file_name() != LATEST {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
