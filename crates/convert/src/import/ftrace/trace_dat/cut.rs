//! Files of version 7 that were cut before their end, where the table of the CPUs' events stands.
//!
//! Behind the last options that are left stands a section with the events of each CPU, one CPU after the other, each from the start of a page on.

use std::ops::Range;

use super::file::{Buffer, Compression, CpuData, File, SECTION_HEAD};
use super::pages::Pages;
use crate::import::cursor::Cursor;

/// The kind of the section with events.
const BUFFER: u16 = 3;

/// Finds the events of a file without its table of them, and notes that.
pub fn find_events(file: &mut File<'_>, bytes: &[u8]) {
    let missing = file.buffers.is_empty() && file.latency.is_none();
    let Some(buffer) = file.behind_options.filter(|_| missing).and_then(|at| buffer(file, bytes, at)) else { return };
    file.buffers.push(buffer);
    file.damage.push(
        "the table of the CPUs' events, at the end of the file, is missing: they were found by the times of pages, and CPUs are \
         numbered in their order"
            .to_owned(),
    );
}

fn buffer(file: &File<'_>, bytes: &[u8], at: u64) -> Option<Buffer> {
    let at = usize::try_from(at).ok()?;
    let section = Cursor::new(bytes.get(at..)?, file.endian).u16()?;
    let start = at.checked_add(SECTION_HEAD as usize)?.checked_next_multiple_of(file.page_bytes)?;
    if section != BUFFER || start >= bytes.len() {
        return None;
    }
    let is_packed = file.compression != Compression::None;
    let ranges = if is_packed { packed_cpus(file, bytes, start) } else { plain_cpus(file, bytes, start) };
    let of_cpu = |(cpu, range): (usize, Range<usize>)| CpuData {
        cpu: cpu as u32,
        offset: range.start as u64,
        size: range.len() as u64,
    };
    let cpus = ranges.into_iter().enumerate().map(of_cpu).collect();
    Some(Buffer { page_bytes: file.page_bytes, clock: None, is_packed, cpus })
}

/// Where the packed events of each CPU are: a number of pieces, and the pieces.
fn packed_cpus(file: &File<'_>, bytes: &[u8], start: usize) -> Vec<Range<usize>> {
    let most = if file.cpus > 0 { file.cpus as usize } else { usize::MAX };
    let mut cpus = Vec::new();
    let mut at = start;
    while cpus.len() < most && at < bytes.len() {
        let mut cursor = Cursor::new(&bytes[at..], file.endian);
        let Some(count) = cursor.u32() else { break };
        let pieces = cursor.bytes.len();
        for _ in 0..count {
            let Some(size) = cursor.u32().zip(cursor.u32()).map(|(packed, _)| packed as usize) else { break };
            if cursor.take(size.min(cursor.bytes.len())).is_none_or(|piece| piece.len() < size) {
                break;
            }
        }
        // What the number of pieces takes is no part of the size.
        let size = pieces - cursor.bytes.len();
        cpus.push(at..at + size);
        match (at + size + 4).checked_next_multiple_of(file.page_bytes) {
            Some(next) => at = next,
            None => break,
        }
    }
    cpus
}

/// Where the pages of each CPU are: a page that starts before the events of the page before it end is of the next CPU.
fn plain_cpus(file: &File<'_>, bytes: &[u8], start: usize) -> Vec<Range<usize>> {
    let mut cpus: Vec<Range<usize>> = Vec::new();
    let mut until = None;
    for at in (start..bytes.len()).step_by(file.page_bytes) {
        let page = at..(at + file.page_bytes).min(bytes.len());
        let time = Cursor::new(&bytes[page.clone()], file.endian).u64();
        match cpus.last_mut() {
            Some(cpu) if time >= until => cpu.end = page.end,
            _ => cpus.push(page.clone()),
        }
        let mut events = Pages::plain(&bytes[page], file.page_bytes, file.page, file.endian);
        until = time;
        while events.next().is_some() {
            until = Some(events.clock());
        }
    }
    cpus
}
