//! Names that many places share, kept once.

use std::collections::HashSet;
use std::sync::Arc;

/// One shared copy of each text.
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
