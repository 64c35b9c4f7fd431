//! The parts of a wait: blocked, then runnable; and the part of a wait within a range of time.

use std::ops::Range;

use stepscope_model::{Wait, WaitState};

/// The part of a wait in which the thread waited for something other than a CPU.
#[inline]
pub fn blocked_ns(wait: &Wait) -> u64 {
    match wait.state {
        WaitState::Preempted => 0,
        WaitState::Blocked => (wait.end_ns - wait.start_ns).saturating_sub(wait.runnable_ns.unwrap_or(0)),
    }
}

/// The part of a wait in which the thread waited for a CPU, as far as it was recorded.
#[inline]
pub fn runnable_ns(wait: &Wait) -> u64 {
    (wait.end_ns - wait.start_ns) - blocked_ns(wait)
}

/// The part of a wait within a range of time; `None` if it is outside.
pub fn cut(wait: &Wait, range: &Range<u64>) -> Option<Wait> {
    let (start_ns, end_ns) = (wait.start_ns.max(range.start), wait.end_ns.min(range.end));
    if start_ns >= end_ns {
        return None;
    }
    let runnable_ns = wait.runnable_ns.map(|runnable| {
        let woken = wait.end_ns.saturating_sub(runnable).max(start_ns);
        end_ns.saturating_sub(woken)
    });
    let count = match wait.count {
        0..=1 => wait.count,
        // As many as fit into this part of their time.
        count => {
            let (part, whole) = (u128::from(end_ns - start_ns), u128::from((wait.end_ns - wait.start_ns).max(1)));
            (u128::from(count) * part).div_ceil(whole) as u32
        }
    };
    Some(Wait { start_ns, end_ns, runnable_ns, count, ..*wait })
}

/// Whether it is known that a timer or a device ended a blocked wait. Who ended the waits of an aggregated row is unknown.
pub fn no_thread_ended(wait: &Wait) -> bool {
    wait.state == WaitState::Blocked && wait.runnable_ns.is_some() && wait.waker.is_none() && !wait.is_aggregated()
}

/// When a blocked thread was woken; the start of a preempted interval, and the end of one whose wake-up is not known.
pub fn woken_at(wait: &Wait) -> u64 {
    match wait.state {
        WaitState::Preempted => wait.start_ns,
        WaitState::Blocked => wait.start_ns + blocked_ns(wait),
    }
}
