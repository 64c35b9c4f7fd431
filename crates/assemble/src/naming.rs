//! Names for a capture whose functions could not all be named when it was recorded.
//!
//! A frame keeps its address in its module, so the same code can be asked for again once there are better files. A name
//! is only replaced by one from a better source, and no name is lost.

use std::collections::{BTreeSet, HashMap};

use stepscope_model::{Capture, Frame, FrameId, Language, Module, ModuleId, StackId, SymbolSource};
use stepscope_symbolize::{ModuleNames, NamedBy, Place, Position};

/// What naming a capture again gave.
#[derive(Debug)]
pub struct Renaming {
    /// The capture with better names; `None` if there are none.
    pub capture: Option<Capture>,
    /// Why names are still missing.
    pub problems: BTreeSet<String>,
}

/// Names the code of a capture again. `name` names positions of a module; `None` from it ends the work.
pub fn name_again(
    capture: &Capture,
    mut name: impl FnMut(&Module, &[Position]) -> Option<ModuleNames>,
) -> Option<Renaming> {
    let mut places: HashMap<FrameId, Place> = HashMap::new();
    let mut problems = BTreeSet::new();
    let mut modules = capture.modules.clone();
    let wanted = frames_by_module(capture);
    for (module, frames) in modules.iter_mut().zip(wanted) {
        if frames.is_empty() {
            continue;
        }
        let positions: Vec<Position> = frames.iter().map(|frame| frame.position).collect();
        let names = name(module, &positions)?;
        let mut nameless = false;
        let mut named = 0;
        for (frame, place) in frames.iter().zip(names.places) {
            nameless |= frame.named_by.max(place.named_by) <= NamedBy::FunctionStart;
            if is_better(&place, frame, &capture.frames[frame.id.index()]) {
                named += 1;
                places.insert(frame.id, place);
            }
        }
        if nameless {
            problems.extend(names.problems.iter().map(ToString::to_string));
        }
        if named > 0 {
            module.symbols = better(module.symbols, names.symbols);
            module.package = names.package.filter(|_| nameless);
            module.build_id = module.build_id.take().or(names.build_id);
        }
    }
    if places.is_empty() {
        return Some(Renaming { capture: None, problems });
    }
    let mut renamed = capture.clone();
    renamed.modules = modules;
    count_unnamed(&mut renamed, &places);
    rebuild_stacks(&mut renamed, &places);
    forget_problems(&mut renamed);
    Some(Renaming { capture: Some(renamed), problems })
}

/// A frame that can be asked for again.
struct Known {
    id: FrameId,
    position: Position,
    named_by: NamedBy,
}

/// The frames of files, by module. Inlined frames come with the frame that they are inlined into.
fn frames_by_module(capture: &Capture) -> Vec<Vec<Known>> {
    let mut by_module: Vec<Vec<Known>> = capture.modules.iter().map(|_| Vec::new()).collect();
    for (index, frame) in capture.frames.iter().enumerate() {
        let Some(module) = frame.module.filter(|_| !frame.inlined && frame.language == Language::Native) else {
            continue;
        };
        let of_file = &capture.modules[module.index()];
        let unnamed = of_file.path.starts_with('/').then(|| number_of_unnamed(&frame.function, of_file));
        let (position, named_by) = match (unnamed, frame.address) {
            (None, _) | (Some(None), None) => continue,
            // Where the file could not be read, the name has the offset in it.
            (Some(Some(offset)), None) => (Position::Offset(offset), NamedBy::Nothing),
            (Some(Some(_)), Some(address)) => (Position::Address(address), NamedBy::FunctionStart),
            (Some(None), Some(address)) if frame.file.is_some() => (Position::Address(address), NamedBy::DebugInfo),
            (Some(None), Some(address)) => (Position::Address(address), NamedBy::Symbol),
        };
        by_module[module.index()].push(Known { id: FrameId::from_index(index), position, named_by });
    }
    // Where nothing can get better, nothing is asked.
    by_module
        .iter_mut()
        .filter(|frames| frames.iter().all(|frame| frame.named_by == NamedBy::DebugInfo))
        .for_each(Vec::clear);
    by_module
}

/// The number in `module+0x1234`, the name of code without one.
fn number_of_unnamed(function: &str, module: &Module) -> Option<u64> {
    let name = module.name();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    u64::from_str_radix(function.strip_prefix(name)?.strip_prefix("+0x")?, 16).ok()
}

/// Whether a place says more about a frame than the capture.
fn is_better(place: &Place, known: &Known, frame: &Frame) -> bool {
    let has_line = |frames: &[stepscope_symbolize::NamedFrame]| frames.iter().any(|frame| frame.file.is_some());
    if let [named] = &place.frames[..]
        && (&named.function, &named.file, place.address) == (&frame.function, &frame.file, frame.address)
    {
        return false;
    }
    place.named_by > known.named_by
        || (frame.address.is_none() && place.address.is_some())
        || (place.named_by == known.named_by && frame.file.is_none() && has_line(&place.frames))
}

fn better(one: SymbolSource, other: SymbolSource) -> SymbolSource {
    let rank = |source| match source {
        SymbolSource::None => 0,
        SymbolSource::JitMap | SymbolSource::DynamicSymbols => 1,
        SymbolSource::SymbolTable => 2,
        SymbolSource::DebugInfo => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// Takes the places that have a name now off the count of those without.
fn count_unnamed(capture: &mut Capture, places: &HashMap<FrameId, Place>) {
    let is_named = |(frame, place): &(&FrameId, &Place)| {
        let frame = &capture.frames[frame.index()];
        let was_unnamed = frame
            .module
            .is_some_and(|module| number_of_unnamed(&frame.function, &capture.modules[module.index()]).is_some());
        was_unnamed && place.named_by > NamedBy::FunctionStart
    };
    let named = places.iter().filter(is_named).count() as u64;
    let unnamed = &mut capture.info.losses.unnamed_addresses;
    *unnamed = unnamed.saturating_sub(named);
}

/// Puts the frames of the places in the stacks, in place of the frames that had these addresses.
fn rebuild_stacks(capture: &mut Capture, places: &HashMap<FrameId, Place>) {
    let (frames, nodes) = capture.take_stacks();
    let mut stacks: Vec<StackId> = Vec::with_capacity(nodes.len());
    // The address whose inlined frames are replaced, per node.
    let mut replaced: Vec<Option<(Option<ModuleId>, Option<u64>)>> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let frame = &frames[node.frame.index()];
        let parent = node.parent.map(|parent| stacks[parent.index()]);
        let place = places.get(&node.frame);
        let above = node.parent.and_then(|parent| replaced[parent.index()]);
        let (stack, address) = match (place, parent) {
            (Some(place), _) => {
                let add = |parent, named: &stepscope_symbolize::NamedFrame| {
                    let id = capture.intern_frame(Frame {
                        function: named.function.clone(),
                        module: frame.module,
                        file: named.file.clone(),
                        line: named.line,
                        inlined: named.inlined,
                        address: place.address,
                        language: frame.language,
                    });
                    Some(capture.intern_stack_node(parent, id))
                };
                let stack = place.frames.iter().fold(parent, add).expect("a place has a frame");
                (stack, Some((frame.module, frame.address)))
            }
            (None, Some(parent)) if frame.inlined && above == Some((frame.module, frame.address)) => (parent, above),
            _ => {
                let id = capture.intern_frame(frame.clone());
                (capture.intern_stack_node(parent, id), None)
            }
        };
        stacks.push(stack);
        replaced.push(address);
    }
    let moved = |stack: &mut Option<StackId>| *stack = stack.map(|stack| stacks[stack.index()]);
    capture.samples.iter_mut().for_each(|sample| moved(&mut sample.stack));
    capture.allocations.iter_mut().for_each(|row| moved(&mut row.stack));
    capture.allocation_bursts.iter_mut().for_each(|row| moved(&mut row.stack));
    capture.system_calls.iter_mut().for_each(|calls| moved(&mut calls.stack));
    capture.call_times.iter_mut().for_each(|times| moved(&mut times.stack));
    capture.data_accesses.iter_mut().for_each(|access| moved(&mut access.stack));
    for error in &mut capture.memory_errors {
        [&mut error.stack, &mut error.allocated, &mut error.other].into_iter().for_each(moved);
    }
    capture.waits.change_all(|wait| {
        moved(&mut wait.stack);
        moved(&mut wait.waker_stack);
    });
}

/// Removes notes on files whose functions all have names now.
fn forget_problems(capture: &mut Capture) {
    let unnamed: BTreeSet<ModuleId> = capture
        .frames
        .iter()
        .filter_map(|frame| {
            frame.module.filter(|id| number_of_unnamed(&frame.function, &capture.modules[id.index()]).is_some())
        })
        .collect();
    let modules = capture.modules.iter().enumerate();
    let named = modules.filter(|(index, _)| !unnamed.contains(&ModuleId::from_index(*index)));
    let starts: Vec<String> = named.map(|(_, module)| format!("{}: ", module.path)).collect();
    capture.info.notes.retain(|note| !starts.iter().any(|start| note.starts_with(start)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_model::{Event, Sample};
    use stepscope_symbolize::NamedFrame;

    /// main -> sumo+0x10 (offset 0x10) -> step, and a leaf at `sumo+0x40` (address 0x48).
    fn capture() -> Capture {
        let mut capture = Capture::default();
        let sumo = capture.add_module(Module { path: "/usr/bin/sumo".into(), ..Module::default() });
        let mut frame = |function: &str, address| {
            capture.intern_frame(Frame { module: Some(sumo), address, ..Frame::named(function) })
        };
        let frames = [frame("main", Some(0x20)), frame("sumo+0x10", None), frame("sumo+0x40", Some(0x48))];
        let stack = capture.intern_stack(frames);
        let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
        let thread = capture.add_thread_named("main");
        capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight: 1 });
        capture.info.losses.unnamed_addresses = 2;
        capture.info.notes = vec!["/usr/bin/sumo: not found".into(), "/usr/bin/sumo-gui: not found".into()];
        capture
    }

    fn place(address: u64, named_by: NamedBy, names: &[&str]) -> Place {
        let frame = |(depth, name): (usize, &&str)| NamedFrame {
            function: (**name).into(),
            file: (named_by == NamedBy::DebugInfo).then(|| "sumo.cpp".into()),
            line: None,
            inlined: depth > 0,
        };
        Place { address: Some(address), frames: names.iter().enumerate().map(frame).collect(), named_by }
    }

    fn named_by_debug_info(positions: &[Position]) -> ModuleNames {
        let named = |position: &Position| match position {
            Position::Offset(0x10) => place(0x18, NamedBy::DebugInfo, &["run", "inlined"]),
            Position::Address(0x48) => place(0x48, NamedBy::DebugInfo, &["step"]),
            _ => place(0x20, NamedBy::DebugInfo, &["main"]),
        };
        let places = positions.iter().map(named).collect();
        ModuleNames { symbols: SymbolSource::DebugInfo, places, ..ModuleNames::default() }
    }

    fn stack_of(capture: &Capture) -> Vec<&str> {
        capture.frames_of(capture.samples[0].stack).map(|frame| capture.function(frame)).collect()
    }

    #[test]
    fn names_lines_and_inlined_frames_come_back_and_a_second_time_changes_nothing() {
        let renamed = name_again(&capture(), |_, positions| Some(named_by_debug_info(positions))).unwrap();
        let renamed = renamed.capture.unwrap();
        assert_eq!(stack_of(&renamed), ["step", "inlined", "run", "main"]);
        assert_eq!(renamed.modules[0].symbols, SymbolSource::DebugInfo);
        assert_eq!(renamed.info.losses.unnamed_addresses, 0);
        assert_eq!(renamed.info.notes, ["/usr/bin/sumo-gui: not found"]);
        renamed.check().unwrap();
        let again = name_again(&renamed, |_, positions| Some(named_by_debug_info(positions))).unwrap();
        assert_eq!(again.capture, None);
    }

    #[test]
    fn a_worse_source_takes_no_name_away() {
        let worse = |_: &Module, positions: &[Position]| {
            let places = positions.iter().map(|_| place(0x20, NamedBy::Nothing, &["sumo+0x20"])).collect();
            Some(ModuleNames { places, ..ModuleNames::default() })
        };
        let mut before = capture();
        // Frames without an address could get one.
        before = name_again(&before, |_, positions| Some(named_by_debug_info(positions))).unwrap().capture.unwrap();
        assert_eq!(name_again(&before, worse).unwrap().capture, None);
    }

    #[test]
    fn an_end_of_the_work_gives_nothing() {
        assert!(name_again(&capture(), |_, _| None).is_none());
    }
}
