//! Folds any input that can be imported: `cargo run --release -p stepscope-convert --example fold -- perf.data`.
//!
//! Folded stacks hold one event: the first, or the one given as a second argument.

use std::io::{BufWriter, Write as _};

use stepscope_convert::export::{self, Evidence, ExportOptions, Format};
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::EventId;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a file, or - for standard input")?;
    let event = arguments.next();
    let capture = import(Source::open(file.as_ref())?, &ImportOptions::default())?;
    let mut names = capture.info.events.iter().map(|event| event.name.as_str());
    let index = event.map_or(Some(0), |event| names.position(|name| name == event));
    let event = EventId::from_index(index.ok_or("there is no such event")?);
    let options = ExportOptions { evidence: Some(Evidence::Event(event)), ..ExportOptions::default() };
    let mut out = BufWriter::new(std::io::stdout().lock());
    export::write(&capture, Format::Folded, &mut out, &options)?;
    out.flush()?;
    for event in &capture.info.events {
        eprintln!("event: {} in {}", event.name, event.unit);
    }
    eprintln!("{} samples, {} waits, {:?}", capture.samples.len(), capture.waits.len(), capture.info.losses);
    capture.info.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(())
}
