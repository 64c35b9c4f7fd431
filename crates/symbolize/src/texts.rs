//! Interned strings: names that occur in many frames are stored once.

use std::collections::HashSet;
use std::sync::Arc;

/// The set of interned strings.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashSet<Arc<str>, rustc_hash::FxBuildHasher>);

impl Texts {
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        self.0.insert(shared.clone());
        shared
    }
}
