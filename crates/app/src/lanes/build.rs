//! Building [`Lanes`]: one pass over waits, samples, scopes and counters.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use stepscope_analyze::{Selection, parallel};
use stepscope_model::{Counter, ThreadId};

use super::counters::Series;
use super::grid::{Grid, MOST_ROWS};
use super::pieces::{Held, Sampled, Scoped, Stay, Stays, period_ns, stack_of, thread_of};
use super::scopes::scope_names;
use super::times::Times;
use super::track::{Piece, Track};
use super::{Lane, Lanes};

impl Lanes {
    /// The lanes of what is selected of a recording.
    pub(super) fn build(
        selection: &Selection<'_>,
        recording: Range<u64>,
        is_selected: &dyn Fn(&Counter) -> bool,
    ) -> Self {
        Self::with_tiles(selection, recording, is_selected, MOST_ROWS)
    }

    /// The same, with about this number of rows in the densest tile of level 0.
    pub(super) fn with_tiles(
        selection: &Selection<'_>,
        recording: Range<u64>,
        is_selected: &dyn Fn(&Counter) -> bool,
        most_rows: u32,
    ) -> Self {
        let window = selection.window().map_or_else(
            || recording.clone(),
            |window| {
                let start = window.start.clamp(recording.start, recording.end);
                start..window.end.clamp(start, recording.end)
            },
        );
        let has_switches = selection.has_switches();
        let times = Times::of(selection);
        let lives = lives(selection, &times, &window);
        let scope_names = scope_names(selection);
        let mut lanes = Self {
            has_switches,
            period_ns: period_ns(selection),
            sampled: Vec::new(),
            cpus: BTreeMap::new(),
            scopes: scopes(selection, &scope_names),
            series: Series::of(selection, is_selected),
            order: Vec::new(),
            grids: grids(selection, &recording, most_rows),
            recording,
            times,
            lives,
            scope_names,
        };
        if !has_switches {
            lanes.sampled = lanes.samples_by_thread(selection);
        }
        lanes.cpus = lanes.by_cpu(selection);
        lanes.order = lanes.in_order(selection);
        lanes
    }

    fn samples_by_thread(&self, selection: &Selection<'_>) -> Vec<Track> {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.lives.len()];
        for (row, thread, _) in timed_samples(selection) {
            rows[thread.index()].push(row);
        }
        let pieces = self.sampled_stacks(selection);
        rows.into_iter().map(|rows| Track::of(rows, &pieces)).collect()
    }

    fn by_cpu(&self, selection: &Selection<'_>) -> BTreeMap<u32, Track> {
        let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let has_lane = |cpu: &u32| i32::try_from(*cpu).is_ok_and(|cpu| cpu < i32::MAX);
        if !self.has_switches {
            let samples = timed_samples(selection).filter_map(|(row, _, cpu)| Some((row, cpu.filter(has_lane)?)));
            samples.for_each(|(row, cpu)| rows.entry(cpu).or_default().push(row));
            let pieces = self.sampled_threads(selection);
            return rows.into_iter().map(|(cpu, rows)| (cpu, Track::of(rows, &pieces))).collect();
        }
        let threads: Vec<ThreadId> = selection.threads().map(|(thread, _)| thread).collect();
        let mut stays: BTreeMap<u32, Vec<Vec<Stay>>> = BTreeMap::new();
        for of_thread in parallel::map(&threads, |thread| self.stays(selection, *thread, has_lane)) {
            of_thread.into_iter().for_each(|(cpu, of_thread)| stays.entry(cpu).or_default().push(of_thread));
        }
        let by_cpu: Vec<(u32, Vec<Vec<Stay>>)> = stays.into_iter().collect();
        let tracks = parallel::map(&by_cpu, |(cpu, stays)| {
            let mut stays = stays.concat();
            // Those of each thread are in order already, which a stable sort makes use of.
            stays.sort_by_key(|stay| (stay.range.start, stay.place));
            (*cpu, Track::of(stays.iter().map(|stay| stay.place).collect(), &Stays(&stays)))
        });
        tracks.into_iter().collect()
    }

    /// When a thread held each CPU, in order.
    fn stays(
        &self,
        selection: &Selection<'_>,
        thread: ThreadId,
        has_lane: impl Fn(&u32) -> bool,
    ) -> BTreeMap<u32, Vec<Stay>> {
        let held = self.held(selection);
        let mut stays: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
        for place in self.times.places(thread) {
            let Some(cpu) = held.cpu(place).filter(&has_lane) else { continue };
            let Piece { range, label } = held.at(place);
            if !range.is_empty() {
                stays.entry(cpu).or_default().push(Stay { range, thread: label, place: place as u32 });
            }
        }
        stays
    }

    /// The CPUs, then the threads from the most CPU time to the least.
    fn in_order(&self, selection: &Selection<'_>) -> Vec<Lane> {
        let alive = |thread: &ThreadId| self.lives[thread.index()].is_some();
        let mut threads: Vec<ThreadId> = selection.threads().map(|(thread, _)| thread).filter(alive).collect();
        threads.sort_by_cached_key(|thread| {
            let spent = self.spent(selection, *thread, &self.recording);
            (Reverse(spent.running()), Reverse(spent.life() - spent.unknown()), *thread)
        });
        self.cpus.keys().map(|cpu| Lane::Cpu(*cpu)).chain(threads.into_iter().map(Lane::Thread)).collect()
    }

    pub(super) fn held<'a>(&'a self, selection: &'a Selection<'a>) -> Held<'a> {
        Held { selection, times: &self.times, lives: &self.lives }
    }

    pub(super) fn scoped<'a>(&'a self, selection: &'a Selection<'a>) -> Scoped<'a> {
        Scoped { selection, names: &self.scope_names }
    }

    pub(super) fn sampled_stacks<'a>(&self, selection: &'a Selection<'a>) -> Sampled<'a> {
        Sampled { selection, period_ns: self.period_ns, label: stack_of }
    }

    pub(super) fn sampled_threads<'a>(&self, selection: &'a Selection<'a>) -> Sampled<'a> {
        Sampled { label: thread_of, ..self.sampled_stacks(selection) }
    }
}

/// Rows of the selected samples that have a time, with their thread and CPU.
fn timed_samples(selection: &Selection<'_>) -> impl Iterator<Item = (u32, ThreadId, Option<u32>)> {
    let samples = selection.capture().samples.iter().enumerate();
    let selected = samples.filter(|(_, sample)| {
        Some(sample.event) == selection.event_id() && selection.has_thread(sample.thread) && sample.time_ns.is_some()
    });
    selected.map(|(row, sample)| (row as u32, sample.thread, sample.cpu))
}

/// When each selected thread lived. Where that is not recorded, from its first to its last evidence.
fn lives(selection: &Selection<'_>, times: &Times, window: &Range<u64>) -> Vec<Option<Range<u64>>> {
    let capture = selection.capture();
    let mut lives: Vec<Option<Range<u64>>> = vec![None; capture.threads.len()];
    let mut seen: Vec<Option<Range<u64>>> = vec![None; capture.threads.len()];
    for sample in selection.samples() {
        let Some(time) = sample.time_ns else { continue };
        let seen = seen[sample.thread.index()].get_or_insert(time..time);
        *seen = seen.start.min(time)..seen.end.max(time);
    }
    for (thread, _) in selection.threads() {
        let places = times.places(thread);
        let waits = (!places.is_empty()).then(|| {
            let at = |place| capture.waits.at(times.row(place));
            at(places.start).start_ns..at(places.end - 1).end_ns
        });
        let seen = [waits, seen[thread.index()].clone()].into_iter().flatten();
        let seen = || seen.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end));
        let life = selection.lifetime(thread).or_else(seen);
        lives[thread.index()] = life.map(|life| {
            let start = life.start.clamp(window.start, window.end);
            start..life.end.clamp(start, window.end)
        });
    }
    lives
}

fn scopes(selection: &Selection<'_>, names: &[u32]) -> BTreeMap<(u32, u32), Track> {
    let mut rows: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    let scopes = &selection.capture().scopes;
    for (row, scope) in scopes.iter().enumerate().filter(|(_, scope)| selection.has_thread(scope.thread)) {
        rows.entry((scope.thread.0, scope.depth)).or_default().push(row as u32);
    }
    let pieces = Scoped { selection, names };
    let track = |mut rows: Vec<u32>| {
        rows.sort_by_key(|row| scopes[*row as usize].start_ns);
        Track::of(rows, &pieces)
    };
    rows.into_iter().map(|(key, rows)| (key, track(rows))).collect()
}

fn grids(selection: &Selection<'_>, recording: &Range<u64>, most_rows: u32) -> [Grid; 3] {
    let capture = selection.capture();
    let waits = capture.waits.iter().map(|wait| wait.start_ns);
    let samples = capture.samples.iter().filter_map(|sample| sample.time_ns);
    let lanes = match selection.has_switches() {
        true => Grid::of(recording, waits, most_rows),
        false => Grid::of(recording, samples, most_rows),
    };
    let scopes = Grid::of(recording, capture.scopes.iter().map(|scope| scope.start_ns), most_rows);
    let counters = Grid::of(recording, capture.counters.iter().map(|counter| counter.time_ns), most_rows);
    [lanes, scopes, counters]
}
