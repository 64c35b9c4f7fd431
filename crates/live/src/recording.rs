//! [`LiveRecording`], and what a server asks of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use stepscope_serve::{Command, Data, Feed, Refusal, Subscription};

use crate::shared::{Options, Request, Shared};
use crate::state::{Stage, State};
use crate::{follower, save, snapshot};

/// A recording that goes on, read from its raw log.
///
/// It ends when it is dropped. Viewers do not slow it, and it does not slow the recorder.
pub struct LiveRecording {
    shared: Arc<Shared>,
    requests: Sender<Request>,
}

impl LiveRecording {
    /// Follows the recording in a folder, which may not have started yet.
    pub fn follow(folder: &Path, options: Options) -> Self {
        let (requests, asked) = mpsc::channel();
        let owned = options.owned.clone();
        let (unnamed, unnamed_code) = mpsc::channel();
        let shared = Arc::new(Shared::new(folder, options, requests.clone(), unnamed));
        let weak = follower::weak(&shared);
        let named = follower::spawn("names", move || follower::name(&unnamed_code, &weak));
        let (weak, folder) = (follower::weak(&shared), folder.to_owned());
        let followed = follower::spawn("follower", move || follower::run(&folder, &weak));
        let weak = follower::weak(&shared);
        let served = follower::spawn("snapshots", move || snapshot::run(&asked, &weak, &owned));
        if let Err(error) = followed.and(named).and(served) {
            shared.turn(Stage::Failed, error.to_string());
        }
        Self { shared, requests }
    }

    /// What the recording says of itself.
    pub fn state(&self) -> State {
        self.shared.held().state.clone()
    }

    /// Waits until captures that viewers are saving are complete. From now on, none waits for names of code. Gives whether there were any.
    pub fn complete_saves(&self) -> bool {
        self.shared.saves.complete()
    }

    /// Asks the thread that makes tables.
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Refusal> {
        let (answer, answered) = mpsc::channel();
        let gone = || Refusal::Failed("The recording is no longer followed.".to_owned());
        self.requests.send(request(answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

impl Data for LiveRecording {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        self.ask(|answer| Request::Manifest { answer })
    }

    fn table(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        let name = name.to_owned();
        self.ask(|answer| Request::Table { name, answer })?.ok_or(Refusal::Absent)
    }

    fn feed(&self) -> Option<&dyn Feed> {
        Some(self)
    }
}

impl Feed for LiveRecording {
    fn subscribe(&self) -> Subscription {
        let mut held = self.shared.held();
        let so_far = held.everything();
        let updates = self.shared.viewers.join();
        self.shared.ask_for_snapshot(&mut held);
        Subscription { so_far, updates }
    }

    fn command(&self, command: Command) -> Result<String, String> {
        match command {
            Command::Mark { text } => self.shared.mark(text),
            Command::Save { seconds } => save::save(&self.shared, seconds),
            Command::Stop {} => self.shared.end_recording(),
        }
    }
}
