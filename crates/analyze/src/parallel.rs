//! Work on all CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies `of` to each item on as many threads as there are CPUs; results are in the order of the items.
pub fn map<'t, T: Sync, R: Send>(items: &'t [T], of: impl Fn(&'t T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if threads <= 1 {
        return items.iter().map(of).collect();
    }
    let work = || {
        let own = std::iter::from_fn(|| {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, of(item)))
        });
        own.collect::<Vec<(usize, R)>>()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker panics only if `of` does")).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1_000).collect();
        assert_eq!(super::map(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(super::map(&[0_u32; 0], |item| *item).is_empty());
    }
}
