//! What exchanges with other machines say about their clocks.

use stepscope_assemble::clocks::fit;
use stepscope_model::{ClockPeer, Clocks, Columns, Note, NoteValue, Table, note};

/// The table `clocks`: one row for each machine that was asked.
pub fn table(clocks: &Clocks) -> Table {
    let rows = clocks.peers.iter().map(|peer| {
        let times = || peer.exchanges.iter().map(|one| i128::from(one.sent_ns));
        let window = times().min().zip(times().max());
        let fit = window.and_then(|window| fit(&peer.exchanges, window));
        (peer, fit, window.unwrap_or_default())
    });
    let rows: Vec<_> = rows.collect();
    type Row<'a> = (&'a ClockPeer, Option<stepscope_assemble::clocks::Fit>, (i128, i128));
    let mut table = Columns::<Row<'_>>::new()
        .text("host", "Host name of the machine.", |(peer, ..)| peer.clock.host.as_str().into())
        .text("address", "The address as given.", |(peer, ..)| peer.address.as_str().into())
        .duration("clock_offset", "By how much its clock is ahead.", |(_, fit, window)| {
            fit.as_ref().and_then(|fit| i64::try_from(fit.map.offset_at(window.1)).ok())
        })
        .duration("clock_error", "Largest error of the offset.", |(_, fit, _)| fit.as_ref().map(|fit| fit.error_ns))
        .number("drift", "ppm", "Parts per million by which its clock is faster.", |(_, fit, window)| {
            fit.as_ref().map(|fit| fit.map.drift_ppm(window.0, window.1))
        })
        .duration("round_trip", "The shortest round trip of datagrams.", |(_, fit, _)| {
            fit.as_ref().map(|fit| fit.round_trip_ns)
        })
        .count("exchanges", "exchanges", "Requests with a reply.", |(peer, ..)| peer.exchanges.len())
        .count("lost", "requests", "Requests without a reply.", |(peer, ..)| peer.lost)
        .essential("host clock_offset clock_error drift round_trip exchanges")
        .table("clocks", "Clocks", &rows);
    let refused: u64 = clocks.peers.iter().map(|peer| peer.refused).sum();
    let contradicting: usize = rows.iter().filter_map(|(_, fit, _)| fit.as_ref()).map(|fit| fit.contradicting).sum();
    table.add_notes(notes(refused, contradicting));
    table
}

fn notes(refused: u64, contradicting: usize) -> Vec<Note> {
    let mut notes = vec![note!(
        Fact,
        "Offsets are between the clocks of recordings (CLOCK_MONOTONIC), which start at the boot of each machine."
    )];
    if refused > 0 {
        let datagrams = NoteValue::plural(refused as usize, "datagram");
        notes.push(note!(Loss, "{} were no reply to a request, and are left out.", datagrams));
    }
    if contradicting > 0 {
        let exchanges = NoteValue::plural(contradicting, "exchange");
        notes.push(note!(Loss, "{} have times that contradict each other, and are left out.", exchanges));
    }
    notes
}

#[cfg(test)]
mod tests {
    use stepscope_model::{ClockExchange, ClockId, Value};

    use super::*;

    #[test]
    fn a_peer_has_its_offset_and_its_error() {
        let exchange =
            ClockExchange { sent_ns: 1_000, peer_received_ns: 6_050, peer_sent_ns: 6_060, received_ns: 1_110 };
        let hostile = ClockExchange { received_ns: 0, ..exchange };
        let peer = ClockPeer {
            clock: ClockId { host: "base".into(), ..ClockId::default() },
            exchanges: vec![exchange, hostile],
            lost: 3,
            refused: 1,
            ..ClockPeer::default()
        };
        let table = table(&Clocks { peers: vec![peer], ..Clocks::default() });
        assert_eq!(table.text(0, "host"), Some("base"));
        assert_eq!(table.get(0, "clock_offset"), Some(&Value::from(5_000)));
        assert_eq!(table.get(0, "round_trip"), Some(&Value::from(100)));
        assert_eq!(table.get(0, "lost"), Some(&Value::from(3)));
        assert_eq!(table.notes.len(), 3);
    }
}
