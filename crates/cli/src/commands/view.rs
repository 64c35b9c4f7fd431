//! `stepscope view`: a run, or captures, in the browser.

use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::thread;
use std::time::Duration;

use clap::Args;
use stepscope_serve::{Server, Stop};

#[cfg(feature = "record")]
use super::live::{self, Recorded};
use super::served_page::{ServedPage, Viewed, app};
use crate::arguments::analysed::AnalysedArguments;
#[cfg(feature = "record")]
use crate::arguments::processes::ProcessArguments;
use crate::arguments::{LookArguments, ReadingArguments};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress;

/// How long tables that are being made may delay the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Show runs or captures in the browser: the verdict, steps, timeline, flame graphs and tables.
///
/// Listens on this machine's loopback address only, until Ctrl-C. The printed address has a random token, without which no
/// data are given. docs/app.md says how to open it from another machine.
#[derive(Debug, Clone, Args)]
pub struct View {
    /// Listen on this port [default: a free one].
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "PORT")]
    port: u16,
    /// Print the address, and open no browser.
    #[arg(long)]
    no_open: bool,
    /// Record a program and show it while it runs: `view --live -- COMMAND`, or with `--pid`. The capture is kept. A folder in which
    /// `record` is running is shown live without this flag.
    #[cfg(feature = "record")]
    #[arg(long, conflicts_with = "sources")]
    live: bool,
    #[cfg(feature = "record")]
    #[command(flatten)]
    processes: ProcessArguments,
    /// With --live: folder of the new capture [default: PROGRAM-TIME.capture in the working directory].
    #[cfg(feature = "record")]
    #[arg(short, long, requires = "live", value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// The folder is about to be recorded.
    #[cfg(feature = "record")]
    #[arg(long, hide = true)]
    starting: bool,
    /// Runs, captures, or files that can be imported [default: the newest run or capture in the working folder].
    #[arg(value_name = "RUN|CAPTURE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    /// With --live: the program and its arguments.
    #[cfg(feature = "record")]
    #[arg(last = true, requires = "live", value_name = "COMMAND")]
    command: Vec<String>,
}

impl View {
    pub fn run(self) -> Result<ExitCode, Failure> {
        #[cfg(feature = "record")]
        if let Some(watched) = self.watch_live() {
            return watched;
        }
        let mut page = self.served_page();
        let loaded = progress::of_step("reading captures", || page.analysed.load())?;
        let analysed = &page.analysed;
        if loaded.captures.is_empty() {
            return Err(Failure::Failed("no capture to show; see run.json for what happened".to_owned()));
        }
        analysed.analyse(&loaded, |selections| {
            let server = Server::bind(page.port)?;
            end_at_interrupt(server.stop())?;
            page.announce(&server)?;
            let viewed = Viewed::new(&loaded, selections);
            thread::scope(|scope| {
                // The browser will ask for both soon: first for what its pictures are made from.
                scope.spawn(|| {
                    viewed.prepare();
                    viewed.report().len()
                });
                server.run(&app(), &viewed)
            })?;
            Ok(ExitCode::SUCCESS)
        })
    }

    fn served_page(&self) -> ServedPage {
        ServedPage { port: self.port, no_open: self.no_open, analysed: self.analysed() }
    }

    /// What is analysed.
    fn analysed(&self) -> AnalysedArguments {
        let Self { sources, look, reading, .. } = self.clone();
        AnalysedArguments { sources, look, reading }
    }

    /// Shows a recording that goes on, if that is what was asked for.
    #[cfg(feature = "record")]
    fn watch_live(&self) -> Option<Result<ExitCode, Failure>> {
        let selection = self.processes.selection();
        if !selection.is_empty() && (!self.live || !self.command.is_empty()) {
            let usage = "flags that choose processes go with --live, and without a command";
            return Some(Err(Failure::Usage(usage.to_owned())));
        }
        let recorded = match (self.live, selection.is_empty(), &self.command[..]) {
            (false, ..) => {
                let [folder] = &self.sources[..] else { return None };
                if self.starting {
                    return Some(live::watch_parent(&self.served_page(), folder));
                }
                return live::is_being_recorded(folder).then(|| live::watch(&self.served_page(), folder));
            }
            (true, false, _) => Recorded::Processes(selection.clone()),
            (true, true, []) => {
                let missing = "--live needs a program to record: `view --live -- COMMAND`, or --pid";
                return Some(Err(Failure::Usage(missing.to_owned())));
            }
            (true, true, command) => Recorded::Program(command.to_vec()),
        };
        let folder =
            self.output.clone().unwrap_or_else(|| super::record::default_folder(&selection, self.command.first()));
        Some(live::record_and_view(&self.served_page(), &recorded, &folder))
    }
}

/// Nothing is lost when this program ends, so it does not wait for tables that nobody will see.
fn end_at_interrupt(stop: Stop) -> Result<(), Failure> {
    let end = move || {
        stop.stop();
        thread::sleep(FAREWELL);
        process::exit(0);
    };
    interrupt::at_first(end).map_err(Failure::writing("signals"))
}
