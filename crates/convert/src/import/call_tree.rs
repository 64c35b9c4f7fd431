//! [`CallTreeRows`]: a fast index of a capture's frames and stacks.
//!
//! A capture interns by itself, but hashes whole frames. An importer sees the same names millions of times, so it keeps
//! a cheaper index by name and appends to the capture's tables.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;
use rustc_hash::FxHashMap;
use stepscope_model::{Capture, FrameId, StackId, StackNode};

/// The frames and stacks that an importer has added, by its keys (`K`).
///
/// Keys are hashed with a random seed, because they are untrusted; nodes are small numbers of our own.
#[derive(Debug)]
pub struct CallTreeRows<K> {
    frames: HashMap<K, FrameId, RandomState>,
    nodes: FxHashMap<StackNode, StackId>,
}

impl<K: Hash + Eq> CallTreeRows<K> {
    pub fn new() -> Self {
        Self { frames: HashMap::default(), nodes: FxHashMap::default() }
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
        *self.nodes.entry(node).or_insert_with(|| {
            capture.stacks.push(node);
            StackId::from_index(capture.stacks.len() - 1)
        })
    }
}
