//! Context switches and wake-ups, as BPF programs write them: one by one, or as sums.
//!
//! Each record starts with a word of flags and the time. A *place* stands for a stack; see the recorder's `switch_sums`.

use stepscope_model::WaitState;

use crate::kernel_record::ThreadIds;

/// The sums of a thread that are kept apart at a time.
pub const SUMS: usize = 8;
/// Bytes of a record of a switch, a wake-up or a place: flags, time, two pairs of ids, and a place.
pub const RECORD_BYTES: i32 = 40;

/// The first thread leaves the CPU, and the second one comes; 0 for those that are not written.
pub const SWITCH: u64 = 1;
/// The sums of a thread in a slice of time, and its last wait.
pub const SUMS_OF_THREAD: u64 = 2;
/// The stack of a place.
pub const PLACE: u64 = 3;
/// The first thread is woken by the second one, or by an interrupt.
pub const WAKE_UP: u64 = 4;
const KIND: u64 = 0xff;
/// Of a switch: the waits of the thread that comes are added up from now on.
pub const SUMMED: u64 = 0x100;
/// Of a switch: the thread that leaves is dead.
pub const DEAD: u64 = 0x200;
/// Of sums: the next waits of the thread are written one by one.
pub const ENDS: u64 = 0x100;

/// In place of a place: the thread can still run.
pub const PREEMPTED: u64 = 1;

const SUM_WORDS: usize = 4;
const HEAD_WORDS: usize = 7;

/// Identifies a stack of one thread. The upper half alone identifies similar stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place(pub u64);

impl Place {
    pub(crate) fn of(word: u64) -> Option<Self> {
        (word > PREEMPTED).then_some(Self(word))
    }

    /// The part that it has in common with similar ones.
    pub fn instruction_and_pointer(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The waits of a thread at one place, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub state: WaitState,
    pub place: Option<Place>,
    pub count: u64,
    pub blocked_ns: u64,
    pub runnable_ns: u64,
}

/// The last wait of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastWait {
    pub since_ns: u64,
    pub woken_ns: Option<u64>,
    pub state: WaitState,
    pub place: Option<Place>,
}

impl LastWait {
    /// Its time so far, which is no whole wait.
    fn until(self, time_ns: u64) -> Sum {
        let Self { since_ns, woken_ns, state, place } = self;
        let end_ns = time_ns.max(since_ns);
        let woken_ns = match state {
            WaitState::Preempted => since_ns,
            WaitState::Blocked => woken_ns.unwrap_or(end_ns).clamp(since_ns, end_ns),
        };
        Sum { state, place, count: 0, blocked_ns: woken_ns - since_ns, runnable_ns: end_ns - woken_ns }
    }
}

/// What a thread did in a slice of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slice {
    pub ids: ThreadIds,
    pub start_ns: u64,
    pub sums: Vec<Sum>,
    pub last: Option<LastWait>,
}

impl Slice {
    fn read(words: &[u64]) -> Option<Self> {
        let &[ids, start_ns, since_ns, woken_ns, place, ref sums @ ..] = words.get(2..)? else { return None };
        let state = |place| if place == PREEMPTED { WaitState::Preempted } else { WaitState::Blocked };
        let sums = sums.as_chunks::<SUM_WORDS>().0.iter().take(SUMS).filter(|sum| sum[1] > 0);
        let sum = |&[place, count, blocked_ns, runnable_ns]: &[u64; SUM_WORDS]| Sum {
            state: state(place),
            place: Place::of(place),
            count,
            blocked_ns,
            runnable_ns,
        };
        let last = (since_ns > 0).then(|| LastWait {
            since_ns,
            woken_ns: Some(woken_ns).filter(|&ns| ns > 0),
            state: state(place),
            place: Place::of(place),
        });
        Some(Self { ids: ids_of(ids)?, start_ns, sums: sums.map(sum).collect(), last })
    }

    /// Takes away what an earlier state of the same slice had until this time.
    pub fn subtract(&mut self, before: &Slice, until_ns: u64) {
        let since = |last: &Option<LastWait>| last.map(|last| last.since_ns);
        // A wait that went on is in one of the sums by now, or still the last one.
        let went_on = before.last.filter(|_| since(&before.last) != since(&self.last)).map(|last| last.until(until_ns));
        for sum in &mut self.sums {
            let is_same = |before: &&Sum| (before.place, before.state) == (sum.place, sum.state);
            for before in before.sums.iter().chain(&went_on).filter(is_same).copied().collect::<Vec<_>>() {
                sum.count = sum.count.saturating_sub(before.count);
                sum.blocked_ns = sum.blocked_ns.saturating_sub(before.blocked_ns);
                sum.runnable_ns = sum.runnable_ns.saturating_sub(before.runnable_ns);
            }
        }
        self.sums.retain(|sum| sum.count > 0);
    }
}

/// Sums that the kernel has and did not write yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending(pub(crate) Slice);

impl Pending {
    /// Of what the programs know of a thread: the words of a record of sums. `None` if it has no sums.
    pub fn read(words: &[u64]) -> Option<Self> {
        Slice::read(words).filter(|slice| slice.start_ns > 0).map(Self)
    }
}

/// A record of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    Switch { leaves: Option<(ThreadIds, WaitState, Option<Place>)>, comes: Option<ThreadIds>, summed: bool, dead: bool },
    Sums { slice: Slice, ends: bool },
    Place { ids: ThreadIds, place: Place },
    WakeUp { woken: ThreadIds, waker: Option<(ThreadIds, Option<Place>)> },
}

impl Written {
    /// Of the raw data of a sample, with its time. `None` if they are no such record.
    pub fn read(raw: &[u8]) -> Option<(u64, Self)> {
        let words: Vec<u64> = raw.as_chunks::<8>().0.iter().map(|&bytes| u64::from_ne_bytes(bytes)).collect();
        let &[flags, time_ns, first, second, place, ..] = &words[..] else { return None };
        let written = match flags & KIND {
            SWITCH => {
                let state = if place == PREEMPTED { WaitState::Preempted } else { WaitState::Blocked };
                let leaves = ids_of(first).map(|ids| (ids, state, Place::of(place)));
                let (summed, dead) = (flags & SUMMED != 0, flags & DEAD != 0);
                Self::Switch { leaves, comes: ids_of(second), summed, dead }
            }
            SUMS_OF_THREAD => {
                let words = words.get(..HEAD_WORDS + SUMS * SUM_WORDS)?;
                Self::Sums { slice: Slice::read(words)?, ends: flags & ENDS != 0 }
            }
            PLACE => Self::Place { ids: ids_of(first)?, place: Place::of(place)? },
            WAKE_UP => {
                Self::WakeUp { woken: ids_of(first)?, waker: ids_of(second).map(|waker| (waker, Place::of(place))) }
            }
            _ => return None,
        };
        Some((time_ns, written))
    }
}

/// The ids of a thread: its own below that of its process. 0 is no thread.
fn ids_of(word: u64) -> Option<ThreadIds> {
    (word as u32 > 0).then_some(ThreadIds { pid: (word >> 32) as u32, tid: word as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: u64 = 20 << 32 | 21;
    const IDS_READ: ThreadIds = ThreadIds { pid: 20, tid: 21 };

    fn raw(words: &[u64]) -> Vec<u8> {
        // The kernel's padding comes behind.
        words.iter().flat_map(|word| word.to_ne_bytes()).chain([0; 4]).collect()
    }

    #[test]
    fn a_switch_names_both_threads_and_the_place_of_the_one_that_leaves() {
        let read = |place| Written::read(&raw(&[SWITCH | SUMMED, 90, IDS, 0, place]));
        let switch = |state, place| Written::Switch {
            leaves: Some((IDS_READ, state, place)),
            comes: None,
            summed: true,
            dead: false,
        };
        assert_eq!(read(77), Some((90, switch(WaitState::Blocked, Some(Place(77))))));
        assert_eq!(read(0), Some((90, switch(WaitState::Blocked, None))));
        assert_eq!(read(PREEMPTED), Some((90, switch(WaitState::Preempted, None))));
        let last = Written::Switch {
            leaves: Some((IDS_READ, WaitState::Blocked, None)),
            comes: None,
            summed: false,
            dead: true,
        };
        assert_eq!(Written::read(&raw(&[SWITCH | DEAD, 90, IDS, 0, 0])), Some((90, last)));
        assert_eq!(Written::read(&raw(&[SWITCH, 90, IDS, 0])), None, "it is cut");
        assert_eq!(Written::read(&raw(&[9, 90, IDS, 0, 0])), None, "there is no such record");
    }

    #[test]
    fn sums_that_were_taken_before_are_taken_away() {
        let words = |count, ns| {
            let mut words = vec![SUMS_OF_THREAD, 90, IDS, 10, 0, 0, 0, 77, count, ns, 1, PREEMPTED, 1, 0, 5];
            words.resize(HEAD_WORDS + SUMS * SUM_WORDS, 0);
            words
        };
        let Pending(before) = Pending::read(&words(3, 30)).unwrap();
        let Some((90, Written::Sums { mut slice, ends: false })) = Written::read(&raw(&words(5, 44))) else { panic!() };
        assert_eq!((slice.sums.len(), slice.start_ns, slice.last), (2, 10, None));
        slice.subtract(&before, 50);
        let left = Sum { state: WaitState::Blocked, place: Some(Place(77)), count: 2, blocked_ns: 14, runnable_ns: 0 };
        assert_eq!(slice.sums, [left]);
        let last = LastWait { since_ns: 40, woken_ns: None, state: WaitState::Blocked, place: Some(Place(77)) };
        slice.subtract(&Slice { sums: Vec::new(), last: Some(last), ..before }, 45);
        assert_eq!(slice.sums, [Sum { blocked_ns: 9, ..left }], "the wait of the cut has its time until then");
    }
}
