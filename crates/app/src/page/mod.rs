//! The page: one HTML file with the app, the manifest and as many tables as fit.
//!
//! - It works without a network: the [policy] allows the one script by its hash, workers that this script makes,
//!   and no loading.
//! - Tables are [reduced](fit) until they fit; the manifest says what was left out.
//! - Without scripts it shows the report's first [tables](plain).
//! - Names are untrusted. None can end the element that it is in.

mod fit;
mod plain;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use stepscope_analyze::Selection;
use stepscope_model::quantity::plural;
use stepscope_model::{Note, note};
use stepscope_view::embed::markup;
use stepscope_view::report::Report;

use self::fit::Fitted;
use crate::assets;
use crate::dataset::manifest;
use crate::document::{Document, NoteEntry};

/// Size of a page in bytes, unless another is asked for: what mail servers and code reviews accept.
pub const BUDGET: u64 = 12_000_000;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Captures of which the page does not hold everything. The page says what it lacks.
    pub reduced: usize,
    /// Captures of which the page holds no more than the report does. It names them.
    pub left_out: usize,
}

/// Writes one HTML file of about `budget` bytes at most that shows a report, and what is selected of its captures. What the
/// report's tables need is written whole.
///
/// # Errors
/// Those of writing to `out`.
pub fn write(report: &Report, selections: &[Selection<'_>], budget: u64, out: &mut dyn Write) -> io::Result<Written> {
    let mut document = Document::of(report, selections);
    let plain = plain::html(report);
    let app = assets::app_js().len() + assets::app_css().len() + plain.len();
    let room = budget.saturating_sub((app + inert(&document.json()).len()) as u64);
    let Fitted { captures, entries, tables } = fit::fit(selections, room);
    let left_out = selections.len() - captures.len();
    if left_out > 0 {
        let kept: Vec<Selection<'_>> = captures.iter().map(|place| selections[*place].clone()).collect();
        document = Document::of(report, &kept);
        document.warnings.push(NoteEntry::of(&lacks(selections, &captures)));
    }
    let written = Written { reduced: entries.iter().filter(|entry| entry.is_reduced()).count(), left_out };
    write_head(&document.title, out)?;
    out.write_all(plain.as_bytes())?;
    out.write_all(b"<script type=\"application/json\" id=\"manifest\">")?;
    out.write_all(&inert(&manifest(&document, entries, false)))?;
    out.write_all(b"</script>\n")?;
    for (name, bytes) in tables {
        write!(out, "<script type=\"application/vnd.apache.parquet\" data-name=\"{name}\">")?;
        out.write_all(BASE64.encode(bytes).as_bytes())?;
        out.write_all(b"</script>\n")?;
    }
    write!(out, "<script>{}</script>\n</body>\n</html>\n", assets::app_js())?;
    Ok(written)
}

/// Which captures the page cannot explore.
fn lacks(selections: &[Selection<'_>], kept: &[usize]) -> Note {
    let missing = (0..selections.len()).filter(|place| !kept.contains(place));
    let names: Vec<_> = missing.map(|place| selections[place].capture().info.name()).collect();
    note!(
        Limit,
        "{} did not fit into this file, so they have no timeline and no flame graph here: {}. `stepscope view` shows them.",
        plural(names.len(), "capture"),
        names.join(", ")
    )
}

/// What the page may do: run the one script, and workers that this script makes of its own text.
///
/// Styles are inline only; their one source is this program, and names never reach them.
pub fn policy() -> String {
    format!(
        "default-src 'none'; script-src '{}'; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        assets::APP_JS_HASH.trim_end()
    )
}

fn write_head(title: &str, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"stepscope {version}\">\n\
         <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<div id=\"app\"></div>\n",
        policy = policy(),
        version = env!("CARGO_PKG_VERSION"),
        title = markup(title),
        style = assets::app_css(),
    )
}

/// JSON that cannot end the element that it is in.
fn inert(json: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(json.len());
    for byte in json {
        match byte {
            b'<' => text.extend_from_slice(b"\\u003c"),
            byte => text.push(*byte),
        }
    }
    text
}
