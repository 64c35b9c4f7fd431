// defect: duplicates are kept out of a set by comparing each new key with all before it
// kinds: list-search, superlinear-lookup
// guilty: granary::Store<K>::insert, granary::Store<u32>::insert, granary::Store<K>::position, granary::unique, granary::Store::insert
use std::collections::HashSet;

struct Store<K> { keys: Vec<K>, seen: HashSet<K>, searches: bool }
impl<K: Copy + PartialEq + Eq + std::hash::Hash> Store<K> {
    fn position(&self, key: K) -> Option<usize> {
        let mut at = 0;
        while at < self.keys.len() {
            if self.keys[at] == key { return Some(at); }
            at += 1;
        }
        None
    }
    #[inline(never)]
    fn insert(&mut self, key: K) -> bool {
        let is_new = if self.searches { self.position(key).is_none() } else { self.seen.insert(key) };
        if is_new { self.keys.push(key); }
        is_new
    }
}
#[inline(never)]
fn unique(store: &mut Store<u32>, sacks: &[u32]) -> usize {
    store.keys.clear();
    store.seen.clear();
    sacks.iter().filter(|sack| store.insert(**sack)).count()
}
#[inline(never)]
fn weigh(sacks: &mut [u32], step: u64) -> f64 {
    let mut total = 0.0;
    for (i, sack) in sacks.iter_mut().enumerate() {
        *sack = ((i as u64 * 40503 + step * 17) % 997) as u32;
        for k in 0..12 { total += ((*sack as f64) * 0.01 + k as f64).sin(); }
    }
    total
}
fn main() {
    let mut arguments = std::env::args().skip(1);
    let searches = arguments.next().as_deref() == Some("slow");
    let steps: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let mut store = Store { keys: Vec::new(), seen: HashSet::new(), searches };
    let mut sacks = vec![0_u32; 1200];
    let (mut total, mut count) = (0.0, 0);
    for step in 0..steps { total += weigh(&mut sacks, step); count += unique(&mut store, &sacks); }
    println!("{total} {count}");
}
