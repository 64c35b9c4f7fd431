//! Calls of functions in running threads, counted by uprobes.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use stepscope_record::calls::{CallSite, MOST_PER_SECOND, SiteCalls, count_calls};
use stepscope_record::clock;
use stepscope_symbolize::entries;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn stepscope_counted_step(number: u64) -> u64 {
    std::hint::black_box(number) + 1
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn stepscope_counted_helper(number: u64) -> u64 {
    std::hint::black_box(number) + 2
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn stepscope_never_called(number: u64) -> u64 {
    std::hint::black_box(number) + 3
}

fn site(symbol: &str, threads: Vec<u32>) -> CallSite {
    let module = std::env::current_exe().unwrap();
    let found = entries(&module, &Default::default(), |_, name| name == symbol).unwrap();
    CallSite { offset: found[0].offset, module, threads }
}

#[test]
fn calls_are_counted_exactly_with_times_and_what_is_called_too_often_is_left_out() {
    let test = "calls_are_counted_exactly_with_times_and_what_is_called_too_often_is_left_out";
    assert_eq!(stepscope_never_called(0), 3);
    let stop = Arc::new(AtomicBool::new(false));
    let (tid, tids) = mpsc::channel();
    let stepping = {
        let stop = stop.clone();
        let tid = tid.clone();
        thread::spawn(move || {
            // SAFETY: no preconditions.
            tid.send(unsafe { libc::gettid() } as u32).unwrap();
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                times.push(clock::now_ns());
                stepscope_counted_step(times.len() as u64);
                thread::sleep(Duration::from_millis(2));
            }
            times
        })
    };
    let stepping_tid = tids.recv().unwrap();
    let helping = {
        let stop = stop.clone();
        thread::spawn(move || {
            // SAFETY: no preconditions.
            tid.send(unsafe { libc::gettid() } as u32).unwrap();
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number = stepscope_counted_helper(number);
            }
        })
    };
    let helping_tid = tids.recv().unwrap();
    let sites = [
        site("stepscope_counted_step", vec![stepping_tid]),
        site("stepscope_counted_helper", vec![helping_tid]),
        site("stepscope_never_called", vec![stepping_tid, helping_tid]),
    ];
    let counts = count_calls(&sites, Duration::from_millis(400), MOST_PER_SECOND, |_| true, &AtomicBool::new(false));
    stop.store(true, Ordering::Relaxed);
    let times = stepping.join().unwrap();
    helping.join().unwrap();
    let counts = match counts {
        Ok(counts) => counts,
        Err(error) => {
            println!("skipped: {test}: the kernel refuses uprobes: {error}");
            return;
        }
    };
    let SiteCalls::Counted { calls, window } = &counts.sites[0] else { panic!("{:?}", counts.sites[0]) };
    assert!(calls.len() > 5 && counts.lost == 0, "{} calls, {} lost", calls.len(), counts.lost);
    assert!(calls.iter().all(|call| call.tid == stepping_tid && window.contains(&call.time_ns)));
    assert!(calls.is_sorted_by_key(|call| call.cpu_ns));
    // Each call follows the thread's own note of it, and no call between the first and the last is missing.
    let own = |call: u64| times.iter().filter(|time| **time <= call).count();
    let (first, last) = (own(calls[0].time_ns), own(calls[calls.len() - 1].time_ns));
    assert_eq!(last - first + 1, calls.len());
    match &counts.sites[1] {
        SiteCalls::TooOften { per_second, .. } => assert!(*per_second > 20_000.0, "{per_second}"),
        // On a busy machine the thread may hardly run in the first moments.
        SiteCalls::Counted { calls, .. } => assert!(!calls.is_empty()),
        SiteCalls::Refused(reason) => panic!("{reason}"),
    }
    assert!(matches!(&counts.sites[2], SiteCalls::Counted { calls, .. } if calls.is_empty()), "{:?}", counts.sites[2]);
}

#[test]
fn counting_goes_on_until_there_are_enough_calls() {
    let test = "counting_goes_on_until_there_are_enough_calls";
    let stop = Arc::new(AtomicBool::new(false));
    let (tid, tids) = mpsc::channel();
    let stepping = {
        let stop = stop.clone();
        thread::spawn(move || {
            // SAFETY: no preconditions.
            tid.send(unsafe { libc::gettid() } as u32).unwrap();
            while !stop.load(Ordering::Relaxed) {
                stepscope_counted_step(0);
                thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let sites = [site("stepscope_counted_step", vec![tids.recv().unwrap()])];
    let count = |enough: usize| {
        let duration = Duration::from_millis(200);
        let counts =
            count_calls(&sites, duration, MOST_PER_SECOND, |calls| calls[0] >= enough, &AtomicBool::new(false))?;
        let SiteCalls::Counted { window, .. } = &counts.sites[0] else { panic!("{counts:?}") };
        std::io::Result::Ok(Duration::from_nanos(window.end - window.start))
    };
    let (few, many) = (count(1), count(usize::MAX));
    stop.store(true, Ordering::Relaxed);
    stepping.join().unwrap();
    let (Ok(few), Ok(many)) = (few, many) else { return println!("skipped: {test}: the kernel refuses uprobes") };
    // Either six times as long, or until the site has very many calls.
    assert!(many > few && many < Duration::from_secs(30), "{few:?}, {many:?}");
}

/// Two threads that hand a token to and fro switch some 100,000 times a second.
#[test]
fn a_thread_with_very_many_switches_is_observed_briefly() {
    let test = "a_thread_with_very_many_switches_is_observed_briefly";
    let stop = Arc::new(AtomicBool::new(false));
    let (tid, tids) = mpsc::channel();
    let ((mut given, mut give), (mut returned, mut give_back)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let echo = thread::spawn(move || {
        let mut token = [0];
        while given.read_exact(&mut token).is_ok() && give_back.write_all(&token).is_ok() {}
    });
    let switching = {
        let stop = stop.clone();
        thread::spawn(move || {
            // SAFETY: no preconditions.
            tid.send(unsafe { libc::gettid() } as u32).unwrap();
            let mut token = [0];
            while !stop.load(Ordering::Relaxed) {
                give.write_all(&token).unwrap();
                returned.read_exact(&mut token).unwrap();
            }
        })
    };
    let sites = [site("stepscope_never_called", vec![tids.recv().unwrap()])];
    // Nobody calls it, so that only the switches can end the count before the time is over.
    let duration = Duration::from_secs(60);
    let counts = count_calls(&sites, duration, MOST_PER_SECOND, |_| true, &AtomicBool::new(false));
    stop.store(true, Ordering::Relaxed);
    switching.join().unwrap();
    echo.join().unwrap();
    let Ok(counts) = counts else { return println!("skipped: {test}: the kernel refuses uprobes") };
    let SiteCalls::Counted { window, .. } = &counts.sites[0] else { panic!("{counts:?}") };
    assert!(window.end - window.start < 60_000_000_000, "{window:?}");
}

#[test]
fn a_thread_that_has_ended_is_an_error() {
    let sites = [site("stepscope_never_called", vec![u32::MAX >> 2])];
    assert!(count_calls(&sites, Duration::from_millis(1), MOST_PER_SECOND, |_| true, &AtomicBool::new(false)).is_err());
}
