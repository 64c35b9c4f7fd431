//! A thread's timeline as running, runnable and blocked, from context switches and wake-ups.
//!
//! The three must add up to the thread's lifetime, so a [`ThreadTimeline`] is a tiling: at any time the thread is in exactly
//! one state, and every event ends one interval and starts the next at the same instant.
//!
//! The state of a thread that ran before the recording is settled by its first event. It was off the CPU if that event is a
//! switch-in, and on the CPU if it is a switch-out or a sample, whatever `/proc` said a moment earlier.
//!
//! A wake-up can have an earlier time than the switch-out of the wait that it ends. The sleeper sets its state before it
//! calls the scheduler, and the waker sees that state; the switch is recorded later, inside the scheduler. Such a wake-up
//! belongs to the coming wait if the wait starts within [`EARLY_WAKE_UP_NS`]. Otherwise it only cancelled a sleep that never
//! happened.

use stepscope_model::WaitState;

use crate::entry::{StackRef, ThreadRef, Wait};
use crate::written_switch::Sum;

/// The longest time from a wake-up to the switch-out of the wait that it ends. Between setting its state and being switched
/// out a thread runs a few hundred instructions; an interrupt in between takes microseconds.
const EARLY_WAKE_UP_NS: u64 = 50_000;

/// A thread that runs for longer has mostly been sampled.
pub const UNSAMPLED_NS: u64 = 1_000_000;

/// What a thread appeared to do when the recording started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialState {
    /// It ran, or waited for a CPU.
    Runnable,
    /// It waited for something else.
    Blocked,
}

impl InitialState {
    fn wait(self) -> OpenWait {
        let state = match self {
            InitialState::Runnable => WaitState::Preempted,
            InitialState::Blocked => WaitState::Blocked,
        };
        OpenWait { state, stack: None, wake_up: None }
    }
}

/// Something made the thread runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUp {
    /// When.
    pub time_ns: u64,
    /// The thread that did it; absent for an interrupt.
    pub waker: Option<ThreadRef>,
    /// Where that thread was.
    pub stack: Option<StackRef>,
}

impl WakeUp {
    /// One wake-up can be recorded twice, once with the waker's stack. The first record has the time; either may have the
    /// stack.
    fn completed_by(self, other: Self) -> Self {
        let stack = other.stack.filter(|_| other.waker == self.waker);
        Self { stack: self.stack.or(stack), ..self }
    }
}

/// A wait that has not ended: why the thread is off the CPU, and the wake-up so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenWait {
    state: WaitState,
    stack: Option<StackRef>,
    wake_up: Option<WakeUp>,
}

/// A finished interval off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffCpu {
    /// Switched out.
    pub start_ns: u64,
    /// Switched in, or ended.
    pub end_ns: u64,
    /// Why it was off.
    pub state: WaitState,
    /// Where it was.
    pub stack: Option<StackRef>,
    /// Woken but not running.
    pub runnable_ns: Option<u64>,
    /// The CPU that the thread was switched in on.
    pub cpu: Option<u32>,
    /// What ended the wait.
    pub wake_up: Option<WakeUp>,
    /// How many waits it is the sum of.
    pub count: u32,
}

impl OffCpu {
    /// The wait of a thread.
    pub fn of(&self, thread: ThreadRef) -> Wait {
        Wait {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            thread,
            stack: self.stack,
            state: self.state,
            runnable_ns: self.runnable_ns,
            cpu: self.cpu,
            waker: self.wake_up.and_then(|wake_up| wake_up.waker),
            waker_stack: self.wake_up.and_then(|wake_up| wake_up.stack),
            count: self.count,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No event has settled it yet.
    Initial(InitialState),
    Running,
    Off(OpenWait),
}

/// One thread's states so far.
#[derive(Debug)]
pub struct ThreadTimeline {
    state: State,
    since_ns: u64,
    /// A wake-up that came while the thread still ran.
    early_wake_up: Option<WakeUp>,
    switch_stack: Option<StackRef>,
    /// Where a look from outside found it blocked, and when.
    seen_blocked: Option<(u64, StackRef)>,
    /// When it last was seen at a stack, by either.
    last_stack_ns: u64,
    /// Whether its waits are added up elsewhere: what looks like a lost switch is none.
    summed: bool,
    /// The last time at which it ran for sure.
    seen_ns: u64,
    /// Time on a CPU so far.
    pub running_ns: u64,
    /// Time waiting for a CPU so far.
    pub runnable_ns: u64,
    /// Time for which lost records leave open whether it ran. It counts as not running.
    pub unknown_ns: u64,
}

impl ThreadTimeline {
    /// A thread that ran before the recording.
    pub fn initial(start_ns: u64, state: InitialState) -> Self {
        Self::new(start_ns, State::Initial(state))
    }

    /// A thread that was just created, and waits for a CPU.
    pub fn created(start_ns: u64) -> Self {
        Self::new(start_ns, State::Off(InitialState::Runnable.wait()))
    }

    /// A thread that runs now.
    pub fn running(start_ns: u64) -> Self {
        Self::new(start_ns, State::Running)
    }

    fn new(since_ns: u64, state: State) -> Self {
        Self {
            state,
            since_ns,
            early_wake_up: None,
            switch_stack: None,
            seen_blocked: None,
            last_stack_ns: 0,
            summed: false,
            seen_ns: since_ns,
            running_ns: 0,
            runnable_ns: 0,
            unknown_ns: 0,
        }
    }

    /// Sets the stack of the coming switch-out.
    pub fn will_switch_at(&mut self, stack: Option<StackRef>) {
        self.switch_stack = stack;
    }

    /// A look from outside found the thread blocked at this stack. All events until the look before this one are known.
    pub fn see_blocked(&mut self, time_ns: u64, stack: StackRef) {
        self.settle_last_look();
        self.seen_blocked = Some((time_ns, stack));
        self.last_stack_ns = self.last_stack_ns.max(time_ns);
    }

    /// Whether a look from outside can tell at which stack the thread waits, and it had none since this time. All events until the
    /// last look must be known.
    pub fn lacks_stack(&mut self, since_ns: u64) -> bool {
        self.settle_last_look();
        self.last_stack_ns < since_ns && !matches!(self.state, State::Off(wait) if wait.stack.is_some())
    }

    /// Gives a wait that goes on since before the last look the stack that was seen.
    fn settle_last_look(&mut self) {
        let Some((time_ns, seen)) = self.seen_blocked.take_if(|(time_ns, _)| self.since_ns <= *time_ns) else { return };
        match &mut self.state {
            State::Off(wait) if wait.state == WaitState::Blocked => wait.stack = wait.stack.or(Some(seen)),
            State::Initial(InitialState::Blocked) => {
                self.state = State::Off(OpenWait { stack: Some(seen), ..InitialState::Blocked.wait() });
            }
            // Its switch-out is not known yet.
            State::Running | State::Initial(_) | State::Off(_) => self.seen_blocked = Some((time_ns, seen)),
        }
    }

    /// The thread left the CPU.
    pub fn switch_out(&mut self, time_ns: u64, preempted: bool) -> Option<OffCpu> {
        // Two switch-outs in a row: the switch-in between them was lost. The known state stays. It did not run before it was woken.
        if let State::Off(wait) = self.state {
            self.count_unknown(wait, time_ns);
            return None;
        }
        self.run_until(time_ns);
        let state = if preempted { WaitState::Preempted } else { WaitState::Blocked };
        let early = self.early_wake_up.take().filter(|early| time_ns.saturating_sub(early.time_ns) <= EARLY_WAKE_UP_NS);
        let wake_up = early.filter(|_| !preempted).map(|early| WakeUp { time_ns: self.since_ns, ..early });
        let stack = self.switch_stack.take();
        self.last_stack_ns = if stack.is_some() { self.last_stack_ns.max(time_ns) } else { self.last_stack_ns };
        self.state = State::Off(OpenWait { state, stack, wake_up });
        None
    }

    /// A thread that is off the CPU by the records so far ran at this time, or until it: how long is unknown.
    fn count_unknown(&mut self, wait: OpenWait, time_ns: u64) {
        let woken_ns = wait.wake_up.map_or(0, |wake_up| wake_up.time_ns);
        self.unknown_ns += time_ns.saturating_sub(self.since_ns.max(self.seen_ns).max(woken_ns));
        self.seen_ns = self.seen_ns.max(time_ns);
    }

    /// The thread exits on a CPU. If the record of its switch-in is missing, it counts as off the CPU until now.
    pub fn exit_on_cpu(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<OffCpu> {
        let State::Off(wait) = self.state else { return None };
        self.count_unknown(wait, time_ns);
        self.end_wait(time_ns, cpu)
    }

    /// The thread was switched in, or was sampled on a CPU.
    pub fn on_cpu(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<OffCpu> {
        match self.state {
            State::Running => {
                self.seen_ns = self.seen_ns.max(time_ns);
                None
            }
            State::Initial(_) => {
                self.state = State::Running;
                self.seen_ns = self.seen_ns.max(time_ns);
                None
            }
            State::Off(_) => self.end_wait(time_ns, cpu),
        }
    }

    /// The thread runs on a CPU whose last known switch was at `switched_ns`. If the record of its switch-in is missing, it came there
    /// since then, and not before it was woken: a thread that ran before it has no records. It counts as running from then on, but
    /// for no more than [`UNSAMPLED_NS`]. The rest is unknown.
    pub fn appear(&mut self, time_ns: u64, switched_ns: u64, cpu: Option<u32>) -> Option<OffCpu> {
        let State::Off(wait) = self.state else { return None };
        let runnable_ns = match wait.state {
            WaitState::Preempted => self.since_ns,
            WaitState::Blocked => wait.wake_up?.time_ns,
        };
        let earliest_ns = runnable_ns.max(switched_ns).max(self.seen_ns).min(time_ns);
        let since_ns = earliest_ns.max(time_ns.saturating_sub(UNSAMPLED_NS));
        self.unknown_ns += since_ns - earliest_ns;
        self.end_wait(since_ns, cpu)
    }

    /// The thread left the CPU at some time until now, and the record of it was lost. It counts as off the CPU since it was
    /// last seen.
    pub fn lose_switch_out(&mut self, time_ns: u64) {
        if matches!(self.state, State::Off(_)) || self.summed {
            return;
        }
        let seen_ns = self.seen_ns.max(self.since_ns);
        self.run_until(seen_ns);
        self.unknown_ns += time_ns.saturating_sub(seen_ns);
        self.state = State::Off(InitialState::Blocked.wait());
    }

    /// Whether its waits are added up elsewhere.
    pub fn is_summed(&self) -> bool {
        self.summed
    }

    /// Its waits are added up from now on, or no longer.
    pub fn set_summed(&mut self, summed: bool) {
        self.summed = summed;
    }

    /// Adds waits of a time in which the thread ran at the start and at the end. Gives them as one interval, which starts when the
    /// thread last was known to run.
    pub(crate) fn sum(&mut self, sum: &Sum, stack: Option<StackRef>, until_ns: u64) -> Option<OffCpu> {
        let start_ns = self.since_ns;
        let room_ns = until_ns.saturating_sub(start_ns);
        let length_ns = sum.blocked_ns.saturating_add(sum.runnable_ns).min(room_ns);
        let runnable_ns = sum.runnable_ns.min(length_ns);
        self.runnable_ns += runnable_ns;
        self.since_ns = start_ns + length_ns;
        self.seen_ns = self.seen_ns.max(self.since_ns);
        let (end_ns, count) = (self.since_ns, sum.count.min(u64::from(u32::MAX)) as u32);
        let runnable_ns = Some(runnable_ns);
        Some(OffCpu { start_ns, end_ns, state: sum.state, stack, runnable_ns, cpu: None, wake_up: None, count })
    }

    /// The CPU of the coming switch-out ran another thread at this time, or none: so this one did not run there before.
    pub fn was_elsewhere_until(&mut self, time_ns: u64) {
        if matches!(self.state, State::Off(_)) {
            self.seen_ns = self.seen_ns.max(time_ns);
        }
    }

    /// The thread was switched in: until now it was off the CPU.
    pub fn switch_in(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<OffCpu> {
        self.switch_stack = None;
        self.early_wake_up = None;
        if let State::Initial(initial) = self.state {
            self.state = State::Off(initial.wait());
        }
        self.on_cpu(time_ns, cpu)
    }

    /// The thread was woken.
    pub fn wake_up(&mut self, wake_up: WakeUp) {
        match &mut self.state {
            State::Off(wait) if wait.state == WaitState::Blocked => {
                wait.wake_up = Some(wait.wake_up.map_or(wake_up, |known| known.completed_by(wake_up)));
            }
            State::Off(_) => {}
            State::Initial(InitialState::Blocked) => {
                self.state = State::Off(OpenWait { wake_up: Some(wake_up), ..InitialState::Blocked.wait() })
            }
            State::Running | State::Initial(_) => {
                let is_same = |early: &WakeUp| wake_up.time_ns.saturating_sub(early.time_ns) < EARLY_WAKE_UP_NS;
                let same = self.early_wake_up.filter(is_same);
                self.early_wake_up = Some(same.map_or(wake_up, |early| early.completed_by(wake_up)));
            }
        }
    }

    /// Whether this thread was the last waker, and its stack is missing.
    pub fn lacks_stack_of(&self, waker: ThreadRef) -> bool {
        let last = if let State::Off(wait) = &self.state { &wait.wake_up } else { &self.early_wake_up };
        last.is_some_and(|last| last.waker == Some(waker) && last.stack.is_none())
    }

    /// Adds the waker's stack to the last wake-up.
    pub fn set_waker_stack(&mut self, stack: Option<StackRef>) {
        let last = if let State::Off(wait) = &mut self.state { &mut wait.wake_up } else { &mut self.early_wake_up };
        if let Some(last) = last {
            last.stack = stack;
        }
    }

    /// The thread or the recording ended.
    pub fn end(&mut self, time_ns: u64) -> Option<OffCpu> {
        match self.state {
            State::Running => {
                self.run_until(time_ns);
                None
            }
            State::Initial(initial) => {
                self.state = State::Off(initial.wait());
                self.end_wait(time_ns, None)
            }
            State::Off(_) => self.end_wait(time_ns, None),
        }
    }

    /// The same state from `time_ns` on, with nothing counted yet: the timeline of this thread in the next capture. Wakers belong to
    /// the old capture and are dropped. The stack of an open wait is still of the old capture, until it is
    /// [carried over](Self::carry_stack).
    pub fn continued(&self, time_ns: u64) -> Self {
        let state = match self.state {
            State::Off(wait) => {
                let wake_up = wait.wake_up.map(|_| WakeUp { time_ns, waker: None, stack: None });
                State::Off(OpenWait { wake_up, ..wait })
            }
            state => state,
        };
        Self { summed: self.summed, ..Self::new(time_ns, state) }
    }

    /// Replaces the stack of an open wait by the same stack of the next capture.
    pub fn carry_stack(&mut self, carried: impl FnOnce(StackRef) -> Option<StackRef>) {
        if let State::Off(wait) = &mut self.state {
            wait.stack = wait.stack.and_then(carried);
        }
    }

    fn run_until(&mut self, time_ns: u64) {
        self.running_ns += time_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(time_ns);
    }

    fn end_wait(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<OffCpu> {
        let State::Off(OpenWait { state, stack, wake_up }) = self.state else { return None };
        let start_ns = self.since_ns;
        let end_ns = time_ns.max(start_ns);
        let seen =
            self.seen_blocked.take_if(|(time_ns, _)| *time_ns <= end_ns).filter(|(time_ns, _)| *time_ns >= start_ns);
        let seen = seen.filter(|_| state == WaitState::Blocked).map(|(_, stack)| stack);
        let stack = stack.or(seen);
        let runnable_ns = match state {
            WaitState::Preempted => Some(end_ns - start_ns),
            WaitState::Blocked => wake_up.map(|wake_up| end_ns - wake_up.time_ns.clamp(start_ns, end_ns)),
        };
        self.runnable_ns += runnable_ns.unwrap_or(0);
        self.state = State::Running;
        self.since_ns = end_ns;
        self.seen_ns = end_ns;
        Some(OffCpu { start_ns, end_ns, state, stack, runnable_ns, cpu, wake_up, count: 1 })
    }
}

#[cfg(test)]
mod tests;
