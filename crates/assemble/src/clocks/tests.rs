use proptest::prelude::*;
use stepscope_model::{AlignmentMethod, ClockExchange, ClockId, ClockPeer, Clocks, WallReading};

use super::*;

/// Datagrams between two clocks whose truth is known.
struct World {
    /// What the peer is ahead at time 0.
    offset_ns: i128,
    drift_ppm: f64,
}

impl World {
    fn peer(&self, own_ns: f64) -> i128 {
        (own_ns * (1.0 + self.drift_ppm / 1e6)).round() as i128 + self.offset_ns
    }

    /// A request at `sent_ns` on our clock, which takes `there_ns`; its reply takes `back_ns`.
    fn exchange(&self, sent_ns: u64, there_ns: u64, at_peer_ns: u64, back_ns: u64) -> ClockExchange {
        let received = sent_ns + there_ns;
        let answered = received + at_peer_ns;
        ClockExchange {
            sent_ns,
            peer_received_ns: self.peer(received as f64) as u64,
            peer_sent_ns: self.peer(answered as f64) as u64,
            received_ns: answered + back_ns,
        }
    }

    /// How far a map is off at this time of our clock.
    fn error_of(&self, map: &ClockMap, own_ns: u64) -> i128 {
        (map.to(own_ns.into()) - self.peer(own_ns as f64)).abs()
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_constant_offset_is_found_to_half_the_shortest_round_trip() {
    let world = World { offset_ns: 5_000 * i128::from(SECOND), drift_ppm: 0.0 };
    let exchanges: Vec<ClockExchange> =
        (0..20).map(|n| world.exchange(SECOND * (10 + n), 40_000 + n * 1_000, 5_000, 60_000)).collect();
    let fit = fit(&exchanges, (i128::from(10 * SECOND), i128::from(29 * SECOND))).unwrap();
    assert_eq!((fit.round_trip_ns, fit.exchanges, fit.contradicting, fit.pieces), (100_000, 20, 0, 1));
    assert!(world.error_of(&fit.map, 12 * SECOND) <= 10_000, "{fit:?}");
    // The way there is shorter than the way back, and nobody can know that.
    assert!((50_000..60_000).contains(&fit.error_ns), "{fit:?}");
}

#[test]
fn a_drift_of_50_ppm_is_found() {
    let world = World { offset_ns: -3_000_000_000, drift_ppm: 50.0 };
    let exchanges: Vec<ClockExchange> =
        (0..60).map(|n| world.exchange(SECOND * (10 + n), 30_000, 2_000, 30_000)).collect();
    let window = (i128::from(10 * SECOND), i128::from(70 * SECOND));
    let fit = fit(&exchanges, window).unwrap();
    let drift = fit.map.drift_ppm(window.0, window.1);
    assert!((drift - 50.0).abs() < 1.0, "{drift}");
    assert!([10, 40, 70].iter().all(|s| world.error_of(&fit.map, s * SECOND) <= fit.error_ns.into()), "{fit:?}");
}

#[test]
fn a_clock_that_is_slewed_meanwhile_is_followed_in_pieces() {
    // 500 ppm for ten seconds in the middle: 5 ms.
    let peer = |own: u64| own + 7_000_000_000 + own.saturating_sub(30 * SECOND).min(10 * SECOND) / 2_000;
    let exchanges: Vec<ClockExchange> = (10 * SECOND..70 * SECOND)
        .step_by(SECOND as usize / 2)
        .map(|sent_ns| ClockExchange {
            sent_ns,
            peer_received_ns: peer(sent_ns + 50_000),
            peer_sent_ns: peer(sent_ns + 60_000),
            received_ns: sent_ns + 110_000,
        })
        .collect();
    let fit = fit(&exchanges, (i128::from(10 * SECOND), i128::from(70 * SECOND))).unwrap();
    assert!(fit.pieces > 1 && fit.error_ns < 1_000_000, "{fit:?}");
    for second in 10..=70 {
        let truth = i128::from(peer(second * SECOND));
        assert!((fit.map.to(i128::from(second * SECOND)) - truth).abs() <= fit.error_ns.into(), "{second}: {fit:?}");
    }
}

#[test]
fn exchanges_that_contradict_themselves_are_left_out_and_counted() {
    let world = World { offset_ns: 1_000_000, drift_ppm: 0.0 };
    let sound = world.exchange(SECOND, 10_000, 1_000, 10_000);
    let swapped = ClockExchange { sent_ns: sound.received_ns, received_ns: sound.sent_ns, ..sound };
    let hostile = ClockExchange { peer_received_ns: u64::MAX, peer_sent_ns: 0, ..sound };
    let slow_peer = ClockExchange { peer_sent_ns: u64::MAX, ..sound };
    let fit = fit(&[swapped, sound, hostile, slow_peer], (i128::from(SECOND), i128::from(SECOND))).unwrap();
    assert_eq!((fit.exchanges, fit.contradicting), (1, 3));
    assert!(super::fit(&[hostile], (0, 1)).is_none());
    assert!(super::fit(&[], (0, 1)).is_none());
}

#[test]
fn extreme_times_neither_panic_nor_overflow() {
    let at =
        |sent_ns, peer| ClockExchange { sent_ns, peer_received_ns: peer, peer_sent_ns: peer, received_ns: sent_ns };
    let exchanges = [at(0, u64::MAX), at(u64::MAX, 0), at(1, 1), at(u64::MAX / 2, u64::MAX), at(3, 4)];
    let fit = fit(&exchanges, (0, u64::MAX.into())).unwrap();
    for time in [0, 1, u64::MAX / 3, u64::MAX] {
        fit.map.to(time.into());
        fit.map.inverse().to(time.into());
        fit.map.then(&fit.map.inverse()).to(time.into());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Offset, drift, asymmetric jitter and losses at random: the stated error holds the truth at all times of the window.
    #[test]
    fn the_error_holds_the_truth(
        offset_ns in -10_000_000_000_000_i128..10_000_000_000_000,
        drift_ppm in -100.0..100.0,
        ways in prop::collection::vec((0_u64..3_000_000, 0_u64..500_000, 0_u64..8_000_000, any::<bool>()), 1..120),
        least in (1_000_u64..200_000, 1_000_u64..200_000),
        before_s in 0_u64..5,
        after_s in 0_u64..5,
    ) {
        let world = World { offset_ns: offset_ns + 20_000_000_000_000, drift_ppm };
        let start = 10_000 * SECOND;
        let mut exchanges: Vec<ClockExchange> = ways.iter().enumerate().filter(|(_, way)| way.3).map(|(n, way)| {
            let sent = start + n as u64 * SECOND;
            world.exchange(sent, least.0 + way.0, way.1, least.1 + way.2)
        }).collect();
        // Replies arrive in any order.
        exchanges.reverse();
        let end = start + (ways.len() as u64 + after_s) * SECOND;
        let window = (start - before_s * SECOND, end);
        if let Some(fit) = fit(&exchanges, (window.0.into(), window.1.into())) {
            for part in 0..=10 {
                let time = window.0 + (window.1 - window.0) / 10 * part;
                prop_assert!(world.error_of(&fit.map, time) <= i128::from(fit.error_ns) + 1, "at {}: {:?}", time, fit);
            }
            prop_assert_eq!(fit.pieces, 1);
            prop_assert!(fit.error_ns >= fit.round_trip_ns / 2);
        } else {
            prop_assert!(exchanges.is_empty());
        }
    }

    #[test]
    fn a_map_keeps_the_order_of_times_and_its_inverse_undoes_it(
        knots in prop::collection::btree_map(0_i128..1_000_000_000_000, -40_000_i128..40_000, 1..8),
        mut times in prop::collection::vec(0_i128..1_000_000_000_000, 2..20),
    ) {
        // Steeper than any clock.
        let spread: Vec<(i128, i128)> = knots.into_iter().map(|(at, offset)| (at * 1_000, offset)).collect();
        let map = ClockMap::through(spread);
        times.sort_unstable();
        let mapped: Vec<i128> = times.iter().map(|time| map.to(*time)).collect();
        prop_assume!(map.drift_ppm(0, 1_000_000_000_000_000).abs() < 900_000.0);
        if mapped.is_sorted() {
            let back = map.inverse();
            for (time, mapped) in times.iter().zip(&mapped) {
                let there_and_back = back.to(*mapped);
                prop_assert!((there_and_back - time).abs() <= 2, "{} became {}", time, there_and_back);
                prop_assert!((map.then(&back).to(*time) - time).abs() <= 2);
            }
        }
    }
}

fn clock(host: &str) -> ClockId {
    ClockId { host: host.into(), boot_id: host.into(), namespace_offset_ns: 0 }
}

/// A machine that exchanged datagrams with these, each ahead by some ns, with this round trip.
fn machine(host: &str, peers: &[(&str, i128, u64)]) -> Clocks {
    let peer = |&(peer, offset_ns, trip_ns): &(&str, i128, u64)| ClockPeer {
        address: peer.into(),
        clock: clock(peer),
        exchanges: (0..10)
            .map(|n| World { offset_ns, drift_ppm: 0.0 }.exchange(SECOND * (10 + n), trip_ns / 2, 0, trip_ns / 2))
            .collect(),
        ..ClockPeer::default()
    };
    Clocks { own: Some(clock(host)), peers: peers.iter().map(peer).collect(), ..Clocks::default() }
}

fn source<'a>(name: &'a str, clocks: &'a Clocks) -> Source<'a> {
    Source { name, clocks, window: (10 * SECOND, 19 * SECOND) }
}

fn wall(offset_ns: i64, max_error_ns: u64, synchronised: bool) -> Vec<WallReading> {
    let reading = |time_ns: u64| WallReading {
        time_ns,
        unix_ns: time_ns as i64 + offset_ns,
        max_error_ns,
        synchronised,
        ..WallReading::default()
    };
    vec![reading(10 * SECOND), reading(19 * SECOND)]
}

#[test]
fn either_side_may_hold_the_exchanges() {
    let (base, robot) = (machine("base", &[]), machine("robot", &[("base", 1_000_000, 2_000)]));
    let aligned = align(&[source("base", &base), source("robot", &robot)], &[], None).unwrap();
    let methods: Vec<AlignmentMethod> = aligned.iter().map(|one| one.alignment.method).collect();
    assert_eq!(methods, [AlignmentMethod::Reference, AlignmentMethod::Exchange]);
    assert_eq!(aligned[1].map.to(i128::from(15 * SECOND)), i128::from(15 * SECOND) + 1_000_000);
    assert_eq!((aligned[0].alignment.error_ns, aligned[1].alignment.exchanges), (0, 10));
    let aligned = align(&[source("robot", &robot), source("base", &base)], &[], None).unwrap();
    assert_eq!(aligned[1].map.to(i128::from(15 * SECOND)), i128::from(15 * SECOND) - 1_000_000);
}

#[test]
fn two_machines_are_aligned_through_a_third_and_errors_add_up() {
    let left = machine("left", &[("hub", 5_000_000, 2_000)]);
    let right = machine("right", &[("hub", 1_000_000, 4_000)]);
    let aligned = align(&[source("left", &left), source("right", &right)], &[], None).unwrap();
    assert_eq!(aligned[1].alignment.offset_ns, -4_000_000);
    let error_ns = aligned[1].alignment.error_ns;
    assert!((3_000..3_100).contains(&error_ns), "{error_ns}");
}

#[test]
fn exchanges_beside_the_recordings_count() {
    let (left, right) = (machine("left", &[]), machine("right", &[]));
    let beside = machine("right", &[("left", 700_000, 2_000)]);
    let aligned = align(&[source("left", &left), source("right", &right)], &[beside], None).unwrap();
    assert_eq!(aligned[1].alignment.offset_ns, 700_000);
}

#[test]
fn captures_of_one_boot_have_one_clock() {
    let (first, second) = (machine("base", &[]), machine("base", &[]));
    let aligned = align(&[source("a", &first), source("b", &second)], &[], None).unwrap();
    assert_eq!(aligned[1].alignment.method, AlignmentMethod::SameClock);
    assert_eq!((aligned[1].alignment.offset_ns, aligned[1].alignment.error_ns), (0, 0));
    let mut namespaced = machine("base", &[]);
    namespaced.own.as_mut().unwrap().namespace_offset_ns = 1;
    assert!(align(&[source("a", &first), source("b", &namespaced)], &[], None).is_err());
}

#[test]
fn without_exchanges_synchronised_wall_clocks_count_with_their_stated_errors() {
    let left = Clocks { wall: wall(1_000, 300_000, true), ..machine("left", &[]) };
    let mut right = Clocks { wall: wall(9_000, 200_000, true), ..machine("right", &[]) };
    let aligned = align(&[source("left", &left), source("right", &right)], &[], None).unwrap();
    assert_eq!(aligned[1].alignment.method, AlignmentMethod::WallClock);
    assert_eq!((aligned[1].alignment.offset_ns, aligned[1].alignment.error_ns), (8_000, 500_000));
    // A wall clock that was set meanwhile is off by that much.
    right.wall[1].unix_ns += 1_000_000;
    let aligned = align(&[source("left", &left), source("right", &right)], &[], None).unwrap();
    assert_eq!(aligned[1].alignment.error_ns, 1_500_000);
    // What was measured comes first, even if NTP claims less.
    let mut measured = machine("right", &[("left", 7_000, 2_000_000)]);
    measured.wall = wall(9_000, 0, true);
    let aligned = align(&[source("left", &left), source("right", &measured)], &[], None).unwrap();
    assert_eq!(aligned[1].alignment.method, AlignmentMethod::Exchange);
    assert!((6_000..8_000).contains(&aligned[1].alignment.offset_ns), "{aligned:?}");
}

#[test]
fn clocks_that_nothing_joins_are_refused_with_the_reason() {
    let left = Clocks { wall: wall(1_000, 300_000, true), ..machine("left", &[]) };
    let loose = Clocks { wall: wall(9_000, 200_000, false), ..machine("right", &[]) };
    let bare = machine("right", &[]);
    let error = |right: &Clocks| align(&[source("a", &left), source("b", right)], &[], None).unwrap_err().to_string();
    assert_eq!(
        error(&loose),
        "b: its clock cannot be aligned to that of a: no datagrams were exchanged between the two, and neither NTP nor PTP \
         kept the wall clock synchronised in b"
    );
    assert!(error(&bare).ends_with("the wall clock was not recorded in b"));
    // The user may know better.
    let aligned = align(&[source("a", &left), source("b", &loose)], &[], Some(2_000_000)).unwrap();
    assert_eq!(aligned[1].alignment.method, AlignmentMethod::GivenError);
    assert_eq!(aligned[1].alignment.error_ns, 2_000_000);
}

#[test]
fn of_many_exchanges_the_best_are_kept_at_all_times() {
    let mut clocks = Clocks::default();
    for n in 0..10_000 {
        let world = World { offset_ns: 0, drift_ppm: 0.0 };
        let exchanges = vec![world.exchange(n * SECOND, if n % 64 == 0 { 1_000 } else { 900_000 }, 0, 1_000)];
        add_peer(&mut clocks, ClockPeer { exchanges, lost: 1, ..ClockPeer::default() });
    }
    let [peer] = clocks.peers.as_slice() else { panic!("one peer") };
    assert!(peer.exchanges.len() <= 2 * MOST_EXCHANGES && peer.exchanges.is_sorted_by_key(|one| one.sent_ns));
    assert_eq!(peer.lost, 10_000);
    let best = peer.exchanges.iter().filter(|one| one.round_trip_ns() == Some(2_000)).count();
    assert_eq!(best, 10_000_usize.div_ceil(64));
    // As many of the first half as of the second, but for the last that were not thinned yet.
    let early = peer.exchanges.iter().filter(|one| one.sent_ns < 5_000 * SECOND).count();
    assert!((150..400).contains(&early), "{early} of {}", peer.exchanges.len());
}
