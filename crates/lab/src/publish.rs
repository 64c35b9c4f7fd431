//! `stepscope publish`: runs as folders of a static site, with an index over all of them.
//!
//! ```text
//! SITE/
//!   index.html                         all published runs: trends of the main figures, a row per run
//!   runs/2026-11-23T12-36-07Z-my-lab/  one run
//!     index.html                       what it is, and links to all that follows
//!     publication.json                 the same for programs; the index is made of these files
//!     report.html                      the report, with the comparison of an A/B run
//!     flamegraphs/  folded/            CPU time of each capture
//!     tables/                          every table of the report, as TSV and Parquet
//!     stepscope.toml  machine.json     the lab file, and the machine
//! ```
//!
//! What holds:
//!
//! - A run's folder appears whole or not at all: it is written beside its place and renamed. Publishing a run again replaces
//!   its folder if something differs, and does nothing otherwise. Other runs' folders are never changed.
//! - Publications at the same time wait for each other (a lock on the site's folder). One that was interrupted leaves a hidden
//!   folder, which the next one removes.
//! - A file that another published run has with the same bytes is a hard link to it, where the file system has these.
//! - The index is rewritten from all `publication.json`. A run of a newer version is listed with its link alone.
//! - Links are relative, and no page needs a script or a server.
//! - The list before publishing names what a reader of the site learns about the machine and the program.

mod disclosure;
mod files;
mod index;
mod publication;
mod site;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use stepscope_analyze::{Filter, Selection};
use stepscope_convert::ImportOptions;
use stepscope_view::report::Report;

pub use self::disclosure::Disclosed;
pub use self::files::PublishedFile;
pub use self::publication::Publication;
pub use self::site::{Change, Outcome, Site};
use crate::comparison;
use crate::findings::findings;
use crate::report::{report, shown};
use crate::source::{self, SourceError};

/// What to publish.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// A remark that the index shows beside the run. Without one, that of an earlier publication of the run stays.
    pub note: Option<String>,
}

/// Writes a report about captures as one HTML file.
pub type PageWriter<'w> = dyn Fn(&Report, &[Selection<'_>], &mut Vec<u8>) -> io::Result<()> + 'w;

/// A run could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The run cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The site, or a page, cannot be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder has a page of somebody else, where the list of runs would be.
    #[error("{}: this page is not of `stepscope publish`, and is left as it is. Choose another folder, or move the page.", .0.display())]
    NotOurs(PathBuf),
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> PublishError + '_ {
    move |source| PublishError::Io { path: path.to_owned(), source }
}

/// A run's files in memory, not yet on any site.
#[derive(Debug)]
pub struct Prepared {
    /// What it is.
    pub publication: Publication,
    /// What its readers learn.
    pub disclosed: Disclosed,
    files: files::Files,
}

impl Prepared {
    /// Reads a run, or a capture, and makes all its files. `page` writes its report.
    ///
    /// # Errors
    /// If the run cannot be read, or has no captures.
    pub fn of(source: &Path, request: &Request, page: &PageWriter<'_>) -> Result<Self, PublishError> {
        let loaded = source::open(&[source.to_owned()], &ImportOptions::default())?;
        if loaded.captures.is_empty() {
            let message = format!("{}: no captures to publish; see run.json for what happened", source.display());
            return Err(SourceError::Usage(message).into());
        }
        let owned = loaded.ownership.clone().unwrap_or_default().compile();
        let functions = loaded.functions(&owned.map_err(|error| SourceError::Usage(error.to_string()))?);
        let filter = Filter { naming: loaded.naming.clone(), ..Filter::default() };
        let selections = source::selections(&loaded.captures, &functions, &filter).map_err(SourceError::from)?;
        let run = loaded.run.as_ref();
        let report = report(run.and_then(|run| run.info()), &selections, findings(&selections, &loaded.calls));
        let report = comparison::with_comparison(report, run);
        let compared = report.sections.iter().find(|section| section.anchor == comparison::SECTION);
        let headline = compared.and_then(|section| section.notes.first()).map(ToString::to_string);
        let mut files = files::Files::default();
        files.add_page("report.html", "Report", |out| {
            page(&report, &shown(run.and_then(|run| run.info()), &selections), out)
        })?;
        files.add_captures(&selections)?;
        files.add_tables(&report, "tables")?;
        files.add_run(run, &selections)?;
        let disclosed = Disclosed::of(&selections, files.text("stepscope.toml"));
        let publication = Publication::of(run, &selections, headline, request.note.clone(), &files);
        Ok(Self { publication, disclosed, files })
    }
}
