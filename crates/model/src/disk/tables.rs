//! The columns of each table, and conversions between rows of a [`Capture`] and columns.
//!
//! Threads and processes have two columns each: the kernel's tid or pid, for people and other tools, and the row index
//! (`thread`, `process`), which stays unique if the kernel reuses a tid within a capture.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use super::call_times;
use super::columns::Rows;
use super::data_accesses;
use super::event_counts;
use super::memory_errors;
use super::table_form::TableForm;
use super::table_writer::Column;
use super::{allocation_bursts, allocations};
use crate::capture::{Capture, Frame, Module, Process, StackNode, Thread, ThreadName};
use crate::ids::{FrameId, ModuleId, ProcessId, StackId};

/// The tables but the [long ones](super::long_tables), in reading order: a table comes after those that its rows refer to.
pub(super) const TABLES: &[TableForm] = &[
    table("processes", |capture| capture.processes.len(), processes, read_processes),
    table("threads", |capture| capture.threads.len(), threads, read_threads),
    table("modules", |capture| capture.modules.len(), modules, read_modules),
    table("frames", |capture| capture.frames.len(), frames, read_frames),
    table("stacks", |capture| capture.stacks.len(), stacks, read_stacks),
    allocations::FORM,
    allocation_bursts::FORM,
    call_times::FORM,
    data_accesses::FORM,
    event_counts::FORM,
    memory_errors::FORM,
];

const fn table(
    name: &'static str,
    len: fn(&Capture) -> usize,
    columns: fn(&Capture, Range<usize>) -> Vec<Column>,
    read: fn(&Rows, &mut Capture) -> Result<(), String>,
) -> TableForm {
    TableForm { name, len, columns, is_optional: false, read }
}

/// The numbers of rows: handles of 32 bits.
fn numbers(range: &Range<usize>) -> impl Iterator<Item = u32> {
    range.clone().map(|row| row as u32)
}

pub(super) fn text(value: &str) -> Arc<str> {
    value.into()
}

fn processes(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.processes[range.clone()].iter();
    vec![
        Column::u32s("process", numbers(&range)),
        Column::u32s("pid", rows().map(|row| row.pid)),
        Column::maybe_u32s("parent_pid", rows().map(|row| row.parent_pid)),
        Column::maybe_u64s("start_ns", rows().map(|row| row.start_ns)),
        Column::maybe_u64s("end_ns", rows().map(|row| row.end_ns)),
        Column::texts("command_line", rows().map(|row| text(&row.command_line))),
        Column::texts("executable", rows().map(|row| text(&row.executable))),
        Column::maybe_i64s("exit_status", rows().map(|row| row.exit_status.map(i64::from))),
        Column::maybe_texts("working_directory", rows().map(|row| row.working_directory.as_deref().map(text))),
        Column::maybe_texts("machine", rows().map(|row| row.machine.as_deref().map(text))),
    ]
}

fn read_processes(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let parents = rows.maybe_u32s("parent_pid")?;
    let starts = rows.maybe_u64s("start_ns")?;
    let ends = rows.maybe_u64s("end_ns")?;
    let commands = rows.texts("command_line")?;
    let executables = rows.texts("executable")?;
    let statuses = rows.maybe_i64s("exit_status")?;
    let directories = rows.maybe_texts("working_directory")?;
    let machines = rows.maybe_texts("machine")?;
    for (row, pid) in rows.u32s("pid")?.into_iter().enumerate() {
        let exit_status = statuses[row].map(i32::try_from).transpose().map_err(|_| "an exit status is out of range")?;
        capture.processes.push(Process {
            pid,
            parent_pid: parents[row],
            start_ns: starts[row],
            end_ns: ends[row],
            command_line: commands[row].to_string(),
            executable: executables[row].to_string(),
            exit_status,
            working_directory: directories[row].as_deref().map(str::to_owned),
            machine: machines[row].as_deref().map(str::to_owned),
        });
    }
    Ok(())
}

fn threads(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.threads[range.clone()].iter();
    let pid = |row: &Thread| row.process.map(|process| capture.processes[process.index()].pid);
    let names = |row: &Thread| {
        let json = serde_json::to_string(&row.names).expect("thread names are plain data");
        (!row.names.is_empty()).then(|| text(&json))
    };
    vec![
        Column::u32s("thread", numbers(&range)),
        Column::u32s("tid", rows().map(|row| row.tid)),
        Column::maybe_u32s("pid", rows().map(pid)),
        Column::maybe_u32s("process", rows().map(|row| row.process.map(|process| process.0))),
        Column::texts("name", rows().map(|row| text(&row.name))),
        Column::maybe_texts("names", rows().map(names)),
        Column::maybe_u64s("start_ns", rows().map(|row| row.start_ns)),
        Column::maybe_u64s("end_ns", rows().map(|row| row.end_ns)),
        Column::maybe_u64s("cpu_ns", rows().map(|row| row.cpu_ns)),
        Column::maybe_u64s("runnable_ns", rows().map(|row| row.runnable_ns)),
    ]
}

fn read_threads(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let processes = rows.maybe_u32s("process")?;
    let last_names = rows.texts("name")?;
    let names = rows.maybe_texts("names")?;
    let starts = rows.maybe_u64s("start_ns")?;
    let ends = rows.maybe_u64s("end_ns")?;
    let cpu = rows.maybe_u64s("cpu_ns")?;
    let runnable = rows.maybe_u64s("runnable_ns")?;
    for (row, tid) in rows.u32s("tid")?.into_iter().enumerate() {
        let names: Vec<ThreadName> = match &names[row] {
            Some(json) => serde_json::from_str(json).map_err(|error| format!("names of row {row}: {error}"))?,
            None => Vec::new(),
        };
        capture.threads.push(Thread {
            tid,
            process: processes[row].map(ProcessId),
            name: last_names[row].to_string(),
            names,
            start_ns: starts[row],
            end_ns: ends[row],
            cpu_ns: cpu[row],
            runnable_ns: runnable[row],
        });
    }
    Ok(())
}

/// The value of this name in a table.
pub(super) fn named<T: FromStr>(name: &str, what: &str) -> Result<T, String> {
    name.parse().map_err(|_| format!("`{name}` is not a {what}"))
}

fn modules(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.modules[range.clone()].iter();
    vec![
        Column::u32s("id", numbers(&range)),
        Column::texts("path", rows().map(|row| text(&row.path))),
        Column::maybe_texts("build_id", rows().map(|row| row.build_id.as_deref().map(text))),
        Column::names("symbols", rows().map(|row| row.symbols.into())),
        Column::maybe_texts("package", rows().map(|row| row.package.as_deref().map(text))),
    ]
}

fn read_modules(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let build_ids = rows.maybe_texts("build_id")?;
    let symbols = rows.texts("symbols")?;
    let packages = rows.maybe_texts("package")?;
    for (row, path) in rows.texts("path")?.into_iter().enumerate() {
        let owned = |cell: &Option<Arc<str>>| cell.as_deref().map(str::to_owned);
        capture.modules.push(Module {
            path: path.to_string(),
            build_id: owned(&build_ids[row]),
            symbols: named(&symbols[row], "SymbolSource")?,
            package: owned(&packages[row]),
        });
    }
    Ok(())
}

fn frames(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.frames[range.clone()].iter();
    vec![
        Column::u32s("id", numbers(&range)),
        Column::texts("function", rows().map(|row| row.function.clone())),
        Column::maybe_u32s("module", rows().map(|row| row.module.map(|module| module.0))),
        Column::maybe_texts("file", rows().map(|row| row.file.clone())),
        Column::maybe_u32s("line", rows().map(|row| row.line)),
        Column::bools("inlined", rows().map(|row| row.inlined)),
        Column::maybe_u64s("address", rows().map(|row| row.address)),
        Column::names("language", rows().map(|row| row.language.into())),
    ]
}

fn read_frames(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let modules = rows.maybe_u32s("module")?;
    let files = rows.maybe_texts("file")?;
    let lines = rows.maybe_u32s("line")?;
    let inlined = rows.bools("inlined")?;
    let addresses = rows.maybe_u64s("address")?;
    let languages = rows.texts("language")?;
    for (row, function) in rows.texts("function")?.into_iter().enumerate() {
        capture.frames.push(Frame {
            function,
            module: modules[row].map(ModuleId),
            file: files[row].clone(),
            line: lines[row],
            inlined: inlined[row],
            address: addresses[row],
            language: named(&languages[row], "Language")?,
        });
    }
    Ok(())
}

fn stacks(capture: &Capture, range: Range<usize>) -> Vec<Column> {
    let rows = || capture.stacks[range.clone()].iter();
    vec![
        Column::u32s("id", numbers(&range)),
        Column::maybe_u32s("parent", rows().map(|row| row.parent.map(|parent| parent.0))),
        Column::u32s("frame", rows().map(|row| row.frame.0)),
    ]
}

fn read_stacks(rows: &Rows, capture: &mut Capture) -> Result<(), String> {
    let parents = rows.maybe_u32s("parent")?;
    for (row, frame) in rows.u32s("frame")?.into_iter().enumerate() {
        capture.stacks.push(StackNode { parent: parents[row].map(StackId), frame: FrameId(frame) });
    }
    Ok(())
}
