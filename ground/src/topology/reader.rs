//! Readers with a history, and notifications of deliveries.
//!
//! As in `rmw`, there are two ways to wait. A wait set [attaches](Notice::attach) its signal to all its entities before each
//! wait and tests all of them afterwards (`rmw_fastrtps`, `attachCondition`). A listener is called at every
//! delivery, on the delivering thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::cyclonedds;
use super::cyclonedds::error::Token;
use super::message::Message;
use super::qos::{History, Listener, PassBy};
use super::tracetools::{Handle, Tracetools};

/// Wakes the thread that waits for a wait set.
#[derive(Default)]
pub struct Signal {
    mutex: Mutex<()>,
    condition: Condvar,
    /// The wait set of Cyclone DDS, if it provides the readers.
    dds: Option<cyclonedds::WaitSet>,
}

impl Signal {
    /// A signal for readers of Cyclone DDS.
    pub fn over(wait_set: cyclonedds::WaitSet) -> Self {
        Self { dds: Some(wait_set), ..Self::default() }
    }

    fn notify(&self) {
        if let Some(dds) = &self.dds {
            return dds.interrupt();
        }
        // The waiter holds this lock while it tests for ready entities, so it cannot miss a later one.
        drop(lock!(self.mutex));
        self.condition.notify_one();
    }

    /// Waits until `is_ready` or the timeout; `None` has no timeout. Returns the ready readers of Cyclone DDS, in order.
    pub fn wait_until(&self, timeout: Option<Duration>, mut is_ready: impl FnMut() -> bool) -> Vec<Token> {
        if let Some(dds) = &self.dds {
            return dds.wait(if is_ready() { Some(Duration::ZERO) } else { timeout });
        }
        let held = lock!(self.mutex);
        let not_yet = |_: &mut ()| !is_ready();
        match timeout {
            Some(timeout) if timeout.is_zero() => {}
            Some(timeout) => drop(self.condition.wait_timeout_while(held, timeout, not_yet)),
            None => drop(self.condition.wait_while(held, not_yet)),
        }
        Vec::new()
    }
}

/// Notifies a wait set and a listener when an entity becomes ready.
#[derive(Default)]
pub struct Notice {
    receivers: Mutex<Receivers>,
}

#[derive(Default)]
struct Receivers {
    wait_set: Option<Arc<Signal>>,
    listener: Option<Listener>,
}

impl Notice {
    /// Notifies a wait set from now on.
    pub fn attach(&self, signal: &Arc<Signal>) {
        lock!(self.receivers).wait_set = Some(signal.clone());
    }

    /// Stops notifying a wait set.
    pub fn detach(&self) {
        lock!(self.receivers).wait_set = None;
    }

    fn listen(&self, listener: Listener) {
        lock!(self.receivers).listener = Some(listener);
    }

    fn give(&self) {
        let receivers = lock!(self.receivers);
        if let Some(signal) = &receivers.wait_set {
            signal.notify();
        }
        if let Some(listener) = &receivers.listener {
            listener(1);
        }
    }
}

/// Keeps the messages of a topic until they are taken.
pub struct Reader {
    pub(super) pass_by: PassBy,
    source: Source,
}

enum Source {
    Cache(Cache),
    Dds(cyclonedds::Reader),
}

/// A history.
struct Cache {
    history: History,
    messages: Mutex<VecDeque<Arc<Message>>>,
    unread: AtomicUsize,
    notice: Notice,
    reported: Option<Buffer>,
}

/// A ring buffer, as rclcpp reports it.
struct Buffer {
    tracetools: &'static Tracetools,
    /// How many messages left it.
    left: AtomicU64,
    /// How many messages it holds.
    capacity: u64,
}

impl Reader {
    /// An empty reader.
    pub fn new(history: History, pass_by: PassBy) -> Arc<Self> {
        Self::with(history, pass_by, None)
    }

    /// The same, and reports what enters and leaves it.
    pub fn reporting(history: History, pass_by: PassBy, tracetools: &'static Tracetools) -> Arc<Self> {
        let capacity = match history {
            History::KeepLast(depth) => depth.max(1) as u64,
            History::KeepAll => u64::MAX,
        };
        Self::with(history, pass_by, Some(Buffer { tracetools, left: AtomicU64::new(0), capacity }))
    }

    fn with(history: History, pass_by: PassBy, reported: Option<Buffer>) -> Arc<Self> {
        let (messages, unread) = (Mutex::default(), AtomicUsize::new(0));
        let source = Source::Cache(Cache { history, messages, unread, notice: Notice::default(), reported });
        Arc::new(Self { pass_by, source })
    }

    /// A reader of Cyclone DDS.
    pub fn over(reader: cyclonedds::Reader) -> Arc<Self> {
        Arc::new(Self { pass_by: PassBy::UniquePtr, source: Source::Dds(reader) })
    }

    /// Adds a message to the history, which may drop the oldest, and notifies the waiter. Cyclone DDS delivers to its own
    /// readers.
    pub fn deliver(&self, message: Arc<Message>) {
        if let Source::Cache(cache) = &self.source {
            cache.put(message);
            cache.notice.give();
        }
    }

    /// Takes the oldest message.
    pub fn take(&self) -> Option<Arc<Message>> {
        match &self.source {
            Source::Cache(cache) => cache.take(),
            Source::Dds(reader) => reader.take().map(Arc::new),
        }
    }

    /// Whether there is a message to take. `found` are the ready readers of Cyclone DDS.
    pub fn is_ready(&self, found: &[Token]) -> bool {
        match &self.source {
            Source::Cache(cache) => cache.has_data(),
            Source::Dds(reader) => found.binary_search(&reader.token()).is_ok(),
        }
    }

    /// Notifies a wait set of deliveries from now on.
    pub fn attach(&self, signal: &Arc<Signal>) {
        match (&self.source, &signal.dds) {
            (Source::Cache(cache), _) => cache.notice.attach(signal),
            (Source::Dds(reader), Some(wait_set)) => reader.attach(wait_set),
            (Source::Dds(_), None) => {}
        }
    }

    /// Stops notifying a wait set. Readers of Cyclone DDS stay attached.
    pub fn detach(&self) {
        if let Source::Cache(cache) = &self.source {
            cache.notice.detach();
        }
    }

    /// Calls `listener` at every delivery from now on, and at once for messages that are already there.
    pub fn listen(&self, listener: Listener) {
        match &self.source {
            Source::Dds(reader) => reader.listen(listener),
            Source::Cache(cache) => {
                let unread = cache.unread.load(Ordering::Acquire);
                if unread > 0 {
                    listener(unread);
                }
                cache.notice.listen(listener);
            }
        }
    }
}

impl Cache {
    fn put(&self, message: Arc<Message>) {
        let mut messages = lock!(self.messages);
        let is_full = matches!(self.history, History::KeepLast(depth) if messages.len() >= depth.max(1));
        if is_full {
            messages.pop_front();
        }
        messages.push_back(message);
        if let Some(buffer) = &self.reported {
            buffer.enqueued(messages.len(), is_full);
        }
        self.unread.store(messages.len(), Ordering::Release);
    }

    fn take(&self) -> Option<Arc<Message>> {
        let mut messages = lock!(self.messages);
        let message = messages.pop_front();
        if let (Some(buffer), Some(_)) = (&self.reported, &message) {
            buffer.dequeued(messages.len());
        }
        self.unread.store(messages.len(), Ordering::Release);
        message
    }

    fn has_data(&self) -> bool {
        self.unread.load(Ordering::Acquire) > 0
    }
}

impl Buffer {
    /// A message was put at the end; `size` are there now. The first one may have left for it.
    fn enqueued(&self, size: usize, is_overwritten: bool) {
        let left = self.left.fetch_add(u64::from(is_overwritten), Ordering::Relaxed) + u64::from(is_overwritten);
        let index = (left + size as u64 - 1) % self.capacity;
        self.tracetools.enqueued(std::ptr::from_ref(self) as Handle, index, size, is_overwritten);
    }

    /// The first message was taken; `size` are left.
    fn dequeued(&self, size: usize) {
        let index = self.left.fetch_add(1, Ordering::Relaxed) % self.capacity;
        self.tracetools.dequeued(std::ptr::from_ref(self) as Handle, index, size);
    }
}

/// A condition that is ready after it was triggered.
#[derive(Default)]
pub struct GuardCondition {
    triggered: AtomicBool,
    /// Notifies the waiter.
    pub notice: Notice,
}

impl GuardCondition {
    /// Triggers it.
    pub fn trigger(&self) {
        self.triggered.store(true, Ordering::Release);
        self.notice.give();
    }

    /// Whether it is ready.
    pub fn is_triggered(&self) -> bool {
        self.triggered.load(Ordering::Acquire)
    }

    /// Resets it and returns whether it was ready.
    pub fn consume(&self) -> bool {
        self.triggered.swap(false, Ordering::AcqRel)
    }
}

/// The readers of a topic that were there when its writer was made.
pub type Readers = Vec<Arc<Reader>>;

#[cfg(test)]
mod tests {
    use super::super::message::{Header, Payload};
    use super::*;

    fn message(number: u64) -> Message {
        let header = Header { writer: 0, number, stamp_ns: 0, period_ns: 1 };
        Message { header, payload: Payload::Int64(number as i64) }
    }

    #[test]
    fn a_listener_is_called_for_earlier_and_later_messages() {
        let reader = Reader::new(History::KeepLast(2), PassBy::SharedPtr);
        (0..3).for_each(|number| reader.deliver(Arc::new(message(number))));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        reader.listen(Box::new(move |messages| lock!(hears).push(messages)));
        (0..2).for_each(|number| reader.deliver(Arc::new(message(number))));
        assert_eq!(*lock!(heard), [2, 1, 1]);
    }

    #[test]
    fn a_signal_wakes_a_waiting_thread() {
        let (guard, signal) = (Arc::new(GuardCondition::default()), Arc::new(Signal::default()));
        guard.notice.attach(&signal);
        let trigger = guard.clone();
        let thread = std::thread::spawn(move || trigger.trigger());
        signal.wait_until(None, || guard.is_triggered());
        assert!(guard.consume() && !guard.consume());
        thread.join().unwrap();
    }
}
