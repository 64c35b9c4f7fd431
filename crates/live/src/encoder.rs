//! Rows to messages.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use stepscope_analyze::{Functions, Owned, Selection};
use stepscope_app::parquet_table::Storage;
use stepscope_app::profile::Names;
use stepscope_app::{Limits, ParquetTable, Profile};
use stepscope_model::Capture;

use crate::state::State;

/// Rows of samples and of waits per second, beyond which they are added up.
const MOST_ROWS_HZ: u64 = 40_000;

/// Tables whose rows change: they are sent whole.
const CHANGING: [&str; 2] = ["processes", "threads"];
/// Tables that others refer to, and that only get more rows.
const GROWING: [&str; 5] = ["modules", "frames", "stacks", "scope_names", "counter_names"];
/// Those of code.
const OF_CODE: [&str; 3] = ["modules", "frames", "stacks"];
/// Rows with times.
const TIMED: [&str; 4] = ["samples", "waits", "scopes", "counters"];

/// The tables whose rows are sent.
pub(crate) fn sent_tables() -> Vec<&'static str> {
    CHANGING.into_iter().chain(GROWING).chain(TIMED).chain(["steps"]).collect()
}

/// Makes messages, and knows what was sent.
#[derive(Debug)]
pub(crate) struct Encoder {
    owned: Owned,
    functions: Functions,
    names: Arc<Names>,
    /// How many stacks, frames and modules have functions and names.
    known: [usize; 3],
    /// How many of these were sent.
    sent_known: [usize; 3],
    changing: [ParquetTable; CHANGING.len()],
    sent: [usize; GROWING.len()],
}

/// Messages of a round.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub all: Vec<Bytes>,
    /// Whether samples or waits were added up.
    pub summed: bool,
}

/// The first line of a message of rows.
#[derive(Serialize)]
struct Head<'a> {
    table: &'a str,
    rows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<f64>,
}

impl Head<'_> {
    fn message(&self, table: &ParquetTable) -> Bytes {
        let mut message = serde_json::to_vec(self).expect("a head has only text keys");
        message.push(b'\n');
        message.extend(table.encode(Storage::Small));
        message.into()
    }
}

/// The steps of the window, which replace those from its start on.
pub(crate) fn steps(profile: &Profile<'_>, since: f64) -> Option<Bytes> {
    let table = profile.table("steps")?;
    Some(Head { table: "0/steps", rows: table.rows(), at: None, since: Some(since) }.message(&table))
}

/// What the recording says of itself.
pub(crate) fn state(state: &State) -> Bytes {
    let mut message = serde_json::to_vec(&serde_json::json!({ "live": state })).expect("a state has only text keys");
    message.push(b'\n');
    message.into()
}

impl Encoder {
    pub fn new(owned: Owned) -> Self {
        Self {
            owned,
            functions: Functions::default(),
            names: Arc::default(),
            known: [0; 3],
            sent_known: [0; 3],
            changing: Default::default(),
            sent: [0; GROWING.len()],
        }
    }

    /// Numbers what the capture has got, which holds only new rows.
    pub fn grow(&mut self, capture: &Capture) {
        let known = [capture.stacks.len(), capture.frames.len(), capture.modules.len()];
        if self.known != known {
            self.functions = Functions::of(capture, &self.owned);
            self.known = known;
        }
        Arc::make_mut(&mut self.names).grow(capture, &self.functions);
    }

    /// The numbers that rows refer to.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Messages of what is new, with the rows of this span of time that the capture holds.
    pub fn new_rows(&mut self, capture: &Capture, span: Range<u64>) -> Messages {
        let most = (span.end.saturating_sub(span.start) / 1_000_000).saturating_mul(MOST_ROWS_HZ) / 1_000;
        let most = (most as usize).max(1_000);
        let limits = Limits { samples: most, waits: most, ..Limits::default() };
        let selection = Selection::all(capture, &self.functions);
        let profile = Profile::new(selection, limits).growing(self.names.clone(), span);
        let mut messages = Messages { all: Vec::new(), summed: profile.is_added_up() };
        for (name, before) in CHANGING.into_iter().zip(&mut self.changing) {
            let table = profile.table(name).unwrap_or_default();
            if *before != table {
                messages.all.push(defining(name, 0, &table));
                *before = table;
            }
        }
        let has_code = self.sent_known != self.known;
        for (name, sent) in
            GROWING.into_iter().zip(&mut self.sent).filter(|(name, _)| has_code || !OF_CODE.contains(name))
        {
            let Some(table) = profile.table(name).filter(|table| table.rows() > *sent) else { continue };
            let rows = table.rows();
            messages.all.push(defining(name, *sent, &table.without_first(*sent)));
            *sent = rows;
        }
        self.sent_known = self.known;
        messages.all.extend(timed(&profile));
        messages
    }

    /// Messages of everything, with the rows that the capture holds. All viewers have all definitions then.
    pub fn everything(&mut self, capture: &Capture) -> Vec<Bytes> {
        let selection = Selection::all(capture, &self.functions);
        let profile = Profile::new(selection, Limits::default());
        let span = profile.recording();
        let profile = profile.growing(self.names.clone(), span);
        let mut messages = Vec::new();
        for name in CHANGING {
            messages.extend(profile.table(name).map(|table| defining(name, 0, &table)));
        }
        for (name, sent) in GROWING.into_iter().zip(&mut self.sent) {
            let Some(table) = profile.table(name) else { continue };
            messages.push(defining(name, 0, &table));
            *sent = table.rows();
        }
        self.sent_known = self.known;
        messages.extend(timed(&profile));
        messages
    }
}

fn defining(name: &str, at: usize, table: &ParquetTable) -> Bytes {
    Head { table: &format!("0/{name}"), rows: table.rows(), at: Some(at), since: None }.message(table)
}

fn timed(profile: &Profile<'_>) -> Vec<Bytes> {
    let tables = TIMED.into_iter().filter_map(|name| Some((name, profile.table(name)?)));
    let message = |(name, table): (&str, ParquetTable)| {
        Head { table: &format!("0/{name}"), rows: table.rows(), at: None, since: None }.message(&table)
    };
    tables.map(message).collect()
}
