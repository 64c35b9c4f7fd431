//! Where in the kernel a tracepoint is: programs at it appear in stacks below that address.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd as _;
use std::sync::mpsc;
use std::time::Duration;

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::ioctls;

use super::Tracepoint;
use super::attributes::disabled_event;
use super::ring::{self, Bounds, Ring};
use super::sample_layout::{Layouts, word};
use super::system::open_event;
use crate::clock;

const PAGES: NonZeroUsize = NonZeroUsize::new(1).expect("not zero");
/// Of a sample: after its id.
const ADDRESS_AT: usize = 8;

/// The addresses of `sched_switch` and `sched_waking`.
pub(crate) fn of_switches_and_wake_ups() -> io::Result<Vec<u64>> {
    const LOOK: Duration = Duration::from_micros(200);
    /// On a busy machine, the other thread may not sleep yet.
    const ATTEMPTS: usize = 20;
    let (wake, woken) = mpsc::channel::<()>();
    let sleeper = std::thread::spawn(move || while woken.recv().is_ok() {});
    let switch = of(&Tracepoint::find("sched", "sched_switch")?, || std::thread::sleep(LOOK))?;
    let tracepoint = Tracepoint::find("sched", "sched_waking")?;
    let look = |_| {
        std::thread::sleep(LOOK);
        let wake_up = || {
            let _ = wake.send(());
        };
        of(&tracepoint, wake_up).transpose()
    };
    let waking = (0..ATTEMPTS).find_map(look).transpose()?;
    drop(wake);
    let _ = sleeper.join();
    Ok(switch.into_iter().chain(waking).collect())
}

/// Observes this thread while `provoke` runs, which passes the tracepoint. `None` if it did not.
fn of(tracepoint: &Tracepoint, provoke: impl FnOnce()) -> io::Result<Option<u64>> {
    let mut attr = disabled_event(sys::PERF_TYPE_TRACEPOINT, tracepoint.id);
    attr.__bindgen_anon_1.sample_period = 1;
    let event = open_event(&mut attr, 0, -1)?;
    let mut rings = [Ring::map(&event, PAGES)?];
    let control = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: the event is open.
    control(unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) })?;
    provoke();
    // SAFETY: the event is open.
    control(unsafe { ioctls::DISABLE(event.as_raw_fd(), 0) })?;
    let mut address = None;
    let layouts = Layouts::default();
    let bounds = Bounds { until: u64::MAX, now: clock::now_ns(), layouts: &layouts };
    ring::drain(&mut rings, &bounds, &mut Vec::new(), |record| {
        if record.kind == sys::PERF_RECORD_SAMPLE {
            address = address.or(word(record.body, ADDRESS_AT));
        }
    });
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tracepoints_are_found() {
        match of_switches_and_wake_ups() {
            Ok(addresses) => assert_eq!(addresses.len(), 2, "{addresses:x?}"),
            Err(error) => println!("skipped: both_tracepoints_are_found: tracepoints cannot be observed ({error})"),
        }
    }
}
