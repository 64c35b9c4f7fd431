//! The thread that makes tables of the window: those that are not sent, such as the lanes of the timeline.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::Duration;

use stepscope_analyze::{Functions, Owned, Selection};
use stepscope_app::{Dataset, Limits, Profile};
use stepscope_model::Capture;
use stepscope_record::clock;
use stepscope_view::report::Report;

use crate::encoder;
use crate::shared::{Request, Shared, SnapshotSummary, SnapshotWindow};

/// Answers requests until all senders are gone.
pub(crate) fn run(requests: &Receiver<Request>, shared: &Weak<Shared>, owned: &Owned) {
    let mut window = Box::new(SnapshotWindow { capture: Capture::default(), names: Arc::default(), from_ns: 0 });
    loop {
        // A waiting thread costs nobody: what a snapshot takes is its CPU time.
        let started_ns = clock::thread_cpu_ns();
        let functions = Functions::of(&window.capture, owned);
        let selection = Selection::all(&window.capture, &functions);
        let dataset = Dataset::new(&report(&window.capture), vec![selection], Limits::default()).growing(&window.names);
        if !window.capture.threads.is_empty() {
            let made = made(&dataset.captures()[0], window.from_ns, started_ns);
            let Some(shared) = shared.upgrade() else { return };
            shared.announce(made);
        }
        let next = loop {
            match requests.recv() {
                Err(_) => return,
                Ok(Request::Window(next)) => break next,
                Ok(Request::Table { name, answer }) => {
                    // Who asked may be gone.
                    let _ = answer.send(dataset.table(&name));
                }
                Ok(Request::Manifest { answer }) => {
                    let _ = answer.send(dataset.manifest());
                }
            }
        };
        drop(dataset);
        window = next;
    }
}

fn made(profile: &Profile<'_>, from_ns: u64, started_ns: u64) -> SnapshotSummary {
    let steps = encoder::steps(profile, profile.since_start(from_ns));
    let entry = profile.growing_entry(&encoder::sent_tables());
    let title = report(profile.capture()).title;
    SnapshotSummary {
        steps,
        entry,
        title,
        took: Duration::from_nanos(clock::thread_cpu_ns().saturating_sub(started_ns)),
    }
}

fn report(capture: &Capture) -> Report {
    let command = &capture.info.command;
    let name = command.first().and_then(|program| program.rsplit('/').next()).unwrap_or("recording");
    Report::new(format!("Live: {name}")).subtitle(command.join(" "))
}
