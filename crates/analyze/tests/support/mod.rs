//! Reading collapsed stacks, as small as it can be: the importer has its own crate, which this one does not need.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_model::{Capture, Event, Sample, ThreadId};

/// The folder of public sample data, or `None` after saying by name which test is skipped.
pub fn samples(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().ok()?.join("../../../shared/samples");
    let folder = std::env::var_os("STEPSCOPE_SAMPLES").map_or(beside, PathBuf::from);
    if folder.join("gazebo").is_dir() {
        return Some(folder);
    }
    println!("skipped: {test}: no sample data at {} (set STEPSCOPE_SAMPLES)", folder.display());
    None
}

/// A capture of one event from collapsed stacks: `comm;root;...;leaf WEIGHT` a line, the weight after the *last* space.
pub fn folded(path: &Path, event: Event) -> Capture {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut capture = Capture::default();
    let event = capture.add_event(event);
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("a line ends in its weight");
        let mut frames = stack.split(';');
        let thread = thread_named(&mut capture, frames.next().unwrap_or_default());
        let frames: Vec<_> = frames.map(|name| capture.intern_function(name)).collect();
        let stack = capture.intern_stack(frames);
        let weight = weight.parse().expect("a weight is a number");
        capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight });
    }
    capture.check().expect("a sound capture");
    capture
}

fn thread_named(capture: &mut Capture, name: &str) -> ThreadId {
    match capture.threads.iter().position(|thread| thread.name == name) {
        Some(index) => ThreadId::from_index(index),
        None => capture.add_thread_named(name),
    }
}
