//! [`CallTreeRows`]: a fast index of a capture's frames and stacks.
//!
//! A capture interns by itself, but hashes whole frames. An importer sees the same names millions of times, so it keeps
//! a cheaper index by name and appends to the capture's tables.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use stepscope_model::{Capture, FrameId, StackId, StackNode};

/// The frames and stacks that an importer has added, by its keys (`K`).
///
/// Keys are hashed with a random seed, because they are untrusted; nodes are small numbers of our own.
#[derive(Debug)]
pub struct CallTreeRows<K> {
    frames: HashMap<K, FrameId, RandomState>,
    /// The capture has the nodes. With their hashes beside them, a table that grows need not read them.
    nodes: HashTable<(u32, StackId)>,
    /// Number of the capture's nodes that are in the table.
    indexed: usize,
}

impl<K: Hash + Eq> CallTreeRows<K> {
    pub fn new() -> Self {
        Self { frames: HashMap::default(), nodes: HashTable::new(), indexed: 0 }
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
        self.index(capture);
        let node = StackNode { parent, frame };
        let hash = hash_of(node);
        let stacks = &mut capture.stacks;
        let is_node = |&(other, id): &(u32, StackId)| other == hash && stacks[id.index()] == node;
        match self.nodes.entry(widened(hash), is_node, |&(hash, _)| widened(hash)) {
            Entry::Occupied(found) => found.get().1,
            Entry::Vacant(place) => {
                let id = StackId::from_index(stacks.len());
                place.insert((hash, id));
                stacks.push(node);
                self.indexed = stacks.len();
                id
            }
        }
    }

    /// The node, if it is in the table.
    pub fn known(&self, node: StackNode, capture: &Capture) -> Option<StackId> {
        let hash = hash_of(node);
        let is_node = |&(other, id): &(u32, StackId)| other == hash && capture.stacks[id.index()] == node;
        self.nodes.find(widened(hash), is_node).map(|&(_, id)| id)
    }

    /// Adds a node that is known to be new. Where all are, none is looked up, and the table stays empty.
    pub fn new_node(parent: Option<StackId>, frame: FrameId, capture: &mut Capture) -> StackId {
        capture.stacks.push(StackNode { parent, frame });
        StackId::from_index(capture.stacks.len() - 1)
    }

    /// Takes nodes into the table that were added without it.
    pub fn index(&mut self, capture: &Capture) {
        let new = &capture.stacks[self.indexed..];
        if new.is_empty() {
            return;
        }
        self.nodes.reserve(new.len(), |&(hash, _)| widened(hash));
        for (node, index) in new.iter().zip(self.indexed..) {
            let hash = hash_of(*node);
            self.nodes.insert_unique(widened(hash), (hash, StackId::from_index(index)), |&(hash, _)| widened(hash));
        }
        self.indexed = capture.stacks.len();
    }
}

/// The hash of a node: both halves of a product depend on all of both numbers.
fn hash_of(node: StackNode) -> u32 {
    let parent = node.parent.map_or(0, |parent| u64::from(parent.0) + 1);
    let product = u128::from(parent << 32 | u64::from(node.frame.0)) * u128::from(ODD);
    let folded = product as u64 ^ (product >> 64) as u64;
    folded as u32 ^ (folded >> 32) as u32
}

/// A hash as the table takes it: its lowest bits choose a place, its highest are compared there.
fn widened(hash: u32) -> u64 {
    u64::from(hash) | u64::from(hash.wrapping_mul(ODD as u32)) << 32
}

/// From the golden ratio, as most multiplicative hashes.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
