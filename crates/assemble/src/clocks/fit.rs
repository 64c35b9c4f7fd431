//! The map between two clocks, from exchanged datagrams.
//!
//! A request is sent at `t1` and received at `t2`; its reply is sent at `t3` and received at `t4`, where the peer took `t2` and
//! `t3`. No datagram arrives before it is sent. So the peer is ahead by at most `t2 - t1` at `t1`, and by at least `t3 - t4` at `t4`,
//! however long each of the two ways took. While both clocks run at constant rates, the offset is a line in time that passes between
//! all these bounds, and the bounds of all such lines bound the true offset: the convex hulls of Duda, Harrus, Haddad and
//! Bernard (*Estimating global time in distributed systems*, 1987) and of Zhang, Liu and Xia (*Clock synchronization algorithms
//! for network measurements*, 2002). Late datagrams give loose bounds and do no harm. The estimate is the middle of the bounds at both
//! ends of the window.
//!
//! Rates change with temperature, and when NTP slews a clock. If no line fits, the exchanges are divided in time until one fits each
//! piece. If four exchanges have none, their bounds are widened by as much as it takes.
//!
//! The *error* is the largest of: half the distance of the bounds at the ends of each piece, with what they were widened by, and half the
//! shortest round trip, which no estimate of asymmetric ways can beat.

use stepscope_model::ClockExchange;

use super::feasible::{Bound, Feasible};
use super::map::ClockMap;

/// The steepest drift between two clocks. Crystals differ by less than 0.01 %, and NTP slews by at most 0.05 %.
const STEEPEST: f64 = 1e-3;
/// The same for a clock that chrony slews as fast as the kernel can.
const STEEPEST_SLEWED: f64 = 0.2;
/// Fewer exchanges are not divided.
const LEAST: usize = 8;
/// Halvings of the search for the smallest widening.
const HALVINGS: usize = 60;

/// What exchanges say about two clocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// From the clock that sent the requests to the clock of the peer.
    pub map: ClockMap,
    /// The largest error of the map within the window.
    pub error_ns: u64,
    /// The shortest round trip.
    pub round_trip_ns: u64,
    /// Number of exchanges used.
    pub exchanges: usize,
    /// Number of exchanges whose times contradict each other.
    pub contradicting: usize,
    /// Number of pieces in which both clocks ran at constant rates.
    pub pieces: usize,
}

/// An exchange, relative to the first one and to the offset of the best one.
struct Point {
    x: f64,
    bounds: [Bound; 2],
}

/// Lines of the exchanges in a part of the window.
struct Piece {
    start: f64,
    end: f64,
    lines: Feasible,
    widened: f64,
}

impl Piece {
    /// The middle of the lines, and half their distance.
    fn at(&self, x: f64) -> (f64, f64) {
        let (low, high) = self.lines.range_at(x);
        (f64::midpoint(low, high), (high - low) / 2.0 + self.widened)
    }
}

/// Fits the map within a window of the clock that sent the requests. `None` without a usable exchange.
pub fn fit(exchanges: &[ClockExchange], window: (i128, i128)) -> Option<Fit> {
    let mut sound: Vec<&ClockExchange> = exchanges.iter().filter(|one| one.round_trip_ns().is_some()).collect();
    sound.sort_by_key(|exchange| exchange.sent_ns);
    let trip = |exchange: &ClockExchange| exchange.round_trip_ns().unwrap_or(u64::MAX);
    let best = sound.iter().min_by_key(|exchange| trip(exchange))?;
    let round_trip_ns = trip(best);
    let origin = i128::from(sound[0].sent_ns);
    let base = (i128::from(best.peer_received_ns) - i128::from(best.sent_ns) + i128::from(best.peer_sent_ns)
        - i128::from(best.received_ns))
        / 2;
    let relative = |time_ns: u64| (i128::from(time_ns) - origin) as f64;
    let ahead = |peer_ns: u64, own_ns: u64| (i128::from(peer_ns) - i128::from(own_ns) - base) as f64;
    let point = |one: &&ClockExchange| Point {
        x: relative(one.sent_ns),
        bounds: [
            Bound::Below { x: relative(one.sent_ns), y: ahead(one.peer_received_ns, one.sent_ns) },
            Bound::Above { x: relative(one.received_ns), y: ahead(one.peer_sent_ns, one.received_ns) },
        ],
    };
    let points: Vec<Point> = sound.iter().map(point).collect();
    let mut pieces = Vec::new();
    divide(&points, &mut pieces);
    let ends = [window.0.min(window.1), window.1.max(window.0)].map(|time| (time - origin) as f64);
    let (knots, error) = knots(&pieces, ends);
    let knots = knots.into_iter().map(|(x, y)| (origin + x.round() as i128, base + y.round() as i128)).collect();
    Some(Fit {
        map: ClockMap::through(knots),
        error_ns: (error.ceil() as u64).max(round_trip_ns.div_ceil(2)).saturating_add(1),
        round_trip_ns,
        exchanges: points.len(),
        contradicting: exchanges.len() - points.len(),
        pieces: pieces.len(),
    })
}

/// Divides the exchanges until one line passes through each part.
fn divide(points: &[Point], pieces: &mut Vec<Piece>) {
    let bounds: Vec<Bound> = points.iter().flat_map(|point| point.bounds).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let piece = |lines, widened| Piece { start: first.x, end: last.x, lines, widened };
    if let Some(lines) = Feasible::lines(&bounds, 0.0, STEEPEST) {
        return pieces.push(piece(lines, 0.0));
    }
    if points.len() >= LEAST {
        let (before, after) = points.split_at(points.len() / 2);
        divide(before, pieces);
        return divide(after, pieces);
    }
    if let Some(lines) = Feasible::lines(&bounds, 0.0, STEEPEST_SLEWED) {
        return pieces.push(piece(lines, 0.0));
    }
    let size = |bound: &Bound| match *bound {
        Bound::Below { y, .. } | Bound::Above { y, .. } => y.abs(),
    };
    // A level line passes all bounds that are widened by the largest of them.
    let (mut least, mut enough) = (0.0, bounds.iter().map(size).fold(1.0, f64::max));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(least, enough);
        match Feasible::lines(&bounds, middle, STEEPEST_SLEWED) {
            Some(_) => enough = middle,
            None => least = middle,
        }
    }
    // Twice as much: what bends the clock may do so between the exchanges, too.
    let widened = 2.0 * enough;
    let lines = Feasible::lines(&bounds, widened, STEEPEST_SLEWED);
    pieces.push(piece(lines.expect("a wider bound holds what a narrower one does"), widened));
}

/// Times and offsets at the ends of all pieces, and the largest error there.
fn knots(pieces: &[Piece], [start, end]: [f64; 2]) -> (Vec<(f64, f64)>, f64) {
    let mut knots = Vec::new();
    let mut error: f64 = 0.0;
    let mut add = |x: f64, (y, half): (f64, f64)| {
        knots.push((x, y));
        error = error.max(half);
    };
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return (knots, error) };
    let (start, end) = (start.min(first.start), end.max(last.end));
    add(start, first.at(start));
    for pair in pieces.windows(2) {
        let x = f64::midpoint(pair[0].end, pair[1].start);
        let ((before, half), (after, other_half)) = (pair[0].at(x), pair[1].at(x));
        add(x, (f64::midpoint(before, after), half.max(other_half) + (after - before).abs() / 2.0));
    }
    add(end, last.at(end));
    (knots, error)
}
