//! Tables that fit into a page.
//!
//! All captures get room for one size: smaller ones stay whole, and larger ones are reduced to it. Their samples and waits are
//! added up, their smallest stacks merged, their sources left out. Captures that do not fit even then are left out. What room
//! is left goes to the timeline: whole levels of detail, coarse ones first.

use stepscope_analyze::{Selection, parallel};
use stepscope_model::Phase;
use stepscope_model::quantity::weight;

use crate::lanes::{Address, Family, Lanes};
use crate::parquet_table::Storage;
use crate::profile::{CaptureEntry, Limits, Profile, TABLES};

/// What is written.
pub(super) struct Fitted {
    /// The captures that fit, as places in the selections; in order.
    pub captures: Vec<usize>,
    pub entries: Vec<CaptureEntry>,
    /// Name and bytes.
    pub tables: Vec<(String, Vec<u8>)>,
}

/// Samples of a capture that is not reduced.
const MOST_SAMPLES: usize = 1_000_000;

/// Samples of the most reduced capture.
const FEWEST_SAMPLES: usize = 1_000;

/// Limits in proportion to the number of samples. A stack takes a fourth of the room of a sample.
fn limits(samples: usize) -> Limits {
    Limits { samples, waits: samples / 2, marks: samples / 2, stacks: samples * 4, sources: (samples * 2).min(2 << 20) }
}

/// What of the room is for tables other than lanes, in percent.
const FOR_TABLES: u64 = 80;

/// A capture within limits.
struct Reduced<'a> {
    profile: Profile<'a>,
    tables: Vec<Encoded>,
    /// Size of what the manifest says about it, about.
    entry: u64,
}

/// A table's bytes.
struct Encoded {
    name: String,
    rows: usize,
    bytes: Vec<u8>,
}

impl Encoded {
    /// Size in the page.
    fn size(&self) -> u64 {
        in_page(self.bytes.len())
    }
}

impl<'a> Reduced<'a> {
    fn of(profile: Profile<'a>) -> Self {
        let encoded = |name: &&str| {
            let table = profile.table(name)?;
            Some(Encoded { name: (*name).to_owned(), rows: table.rows(), bytes: table.encode(Storage::Small) })
        };
        let tables: Vec<Encoded> = TABLES.iter().filter_map(encoded).collect();
        let entry = profile.entry(rows(&tables), [u32::MAX; 3], None);
        let entry = serde_json::to_vec(&entry).map_or(0, |text| text.len() + ENTRY_SLACK) as u64;
        Self { profile, tables, entry }
    }

    /// The limit, or less where no table is as long.
    fn samples(&self) -> usize {
        let of = |table: &Encoded| match table.name.as_str() {
            "samples" => table.rows,
            "stacks" => table.rows / 4,
            "steps" | "waits" | "amounts" | "scopes" | "counters" | "path" => table.rows * 2,
            "sources" => FEWEST_SAMPLES + 1,
            _ => 0,
        };
        self.tables.iter().map(of).max().unwrap_or(0).min(self.profile.limits().samples)
    }

    fn is_reducible(&self) -> bool {
        self.samples() > FEWEST_SAMPLES
    }

    /// This in about `size` bytes, if there is something to reduce.
    fn within(&self, size: u64) -> Option<Self> {
        if self.size() <= size || !self.is_reducible() {
            return None;
        }
        let fixed: u64 =
            self.tables.iter().filter(|table| FIXED.contains(&table.name.as_str())).map(Encoded::size).sum();
        let part = size.saturating_sub(fixed) as f64 / (self.size() - fixed).max(1) as f64;
        // Small tables do not shrink with the samples: there may be another pass.
        let samples = (self.samples() as f64 * part.clamp(LEAST_PART, MOST_PART)) as usize;
        Some(Self::of(self.profile.limited(limits(samples.max(FEWEST_SAMPLES)))))
    }

    fn size(&self) -> u64 {
        self.entry + self.tables.iter().map(Encoded::size).sum::<u64>()
    }
}

/// Room for the sentence on the timeline.
const ENTRY_SLACK: usize = 120;

fn rows(tables: &[Encoded]) -> Vec<(String, usize)> {
    tables.iter().map(|table| (table.name.clone(), table.rows)).collect()
}

/// Tables that do not shrink with the number of samples.
const FIXED: [&str; 7] =
    ["processes", "threads", "lane_order", "modules", "scope_names", "counter_names", "cost_nodes"];

/// Least and most part of the samples that one pass keeps.
const LEAST_PART: f64 = 0.1;
const MOST_PART: f64 = 0.7;

/// Size of a table in the page: its element, and four characters for three bytes.
fn in_page(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64 * 4 + 100
}

/// The tables of the captures, in at most `room` bytes if that is possible.
pub(super) fn fit<'s>(selections: &[Selection<'s>], room: u64) -> Fitted {
    let whole = |selection: &Selection<'s>| Reduced::of(Profile::new(selection.clone(), limits(MOST_SAMPLES)));
    let captures = parallel::map(selections, whole);
    let mut captures: Vec<(usize, Reduced<'s>)> = captures.into_iter().enumerate().collect();
    reduce(&mut captures, room / 100 * FOR_TABLES);
    leave_out(&mut captures, room);
    let mut left = room.saturating_sub(total(&captures));
    let share = |left: u64, captures: usize| left / captures.max(1) as u64;
    let mut fitted = Fitted { captures: Vec::new(), entries: Vec::new(), tables: Vec::new() };
    let count = captures.len();
    for (number, (place, capture)) in captures.into_iter().enumerate() {
        let lanes = lanes(&capture.profile, share(left, count - number));
        left = left.saturating_sub(lanes.tiles.iter().map(Encoded::size).sum());
        let rows = rows(&capture.tables);
        fitted.captures.push(place);
        fitted.entries.push(capture.profile.entry(rows, lanes.finest, lanes.left_out));
        let all = capture.tables.into_iter().chain(lanes.tiles);
        fitted.tables.extend(all.map(|table| (format!("{number}/{}", table.name), table.bytes)));
    }
    fitted
}

fn total(captures: &[(usize, Reduced<'_>)]) -> u64 {
    captures.iter().map(|(_, capture)| capture.size()).sum()
}

/// Reduces the largest captures to one size, until all take `room` bytes or nothing can be reduced.
fn reduce(captures: &mut [(usize, Reduced<'_>)], room: u64) {
    while total(captures) > room && captures.iter().any(|(_, capture)| capture.is_reducible()) {
        let size = common_size(captures, room);
        let reduced = parallel::map(captures, |(_, capture)| capture.within(size));
        if reduced.iter().all(Option::is_none) {
            return;
        }
        for ((_, capture), reduced) in captures.iter_mut().zip(reduced) {
            if let Some(reduced) = reduced {
                *capture = reduced;
            }
        }
    }
}

/// The size to which larger captures shrink if all take `room` bytes together. Those that cannot shrink keep theirs.
fn common_size(captures: &[(usize, Reduced<'_>)], room: u64) -> u64 {
    let (reducible, whole): (Vec<_>, Vec<_>) = captures.iter().partition(|(_, capture)| capture.is_reducible());
    let mut sizes: Vec<u64> = reducible.iter().map(|(_, capture)| capture.size()).collect();
    sizes.sort_unstable();
    let mut left = room.saturating_sub(whole.iter().map(|(_, capture)| capture.size()).sum());
    let mut count = sizes.len() as u64;
    for size in sizes {
        if size > left / count {
            break;
        }
        left -= size;
        count -= 1;
    }
    left / count.max(1)
}

/// Leaves out captures until the others take `room` bytes: loading phases first, from the last one on.
fn leave_out(captures: &mut Vec<(usize, Reduced<'_>)>, room: u64) {
    let is_loading = |(_, capture): &(usize, Reduced<'_>)| capture.profile.capture().info.phase == Some(Phase::Loading);
    while captures.len() > 1 && total(captures) > room {
        captures.remove(captures.iter().rposition(is_loading).unwrap_or(captures.len() - 1));
    }
}

/// The levels of a timeline that fit.
struct FittedLanes {
    tiles: Vec<Encoded>,
    /// The finest level of each family.
    finest: [u32; 3],
    left_out: Option<String>,
}

/// Coarse levels first; a family has no level finer than one that does not fit.
fn lanes(profile: &Profile<'_>, room: u64) -> FittedLanes {
    let lanes = profile.lanes();
    let mut found = FittedLanes { tiles: Vec::new(), finest: levels(lanes), left_out: None };
    let mut left = room;
    for (family, level, tiles) in level_groups(lanes) {
        let is_next = found.finest[family as usize] == level + 1;
        let Some(tiles) = is_next.then(|| encoded(profile, &tiles, left)).flatten() else { continue };
        left -= tiles.iter().map(Encoded::size).sum::<u64>();
        found.finest[family as usize] = level;
        found.tiles.extend(tiles);
    }
    let finest = found.finest[Family::Lanes as usize];
    let levels = lanes.grid(Family::Lanes).levels();
    if lanes.grid(Family::Lanes).tiles(0) > 0 && finest == levels {
        found.left_out = Some("The timeline does not fit into this file.".to_owned());
    } else if finest > 0 {
        let bucket = weight(lanes.grid(Family::Lanes).bucket_ns(finest), "ns");
        found.left_out =
            Some(format!("The timeline shows shares of {bucket}; single switches do not fit into this file."));
    }
    found
}

fn levels(lanes: &Lanes) -> [u32; 3] {
    Family::ALL.map(|family| lanes.grid(family).levels())
}

/// The tiles of each level of each family, coarse ones first.
fn level_groups(lanes: &Lanes) -> Vec<(Family, u32, Vec<Address>)> {
    let mut groups: Vec<(Family, u32, Vec<Address>)> = Vec::new();
    for address in lanes.addresses() {
        match groups.last_mut() {
            Some((family, level, tiles)) if (*family, *level) == (address.family, address.level) => tiles.push(address),
            _ => groups.push((address.family, address.level, vec![address])),
        }
    }
    groups
}

/// The tiles that have rows; `None` if they take more than `room`.
fn encoded(profile: &Profile<'_>, tiles: &[Address], room: u64) -> Option<Vec<Encoded>> {
    let (mut all, mut size) = (Vec::new(), 0);
    for address in tiles {
        let name = address.to_string();
        let Some(table) = profile.table(&name) else { continue };
        all.push(Encoded { name, rows: table.rows(), bytes: table.encode(Storage::Small) });
        size += all.last().map_or(0, Encoded::size);
        if size > room {
            return None;
        }
    }
    Some(all)
}
