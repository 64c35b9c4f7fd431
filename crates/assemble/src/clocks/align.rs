//! The clocks of several captures on the clock of the first one.
//!
//! Clocks are the nodes of a graph. Each set of exchanges joins two of them ([`fit`]), and the wall clock joins all whose wall clocks NTP or
//! PTP keeps synchronised, with the errors that the kernel says they have. Captures of one boot of one machine have one clock. Each
//! capture takes the way to the clock of the first one with the fewest claimed errors, and of these the one with the smallest sum
//! of errors: what was measured comes before what NTP says.

use stepscope_model::{AlignmentMethod, ClockAlignment, ClockExchange, ClockId, Clocks};

use super::fit::fit;
use super::map::ClockMap;

/// A capture whose clock is aligned.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What it is called in errors.
    pub name: &'a str,
    /// What it knows about clocks.
    pub clocks: &'a Clocks,
    /// Its window, on its clock.
    pub window: (u64, u64),
}

/// The clock of a capture on the clock of the first one.
#[derive(Debug, Clone, PartialEq)]
pub struct Aligned {
    /// From its times to those of the first capture.
    pub map: ClockMap,
    /// How it was found, and its error.
    pub alignment: ClockAlignment,
}

/// A clock cannot be aligned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name}: its clock cannot be aligned to that of {first}: no datagrams were exchanged between the two, and {reason}"
)]
pub struct AlignError {
    /// The capture.
    pub name: String,
    /// The first capture.
    pub first: String,
    /// Why the wall clocks do not help.
    pub reason: String,
}

/// Aligns the clocks of captures to that of the first one. `further` are exchanges from beside the recordings. With `given_error_ns`,
/// wall clocks count as equal to within it, whatever the kernel says.
///
/// # Errors
/// [`AlignError`] for the first capture without a way to the first clock.
pub fn align(
    sources: &[Source<'_>],
    further: &[Clocks],
    given_error_ns: Option<u64>,
) -> Result<Vec<Aligned>, AlignError> {
    let mut graph = Graph::default();
    let nodes: Vec<usize> = sources.iter().map(|source| graph.node(source.clocks.own.as_ref())).collect();
    let Some(&first) = nodes.first() else { return Ok(Vec::new()) };
    for (source, &node) in sources.iter().zip(&nodes) {
        let window = (i128::from(source.window.0), i128::from(source.window.1));
        graph.add(node, source.clocks, Some(window));
        graph.add_wall(node, source.clocks, given_error_ns);
    }
    for clocks in further {
        let node = graph.node(clocks.own.as_ref());
        graph.add(node, clocks, None);
    }
    // What exchanges say about a time depends on how far away it is: they are fitted again when all windows are known.
    let roads = graph.roads(first);
    graph.extend_windows(&roads, sources, &nodes);
    let mut roads = graph.roads(first);
    let mut aligned = Vec::new();
    for (index, (source, &node)) in sources.iter().zip(&nodes).enumerate() {
        let Some(road) = &mut roads[node] else {
            let (name, first) = (source.name.to_owned(), sources[0].name.to_owned());
            return Err(AlignError { name, first, reason: no_wall(&sources[0], source) });
        };
        let (start, end) = (i128::from(source.window.0), i128::from(source.window.1));
        aligned.push(Aligned {
            alignment: ClockAlignment {
                method: match road.method {
                    AlignmentMethod::Reference if index > 0 => AlignmentMethod::SameClock,
                    method => method,
                },
                offset_ns: i64::try_from(road.map.offset_at(start)).unwrap_or(i64::MAX),
                drift_ppm: road.map.drift_ppm(start, end),
                error_ns: road.error_ns,
                exchanges: road.exchanges,
                round_trip_ns: road.round_trip_ns,
            },
            map: road.map.clone(),
        });
    }
    Ok(aligned)
}

/// Why the wall clocks of two captures do not help.
fn no_wall(first: &Source<'_>, second: &Source<'_>) -> String {
    let unread: Vec<&str> =
        [first, second].into_iter().filter(|one| one.clocks.wall.is_empty()).map(|one| one.name).collect();
    if !unread.is_empty() {
        return format!("the wall clock was not recorded in {}", unread.join(" and "));
    }
    let is_loose = |one: &&Source<'_>| one.clocks.wall.iter().any(|reading| !reading.synchronised);
    let loose: Vec<&str> = [first, second].into_iter().filter(is_loose).map(|one| one.name).collect();
    format!("neither NTP nor PTP kept the wall clock synchronised in {}", loose.join(" and "))
}

/// Two clocks of which something is known.
struct Link<'a> {
    from: usize,
    to: usize,
    known: Known<'a>,
}

enum Known<'a> {
    Exchanges { exchanges: &'a [ClockExchange], window: Option<(i128, i128)> },
    Wall { offset_ns: i128, error_ns: u64, method: AlignmentMethod },
}

/// What a link says.
struct Edge {
    map: ClockMap,
    road: Road,
}

/// The way from a clock to the first one.
#[derive(Clone)]
struct Road {
    map: ClockMap,
    /// Errors on it that nobody measured.
    claims: u32,
    error_ns: u64,
    method: AlignmentMethod,
    exchanges: u64,
    round_trip_ns: Option<u64>,
}

impl Road {
    fn along(edge: &Edge, map: &ClockMap, rest: &Self) -> Self {
        Self {
            map: map.then(&rest.map),
            claims: edge.road.claims + rest.claims,
            error_ns: edge.road.error_ns.saturating_add(rest.error_ns),
            method: edge.road.method.max(rest.method),
            exchanges: edge.road.exchanges.saturating_add(rest.exchanges),
            round_trip_ns: edge.road.round_trip_ns.max(rest.round_trip_ns),
        }
    }

    fn cost(&self) -> (u32, u64) {
        (self.claims, self.error_ns)
    }
}

/// Clocks and what joins them. Node 0 is the wall clock.
#[derive(Default)]
struct Graph<'a> {
    /// From node 1 on. Clocks without a name are each their own.
    clocks: Vec<Option<&'a ClockId>>,
    links: Vec<Link<'a>>,
}

const WALL: usize = 0;

impl<'a> Graph<'a> {
    fn node(&mut self, clock: Option<&'a ClockId>) -> usize {
        let is_it = |known: &Option<&ClockId>| clock.zip(*known).is_some_and(|(clock, known)| clock.is_same(known));
        let known = self.clocks.iter().position(is_it);
        known.unwrap_or_else(|| {
            self.clocks.push(clock);
            self.clocks.len() - 1
        }) + 1
    }

    fn add(&mut self, from: usize, clocks: &'a Clocks, window: Option<(i128, i128)>) {
        for peer in &clocks.peers {
            let to = self.node(Some(&peer.clock));
            let known = Known::Exchanges { exchanges: &peer.exchanges, window };
            self.links.push(Link { from, to, known });
        }
    }

    fn add_wall(&mut self, from: usize, clocks: &Clocks, given_error_ns: Option<u64>) {
        let offsets = || clocks.wall.iter().map(|one| i128::from(one.unix_ns) - i128::from(one.time_ns));
        let (Some(least), Some(most)) = (offsets().min(), offsets().max()) else { return };
        let is_synchronised = clocks.wall.iter().all(|reading| reading.synchronised);
        let (claimed, method) = match given_error_ns {
            Some(error_ns) => (error_ns.div_ceil(2), AlignmentMethod::GivenError),
            None if is_synchronised => {
                let error = clocks.wall.iter().map(|one| one.max_error_ns.max(one.estimated_error_ns)).max();
                (error.unwrap_or(0), AlignmentMethod::WallClock)
            }
            None => return,
        };
        let reading = clocks.wall.iter().map(|one| one.within_ns).max().unwrap_or(0);
        // Both clocks run at one rate, so offsets differ only if the wall clock was set meanwhile.
        let set = u64::try_from(most - least).unwrap_or(u64::MAX);
        let error_ns = claimed.saturating_add(reading).saturating_add(set);
        let known = Known::Wall { offset_ns: i128::midpoint(least, most), error_ns, method };
        self.links.push(Link { from, to: WALL, known });
    }

    fn edge(link: &Link<'_>) -> Option<Edge> {
        let (map, claims, error_ns, method, exchanges, round_trip_ns) = match &link.known {
            Known::Exchanges { exchanges, window } => {
                let times = || exchanges.iter().map(|one| i128::from(one.sent_ns));
                let all = (times().min()?, times().max()?);
                let fit = fit(exchanges, window.unwrap_or(all))?;
                let method = AlignmentMethod::Exchange;
                (fit.map, 0, fit.error_ns, method, fit.exchanges as u64, Some(fit.round_trip_ns))
            }
            Known::Wall { offset_ns, error_ns, method } => {
                (ClockMap::shift(*offset_ns), 1, *error_ns, *method, 0, None)
            }
        };
        let road = Road { map: map.clone(), claims, error_ns, method, exchanges, round_trip_ns };
        Some(Edge { map, road })
    }

    /// The best way from each node to `first`, by Bellman and Ford.
    fn roads(&self, first: usize) -> Vec<Option<Road>> {
        let edges: Vec<Option<Edge>> = self.links.iter().map(Self::edge).collect();
        let mut roads: Vec<Option<Road>> = vec![None; self.clocks.len() + 1];
        roads[first] = Some(Road {
            map: ClockMap::shift(0),
            claims: 0,
            error_ns: 0,
            method: AlignmentMethod::Reference,
            exchanges: 0,
            round_trip_ns: None,
        });
        for _ in 0..roads.len() {
            for (link, edge) in self.links.iter().zip(&edges) {
                let Some(edge) = edge else { continue };
                for (from, to, is_forward) in [(link.from, link.to, true), (link.to, link.from, false)] {
                    let Some(rest) = &roads[to] else { continue };
                    let (claims, error_ns) = rest.cost();
                    let cost = (claims + edge.road.claims, error_ns.saturating_add(edge.road.error_ns));
                    if roads[from].as_ref().is_some_and(|known| known.cost() <= cost) {
                        continue;
                    }
                    let map = if is_forward { edge.map.clone() } else { edge.map.inverse() };
                    roads[from] = Some(Road::along(edge, &map, rest));
                }
            }
        }
        roads
    }

    /// Makes the window of each set of exchanges hold all captures.
    fn extend_windows(&mut self, roads: &[Option<Road>], sources: &[Source<'_>], nodes: &[usize]) {
        for link in &mut self.links {
            let Known::Exchanges { window, .. } = &mut link.known else { continue };
            let Some(holder) = &roads[link.from] else { continue };
            let back = holder.map.inverse();
            for (source, &node) in sources.iter().zip(nodes) {
                let Some(road) = &roads[node] else { continue };
                let on_holder = |time_ns: u64| back.to(road.map.to(i128::from(time_ns)));
                let (start, end) = (on_holder(source.window.0), on_holder(source.window.1));
                *window = Some(window.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
            }
        }
    }
}
