//! [`CallTreeRows`]: a fast index of a capture's frames and stacks.
//!
//! A capture interns by itself, but hashes whole frames. An importer sees the same names millions of times, so it keeps
//! a cheaper index by name and appends to the capture's tables.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use stepscope_model::{Capture, FrameId, StackId, StackNode};

/// The frames and stacks that an importer has added, by its keys (`K`).
///
/// Keys are hashed with a random seed, because they are untrusted; nodes are small numbers of our own.
#[derive(Debug)]
pub struct CallTreeRows<K> {
    frames: HashMap<K, FrameId, RandomState>,
    /// Holds only ids: the capture has the nodes.
    nodes: HashTable<StackId>,
}

impl<K: Hash + Eq> CallTreeRows<K> {
    pub fn new() -> Self {
        Self { frames: HashMap::default(), nodes: HashTable::new() }
    }

    /// The frame of `key`. For a new key, `add` adds the frame and returns the key to store.
    pub fn frame<Q>(
        &mut self,
        key: &Q,
        capture: &mut Capture,
        add: impl FnOnce(&mut Capture) -> (K, FrameId),
    ) -> FrameId
    where
        Q: Hash + Eq + ?Sized,
        K: Borrow<Q>,
    {
        if let Some(&found) = self.frames.get(key) {
            return found;
        }
        let (key, id) = add(capture);
        self.frames.insert(key, id);
        id
    }

    /// The node for `frame` called from `parent`, added if new.
    pub fn node(&mut self, parent: Option<StackId>, frame: FrameId, capture: &mut Capture) -> StackId {
        let node = StackNode { parent, frame };
        let hash = |node: &StackNode| FxBuildHasher.hash_one(node);
        let stacks = &mut capture.stacks;
        let is_node = |id: &StackId| stacks[id.index()] == node;
        match self.nodes.entry(hash(&node), is_node, |id| hash(&stacks[id.index()])) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(place) => {
                let id = StackId::from_index(stacks.len());
                place.insert(id);
                stacks.push(node);
                id
            }
        }
    }
}
