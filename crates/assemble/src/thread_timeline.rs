//! A thread's life as running, runnable and blocked, from context switches and wake-ups.
//!
//! The three must add up to the lifetime, so a [`ThreadTimeline`] is a tiling: at any time the thread is in exactly one state, and
//! every event ends one interval and begins the next at the same instant. What switches do not tell is settled by the
//! first event that does: a thread that was there before the recording was off the CPU if it is first switched in, and
//! on it if it is first switched out or sampled, whatever `/proc` said a moment earlier.
//!
//! A wake-up can bear an earlier time than the switch-out it ends: the waker sees the sleeper's state, which the sleeper
//! sets before it calls the scheduler, while the switch is recorded inside it. Such a wake-up belongs to the coming wait
//! if that begins within [`EARLY_WAKE_NS`]; otherwise it only cancelled a sleep that never happened.

use stepscope_model::WaitState;

use crate::entry::{StackRef, ThreadRef};

/// How long before the switch-out a wake-up may be that ends the wait. Between setting its state and being switched
/// out a thread runs a few hundred instructions; an interrupt in between takes microseconds.
const EARLY_WAKE_NS: u64 = 50_000;

/// Why a thread is off the CPU, and what is known about the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Off {
    state: WaitState,
    stack: Option<StackRef>,
    wake: Option<Wake>,
}

/// Someone made the thread runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake {
    pub time_ns: u64,
    /// Absent where an interrupt did.
    pub waker: Option<ThreadRef>,
    pub stack: Option<StackRef>,
}

impl Wake {
    /// A wake-up can be recorded twice, once with the waker's stack: the first says when, either says from where.
    fn completed_by(self, other: Self) -> Self {
        let stack = other.stack.filter(|_| other.waker == self.waker);
        Self { stack: self.stack.or(stack), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    /// Not told yet; as far as known it was thus at the start.
    Initial(InitialState),
    Running,
    Off(Off),
}

/// What a thread appeared to do when the recording started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialState {
    /// It ran, or waited for a CPU.
    Runnable,
    /// It waited for something else.
    Blocked,
}

/// A finished interval off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub start_ns: u64,
    pub end_ns: u64,
    pub state: WaitState,
    pub stack: Option<StackRef>,
    pub runnable_ns: Option<u64>,
    /// The processor that the thread came to then.
    pub cpu: Option<u32>,
    pub wake: Option<Wake>,
}

/// One thread's states so far.
#[derive(Debug)]
pub(crate) struct ThreadTimeline {
    now: Now,
    since_ns: u64,
    early_wake: Option<Wake>,
    switch_stack: Option<StackRef>,
    pub running_ns: u64,
    pub runnable_ns: u64,
}

impl ThreadTimeline {
    /// A thread that was there at the start.
    pub fn presumed(start_ns: u64, presumed: InitialState) -> Self {
        Self::new(start_ns, Now::Initial(presumed))
    }

    /// A thread that begins now, and waits for its first turn.
    pub fn born(start_ns: u64) -> Self {
        Self::new(start_ns, Now::Off(Off { state: WaitState::Preempted, stack: None, wake: None }))
    }

    /// A thread that is known to run now.
    pub fn running(start_ns: u64) -> Self {
        Self::new(start_ns, Now::Running)
    }

    fn new(since_ns: u64, now: Now) -> Self {
        Self { now, since_ns, early_wake: None, switch_stack: None, running_ns: 0, runnable_ns: 0 }
    }

    /// The stack at which the coming switch-out happens.
    pub fn will_switch_at(&mut self, stack: Option<StackRef>) {
        self.switch_stack = stack;
    }

    /// The thread left the CPU.
    pub fn switch_out(&mut self, time_ns: u64, preempted: bool) -> Option<Interval> {
        // A second switch-out in a row means that the switch-in between them was lost; so was when it happened, and
        // the thread stays in the state that is known.
        if let Now::Off(_) = self.now {
            return None;
        }
        let ended = self.run_until(time_ns);
        let state = if preempted { WaitState::Preempted } else { WaitState::Blocked };
        let early = self.early_wake.take().filter(|wake| time_ns.saturating_sub(wake.time_ns) <= EARLY_WAKE_NS);
        let wake = early.filter(|_| !preempted).map(|wake| Wake { time_ns: self.since_ns, ..wake });
        self.now = Now::Off(Off { state, stack: self.switch_stack.take(), wake });
        ended
    }

    /// The thread came to the CPU, or was seen there.
    pub fn on_cpu(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<Interval> {
        match self.now {
            Now::Running => None,
            Now::Initial(_) => {
                self.now = Now::Running;
                None
            }
            Now::Off(_) => self.end_wait(time_ns, cpu),
        }
    }

    /// The thread was switched in: what came before was not running.
    pub fn switch_in(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<Interval> {
        self.switch_stack = None;
        self.early_wake = None;
        if let Now::Initial(presumed) = self.now {
            self.now = Now::Off(presumed.off());
        }
        self.on_cpu(time_ns, cpu)
    }

    /// The thread was woken.
    pub fn woken(&mut self, wake: Wake) {
        match &mut self.now {
            Now::Off(off) if off.state == WaitState::Blocked => {
                off.wake = Some(off.wake.map_or(wake, |known| known.completed_by(wake)));
            }
            Now::Off(_) => {}
            Now::Initial(InitialState::Blocked) => {
                self.now = Now::Off(Off { wake: Some(wake), ..InitialState::Blocked.off() })
            }
            Now::Running | Now::Initial(_) => {
                let same = self.early_wake.filter(|known| wake.time_ns.saturating_sub(known.time_ns) < EARLY_WAKE_NS);
                self.early_wake = Some(same.map_or(wake, |known| known.completed_by(wake)));
            }
        }
    }

    /// Whether the last wake-up was by this thread and is told without its stack.
    pub fn lacks_stack_of(&self, waker: ThreadRef) -> bool {
        let wake = if let Now::Off(off) = &self.now { &off.wake } else { &self.early_wake };
        wake.is_some_and(|wake| wake.waker == Some(waker) && wake.stack.is_none())
    }

    /// Tells the stack of the last wake-up's waker.
    pub fn woken_from(&mut self, stack: Option<StackRef>) {
        let wake = if let Now::Off(off) = &mut self.now { &mut off.wake } else { &mut self.early_wake };
        if let Some(wake) = wake {
            wake.stack = stack;
        }
    }

    /// The thread or the recording ended.
    pub fn end(&mut self, time_ns: u64) -> Option<Interval> {
        match self.now {
            Now::Running => {
                self.run_until(time_ns);
                None
            }
            Now::Initial(presumed) => {
                self.now = Now::Off(presumed.off());
                self.end_wait(time_ns, None)
            }
            Now::Off(_) => self.end_wait(time_ns, None),
        }
    }

    /// The same state, from `time_ns` on, with nothing counted yet: the life in the next capture of the same thread.
    /// Stacks and wakers are those of the old capture and are forgotten.
    pub fn continued(&self, time_ns: u64) -> Self {
        let now = match self.now {
            Now::Off(off) => {
                Now::Off(Off { stack: None, wake: off.wake.map(|_| Wake { time_ns, waker: None, stack: None }), ..off })
            }
            now => now,
        };
        Self::new(time_ns, now)
    }

    fn run_until(&mut self, time_ns: u64) -> Option<Interval> {
        self.running_ns += time_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(time_ns);
        None
    }

    fn end_wait(&mut self, time_ns: u64, cpu: Option<u32>) -> Option<Interval> {
        let Now::Off(off) = self.now else { return None };
        let start_ns = self.since_ns;
        let end_ns = time_ns.max(start_ns);
        let runnable_ns = match off.state {
            WaitState::Preempted => Some(end_ns - start_ns),
            WaitState::Blocked => off.wake.map(|wake| end_ns - wake.time_ns.clamp(start_ns, end_ns)),
        };
        self.runnable_ns += runnable_ns.unwrap_or(0);
        self.now = Now::Running;
        self.since_ns = end_ns;
        Some(Interval { start_ns, end_ns, state: off.state, stack: off.stack, runnable_ns, cpu, wake: off.wake })
    }
}

impl InitialState {
    fn off(self) -> Off {
        let state = match self {
            InitialState::Runnable => WaitState::Preempted,
            InitialState::Blocked => WaitState::Blocked,
        };
        Off { state, stack: None, wake: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a life drawn as `TIME EVENT` lines: `in`, `out` (blocks), `preempt`, `wake` (by thread 7), `irq` (woken
    /// by an interrupt), `seen` (sampled), `end`. Gives the intervals off the CPU as `START-END STATE runnable`.
    fn play(mut life: ThreadTimeline, drawn: &str) -> (Vec<String>, u64, u64) {
        let mut waits = Vec::new();
        for line in drawn.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (time, event) = line.split_once(' ').unwrap();
            let time = time.parse().unwrap();
            let ended = match event {
                "in" => life.switch_in(time, Some(1)),
                "out" => life.switch_out(time, false),
                "preempt" => life.switch_out(time, true),
                "seen" => life.on_cpu(time, Some(1)),
                "end" => life.end(time),
                "wake" | "irq" => {
                    let waker = (event == "wake").then_some(ThreadRef(7));
                    life.woken(Wake { time_ns: time, waker, stack: None });
                    None
                }
                other => panic!("no event `{other}`"),
            };
            waits.extend(ended.map(|wait| {
                let by = wait.wake.map_or("", |wake| if wake.waker.is_some() { " by 7" } else { " by interrupt" });
                let runnable = wait.runnable_ns.map_or("?".to_owned(), |ns| ns.to_string());
                format!("{}-{} {:?} {runnable}{by}", wait.start_ns, wait.end_ns, wait.state)
            }));
        }
        (waits, life.running_ns, life.runnable_ns)
    }

    #[test]
    fn blocked_time_splits_at_the_wake_up_into_blocked_and_runnable() {
        let (waits, running, runnable) = play(
            ThreadTimeline::born(100),
            "110 in
             150 out
             250 wake
             280 in
             290 preempt
             300 in
             310 end",
        );
        assert_eq!(waits, ["100-110 Preempted 10", "150-280 Blocked 30 by 7", "290-300 Preempted 10"]);
        assert_eq!((running, runnable), (40 + 10 + 10, 50));
    }

    #[test]
    fn a_first_switch_in_means_that_the_thread_was_off_since_the_start() {
        let (waits, running, _) = play(ThreadTimeline::presumed(0, InitialState::Blocked), "70 in\n100 end");
        assert_eq!((waits, running), (vec!["0-70 Blocked ?".to_owned()], 30));
    }

    #[test]
    fn a_first_switch_out_means_that_the_thread_ran_since_the_start_whatever_proc_said() {
        let (waits, running, _) = play(ThreadTimeline::presumed(0, InitialState::Blocked), "70 out\n100 end");
        assert_eq!((waits, running), (vec!["70-100 Blocked ?".to_owned()], 70));
    }

    #[test]
    fn a_thread_without_any_event_is_what_it_was_at_the_start() {
        let (waits, ..) = play(ThreadTimeline::presumed(5, InitialState::Blocked), "100 end");
        assert_eq!(waits, ["5-100 Blocked ?"]);
    }

    #[test]
    fn a_wake_up_recorded_just_before_the_switch_out_makes_the_whole_wait_runnable() {
        let (waits, ..) = play(ThreadTimeline::running(0), "990 wake\n1000 out\n1500 in");
        assert_eq!(waits, ["1000-1500 Blocked 500 by 7"]);
    }

    #[test]
    fn a_wake_up_long_before_the_switch_out_cancelled_an_earlier_sleep() {
        let (waits, ..) = play(ThreadTimeline::running(0), "990 wake\n1000000 out\n1000500 in");
        assert_eq!(waits, ["1000000-1000500 Blocked ?"]);
    }

    #[test]
    fn a_wakers_stack_completes_its_wake_up_and_no_others() {
        let mut life = ThreadTimeline::running(0);
        let wake = Wake { time_ns: 30, waker: None, stack: None };
        life.switch_out(10, false);
        assert!(!life.lacks_stack_of(ThreadRef(7)), "nobody woke it yet");
        life.woken(wake);
        assert!(!life.lacks_stack_of(ThreadRef(7)), "an interrupt did");
        life.switch_in(50, Some(1));
        life.woken(Wake { time_ns: 90, waker: Some(ThreadRef(7)), ..wake });
        assert!(life.lacks_stack_of(ThreadRef(7)) && !life.lacks_stack_of(ThreadRef(8)), "before it is switched out");
        life.switch_out(100, false);
        assert!(life.lacks_stack_of(ThreadRef(7)));
        life.woken_from(Some(StackRef(3)));
        assert!(!life.lacks_stack_of(ThreadRef(7)));
        let woken = life.switch_in(120, Some(1)).unwrap().wake.unwrap();
        assert_eq!((woken.waker, woken.stack), (Some(ThreadRef(7)), Some(StackRef(3))));
    }

    #[test]
    fn a_sample_of_a_thread_whose_switch_in_was_lost_ends_its_wait() {
        let (waits, running, _) = play(ThreadTimeline::running(0), "10 out\n40 seen\n50 preempt\n60 in\n70 end");
        assert_eq!(waits, ["10-40 Blocked ?", "50-60 Preempted 10"]);
        assert_eq!(running, 10 + 10 + 10);
    }

    #[test]
    fn a_wait_that_is_cut_goes_on_in_the_next_capture() {
        let mut life = ThreadTimeline::running(0);
        life.switch_out(10, false);
        life.woken(Wake { time_ns: 30, waker: None, stack: None });
        let mut next = life.continued(40);
        assert_eq!(life.end(40).unwrap().runnable_ns, Some(10));
        let wait = next.switch_in(100, Some(1)).unwrap();
        assert_eq!((wait.start_ns, wait.end_ns, wait.runnable_ns), (40, 100, Some(60)));
    }

    proptest::proptest! {
        #[test]
        fn running_runnable_and_blocked_add_up_to_the_lifetime(
            born in 0..3u8,
            events in proptest::collection::vec((0u64..200_000, 0..6u8), 0..60),
        ) {
            let mut life = match born {
                0 => ThreadTimeline::born(1000),
                1 => ThreadTimeline::presumed(1000, InitialState::Blocked),
                _ => ThreadTimeline::presumed(1000, InitialState::Runnable),
            };
            let (mut time, mut off, mut last_end) = (1000, 0, 1000);
            let mut note = |wait: Option<Interval>| if let Some(wait) = wait {
                assert!(wait.start_ns >= last_end && wait.end_ns >= wait.start_ns);
                assert!(wait.runnable_ns.unwrap_or(0) <= wait.end_ns - wait.start_ns);
                last_end = wait.end_ns;
                off += wait.end_ns - wait.start_ns;
            };
            for (after, event) in events {
                // Rings of two processors can disagree by a little.
                time = (time + after).saturating_sub(3).max(1000);
                note(match event {
                    0 | 1 => life.switch_in(time, Some(1)),
                    2 => life.switch_out(time, false),
                    3 => life.switch_out(time, true),
                    4 => life.on_cpu(time, Some(1)),
                    _ => { life.woken(Wake { time_ns: time, waker: None, stack: None }); None }
                });
            }
            time += 10;
            note(life.end(time));
            proptest::prop_assert_eq!(life.running_ns + off, time - 1000);
        }
    }
}
