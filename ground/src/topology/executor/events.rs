//! [`EventsExecutor`]: a queue of events and a manager of timers, by iRobot.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

use super::{Executor, Waker};
use crate::account::{self, Counter, count};
use crate::topology::node::{Endpoint, Kind, Node, Timer};

/// An entity that became ready. Entities are numbered, because they may be gone when the event is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Timer(usize),
    Messages { endpoint: usize, number: usize },
    Interrupt,
}

/// Events in order of arrival.
#[derive(Default)]
struct EventsQueue {
    events: Mutex<VecDeque<Event>>,
    condition: Condvar,
}

impl EventsQueue {
    fn enqueue(&self, event: Event) {
        lock!(self.events).push_back(event);
        self.condition.notify_one();
    }

    fn try_dequeue(&self) -> Option<Event> {
        lock!(self.events).pop_front()
    }

    /// Waits for an event.
    fn dequeue(&self) -> Event {
        let mut events = lock!(self.events);
        let mut has_waited = false;
        loop {
            if let Some(event) = events.pop_front() {
                if has_waited {
                    count(Counter::Wakes);
                }
                return event;
            }
            has_waited = true;
            events = self.condition.wait(events).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

/// Adds an event to the queue when a timer is due.
struct TimersManager {
    heap: Mutex<TimersHeap>,
    condition: Condvar,
    queue: Arc<EventsQueue>,
}

#[derive(Default)]
struct TimersHeap {
    timers: Vec<Weak<Timer>>,
    /// Due time and number of each timer.
    due: BinaryHeap<Reverse<(u64, usize)>>,
}

impl TimersManager {
    fn add_timer(&self, timer: &Arc<Timer>) {
        let mut heap = lock!(self.heap);
        let number = heap.timers.len();
        heap.timers.push(Arc::downgrade(timer));
        heap.due.push(Reverse((timer.next_ns(), number)));
        self.condition.notify_one();
    }

    fn execute_ready_timer(&self, number: usize) {
        let timer = lock!(self.heap).timers.get(number).and_then(Weak::upgrade);
        if let Some(timer) = timer {
            timer.execute_callback();
        }
    }

    /// Runs on its own thread while `running` is set.
    fn run_timers(&self, running: &AtomicBool) {
        let mut heap = lock!(self.heap);
        while running.load(Ordering::Acquire) {
            let until = self.enqueue_ready_timers(&mut heap);
            // Simulated time does not pass while waiting.
            let timeout = until.map_or(Duration::MAX, Duration::from_nanos);
            let waited = self.condition.wait_timeout(heap, timeout);
            heap = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            count(Counter::Wakes);
        }
    }

    /// Adds an event for each due timer. Returns the time until the next one, ns.
    fn enqueue_ready_timers(&self, heap: &mut TimersHeap) -> Option<u64> {
        let TimersHeap { timers, due } = heap;
        while let Some(mut head) = due.peek_mut() {
            let Reverse((_, number)) = *head;
            let Some(timer) = timers[number].upgrade() else {
                std::collections::binary_heap::PeekMut::pop(head);
                continue;
            };
            if !timer.is_ready() {
                return timer.time_until_trigger_ns();
            }
            timer.call();
            *head = Reverse((timer.next_ns(), number));
            self.queue.enqueue(Event::Timer(number));
        }
        None
    }

    fn notify_stop(&self) {
        // The thread checks `running` while it holds this lock.
        drop(lock!(self.heap));
        self.condition.notify_one();
    }
}

/// Listeners add events to a queue, and the executor runs their callbacks in that order. The cost of a callback does not
/// depend on the number of entities. A timer thread sleeps until the first timer is due; callbacks of timers run on the
/// executor's thread.
pub struct EventsExecutor {
    queue: Arc<EventsQueue>,
    timers: Arc<TimersManager>,
    endpoints: HashMap<usize, Weak<Endpoint>>,
}

impl EventsExecutor {
    /// An executor without nodes.
    pub fn new() -> Self {
        let queue = Arc::new(EventsQueue::default());
        let timers = TimersManager { heap: Mutex::default(), condition: Condvar::new(), queue: queue.clone() };
        Self { queue, timers: Arc::new(timers), endpoints: HashMap::new() }
    }

    fn add_endpoint(&mut self, endpoint: &Arc<Endpoint>) {
        let number = self.endpoints.len();
        self.endpoints.insert(number, Arc::downgrade(endpoint));
        let queue = self.queue.clone();
        endpoint.reader.listen(Box::new(move |messages| {
            queue.enqueue(Event::Messages { endpoint: number, number: messages });
        }));
    }

    fn execute_event(&self, event: Event) {
        match event {
            Event::Timer(number) => self.timers.execute_ready_timer(number),
            Event::Messages { endpoint, number } => {
                if let Some(endpoint) = self.endpoints.get(&endpoint).and_then(Weak::upgrade) {
                    (0..number).for_each(|_| endpoint.execute());
                }
            }
            Event::Interrupt => {}
        }
    }
}

impl Default for EventsExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl Executor for EventsExecutor {
    fn add_node(&mut self, node: &Arc<Node>) {
        for group in &node.groups {
            for kind in Kind::ALL {
                group.find_endpoint(kind, |endpoint| {
                    self.add_endpoint(endpoint);
                    false
                });
            }
            group.find_timer(|timer| {
                self.timers.add_timer(timer);
                false
            });
        }
    }

    fn spin(&mut self, running: &AtomicBool) {
        std::thread::scope(|threads| {
            let timers = self.timers.clone();
            let thread = std::thread::Builder::new().name("timers".to_owned());
            thread.spawn_scoped(threads, move || timers.run_timers(running)).expect("the system has room for a thread");
            while running.load(Ordering::Acquire) {
                let event = self.queue.dequeue();
                self.execute_event(event);
            }
            self.timers.notify_stop();
        });
    }

    #[inline(never)]
    fn spin_all(&mut self) {
        let _timed = account::scope("ground::topology::executor::events::EventsExecutor::spin_all");
        loop {
            self.timers.enqueue_ready_timers(&mut lock!(self.timers.heap));
            let Some(first) = self.queue.try_dequeue() else { return };
            self.execute_event(first);
            while let Some(event) = self.queue.try_dequeue() {
                self.execute_event(event);
            }
        }
    }

    fn waker(&self) -> Waker {
        let queue = self.queue.clone();
        Box::new(move || queue.enqueue(Event::Interrupt))
    }
}
