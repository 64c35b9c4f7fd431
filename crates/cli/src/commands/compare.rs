//! `stepscope compare`: what changed between sets of captures.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use stepscope_analyze::compare::tree;
use stepscope_analyze::metrics;
use stepscope_lab::comparison::{CaptureSets, Extent};

use crate::arguments::LookArguments;
use crate::arguments::comparison::CompareArguments;
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::progress;

/// Rows of each table for people: all metrics of the whole run.
pub const ROWS_FOR_PEOPLE: usize = metrics::NAMES.len();

/// Show what changed between captures, by how much, and with which confidence.
///
/// Each source is a side: a capture, a file that can be imported, a folder with the captures of several runs, a pattern in
/// quotes, or a list with commas. With three or more sides, each is compared with the first and with its predecessor. A
/// single run with several variants has one side per variant.
#[derive(Debug, Args)]
pub struct Compare {
    /// The sides: before, after, and any further ones.
    #[arg(required = true, value_name = "BASE CAND")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    compare: CompareArguments,
    #[command(flatten)]
    look: LookArguments,
    /// Write a page with the tables, ratio charts and a differential flame graph.
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: TableArguments,
}

impl Compare {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let request = self.compare.request(&self.look)?;
        let sets = progress::of_step("reading captures", || CaptureSets::read(&self.sources, &request))?;
        sets.notes().iter().for_each(|note| eprintln!("note: {note}"));
        let options = self.compare.options(sets.tolerance())?;
        let trees = self.output.is_some().then(tree::Drawing::default);
        let extent = Extent { tables: true, trees };
        let compared = progress::of_step("comparing", || sets.compare(&request, &options, extent))?;
        let tables = compared.tables();
        let target = self.output.as_deref().map(|path| Target::of(Some(path)));
        let mut written = None;
        if let Some(target) = &target {
            let page = progress::of_step("drawing", || compared.page(tables.clone(), &options));
            written =
                target.write(|out| sets.write_page(&page, &request, out).map_err(Failure::writing("the page")))?;
        }
        self.table.print_at_most(ROWS_FOR_PEOPLE, tables)?;
        if let Some(path) = written {
            eprintln!("\nnext: open {} in a browser", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
