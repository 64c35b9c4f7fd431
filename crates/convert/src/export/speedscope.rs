//! speedscope's JSON: a list of frames and, for each thread and event, the samples in order.
//!
//! The types are in speedscope's `file-format-spec.ts`, the JSON schema in `file-format-schema.json` of the npm
//! package. A sample lists all its frames, root first, so this is the largest export.

use std::collections::HashMap;
use std::io::{self, Write};

use stepscope_model::{Capture, FrameId};

use super::json::Json;
use super::selection::{Series, WeighedStack, series};
use super::{ExportError, ExportOptions};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub fn write(capture: &Capture, out: &mut dyn Write, options: &ExportOptions) -> Result<(), ExportError> {
    let series = series(capture, options)?;
    let frames = Frames::of(capture);
    Json::new(out).object(|json| {
        json.entry("$schema", SCHEMA)?;
        json.entry("exporter", &capture.info.tool)?;
        json.entry("name", super::title(capture, options))?;
        json.entry("activeProfileIndex", 0)?;
        json.object_entry("shared", |json| frames.write(json))?;
        json.array_entry("profiles", |json| {
            for series in &series {
                let rows = series.rows_by_thread(capture);
                for rows in rows.chunk_by(|a, b| a.thread == b.thread) {
                    profile(json, capture, series, &frames, rows)?;
                }
            }
            Ok(())
        })
    })?;
    Ok(())
}

/// Frames by the identity of the format: name, file and line.
struct Frames<'a> {
    rows: Vec<(&'a str, Option<&'a str>, Option<u32>)>,
    row_of: Vec<u32>,
}

impl<'a> Frames<'a> {
    fn of(capture: &'a Capture) -> Self {
        let mut rows = Vec::new();
        let mut known = HashMap::new();
        let mut row_of = Vec::with_capacity(capture.frames.len());
        for frame in &capture.frames {
            let row = (&*frame.function, frame.file.as_deref(), frame.line);
            row_of.push(*known.entry(row).or_insert_with(|| {
                rows.push(row);
                rows.len() as u32 - 1
            }));
        }
        Self { rows, row_of }
    }

    fn row(&self, frame: FrameId) -> u32 {
        self.row_of[frame.index()]
    }

    fn write(&self, json: &mut Json<'_>) -> io::Result<()> {
        json.array_entry("frames", |json| {
            for &(name, file, line) in &self.rows {
                json.line()?;
                json.object(|json| {
                    json.entry("name", name)?;
                    json.some_entry("file", file)?;
                    json.some_entry("line", line)
                })?;
            }
            Ok(())
        })
    }
}

/// Writes the samples of one thread and event.
fn profile(
    json: &mut Json<'_>,
    capture: &Capture,
    series: &Series,
    frames: &Frames<'_>,
    rows: &[WeighedStack],
) -> io::Result<()> {
    let mut stack: Vec<u32> = Vec::new();
    json.line()?;
    json.object(|json| {
        json.entry("type", "sampled")?;
        json.entry("name", name(capture, series, rows))?;
        json.entry("unit", unit(series))?;
        json.entry("startValue", 0)?;
        json.entry("endValue", rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.weight)))?;
        json.array_entry("samples", |json| {
            for row in rows {
                stack.clear();
                stack.extend(capture.frames_of(row.stack).map(|frame| frames.row(frame)));
                stack.reverse();
                json.value(&stack)?;
            }
            Ok(())
        })?;
        json.column("weights", rows.iter().map(|row| row.weight))
    })
}

fn name(capture: &Capture, series: &Series, rows: &[WeighedStack]) -> String {
    let thread = &capture.threads[rows[0].thread.index()];
    let unit = match unit(series) {
        "none" if series.unit != series.name => format!(" in {}", series.unit),
        _ => String::new(),
    };
    format!("{} ({}) {}{unit}", thread.name, thread.tid, series.name)
}

/// Maps a unit to one of the few that the format knows.
fn unit(series: &Series) -> &'static str {
    match series.unit.as_str() {
        "ns" => "nanoseconds",
        "bytes" => "bytes",
        _ => "none",
    }
}
