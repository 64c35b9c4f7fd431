//! [`Beside`]: work in the steady phase of a scenario, beside its recording.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::ENDED;
use crate::event::{Event, Listener};
use crate::execution::{Context, execute};
use crate::lab_file::Trial;
use crate::outcome::{Outcome, Stage};

/// Passes events on, and does something in the steady phase.
pub(super) struct Beside<'a, T, F> {
    listener: &'a mut dyn Listener,
    /// Starts it, for the process that was launched. It ends when the flag is set.
    start: F,
    pid: u32,
    worker: Option<JoinHandle<T>>,
    stop: Arc<AtomicBool>,
    /// Set when the work is done, or the user interrupts.
    end: Arc<AtomicBool>,
    interrupt: &'a AtomicBool,
    result: Option<T>,
}

impl<'a, T, F: FnMut(u32, Arc<AtomicBool>) -> JoinHandle<T>> Beside<'a, T, F> {
    pub fn new(listener: &'a mut dyn Listener, interrupt: &'a AtomicBool, start: F) -> Self {
        let (stop, end) = Default::default();
        Self { listener, start, pid: 0, worker: None, stop, end, interrupt, result: None }
    }

    /// Is set when the work is done, or the user interrupts.
    pub fn end(&self) -> Arc<AtomicBool> {
        self.end.clone()
    }

    /// What it found; `None` if it never began.
    pub fn result(self) -> Option<T> {
        self.result
    }
}

impl<T, F: FnMut(u32, Arc<AtomicBool>) -> JoinHandle<T>> Listener for Beside<'_, T, F> {
    fn notify(&mut self, event: &Event<'_>) {
        if self.interrupt.load(Ordering::Relaxed) || self.worker.as_ref().is_some_and(JoinHandle::is_finished) {
            self.end.store(true, Ordering::Relaxed);
        }
        match event {
            Event::Launched { pid } => self.pid = *pid,
            Event::Progress { stage: Stage::Steady, .. } if self.worker.is_none() && self.result.is_none() => {
                self.worker = Some((self.start)(self.pid, self.stop.clone()));
            }
            // It leaves the program alone before that is stopped.
            Event::Stopping => {
                self.stop.store(true, Ordering::Relaxed);
                self.result = self.worker.take().and_then(|worker| worker.join().ok());
            }
            _ => {}
        }
        self.listener.notify(event);
    }
}

/// Runs a trial whose recording is not needed until the work beside it is done.
pub(super) fn run_until_done<T>(
    trial: &Trial,
    folder: &Path,
    context: &mut Context<'_>,
    start: impl FnMut(u32, Arc<AtomicBool>) -> JoinHandle<io::Result<T>>,
) -> Result<T, String> {
    let mut beside = Beside::new(&mut *context.listener, context.interrupt, start);
    let end = beside.end();
    let executed = execute(trial, folder, &mut Context { listener: &mut beside, interrupt: &end, ..*context });
    if let Outcome::Failed(failure) = &executed.outcome {
        return Err(failure.reason.clone());
    }
    beside.result().ok_or(ENDED)?.map_err(|error| error.to_string())
}
