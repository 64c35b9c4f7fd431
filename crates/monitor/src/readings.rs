//! Readings of the machine, by name.

use std::collections::HashMap;
use std::sync::Arc;

/// Readings of the machine, in the order in which they were taken. Names are made once.
#[derive(Debug, Default)]
pub struct Readings {
    values: Vec<(Arc<str>, i64)>,
    names: HashMap<&'static str, HashMap<String, Arc<str>>>,
}

impl Readings {
    /// Adds a reading of this kind; `instance` tells several of a kind apart.
    pub fn add(&mut self, kind: &str, instance: &str, value: i64) {
        let Some(kind) = stepscope_model::reading_kind(kind) else { return };
        let of_kind = self.names.entry(kind.name).or_default();
        let name = match of_kind.get(instance) {
            Some(name) => name.clone(),
            None => {
                let separator = if instance.is_empty() || instance.starts_with('@') { "" } else { ":" };
                let name: Arc<str> = format!("{}{separator}{instance}", kind.name).into();
                of_kind.insert(instance.to_owned(), name.clone());
                name
            }
        };
        self.values.push((name, value));
    }

    /// The same, if there is a value.
    pub fn add_some(&mut self, kind: &str, instance: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.add(kind, instance, value);
        }
    }

    /// All readings.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.values.iter().map(|(name, value)| (name, *value))
    }

    /// Forgets the readings. Their names are kept, unless containers that came and went have left too many.
    pub fn clear(&mut self) {
        const MOST_NAMES: usize = 10_000;
        self.values.clear();
        if self.names.values().map(HashMap::len).sum::<usize>() > MOST_NAMES {
            self.names.clear();
        }
    }
}
