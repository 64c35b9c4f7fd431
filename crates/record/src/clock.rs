//! The clocks of a recording.

use std::fs;

use stepscope_model::{ClockId, WallReading};

/// `CLOCK_MONOTONIC`, the clock that perf events are opened with.
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// By how much `CLOCK_BOOTTIME`, which starts of processes are in, is ahead of `CLOCK_MONOTONIC`: the time of suspension.
pub fn suspended_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME).saturating_sub(now_ns())
}

/// By how much real time, in ns since 1970, is ahead of `CLOCK_MONOTONIC`.
pub(crate) fn realtime_offset_ns() -> i64 {
    realtime().offset_ns
}

/// Real time against `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Realtime {
    /// When both were read.
    pub at_ns: u64,
    /// By how much real time is ahead.
    pub offset_ns: i64,
    /// The offset is right to this much.
    pub within_ns: u64,
}

/// Reads both clocks, several times, and keeps the reading that took the shortest time.
pub(crate) fn realtime() -> Realtime {
    let reading = |_| {
        let before_ns = now_ns();
        let unix_ns = read(libc::CLOCK_REALTIME) as i64;
        let within_ns = now_ns().saturating_sub(before_ns);
        let at_ns = before_ns + within_ns / 2;
        Realtime { at_ns, offset_ns: unix_ns.wrapping_sub(at_ns as i64), within_ns }
    };
    (0..4).map(reading).min_by_key(|reading| reading.within_ns).expect("there are four readings")
}

/// The wall clock now, with what NTP or PTP says about its error: `adjtimex(2)`.
pub fn wall_reading() -> WallReading {
    let Realtime { at_ns, offset_ns, within_ns } = realtime();
    // SAFETY: the structure is plain numbers; without modes, the call only fills it.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    let is_synchronised = (0..libc::TIME_ERROR).contains(&state) && timex.status & libc::STA_UNSYNC == 0;
    let of_microseconds = |us: libc::c_long| u64::try_from(us).unwrap_or(0).saturating_mul(1000);
    WallReading {
        time_ns: at_ns,
        unix_ns: offset_ns.wrapping_add(at_ns as i64),
        within_ns,
        synchronised: is_synchronised,
        max_error_ns: of_microseconds(timex.maxerror),
        estimated_error_ns: of_microseconds(timex.esterror),
    }
}

/// The clock of [`now_ns`]. `None` if the kernel does not name the boot.
pub fn id() -> Option<ClockId> {
    let text = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    Some(ClockId {
        host: text("/proc/sys/kernel/hostname").unwrap_or_default(),
        boot_id: text("/proc/sys/kernel/random/boot_id")?,
        namespace_offset_ns: text("/proc/self/timens_offsets").and_then(|text| monotonic_offset_ns(&text)).unwrap_or(0),
    })
}

/// The offset of `CLOCK_MONOTONIC` in a time namespace: a line such as `monotonic  5000  0`, in seconds and ns.
fn monotonic_offset_ns(offsets: &str) -> Option<i64> {
    let line = offsets.lines().find(|line| line.starts_with("monotonic"))?;
    let mut numbers = line.split_whitespace().skip(1).map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// CPU time of this process so far.
pub(crate) fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this thread so far.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of a process so far, all its threads included, those that ended too. `None` if it is gone.
pub(crate) fn cpu_ns_of(pid: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: the clock's id outlives the call.
    let error = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    (error == 0).then(|| read(clock))
}

/// Sleeps until this time of [`now_ns`], or until a signal comes.
pub fn sleep_until(time_ns: u64) {
    let time = libc::timespec { tv_sec: (time_ns / 1_000_000_000) as i64, tv_nsec: (time_ns % 1_000_000_000) as i64 };
    // SAFETY: the structure outlives the call. An interruption is as good as the time.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call. These clocks exist on every Linux that has perf events.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The wall-clock time now, as RFC 3339 in UTC, to the millisecond.
pub fn utc_now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The wall-clock time now in UTC, to the second, as a file name that sorts by time: `2026-11-21T14-19-38Z`.
pub fn utc_file_name() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        assert_eq!(monotonic_offset_ns("monotonic           5000         7\nboottime  0 0\n"), Some(5_000_000_000_007));
        assert_eq!(monotonic_offset_ns("monotonic  -1  500000000\n"), Some(-500_000_000));
        for damaged in
            ["", "boottime 0 0", "monotonic", "monotonic 1", "monotonic x 1", "monotonic 9223372036854775807 1"]
        {
            assert_eq!(monotonic_offset_ns(damaged), None);
        }
    }

    #[test]
    fn the_wall_clock_is_read_together_with_the_monotonic_one() {
        let (before_ns, reading) = (now_ns(), wall_reading());
        assert!((before_ns..=now_ns()).contains(&reading.time_ns));
        let unix_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
        assert!((unix_ns - reading.unix_ns) < 60_000_000_000, "{reading:?}");
        assert!(id().is_some_and(|id| id.boot_id.len() == 36));
    }
}
