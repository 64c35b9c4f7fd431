//! The page that a server shows: its address, and what the browser asks for.

use std::fs;
use std::io::{self, Write as _};
use std::panic::resume_unwind;
#[cfg(feature = "record")]
use std::path::Path;
use std::sync::OnceLock;
use std::thread;

use stepscope_analyze::Selection;
use stepscope_app::document::Document;
use stepscope_app::{Dataset, Limits, SHELL, app_css, app_js};
use stepscope_lab::comparison::with_comparison;
use stepscope_lab::findings::findings;
use stepscope_lab::report::{heading, report, verdict_first};
use stepscope_lab::run::RunInfo;
use stepscope_model::Table;
use stepscope_serve::{Data, Page, Refusal, Server};

use crate::arguments::analysed::AnalysedArguments;
use crate::browser::{self, Opened};
use crate::failure::Failure;
use crate::load::Loaded;
use crate::progress;

/// The app.
pub fn app() -> Page {
    Page { html: SHELL, script: app_js(), style: app_css() }
}

/// Where the page is, and how captures are analysed for it.
#[derive(Debug, Clone)]
pub struct ServedPage {
    /// The port to listen on; 0 for a free one.
    pub port: u16,
    /// Whether no browser is opened.
    pub no_open: bool,
    /// What is analysed, and how.
    pub analysed: AnalysedArguments,
}

impl ServedPage {
    /// Reads a capture, and passes on what the browser may ask of it.
    #[cfg(feature = "record")]
    pub fn with_dataset(&self, capture: &Path, work: impl FnOnce(&dyn Data)) -> Result<(), Failure> {
        let mut analysed = AnalysedArguments { sources: vec![capture.to_owned()], ..self.analysed.clone() };
        let loaded = analysed.load()?;
        analysed.analyse(&loaded, |selections| {
            work(&Viewed::new(&loaded, selections));
            Ok(())
        })
    }

    /// Prints the address, and opens it.
    pub fn announce(&self, server: &Server) -> Result<(), Failure> {
        let address = server.url();
        let mut out = io::stdout();
        writeln!(out, "{address}").and_then(|()| out.flush()).map_err(Failure::writing("standard output"))?;
        let yourself = "open the address yourself";
        let opened = match self.no_open {
            true => Opened::NoDisplay,
            false => browser::open(&server.ticket_url(), move |why| eprintln!("{why}; {yourself}")),
        };
        match opened {
            Opened::Yes => eprintln!("Opening the browser."),
            Opened::NoDisplay => {
                let (port, host) = (server.port(), host_name());
                eprintln!(
                    "From another machine: ssh -N -L {port}:127.0.0.1:{port} {host}, then open the address there."
                );
            }
            Opened::Failed(why) => eprintln!("{why}; {yourself}"),
        }
        eprintln!("Ctrl-C ends this.");
        Ok(())
    }
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("HOST").to_owned()
}

fn run_info(loaded: &Loaded) -> Option<&RunInfo> {
    loaded.run.as_ref().and_then(|run| run.info())
}

/// What the browser asks for. The report takes much longer than the tables, so the page gets it by itself.
pub struct Viewed<'a> {
    loaded: &'a Loaded,
    selections: &'a [Selection<'a>],
    dataset: Dataset<'a>,
    findings: OnceLock<Table>,
    report: OnceLock<Vec<u8>>,
}

impl<'a> Viewed<'a> {
    /// What captures show.
    pub fn new(loaded: &'a Loaded, selections: &'a [Selection<'a>]) -> Self {
        let heading = heading(run_info(loaded), selections);
        let dataset = Dataset::new(&heading, selections.to_vec(), Limits::default());
        Self { loaded, selections, dataset, findings: OnceLock::new(), report: OnceLock::new() }
    }

    /// Makes what the manifest and the first pictures need.
    pub fn prepare(&self) {
        self.dataset.prepare();
    }

    fn findings(&self) -> Table {
        let made = || progress::of_step("analysing", || findings(self.selections, &self.loaded.calls));
        self.findings.get_or_init(|| behind_others(made)).clone()
    }

    /// The verdict and the findings as JSON. `None` if the verdict needs what takes longer: a sweep, or a comparison.
    fn verdict(&self) -> Option<Vec<u8>> {
        let run = run_info(self.loaded);
        let takes_longer = run.is_some_and(|run| run.sweep.is_some() || run.ab.is_some());
        (!takes_longer).then(|| {
            let report = verdict_first(run, self.selections, self.findings());
            Document::of(&report, self.selections).json()
        })
    }

    /// The report as JSON.
    pub fn report(&self) -> &[u8] {
        let findings = self.findings();
        let made = || {
            let Self { loaded, selections, .. } = *self;
            let report = progress::of_step("reporting", || {
                with_comparison(report(run_info(loaded), selections, findings), loaded.run.as_ref())
            });
            Document::of(&report, selections).json()
        };
        self.report.get_or_init(|| behind_others(made))
    }
}

/// Does this with a lower priority, so that the tables of the first picture come before the report.
fn behind_others<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let work = || {
        // A thread cannot raise its priority again, so it is one of its own. Beside one busy thread, 10 leaves it a tenth of a CPU.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, 10);
        work()
    };
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

impl Data for Viewed<'_> {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        Ok(self.dataset.manifest())
    }

    fn verdict(&self) -> Result<Vec<u8>, Refusal> {
        Viewed::verdict(self).ok_or(Refusal::Absent)
    }

    fn document(&self) -> Result<Vec<u8>, Refusal> {
        Ok(self.report().to_vec())
    }

    fn table(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        self.dataset.table(name).ok_or(Refusal::Absent)
    }
}
