//! [`Names`]: compressed names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::import::cachegrind::known;
use crate::import::simulated::shown;

/// A list of names by number: `(3) name` defines one, `(3)` repeats it.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<u64, Option<Arc<str>>>);

impl Names {
    /// The name; `None` if it is unknown (`???`).
    ///
    /// # Errors
    /// If the number was not defined.
    pub fn read(&mut self, text: &str) -> Result<Option<Arc<str>>, String> {
        let Some((number, name)) = numbered(text) else { return Ok(known(text).map(Into::into)) };
        if name.is_empty() {
            return self.0.get(&number).cloned().ok_or_else(|| format!("the name {} is not defined", shown(text)));
        }
        let name: Option<Arc<str>> = known(name).map(Into::into);
        self.0.insert(number, name.clone());
        Ok(name)
    }
}

/// Splits `(3) name`. A name such as `(below main)` has no number.
fn numbered(text: &str) -> Option<(u64, &str)> {
    let (number, name) = text.strip_prefix('(')?.split_once(')')?;
    Some((number.parse().ok()?, name.trim()))
}
