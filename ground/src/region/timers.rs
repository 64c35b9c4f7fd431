//! The timers of scripts.

use std::collections::HashMap;

use super::scene::STEP_S;
use crate::account;
use crate::switches::{Switch, Switches};

/// The owner of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    /// The part.
    pub local_id: u32,
    /// The script in it.
    pub item_id: u32,
}

#[derive(Debug, Clone, Copy)]
struct Timer {
    key: TimerKey,
    /// Index of the script.
    script: usize,
    interval_steps: u64,
    due_step: u64,
}

/// A script's request for timer events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimerRequest {
    /// The owner of a timer.
    pub key: TimerKey,
    /// Index of the script.
    pub script: usize,
    /// Period of the events, simulated s. 0 or less ends them.
    pub interval_s: f64,
}

/// All active timers.
pub struct Timers {
    timers: Vec<Timer>,
    /// Index of each timer. Empty if timers are searched.
    places: HashMap<TimerKey, usize>,
    searches: bool,
}

impl Timers {
    /// Without timers.
    pub fn new(switches: &Switches) -> Self {
        Self { timers: Vec::new(), places: HashMap::new(), searches: switches.is_slow(Switch::TimerList) }
    }

    /// Sets the timers that scripts requested in a step.
    #[inline(never)]
    pub fn set_timer_events(&mut self, requests: &[TimerRequest], step: u64) {
        let _timed = account::scope("ground::region::timers::Timers::set_timer_events");
        for request in requests {
            self.set_timer_event(request, step);
        }
    }

    #[inline(never)]
    fn set_timer_event(&mut self, request: &TimerRequest, step: u64) {
        self.unset_timer_events(request.key);
        if request.interval_s <= 0.0 {
            return;
        }
        let interval_steps = ((request.interval_s / STEP_S) as u64).max(1);
        if !self.searches {
            self.places.insert(request.key, self.timers.len());
        }
        let due_step = step + interval_steps;
        self.timers.push(Timer { key: request.key, script: request.script, interval_steps, due_step });
    }

    /// Removes a timer. The slow code copies the other timers to a new list, like OpenSim.
    #[inline(never)]
    fn unset_timer_events(&mut self, key: TimerKey) {
        if self.searches {
            self.timers = self.timers.iter().filter(|timer| timer.key != key).copied().collect();
        } else if let Some(place) = self.places.remove(&key) {
            self.timers.swap_remove(place);
            if let Some(moved) = self.timers.get(place) {
                self.places.insert(moved.key, place);
            }
        }
    }

    /// The scripts whose timers are due, in order. Restarts these timers.
    pub fn check_timer_events(&mut self, step: u64) -> Vec<usize> {
        let mut due = Vec::new();
        for timer in self.timers.iter_mut().filter(|timer| timer.due_step <= step) {
            timer.due_step = step + timer.interval_steps;
            due.push(timer.script);
        }
        due.sort_unstable();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(script: usize, interval_s: f64) -> TimerRequest {
        TimerRequest { key: TimerKey { local_id: script as u32 + 1, item_id: 7 }, script, interval_s }
    }

    #[test]
    fn timers_repeat_until_they_are_set_again_or_ended() {
        for switches in [Switches::default(), Switches::only(Switch::TimerList)] {
            let mut timers = Timers::new(&switches);
            timers.set_timer_events(&[request(0, 2.0 * STEP_S), request(1, 3.0 * STEP_S), request(2, STEP_S)], 0);
            timers.set_timer_events(&[request(2, 0.0)], 0);
            let due = [1, 2, 3, 4].map(|step| timers.check_timer_events(step));
            assert_eq!(due, [vec![], vec![0], vec![1], vec![0]]);
            timers.set_timer_events(&[request(0, STEP_S)], 4);
            let due = [5, 6, 7].map(|step| timers.check_timer_events(step));
            assert_eq!(due, [vec![0], vec![0, 1], vec![0]]);
        }
    }
}
