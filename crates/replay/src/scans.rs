//! What calls read of the same memory, and what of it matters to their results.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashSet, FxHasher};

use crate::Scans;
use crate::interpreter::Done;
use crate::memory::{ADDRESS, Change, Memory, Place};

/// Calls that read fewer words are not looked at: they search nothing, or not long.
const LEAST_WORDS: usize = 64;

/// Calls that a call is compared with: each object may have its own data. And words of these together.
const RECENT: usize = 32;
const MOST_WORDS: usize = 1 << 20;

/// A call is compared with the last one that shares this part. Calls that read parts of the same tree share more than that, but not nearly all.
const OF_SAME: f64 = 0.2;

/// Least part of what a call reads that it shares with that one.
const LEAST_SHARED: f64 = 0.8;

/// A call that writes more than this part of what it reads makes something of it.
const MOST_WRITTEN: f64 = 0.5;

/// Changes that are tried in one call, and in all.
const OF_CALL: usize = 12;
const MOST: usize = 60;

/// Instructions of all calls with changes, about: a second.
const AFFORDABLE: u64 = 6_000_000;

/// What the calls of a function have read so far.
#[derive(Default)]
pub(crate) struct Readings {
    read: Vec<u64>,
    written: Vec<u64>,
    shared: Vec<f64>,
    arguments: FxHashSet<u64>,
    /// What the last calls have read, by address; the last one first.
    recent: VecDeque<Read>,
    /// Instructions that are left for changes.
    spent: u64,
    changed: usize,
    mattered: usize,
}

impl Readings {
    /// Adds a call that has read this, and written `outputs`. With a trial, if its memory should be changed.
    pub fn add(&mut self, done: &Done, inputs: &[u64], places: &[Place], outputs: &[u64]) -> Option<Trial> {
        let mut arguments = FxHasher::default();
        done.arguments.hash(&mut arguments);
        self.arguments.insert(arguments.finish());
        let read_bytes: u64 = places.iter().map(|place| u64::from(place.bytes)).sum();
        let written_bytes = outputs.len() as u64 * 8;
        self.read.push(read_bytes);
        self.written.push(written_bytes);
        if !(LEAST_WORDS..=MOST_WORDS).contains(&inputs.len()) {
            return None;
        }
        let mut read: Read = places.iter().copied().zip(inputs.iter().copied()).collect();
        read.sort_unstable();
        let is_same = |part: f64| part >= OF_SAME;
        let mut compared = self.recent.iter().map(|earlier| {
            let common = common(earlier, &read, |(place, value)| (*place, *value));
            (part(common.len(), earlier, &read), common)
        });
        let same = compared.find(|(part, _)| is_same(*part));
        // Calls for neighbours read the same parts of a tree; others do not.
        let mut places = self.recent.iter().rev().map(|earlier| {
            let common = common(earlier, &read, |(place, _)| *place);
            part(common.len(), earlier, &read)
        });
        let of_places = places.find(|part| is_same(*part)).unwrap_or(0.0);
        let is_first = self.recent.is_empty();
        self.recent.push_front(read);
        self.recent.truncate(RECENT);
        while self.recent.iter().map(Vec::len).sum::<usize>() > MOST_WORDS {
            self.recent.pop_back();
        }
        if !is_first {
            self.shared.push(same.as_ref().map_or(0.0, |(shared, _)| shared.min(of_places)));
        }
        let (shared, common) = same.filter(|_| of_places >= LEAST_SHARED)?;
        let is_one = shared >= LEAST_SHARED
            && written_bytes as f64 <= MOST_WRITTEN * read_bytes as f64
            && self.changed < MOST;
        let affordable = AFFORDABLE.saturating_sub(self.spent) / done.instructions.max(1);
        let number = OF_CALL.min(MOST - self.changed.min(MOST)).min(affordable as usize);
        if !is_one || number == 0 {
            return None;
        }
        self.spent += number as u64 * done.instructions;
        let changes: Vec<Change> = common.iter().filter_map(change).collect();
        // Evenly, but at other places in each call.
        let every = (changes.len() / number).max(1);
        let first = self.changed * 7 % every;
        let changes = changes.into_iter().skip(first).step_by(every).take(number).collect();
        Some(Trial { changes, outputs: outputs.to_vec(), results: done.results.clone(), instructions: done.instructions })
    }

    /// Whether a change of a [`Trial`] had another result.
    pub fn tried(&mut self, mattered: bool) {
        self.changed += 1;
        self.mattered += usize::from(mattered);
    }

    pub fn finish(mut self) -> Scans {
        self.read.sort_unstable();
        self.written.sort_unstable();
        self.shared.sort_unstable_by(f64::total_cmp);
        let middle = |values: &[u64]| values.get(values.len() / 2).copied().unwrap_or(0);
        Scans {
            read_bytes: middle(&self.read),
            written_bytes: middle(&self.written),
            shared: self.shared.get(self.shared.len() / 2).copied().unwrap_or(0.0),
            arguments: self.arguments.len(),
            changed: self.changed,
            mattered: self.mattered,
        }
    }
}

/// What calls have read, by address.
type Read = Vec<(Place, u64)>;

fn part(common: usize, one: &Read, other: &Read) -> f64 {
    common as f64 / one.len().min(other.len()).max(1) as f64
}

/// What both have, of two lists that ascend by `key`.
fn common<K: Ord>(one: &Read, other: &Read, key: impl Fn(&(Place, u64)) -> K) -> Read {
    let mut found = Vec::new();
    let (mut at, mut of_other) = (0, 0);
    while let (Some(left), Some(right)) = (one.get(at), other.get(of_other)) {
        let order = key(left).cmp(&key(right));
        if order == Ordering::Equal {
            found.push(*left);
        }
        at += usize::from(order != Ordering::Greater);
        of_other += usize::from(order != Ordering::Less);
    }
    found
}

/// A change of a word, whatever it holds: one bit of each half, which is a good part of a number with a fraction of either size, a letter of a
/// text, or makes a whole number another one. Addresses are left, because nothing else is where another one leads. So are zeros, which may be
/// numbers that a small change leaves next to nothing.
fn change((place, value): &(Place, u64)) -> Option<Change> {
    if *value == ADDRESS || *value == 0 {
        return None;
    }
    let half = |value: u64, bytes: u8| match bytes {
        _ if value == 0 => 0,
        0 | 1 => 1 << 4,
        2 | 3 => 1 << 12,
        _ => 1 << 17,
    };
    let low = half(value & 0xffff_ffff, place.bytes);
    let high = half(value >> 32, place.bytes.saturating_sub(4));
    Some(Change { address: place.address, bits: low | high << 32 })
}

/// Changes of the memory of a call, to run it again with each alone.
pub struct Trial {
    changes: Vec<Change>,
    outputs: Vec<u64>,
    results: Vec<u64>,
    instructions: u64,
}

impl Trial {
    /// Instructions after which a call with a change has gone astray.
    pub fn most_instructions(&self) -> u64 {
        self.instructions * 4 + 10_000
    }

    /// The changes.
    pub fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.changes.iter().copied()
    }

    /// Whether a call with one of them has another result.
    pub fn differs(&self, done: &Done, mut memory: Memory<'_>) -> bool {
        self.results != done.results || self.outputs != memory.outputs()
    }
}
