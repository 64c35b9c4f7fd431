//! Tables that were made, kept for the next who asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::Refusal;
use crate::encoded::Encoded;

#[derive(Default)]
struct Entry {
    made: Arc<OnceCell<Encoded>>,
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_name: HashMap<String, Entry>,
    clock: u64,
}

/// Keeps what was used last, up to a number of bytes.
pub(crate) struct Cache {
    entries: Mutex<Entries>,
    limit_bytes: usize,
}

impl Cache {
    pub fn new(limit_bytes: usize) -> Self {
        Self { entries: Mutex::default(), limit_bytes }
    }

    /// What is kept under this name; else what `make` makes. Who asks while it is being made waits for it.
    pub async fn get(
        &self,
        name: &str,
        make: impl Future<Output = Result<Encoded, Refusal>>,
    ) -> Result<Encoded, Refusal> {
        let cell = self.with(|entries| {
            entries.clock += 1;
            let used = entries.clock;
            let entry = entries.by_name.entry(name.to_owned()).or_default();
            entry.used = used;
            entry.made.clone()
        });
        let made = cell.get_or_try_init(|| make).await.cloned();
        self.with(|entries| match &made {
            Ok(_) => entries.shrink(self.limit_bytes),
            Err(_) => entries.forget(name, &cell),
        });
        made
    }

    fn with<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> T {
        change(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    /// Drops what was not used for longest, until the rest fits.
    fn shrink(&mut self, limit_bytes: usize) {
        let size = |entry: &Entry| entry.made.get().map_or(0, |made| made.bytes.len());
        let mut total: usize = self.by_name.values().map(size).sum();
        while total > limit_bytes {
            let made = self.by_name.iter().filter(|(_, entry)| entry.made.initialized());
            let Some(oldest) = made.min_by_key(|(_, entry)| entry.used).map(|(name, _)| name.clone()) else { return };
            total -= self.by_name.remove(&oldest).map_or(0, |entry| size(&entry));
        }
    }

    /// A name without a table must not take room. Somebody may wait for another attempt.
    fn forget(&mut self, name: &str, cell: &Arc<OnceCell<Encoded>>) {
        // One in the map, one with the caller.
        if !cell.initialized() && Arc::strong_count(cell) <= 2 {
            self.by_name.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn made(bytes: usize) -> Result<Encoded, Refusal> {
        Ok(Encoded::of(vec![0; bytes]))
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_table_is_made_once_also_for_those_who_ask_meanwhile() {
        let cache = Cache::new(100);
        let times = Cell::new(0);
        let make = async || {
            times.set(times.get() + 1);
            tokio::task::yield_now().await;
            made(1)
        };
        let (one, two) = run(async { tokio::join!(cache.get("a", make()), cache.get("a", make())) });
        assert!(one.is_ok() && two.is_ok());
        run(cache.get("a", make())).unwrap();
        assert_eq!(times.get(), 1);
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let cache = Cache::new(100);
        let get = |name: &str| run(cache.get(name, async { made(40) })).unwrap();
        get("a");
        get("b");
        get("a");
        get("c");
        let mut kept: Vec<_> = cache.with(|entries| entries.by_name.keys().cloned().collect());
        kept.sort();
        assert_eq!(kept, ["a", "c"]);
    }

    #[test]
    fn refusals_are_not_kept() {
        let cache = Cache::new(100);
        for number in 0..1000 {
            run(cache.get(&number.to_string(), async { Err(Refusal::Absent) })).unwrap_err();
        }
        assert_eq!(cache.with(|entries| entries.by_name.len()), 0);
        assert!(run(cache.get("0", async { made(1) })).is_ok());
    }
}
