//! Sums of tiles at every level, against the analyses.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;
use stepscope_analyze::wall::{self, Grouping};
use stepscope_analyze::{Functions, Ownership, Selection};
use stepscope_model::{
    Capture, Counter, Dimension, DimensionStatus, Event, Sample, Scope, StackId, ThreadId, Value, Wait, WaitState, disk,
};

use super::*;

/// A wait, drawn by what comes before it and how long its parts are.
type Drawn = (u64, u64, u64, bool, u32, usize);

const STACKS: [&[&str]; 4] = [
    &["main", "pthread_mutex_lock", "__lll_lock_wait"],
    &["main", "nanosleep", "clock_nanosleep"],
    &["main", "pthread_cond_wait"],
    &["main", "read"],
];

fn capture(threads: &[(u64, Vec<Drawn>, u64)]) -> Capture {
    let mut capture = Capture::default();
    capture.info.dimensions.insert(Dimension::Sched, DimensionStatus::Recorded);
    let stacks: Vec<Option<StackId>> = STACKS.iter().map(|names| stack(&mut capture, names)).collect();
    let mut end = 1_000;
    for (start, waits, rest) in threads {
        let thread = capture.add_thread_named("worker");
        let mut time = 1_000 + start;
        let born = time;
        for (before, blocked, runnable, preempted, cpu, at) in waits {
            let start_ns = time + before;
            let end_ns = start_ns + blocked + runnable;
            time = end_ns;
            capture.waits.push(Wait {
                start_ns,
                end_ns,
                thread,
                stack: stacks.get(*at).copied().flatten(),
                state: if *preempted { WaitState::Preempted } else { WaitState::Blocked },
                runnable_ns: if *at == 1 { None } else { Some(*runnable) },
                cpu: Some(*cpu),
                waker: Some(ThreadId(0)),
                waker_stack: stacks[0],
                count: 1,
            });
        }
        let row = &mut capture.threads[thread.index()];
        (row.start_ns, row.end_ns) = (Some(born), Some(time + rest));
        let off: u64 = waits.iter().map(|wait| wait.1 + wait.2).sum();
        row.cpu_ns = Some(time + rest - born - off);
        end = end.max(time + rest);
    }
    (capture.info.start_ns, capture.info.end_ns) = (Some(1_000), Some(end));
    capture
}

fn stack(capture: &mut Capture, names: &[&str]) -> Option<StackId> {
    let frames: Vec<_> = names.iter().map(|name| capture.intern_function(name)).collect();
    capture.intern_stack(frames)
}

fn with<R>(capture: &Capture, look: impl FnOnce(&Selection<'_>) -> R) -> R {
    let functions = Functions::of(capture, &Ownership::default().compile().unwrap());
    look(&Selection::all(capture, &functions))
}

fn stack_row(stack: Option<StackId>) -> i32 {
    stack.map_or(-1, |stack| stack.0 as i32)
}

fn lanes_of(selection: &Selection<'_>, most_rows: u32) -> Lanes {
    let recording = selection.window().unwrap_or(0..0);
    Lanes::with_tiles(selection, recording, &|_| true, most_rows)
}

fn drawn() -> impl Strategy<Value = Vec<(u64, Vec<Drawn>, u64)>> {
    let wait = (0_u64..5_000, 0_u64..3_000, 0_u64..1_000, any::<bool>(), 0_u32..3, 0_usize..5);
    prop::collection::vec((0_u64..100_000, prop::collection::vec(wait, 0..100), 0_u64..50_000), 1..4)
}

/// What the view `wall` says of each thread: running, runnable, blocked.
fn of_wall(selection: &Selection<'_>) -> BTreeMap<u32, [u64; 3]> {
    let table = wall::table(selection, Grouping::Thread);
    let number = |row, column| match table.get(row, column) {
        Some(Value::Int(value)) => *value as u64,
        value => panic!("{column}: {value:?}"),
    };
    let row = |row| (number(row, "tid") as u32, ["running", "runnable", "blocked"].map(|column| number(row, column)));
    (0..table.rows.len()).map(row).collect()
}

/// All rows of a level's tiles of threads and CPUs.
fn rows(lanes: &Lanes, selection: &Selection<'_>, family: Family, level: u32) -> Vec<(u64, Vec<f64>)> {
    let addresses = lanes.addresses().filter(|address| address.family == family && address.level == level);
    let tiles = addresses.filter_map(|address| Some((address.tile, lanes.columns(selection, &stack_row, address)?)));
    tiles.flat_map(|(tile, columns)| columns.rows().into_iter().map(move |row| (tile, row))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn shares_add_up_to_the_life_and_equal_the_view_wall_at_every_level(threads in drawn(), most_rows in 5_u32..100) {
        let capture = capture(&threads);
        with(&capture, |selection| {
            let lanes = lanes_of(selection, most_rows);
            let wall = of_wall(selection);
            let grid = lanes.grid(Family::Lanes);
            for level in 0..grid.levels() {
                for (thread, row) in selection.threads() {
                    let tiles = (0..grid.tiles(level)).filter_map(|tile| grid.tile(level, tile));
                    let mut sum = [0; 3];
                    let mut life = 0;
                    for span in tiles {
                        let length = grid.bucket_ns(level);
                        for (bucket, shares) in lanes.shares(selection, thread, span.start, length, BUCKETS).iter().enumerate() {
                            let start = span.start + bucket as u64 * length;
                            let lived = row.end_ns.unwrap().min(start + length).saturating_sub(row.start_ns.unwrap().max(start));
                            prop_assert_eq!(shares.life(), lived);
                            [shares.running(), shares.runnable(), shares.blocked()].iter().zip(&mut sum).for_each(|(ns, sum)| *sum += ns);
                            life += lived;
                        }
                    }
                    prop_assert_eq!(sum, wall[&row.tid], "level {}", level);
                    prop_assert_eq!(life, row.end_ns.unwrap() - row.start_ns.unwrap());
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn intervals_of_level_0_cover_each_life_without_gaps(threads in drawn(), most_rows in 5_u32..100) {
        let capture = capture(&threads);
        with(&capture, |selection| {
            let lanes = lanes_of(selection, most_rows);
            let wall = of_wall(selection);
            // An interval is in every tile that it meets, always the same.
            let mut intervals: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
            for (tile, row) in rows(&lanes, selection, Family::Lanes, 0) {
                let span = lanes.grid(Family::Lanes).tile(0, tile).unwrap();
                prop_assert!(row[1] < (span.end - 1_000) as f64 && row[2] > (span.start - 1_000) as f64);
                if let Some(before) = intervals.insert((row[0] as i64, row[1] as i64), row.clone()) {
                    prop_assert_eq!(before, row);
                }
            }
            for (thread, row) in selection.threads() {
                let of_thread = intervals.range((i64::from(thread.0), 0)..(i64::from(thread.0) + 1, 0));
                let mut sums = [0; 3];
                let mut time = row.start_ns.unwrap() - 1_000;
                for (_, interval) in of_thread {
                    prop_assert_eq!(interval[1], time as f64);
                    time = interval[2] as u64;
                    let kind = match interval[3] as usize { 0 => 0, 1 | 2 => 1, _ => 2 };
                    sums[kind] += (interval[2] - interval[1]) as u64;
                }
                prop_assert_eq!(time, row.end_ns.unwrap() - 1_000);
                prop_assert_eq!(sums, wall[&row.tid]);
            }
            Ok(())
        })?;
    }

    #[test]
    fn buckets_of_a_tile_cover_each_life_once(threads in drawn(), most_rows in 5_u32..100) {
        let capture = capture(&threads);
        with(&capture, |selection| {
            let lanes = lanes_of(selection, most_rows);
            for level in 1..lanes.grid(Family::Lanes).levels() {
                let mut ends: BTreeMap<i64, f64> = BTreeMap::new();
                for (tile, row) in rows(&lanes, selection, Family::Lanes, level).into_iter().filter(|(_, row)| row[0] >= 0.0) {
                    let first = tile as f64 * BUCKETS as f64 + row[1];
                    if let Some(end) = ends.insert(row[0] as i64, first + row[2]) {
                        prop_assert_eq!(first, end);
                    }
                    let life: f64 = row[3..7].iter().sum();
                    prop_assert!(life <= 255.0 && (row[2] < 2.0 || life >= 1.0 || level > 3), "{:?}", row);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn damaged_waits_and_scopes_make_tiles_all_the_same(
        waits in prop::collection::vec((any::<u64>(), any::<u64>(), any::<Option<u64>>(), any::<u32>(), 0_u32..2), 0..40),
        scopes in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>()), 0..20),
        window in prop::option::of((any::<u64>(), any::<u64>())),
    ) {
        let mut capture = Capture::default();
        capture.add_thread_named("a");
        capture.add_thread_named("b");
        capture.info.start_ns = window.map(|(a, b)| a.min(b));
        capture.info.end_ns = window.map(|(a, b)| a.max(b));
        for (a, b, runnable_ns, cpu, thread) in waits {
            capture.waits.push(Wait {
                start_ns: a.min(b), end_ns: a.max(b), thread: ThreadId(thread), stack: None, state: WaitState::Blocked, runnable_ns,
                cpu: Some(cpu), waker: None, waker_stack: None, count: 1,
            });
        }
        for (a, b, depth) in scopes {
            capture.scopes.push(Scope { thread: ThreadId(0), name: "scope".into(), start_ns: a.min(b), end_ns: a.max(b), depth });
        }
        with(&capture, |selection| {
            let lanes = lanes_of(selection, 5);
            for address in lanes.addresses().step_by(7).take(200) {
                lanes.tile_of(selection, &stack_row, address);
            }
            assert!(lanes.order_table(selection).rows() <= 42);
        });
    }
}

fn thread(capture: &mut Capture, name: &str, life: Range<u64>) -> ThreadId {
    let thread = capture.add_thread_named(name);
    let row = &mut capture.threads[thread.index()];
    (row.start_ns, row.end_ns) = (Some(life.start), Some(life.end));
    thread
}

#[test]
fn without_switches_threads_run_for_what_their_samples_stand_for() {
    let mut capture = Capture::default();
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let main = thread(&mut capture, "main", 0..100);
    let leaf = stack(&mut capture, &["main", "work"]);
    for time in [20, 30, 35, 90] {
        let cpu = Some(1);
        capture.samples.push(Sample { time_ns: Some(time), thread: main, cpu, stack: leaf, event, weight: 10 });
    }
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(100));
    with(&capture, |selection| {
        let lanes = lanes_of(selection, 2);
        let spent = lanes.spent(selection, main, &(0..100));
        assert_eq!((spent.running(), spent.unknown(), spent.blocked()), (35, 65, 0));
        let intervals = lanes.columns(selection, &stack_row, Address::parse("lanes/0/0/0").unwrap()).unwrap().rows();
        let short: Vec<String> =
            intervals.iter().map(|row| format!("{} {}..{} {} {}", row[0], row[1], row[2], row[3], row[7])).collect();
        assert_eq!(
            short,
            [
                "-2 10..20 0 0",
                "-2 20..30 0 0",
                "-2 30..35 0 0",
                "-2 80..90 0 0",
                "0 0..10 11 0",
                "0 10..20 0 0",
                "0 20..30 0 0",
                "0 30..35 0 0",
                "0 35..80 11 0",
                "0 80..90 0 0",
                "0 90..100 11 0",
            ]
        );
    });
}

#[test]
fn cpus_show_who_held_them() {
    let capture = capture(&[(0, vec![(0, 10, 0, false, 3, 0), (5, 20, 0, false, 1, 2)], 7)]);
    with(&capture, |selection| {
        let lanes = lanes_of(selection, 1_000);
        let rows = lanes.columns(selection, &stack_row, Address::parse("lanes/0/0/0").unwrap()).unwrap().rows();
        let cpus = rows.iter().filter(|row| row[0] < 0.0);
        let cpus: Vec<String> =
            cpus.map(|row| format!("{} {}..{} thread {}", row[0], row[1], row[2], row[7])).collect();
        assert_eq!(cpus, ["-2 35..42 thread 0", "-4 10..15 thread 0"]);
    });
}

#[test]
fn scopes_nest_and_counters_keep_their_extremes() {
    let mut capture = Capture::default();
    let main = thread(&mut capture, "main", 0..1_000_000);
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(1_000_000));
    for step in 0..100 {
        let start_ns = step * 10_000;
        let scope = |name: &str, end_ns, depth| Scope { thread: main, name: name.into(), start_ns, end_ns, depth };
        capture.scopes.push(scope("Step", start_ns + 10_000, 0));
        capture.scopes.push(scope("Physics", start_ns + 2_500, 1));
        let value = if step == 50 { 1_000 } else { 5 };
        capture.counters.push(Counter { time_ns: start_ns, process: None, thread: None, name: "memory".into(), value });
    }
    with(&capture, |selection| {
        let lanes = lanes_of(selection, 20);
        let top = lanes.grid(Family::Scopes).levels() - 1;
        assert!(top > 0);
        let scopes = rows(&lanes, selection, Family::Scopes, top);
        let covered = |depth: f64| -> f64 {
            let of_depth = scopes.iter().filter(|(_, row)| row[1] == depth);
            of_depth.map(|(_, row)| row[3] * row[4] / 255.0).sum::<f64>()
                * lanes.grid(Family::Scopes).bucket_ns(top) as f64
        };
        assert!(
            (covered(0.0) - 1e6).abs() < 1e4 && (covered(1.0) - 2.5e5).abs() < 1e4,
            "{} {}",
            covered(0.0),
            covered(1.0)
        );
        let counters = rows(&lanes, selection, Family::Counters, lanes.grid(Family::Counters).levels() - 1);
        let extremes =
            counters.iter().fold((f64::MAX, 0.0_f64), |all, (_, row)| (all.0.min(row[3]), all.1.max(row[4])));
        assert_eq!(extremes, (5.0, 1_000.0));
    });
}

/// The sums of all threads' buckets at each level, and what the view `wall` says, as text.
fn differences_from_wall(capture: &Capture, most_rows: u32) -> Vec<String> {
    with(capture, |selection| {
        let lanes = lanes_of(selection, most_rows);
        let wall = of_wall(selection);
        let grid = lanes.grid(Family::Lanes);
        let mut differences = Vec::new();
        for (level, (thread, row)) in
            (0..grid.levels()).flat_map(|level| selection.threads().map(move |row| (level, row)))
        {
            let Some(wall) = wall.get(&row.tid) else { continue };
            let mut sum = [0; 3];
            for span in (0..grid.tiles(level)).filter_map(|tile| grid.tile(level, tile)) {
                for shares in lanes.shares(selection, thread, span.start, grid.bucket_ns(level), BUCKETS) {
                    let parts = [shares.running(), shares.runnable(), shares.blocked()];
                    parts.iter().zip(&mut sum).for_each(|(ns, sum)| *sum += ns);
                }
            }
            if sum != *wall {
                differences.push(format!("{} at level {level}: {sum:?}, but {wall:?} in the view wall", row.name));
            }
        }
        differences
    })
}

#[test]
fn lanes_of_a_recorded_capture_equal_the_view_wall_to_the_nanosecond() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/schema_1/project/steps.capture");
    let capture = disk::read(folder.as_ref()).unwrap();
    assert!(capture.waits.len() > 1_000);
    assert_eq!(differences_from_wall(&capture, 50), [""; 0]);
}

#[test]
fn names_of_tiles_are_read_back() {
    for name in ["lanes/3/0/17", "scope_lanes/0/2/1", "counter_lanes/1/0/0"] {
        assert_eq!(Address::parse(name).unwrap().to_string(), name);
    }
    for name in ["lanes", "lanes/3/0", "lanes/3/0/17/1", "lanes/-1/0/0", "waits/0/0/0", "lanes/3/0/x"] {
        assert_eq!(Address::parse(name), None, "{name}");
    }
}

#[test]
fn busy_threads_are_in_the_first_blocks() {
    let mut threads: Vec<(u64, Vec<Drawn>, u64)> =
        (0..40).map(|at| (0, vec![(at, 1_000, 0, false, 0, 0)], 0)).collect();
    threads[3].2 = 5_000;
    let capture = capture(&threads);
    with(&capture, |selection| {
        let lanes = lanes_of(selection, 1_000);
        assert_eq!(lanes.blocks(Family::Lanes), 2);
        assert_eq!(lanes.order[..3], [Lane::Cpu(0), Lane::Thread(ThreadId(3)), Lane::Thread(ThreadId(39))]);
        assert_eq!(lanes.order_table(selection).rows(), 41);
    });
}
