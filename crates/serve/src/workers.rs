//! Threads that ask [`Data`], so that connections do not wait while a table is made.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use tokio::sync::oneshot;

use crate::{Data, Refusal};

type Job = Box<dyn FnOnce(&dyn Data) + Send>;

/// Gives work to the threads.
#[derive(Clone)]
pub(crate) struct Workers {
    jobs: Sender<Job>,
}

impl Workers {
    /// Starts threads, which end after the last `Workers` is gone.
    pub fn start<'scope>(threads: usize, data: &'scope dyn Data, scope: &'scope Scope<'scope, '_>) -> Self {
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let waiting = waiting.clone();
            scope.spawn(move || work(data, &waiting));
        }
        Self { jobs }
    }

    /// Lets a thread ask the data. A panic there is a refusal.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Data) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (give, answer) = oneshot::channel();
        let job = move |data: &dyn Data| {
            let made = catch_unwind(AssertUnwindSafe(|| question(data)))
                .unwrap_or_else(|panic| Err(Refusal::Failed(defect(&*panic))));
            // The viewer may have left.
            let _ = give.send(made);
        };
        let ended = || Refusal::Failed("The server is ending.".to_owned());
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn work(data: &dyn Data, waiting: &Mutex<Receiver<Job>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job(data);
    }
}

fn defect(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("This is a defect of stepscope; please report it: {}", text.unwrap_or("it has no message"))
}
