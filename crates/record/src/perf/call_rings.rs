//! Uprobes of single threads, and the rings that their calls are written to.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd as _;

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::ioctls;

use super::Kind;
use super::attributes::{at_entry, disabled_event};
use super::ring::{self, Bounds, Ring};
use super::sample_layout::{Layouts, SAMPLE_PID_AT, word};
use super::system::{id_of, open_event, set_output};
use crate::clock;

/// One call of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedCall {
    /// When it was called.
    pub time_ns: u64,
    /// Id of the thread that called it.
    pub tid: u32,
    /// CPU time of the thread since its probe was set.
    pub cpu_ns: u64,
}

/// The time that the event's thread was running: after the common fields and the count.
const RUNNING_AT: usize = 56;

/// One ring for each thread.
pub(crate) struct CallRings {
    pages: NonZeroUsize,
    /// Index of the thread's ring.
    of_thread: BTreeMap<u32, usize>,
    /// In the order of the rings.
    leaders: Vec<File>,
    rings: Vec<Ring>,
    layouts: Layouts,
    scratch: Vec<u8>,
}

impl CallRings {
    pub fn new(pages: NonZeroUsize) -> Self {
        Self {
            pages,
            of_thread: BTreeMap::new(),
            leaders: Vec::new(),
            rings: Vec::new(),
            layouts: Layouts::default(),
            scratch: Vec::new(),
        }
    }

    /// Observes the instruction at `offset` of the file `path` in this thread. Gives the event, which ends when it is
    /// dropped, and its id.
    pub fn probe(&mut self, tid: u32, path: &CStr, offset: u64) -> io::Result<(File, u64)> {
        let mut attr = disabled_event(sys::PERF_TYPE_SOFTWARE, 0);
        at_entry(&mut attr, path, offset)?;
        attr.sample_type |= sys::PERF_SAMPLE_READ as u64;
        attr.read_format = sys::PERF_FORMAT_TOTAL_TIME_RUNNING as u64;
        let ring = self.ring_of(tid)?;
        let event = open_event(&mut attr, tid as i32, -1)?;
        set_output(&event, self.leaders[ring].as_raw_fd())?;
        // SAFETY: the event is open.
        if unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let id = id_of(&event)?;
        self.layouts.add(id, Kind::Step, &attr)?;
        Ok((event, id))
    }

    /// Closes the rings of all threads but these. An event of a thread costs it a part of a microsecond at each context switch, even one
    /// that counts nothing.
    pub fn retain(&mut self, keeps: impl Fn(u32) -> bool) {
        let of_thread = std::mem::take(&mut self.of_thread);
        let mut of_ring: Vec<(usize, u32)> = of_thread.into_iter().map(|(tid, ring)| (ring, tid)).collect();
        of_ring.sort_unstable();
        let rings = std::mem::take(&mut self.rings).into_iter().zip(std::mem::take(&mut self.leaders));
        for ((_, tid), (ring, leader)) in of_ring.into_iter().zip(rings).filter(|((_, tid), _)| keeps(*tid)) {
            self.of_thread.insert(tid, self.rings.len());
            self.rings.push(ring);
            self.leaders.push(leader);
        }
    }

    fn ring_of(&mut self, tid: u32) -> io::Result<usize> {
        match self.of_thread.entry(tid) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => {
                // An event of its own leads the ring, since each probe can be removed.
                let mut attr = disabled_event(sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_DUMMY as u64);
                let leader = open_event(&mut attr, tid as i32, -1)?;
                self.rings.push(Ring::map(&leader, self.pages)?);
                self.leaders.push(leader);
                Ok(*new.insert(self.rings.len() - 1))
            }
        }
    }

    /// Takes the calls since the last time, with the event's id. Gives the number of calls lost.
    pub fn read(&mut self, mut take: impl FnMut(u64, CountedCall)) -> u64 {
        let mut lost = 0;
        let bounds = Bounds { until: u64::MAX, now: clock::now_ns(), layouts: &self.layouts };
        ring::drain(&mut self.rings, &bounds, &mut self.scratch, |record| match record.kind {
            sys::PERF_RECORD_SAMPLE => {
                let (id, thread) = (word(record.body, 0), word(record.body, SAMPLE_PID_AT));
                if let (Some(id), Some(thread), Some(cpu_ns)) = (id, thread, word(record.body, RUNNING_AT)) {
                    take(id, CountedCall { time_ns: record.time, tid: (thread >> 32) as u32, cpu_ns });
                }
            }
            sys::PERF_RECORD_LOST => lost += word(record.body, 8).unwrap_or(0),
            _ => {}
        });
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_probes_has_no_event_left() {
        let (sender, tids) = std::sync::mpsc::channel();
        let threads = [(); 3].map(|()| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                // SAFETY: only asks for a number.
                sender.send(unsafe { libc::gettid() } as u32).unwrap();
                std::thread::park();
            })
        });
        let tids = [(); 3].map(|()| tids.recv().unwrap());
        let mut rings = CallRings::new(NonZeroUsize::MIN);
        if let Err(error) = tids.iter().try_for_each(|tid| rings.ring_of(*tid).map(drop)) {
            return println!("skipped: a_thread_without_probes_has_no_event_left: {error}");
        }
        let fds: Vec<i32> = rings.leaders.iter().map(|leader| leader.as_raw_fd()).collect();
        rings.retain(|tid| tid == tids[1]);
        assert_eq!((rings.rings.len(), rings.leaders.len()), (1, 1));
        assert_eq!(rings.leaders[0].as_raw_fd(), fds[1]);
        assert_eq!(rings.ring_of(tids[1]).unwrap(), 0);
        assert_eq!(rings.ring_of(tids[2]).unwrap(), 1, "it can have one again");
        for thread in threads {
            thread.thread().unpark();
            thread.join().unwrap();
        }
    }
}
