//! The tables `instructions/FRAME` and `instruction_samples/FRAME`: the machine code of a function, and the samples in it.
//!
//! FRAME is a row of `frames`; any frame of the function will do. The compiler may have put a function in several places, because it inlines it: the
//! code that is shown is that of the function around the place with most weight.
//!
//! | table | columns |
//! |---|---|
//! | `instructions/FRAME` | `address`, `text`, `function` (the innermost one), `file`, `line`; or one row of `problem` alone |
//! | `instruction_samples/FRAME` | `time`, `thread`, `event`, `weight` as in `samples`, `stack` (0 if the sample is in the code itself, 1 if in what it calls), `address` |
//!
//! `objdump` makes the text when the page asks for it, so only a server has these tables.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_analyze::weights::StackWeights;
use stepscope_model::{Frame, FrameId, ModuleId, StackId};
use stepscope_symbolize::{FunctionCode, NoInstructions, Options, Symbolizer};

use super::evidence::selected_samples;
use super::{Profile, clipped, row};
use crate::parquet_table::ParquetTable;

/// Code of a module.
struct Code {
    module: ModuleId,
    function: FunctionCode,
}

/// The table with this name, if there is one.
pub(super) fn table(profile: &Profile<'_>, name: &str) -> Option<ParquetTable> {
    let (table, frame) = name.split_once('/')?;
    let frame = profile.places().frame(frame.parse().ok()?)?;
    let mut symbolizer = Symbolizer::new(Options::default());
    let code = code(profile, frame, &symbolizer);
    match table {
        "instructions" => Some(
            code.and_then(|code| instructions(profile, &code, &mut symbolizer))
                .unwrap_or_else(|problem| ParquetTable::new().texts("problem", vec![problem.into()])),
        ),
        "instruction_samples" => Some(samples(profile, &code.ok()?)),
        _ => None,
    }
}

/// Where the heaviest code of a frame's function is.
fn code(profile: &Profile<'_>, frame: FrameId, symbolizer: &Symbolizer) -> Result<Code, String> {
    let (capture, functions) = (profile.capture(), profile.selection().functions());
    let function = functions.of_frame(frame);
    let mut weights: FxHashMap<(ModuleId, u64), u128> = FxHashMap::default();
    for (index, amount) in StackWeights::of_samples(profile.selection()).own.iter().enumerate() {
        let mut frames = capture.frames_of(Some(StackId::from_index(index)));
        let Some(found) = frames.find(|frame| functions.of_frame(*frame) == function) else { continue };
        if let Frame { module: Some(module), address: Some(address), .. } = capture.frames[found.index()] {
            *weights.entry((module, address)).or_default() += amount.weight;
        }
    }
    let heaviest = weights.into_iter().max_by_key(|(place, weight)| (*weight, *place));
    let Some(((module, address), _)) = heaviest else {
        return Err("The stacks of this function have no addresses in a file.".to_owned());
    };
    let function = symbolizer.code_at(&capture.modules[module.index()], address);
    function.map(|function| Code { module, function }).map_err(|problem| problem.to_string())
}

fn instructions(profile: &Profile<'_>, code: &Code, symbolizer: &mut Symbolizer) -> Result<ParquetTable, String> {
    let module = &profile.capture().modules[code.module.index()];
    let found =
        symbolizer.instructions(module, &code.function).map_err(|problem: NoInstructions| problem.to_string())?;
    let none: Arc<str> = "".into();
    Ok(ParquetTable::new()
        .numbers("address", found.iter().map(|one| one.address as f64).collect())
        .texts("text", found.iter().map(|one| clipped(&one.text)).collect())
        .texts("function", found.iter().map(|one| clipped(&one.function)).collect())
        .texts("file", found.iter().map(|one| one.file.as_deref().map_or_else(|| none.clone(), clipped)).collect())
        .integers("line", found.iter().map(|one| row(one.line.map(|line| line as usize))).collect()))
}

/// The samples whose stack has an address in the code, each once: at the innermost one.
fn samples(profile: &Profile<'_>, code: &Code) -> ParquetTable {
    let capture = profile.capture();
    let inside = |frame: &FrameId| {
        let frame = &capture.frames[frame.index()];
        frame.address.filter(|address| frame.module == Some(code.module) && code.function.extent.contains(address))
    };
    // By stack: the address, and whether the stack ends there. Inlined frames have the address of the code that they are part of.
    let place = |stack: StackId| {
        let leaf = capture.frames_of(Some(stack)).next();
        let (at, address) =
            capture.frames_of(Some(stack)).enumerate().find_map(|(at, frame)| Some((at, inside(&frame)?)))?;
        let is_leaf = at == 0 || leaf.and_then(|frame| inside(&frame)) == Some(address);
        Some((address, i32::from(!is_leaf)))
    };
    let mut known: FxHashMap<StackId, Option<(u64, i32)>> = FxHashMap::default();
    let mut rows: Vec<(f64, i32, i32, f64, i32, f64)> = Vec::new();
    for sample in selected_samples(profile) {
        let Some(stack) = sample.stack else { continue };
        let Some((address, below)) = *known.entry(stack).or_insert_with(|| place(stack)) else { continue };
        let time = sample.time_ns.map_or(f64::NAN, |time| profile.since_start(time));
        let (thread, event) = (row(Some(sample.thread.index())), row(Some(sample.event.index())));
        rows.push((time, thread, event, sample.weight as f64, below, address as f64));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    ParquetTable::new()
        .numbers("time", rows.iter().map(|row| row.0).collect())
        .integers("thread", rows.iter().map(|row| row.1).collect())
        .integers("event", rows.iter().map(|row| row.2).collect())
        .numbers("weight", rows.iter().map(|row| row.3).collect())
        .integers("stack", rows.iter().map(|row| row.4).collect())
        .numbers("address", rows.iter().map(|row| row.5).collect())
}
