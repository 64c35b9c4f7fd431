//! Messages of a live recording, from one sender to several viewers. A slow viewer never slows the sender.
//!
//! A message is one line of JSON with `table` and `rows`, then a Parquet file with the rows to append. Each viewer has a queue
//! of limited size. Rows refer to earlier rows, so a viewer that lost a message cannot go on. When a queue is full, it is emptied, and its viewer
//! subscribes again: it gets all rows again, with the number of messages that it lost.
//!
//! ```
//! use bytes::Bytes;
//! use stepscope_serve::Viewers;
//!
//! let viewers = Viewers::new(1 << 20);
//! assert!(viewers.is_empty(), "no need to encode messages");
//! let updates = viewers.join();
//! viewers.send(&Bytes::from_static(b"{\"table\":\"0/steps\",\"rows\":1}\n..."));
//! assert_eq!(updates.waiting(), 1);
//! drop(updates);
//! assert!(viewers.is_empty());
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::Notify;

/// A live recording, as viewers see it.
pub trait Feed: Sync {
    /// Everything so far, and the queue of what follows: no row is missing between them, and none is in both. So an
    /// implementation takes both under the lock that its sender holds around [`Viewers::send`].
    fn subscribe(&self) -> Subscription;

    /// Does what a viewer asks. Gives a sentence for the viewer. May take long.
    ///
    /// # Errors
    /// A sentence that says why it was not done.
    fn command(&self, command: Command) -> Result<String, String>;
}

/// What a viewer asks of the recording.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub enum Command {
    /// Save the last seconds as a capture; without a number, everything that is held.
    Save {
        /// How many seconds.
        seconds: Option<f64>,
    },
    /// Mark this moment.
    Mark {
        /// What to call it.
        text: Option<String>,
    },
    /// End the recording.
    Stop {},
}

/// What a new viewer gets.
#[derive(Debug)]
pub struct Subscription {
    /// Messages with all rows so far.
    pub so_far: Vec<Bytes>,
    /// The messages that follow.
    pub updates: Updates,
}

/// The viewers of one recording: where its sender puts messages.
#[derive(Debug)]
pub struct Viewers {
    queues: Mutex<Vec<Arc<Queue>>>,
    /// How many queues there are, so that a sender without viewers takes no lock.
    count: Arc<AtomicUsize>,
    limit_bytes: usize,
}

impl Viewers {
    /// No viewers yet. Each will have a queue for this many bytes.
    pub fn new(limit_bytes: usize) -> Self {
        Self { queues: Mutex::default(), count: Arc::default(), limit_bytes }
    }

    /// Whether nobody would get a message.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Puts a message into the queue of each viewer. Waits for none of them. All queues share the bytes.
    pub fn send(&self, message: &Bytes) {
        if self.is_empty() {
            return;
        }
        let mut queues = locked(&self.queues);
        queues.retain(|queue| queue.put(message, self.limit_bytes));
    }

    /// A new viewer's queue. Dropping it removes the viewer.
    pub fn join(&self) -> Updates {
        let queue = Arc::new(Queue::default());
        let mut queues = locked(&self.queues);
        queues.retain(|queue| !locked(&queue.state).gone);
        queues.push(queue.clone());
        self.count.fetch_add(1, Ordering::AcqRel);
        Updates { queue, count: self.count.clone() }
    }
}

impl Drop for Viewers {
    /// The recording ended: viewers get what is in their queues, then the end.
    fn drop(&mut self) {
        for queue in locked(&self.queues).drain(..) {
            locked(&queue.state).ended = true;
            queue.news.notify_one();
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Bytes>,
    bytes: usize,
    dropped: u64,
    gone: bool,
    ended: bool,
}

impl Queue {
    /// False if the viewer is gone.
    fn put(&self, message: &Bytes, limit_bytes: usize) -> bool {
        let mut state = locked(&self.state);
        if state.gone {
            return false;
        }
        if state.dropped > 0 {
            state.dropped += 1;
            return true;
        }
        if state.bytes + message.len() > limit_bytes {
            state.dropped = state.messages.len() as u64 + 1;
            state.messages = VecDeque::new();
            state.bytes = 0;
        } else {
            state.bytes += message.len();
            state.messages.push_back(message.clone());
        }
        drop(state);
        self.news.notify_one();
        true
    }
}

/// One viewer's queue.
#[derive(Debug)]
pub struct Updates {
    queue: Arc<Queue>,
    count: Arc<AtomicUsize>,
}

/// What comes next out of a queue.
#[derive(Debug, PartialEq)]
pub enum Update {
    /// A message.
    Message(Bytes),
    /// This many messages were dropped because the viewer was too slow. The queue gives no more: subscribe again.
    Dropped(u64),
    /// The recording ended.
    Ended,
}

impl Updates {
    /// Waits for the next message. It may be cancelled: no message is lost then.
    pub async fn next(&self) -> Update {
        loop {
            if let Some(update) = self.take() {
                return update;
            }
            self.queue.news.notified().await;
        }
    }

    /// The next message, if one is there.
    pub fn take(&self) -> Option<Update> {
        let mut state = locked(&self.queue.state);
        if state.dropped > 0 {
            return Some(Update::Dropped(state.dropped));
        }
        if let Some(message) = state.messages.pop_front() {
            state.bytes -= message.len();
            return Some(Update::Message(message));
        }
        state.ended.then_some(Update::Ended)
    }

    /// How many messages are in the queue.
    pub fn waiting(&self) -> usize {
        locked(&self.queue.state).messages.len()
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        let mut state = locked(&self.queue.state);
        state.gone = true;
        state.messages = VecDeque::new();
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// No code panics while it holds one of these locks, so their content is whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Bytes {
        Bytes::from(vec![b'x'; bytes])
    }

    #[test]
    fn each_viewer_gets_each_message_in_order() {
        let viewers = Viewers::new(100);
        let (one, two) = (viewers.join(), viewers.join());
        viewers.send(&message(1));
        viewers.send(&message(2));
        for viewer in [&one, &two] {
            assert_eq!(viewer.take(), Some(Update::Message(message(1))));
            assert_eq!(viewer.take(), Some(Update::Message(message(2))));
            assert_eq!(viewer.take(), None);
        }
    }

    #[test]
    fn a_slow_viewer_loses_its_queue_and_hears_how_many_messages_that_were() {
        let viewers = Viewers::new(10);
        let (slow, quick) = (viewers.join(), viewers.join());
        for _ in 0..5 {
            viewers.send(&message(4));
            assert_eq!(quick.take(), Some(Update::Message(message(4))));
        }
        assert_eq!(slow.take(), Some(Update::Dropped(5)));
        viewers.send(&message(4));
        assert_eq!(slow.take(), Some(Update::Dropped(6)), "nothing follows a gap");
        assert_eq!(slow.waiting(), 0, "the queue is empty");
        let again = viewers.join();
        drop(slow);
        viewers.send(&message(4));
        assert_eq!(again.take(), Some(Update::Message(message(4))));
    }

    #[test]
    fn a_viewer_that_is_gone_costs_nothing() {
        let viewers = Viewers::new(10);
        let viewer = viewers.join();
        assert!(!viewers.is_empty());
        drop(viewer);
        assert!(viewers.is_empty());
        let shared = message(4);
        viewers.send(&shared);
        assert!(shared.is_unique(), "no queue holds the message");
        let _next = viewers.join();
        assert_eq!(locked(&viewers.queues).len(), 1);
    }

    #[test]
    fn the_end_comes_after_the_last_message() {
        let viewers = Viewers::new(10);
        let viewer = viewers.join();
        viewers.send(&message(4));
        drop(viewers);
        assert_eq!(viewer.take(), Some(Update::Message(message(4))));
        assert_eq!(viewer.take(), Some(Update::Ended));
    }

    #[test]
    fn commands_are_read_from_json() {
        let read = |text| serde_json::from_str::<Command>(text).ok();
        assert_eq!(read(r#"{"command":"save","seconds":10}"#), Some(Command::Save { seconds: Some(10.0) }));
        assert_eq!(read(r#"{"command":"save"}"#), Some(Command::Save { seconds: None }));
        assert_eq!(read(r#"{"command":"mark","text":"here"}"#), Some(Command::Mark { text: Some("here".to_owned()) }));
        assert_eq!(read(r#"{"command":"stop"}"#), Some(Command::Stop {}));
        assert_eq!(read(r#"{"command":"start"}"#), None);
    }
}
