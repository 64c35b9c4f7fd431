//! The clocks of a recording.

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
    read(libc::CLOCK_REALTIME) as i64 - now_ns() as i64
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
