//! Tracks of a trace: which thread or process the events of a track belong to.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::proto::TrackDescriptor;
use crate::import::text::text;

/// Most tracks from one to the thread that it belongs to. More are a circle.
const DEEPEST: usize = 32;

#[derive(Default)]
pub struct Tracks {
    tracks: FxHashMap<u64, Track>,
}

#[derive(Debug, Clone, Default)]
struct Track {
    parent: Option<u64>,
    owner: Owner,
    name: Option<Arc<str>>,
    counter: Option<Counter>,
}

/// Whose track it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Owner {
    #[default]
    Nobody,
    Process(u32),
    Thread {
        pid: u32,
        tid: u32,
    },
}

/// How the values of a track become readings.
#[derive(Debug, Clone, Copy)]
struct Counter {
    multiplier: i64,
    is_incremental: bool,
    sum: i64,
}

impl Tracks {
    pub fn add(&mut self, descriptor: &TrackDescriptor) {
        let id = |number: i64| u32::try_from(number).ok().filter(|&id| id != 0);
        let of_thread = descriptor
            .thread
            .as_ref()
            .and_then(|thread| Some(Owner::Thread { pid: id(thread.pid.into()).unwrap_or(0), tid: id(thread.tid)? }));
        let of_process = || Some(Owner::Process(id(descriptor.process.as_ref()?.pid.into())?));
        let name = descriptor.name.as_ref().or(descriptor.static_name.as_ref());
        let track = self.tracks.entry(descriptor.uuid).or_default();
        track.parent = descriptor.parent_uuid.filter(|&parent| parent != 0).or(track.parent);
        if let Some(owner) = of_thread.or_else(of_process) {
            track.owner = owner;
        }
        if let Some(name) = name {
            track.name = Some(text(name).into());
        }
        if let Some(counter) = &descriptor.counter {
            let sum = track.counter.map_or(0, |counter| counter.sum);
            let multiplier = counter.unit_multiplier.filter(|&multiplier| multiplier != 0).unwrap_or(1);
            track.counter = Some(Counter { multiplier, is_incremental: counter.is_incremental, sum });
        }
    }

    /// The nearest thread or process of a track and those around it.
    pub fn owner(&self, uuid: u64) -> Owner {
        let tracks = std::iter::successors(self.tracks.get(&uuid), |track| self.tracks.get(&track.parent?));
        let owners = tracks.take(DEEPEST).map(|track| track.owner);
        owners.into_iter().find(|&owner| owner != Owner::Nobody).unwrap_or_default()
    }

    /// Whether slices of the track are those of its thread: tracks of a program within it may overlap them.
    pub fn is_of_thread(&self, uuid: u64) -> bool {
        self.tracks.get(&uuid).is_some_and(|track| matches!(track.owner, Owner::Thread { .. }))
    }

    pub fn name(&self, uuid: u64) -> Option<Arc<str>> {
        self.tracks.get(&uuid)?.name.clone()
    }

    /// The reading that a value stands for.
    pub fn reading(&mut self, uuid: u64, value: i64) -> i64 {
        let Some(counter) = self.tracks.get_mut(&uuid).and_then(|track| track.counter.as_mut()) else { return value };
        let value = value.saturating_mul(counter.multiplier);
        counter.sum = if counter.is_incremental { counter.sum.saturating_add(value) } else { value };
        counter.sum
    }
}
