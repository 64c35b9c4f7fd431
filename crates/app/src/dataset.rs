//! [`Dataset`]: everything that the page reads, by name.

use std::sync::Arc;

use serde::Serialize;
use stepscope_analyze::{Selection, parallel};
use stepscope_view::report::Report;

use crate::document::Document;
use crate::parquet_table::Storage;
use crate::profile::{CaptureEntry, Limits, Names, Profile, TABLES};

/// Version of the manifest and the tables. Raised when a page of the old form would misread the new.
pub const VERSION: u32 = 1;

/// A report and the captures that it is about.
///
/// Tables are named `CAPTURE/TABLE`, such as `0/samples` or `2/lanes/3/0/17`. Each is made when it is asked for, by any number
/// of threads at once.
///
/// A program that serves a dataset until it ends may leak the captures that it borrows.
pub struct Dataset<'a> {
    document: Document,
    captures: Vec<Profile<'a>>,
    live: bool,
}

impl<'a> Dataset<'a> {
    /// A report and what is selected of each capture.
    pub fn new(report: &Report, selections: Vec<Selection<'a>>, limits: Limits) -> Self {
        let document = Document::of(report, &selections);
        let captures = selections.into_iter().map(|one| Profile::new(one, limits)).collect();
        Self { document, captures, live: false }
    }

    /// The same of a recording that goes on, whose rows refer to these names.
    #[must_use]
    pub fn growing(self, names: &Arc<Names>) -> Self {
        let growing = |profile: Profile<'a>| {
            let span = profile.recording();
            profile.growing(names.clone(), span)
        };
        Self { captures: self.captures.into_iter().map(growing).collect(), live: true, ..self }
    }

    /// The captures.
    pub fn captures(&self) -> &[Profile<'a>] {
        &self.captures
    }

    /// The report.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Makes what the manifest and the first pictures need, for who will ask for them soon.
    pub fn prepare(&self) {
        parallel::map(&self.captures, Profile::prepare);
    }

    /// The manifest, as JSON.
    pub fn manifest(&self) -> Vec<u8> {
        let entry = |profile: &Profile<'_>| profile.entry(profile.rows(), [0; 3], None);
        manifest(&self.document, parallel::map(&self.captures, entry), self.live)
    }

    /// The Parquet bytes of a table, not compressed; `None` if there is no such table, or it has no rows.
    pub fn table(&self, name: &str) -> Option<Vec<u8>> {
        let (capture, table) = name.split_once('/')?;
        let profile = self.captures.get(capture.parse::<usize>().ok()?)?;
        Some(profile.table(table)?.encode(Storage::Fast))
    }

    /// The names of all tables; tiles of lanes last, coarse ones before fine ones.
    pub fn names(&self) -> Vec<String> {
        let all = || self.captures.iter().enumerate();
        let tables = || TABLES.iter().chain(&["sums"]);
        let plain = all().flat_map(|(number, _)| tables().map(move |table| format!("{number}/{table}")));
        let tiles = all().flat_map(|(number, profile)| {
            profile.lanes().addresses().map(move |address| format!("{number}/{address}"))
        });
        plain.chain(tiles).collect()
    }
}

/// What the page reads first. `web/src/profile/columns.ts` has the same as `Manifest`.
#[derive(Serialize)]
struct Manifest<'d> {
    version: u32,
    title: &'d str,
    document: &'d Document,
    captures: Vec<CaptureEntry>,
    live: bool,
}

/// The manifest, as JSON.
pub(crate) fn manifest(document: &Document, captures: Vec<CaptureEntry>, live: bool) -> Vec<u8> {
    let manifest = Manifest { version: VERSION, title: &document.title, document, captures, live };
    serde_json::to_vec(&manifest).expect("a manifest has only text keys")
}
