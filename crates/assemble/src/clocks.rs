//! Clocks of several machines: what datagrams between them say, and how times of one become times of another.
//!
//! - [`fit`]: the map between two clocks, from exchanged datagrams
//! - [`align`]: the maps from the clocks of several captures to the clock of the first one

mod align;
mod feasible;
mod fit;
mod map;

use stepscope_model::{ClockExchange, ClockPeer, Clocks};

pub use align::{AlignError, Aligned, Source, align};
pub use fit::{Fit, fit};
pub use map::ClockMap;

/// Most exchanges that are kept with one peer.
const MOST_EXCHANGES: usize = 512;

/// Adds further exchanges with a peer. Of many, those with the shortest round trips are kept, at all times of the recording alike.
pub fn add_peer(clocks: &mut Clocks, more: ClockPeer) {
    let is_it = |known: &&mut ClockPeer| known.address == more.address && known.clock == more.clock;
    let Some(known) = clocks.peers.iter_mut().find(is_it) else { return clocks.peers.push(more) };
    known.exchanges.extend(more.exchanges);
    known.lost = known.lost.saturating_add(more.lost);
    known.refused = known.refused.saturating_add(more.refused);
    thin(&mut known.exchanges);
}

/// Adds what a later part of the recording knows.
pub(crate) fn join(joined: &mut Option<Clocks>, later: &Option<Clocks>) {
    let Some(later) = later else { return };
    let joined = joined.get_or_insert_default();
    joined.own = joined.own.take().or_else(|| later.own.clone());
    joined.wall.extend(&later.wall);
    later.peers.iter().for_each(|peer| add_peer(joined, peer.clone()));
}

/// If there are too many exchanges, keeps the one with the shortest round trip in each of [`MOST_EXCHANGES`] equal parts of the time.
fn thin(exchanges: &mut Vec<ClockExchange>) {
    if exchanges.len() <= 2 * MOST_EXCHANGES {
        return;
    }
    exchanges.sort_by_key(|exchange| exchange.sent_ns);
    let (first, last) = (exchanges[0].sent_ns, exchanges[exchanges.len() - 1].sent_ns);
    let part_ns = (last - first) / MOST_EXCHANGES as u64 + 1;
    let trip = |exchange: &ClockExchange| exchange.round_trip_ns().unwrap_or(u64::MAX);
    let parts = exchanges.chunk_by(|one, next| (one.sent_ns - first) / part_ns == (next.sent_ns - first) / part_ns);
    *exchanges = parts.filter_map(|part| part.iter().min_by_key(|one| trip(one)).copied()).collect();
}

#[cfg(test)]
mod tests;
