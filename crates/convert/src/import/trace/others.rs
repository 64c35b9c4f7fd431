//! Events that fill no table, by name.

use stepscope_model::quantity::grouped;

/// A note with the most frequent of them; `None` if there is none.
pub fn note<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>, all: u64) -> Option<String> {
    let mut by_name: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        *by_name.entry(name).or_default() += count;
    }
    let total: u64 = by_name.values().sum();
    if total == 0 {
        return None;
    }
    let mut most: Vec<(&str, u64)> = by_name.into_iter().collect();
    most.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let shown: Vec<String> =
        most.iter().take(5).map(|(name, count)| format!("{name} ({})", grouped((*count).into()))).collect();
    let more = if most.len() > shown.len() { ", ..." } else { "" };
    let (total, all) = (grouped(total.into()), grouped(all.into()));
    Some(format!("{total} of {all} events fill no table: {}{more}.", shown.join(", ")))
}
