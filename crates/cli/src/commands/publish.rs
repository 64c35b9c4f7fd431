//! `stepscope publish`: a run as a folder of a static site.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_app::page;
use stepscope_lab::publish::{Change, Disclosed, Prepared, PublishError, Request, Site};
use stepscope_model::quantity::{plural, weight};

use crate::failure::Failure;
use crate::progress;

/// Publish a run: a dated folder for any static host, and an index of all published runs.
///
/// The folder has the report (of an A/B run with the comparison), flame graphs, folded stacks, all tables as TSV and Parquet, the
/// lab file and the machine. The captures themselves are not published. Publishing a run again changes only what differs.
#[derive(Debug, Args)]
pub struct Publish {
    /// The run, or a capture.
    #[arg(value_name = "RUN|CAPTURE")]
    source: PathBuf,
    /// The folder of the site; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    site: PathBuf,
    /// A remark that the index shows beside the run.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// List what would be published, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Publish {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let request = Request { note: self.note.clone() };
        let prepared = progress::of_step("preparing the pages", || {
            Prepared::of(&self.source, &request, &|report, selections, out| {
                page::write(report, selections, page::BUDGET, out).map(|_| ())
            })
        })
        .map_err(failure)?;
        let site = Site::at(&self.site);
        for file in &prepared.publication.files {
            println!("{:>9}  {}", weight(file.bytes as f64, "bytes"), file.path);
        }
        let bytes: u64 = prepared.publication.files.iter().map(|file| file.bytes).sum();
        let files = plural(prepared.publication.files.len(), "file");
        disclose(&prepared.disclosed);
        if self.dry_run {
            let (folder, change) = site.plan(&prepared).map_err(failure)?;
            println!("would be {} {}: {files}, {}", said(change), folder.display(), weight(bytes as f64, "bytes"));
            return Ok(ExitCode::SUCCESS);
        }
        let outcome = progress::of_step("publishing", || site.publish(&prepared)).map_err(failure)?;
        outcome.notes.iter().for_each(|note| eprintln!("note: {note}"));
        println!("{} {}: {files}, {}", said(outcome.change), outcome.folder.display(), weight(bytes as f64, "bytes"));
        if outcome.shared.0 > 0 {
            let (count, bytes) = outcome.shared;
            println!("{} stored once with other runs ({})", plural(count, "file"), weight(bytes as f64, "bytes"));
        }
        println!("{}", self.site.join("index.html").display());
        Ok(ExitCode::SUCCESS)
    }
}

fn said(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Replaced => "replaced",
        Change::Unchanged => "unchanged",
    }
}

/// Names what readers of the site learn about the machine and the program.
fn disclose(disclosed: &Disclosed) {
    const MOST: usize = 8;
    let Disclosed { hosts, commands, folders, environment, warnings } = disclosed;
    let groups =
        [("hosts", hosts), ("commands", commands), ("folders", folders), ("environment variables", environment)];
    for (what, names) in groups.into_iter().filter(|(_, names)| !names.is_empty()) {
        let shown: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
        let more = names.len().saturating_sub(MOST);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        eprintln!("note: {what} in these files: {}{more}", shown.join(", "));
    }
    if !environment.is_empty() {
        eprintln!("note: values of environment variables are published only where the lab file states them");
    }
    warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
}

fn failure(error: PublishError) -> Failure {
    match error {
        PublishError::Source(error) => error.into(),
        PublishError::Io { .. } | PublishError::NotOurs(_) => Failure::Failed(error.to_string()),
    }
}
