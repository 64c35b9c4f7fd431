// defect: simulated ranges and views are marched through the grid in steps of a fifteenth of a cell; a fifth of a cell finds the same cells
// kinds: resolution-too-fine
// guilty: Probe::reach, Probe::stride, Pulse::advance, Harbour::ping, dragnet::Probe::reach, dragnet::Probe::stride, dragnet::Harbour::ping, <dragnet::Pulse as dragnet::Medium>::sample, Pulse::sample
// phase: steady
// gain: 41
//
// Boats in a harbour: currents, sonars over a grid of depths, potential fields for steering, a traffic table of meetings,
// waves on the hulls, tracks on a plotter's map, and reports to the harbour master.
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::cmp::Reverse;
use std::env;

const SIDE: usize = 256;

struct Random(u64);
impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
    fn unit(&mut self) -> f64 {
        self.next() as f64 / 4294967296.0
    }
}

// Depths, in cells of ten metres.
struct Chart {
    shoal: Vec<u8>,
    depth: Vec<f32>,
}

impl Chart {
    fn new() -> Self {
        let mut shoal = vec![0u8; SIDE * SIDE];
        let mut depth = vec![0f32; SIDE * SIDE];
        for y in 0..SIDE {
            for x in 0..SIDE {
                let (fx, fy) = (x as f32 * 0.05, y as f32 * 0.05);
                let d = 9.0 + 6.0 * (fx * 1.3).sin() * (fy * 0.9).cos() + 4.0 * (fx * 0.31 + fy * 0.57).sin();
                depth[y * SIDE + x] = d;
                let edge = x < 3 || y < 3 || x > SIDE - 4 || y > SIDE - 4;
                shoal[y * SIDE + x] = (edge || d < 1.2) as u8;
            }
        }
        Chart { shoal, depth }
    }
    fn at(&self, x: f64, y: f64) -> usize {
        (y.max(0.0) as usize).min(SIDE - 1) * SIDE + (x.max(0.0) as usize).min(SIDE - 1)
    }
}

// What a ray goes through.
trait Medium {
    fn sample(&self, x: f64, y: f64) -> bool;
}

struct Pulse<'a> {
    chart: &'a Chart,
    hulls: &'a [u8],
}
impl Medium for Pulse<'_> {
    fn sample(&self, x: f64, y: f64) -> bool {
        let cell = self.chart.at(x, y);
        self.chart.shoal[cell] != 0 || self.hulls[cell] != 0
    }
}

struct Probe {
    grain: f64,
}
impl Probe {
    fn stride(&self, turn: f64) -> (f64, f64) {
        let (s, c) = turn.sin_cos();
        (c * self.grain, s * self.grain)
    }
    // In whole cells, as the sonar tells it.
    fn reach(&self, medium: &dyn Medium, x: f64, y: f64, turn: f64, most: f64) -> f32 {
        let (dx, dy) = self.stride(turn);
        let count = (most / self.grain) as usize;
        let first = (1.5 / self.grain) as usize;
        let (mut px, mut py) = (x + dx * first as f64, y + dy * first as f64);
        for i in first..count {
            if medium.sample(px, py) {
                return (i as f64 * self.grain).floor() as f32;
            }
            px += dx;
            py += dy;
        }
        most as f32
    }
}

#[derive(Clone)]
struct Boat {
    x: f64,
    y: f64,
    turn: f64,
    speed: f64,
    roll: f64,
    rolling: f64,
    echoes: Vec<f32>,
    field: usize,
}

struct Harbour {
    chart: Chart,
    probe: Probe,
    boats: Vec<Boat>,
    hulls: Vec<u8>,
    fields: Vec<Vec<f32>>,
    currents: Vec<(f32, f32)>,
    plot: Vec<f32>,
    meetings: BTreeMap<(u32, u32), (f64, f64)>,
    seen: HashSet<(u32, u32)>,
    text: String,
    random: Random,
    step: u64,
    sum: f64,
}

impl Harbour {
    fn new(fine: bool, number: usize) -> Self {
        let chart = Chart::new();
        let mut random = Random(0x2545f4914f6cdd1d);
        let mut boats = Vec::new();
        while boats.len() < number {
            let (x, y) = (random.unit() * 250.0, random.unit() * 250.0);
            if chart.shoal[chart.at(x, y)] == 0 {
                let field = boats.len() % 6;
                boats.push(Boat { x, y, turn: random.unit() * 6.28, speed: 0.05, roll: 0.0, rolling: 0.0, echoes: vec![0.0; 12], field });
            }
        }
        let mut all = Harbour {
            chart,
            probe: Probe { grain: if fine { 1.0 / 15.0 } else { 0.2 } },
            boats,
            hulls: vec![0; SIDE * SIDE],
            fields: Vec::new(),
            currents: vec![(0.0, 0.0); SIDE * SIDE / 16],
            plot: vec![0.0; SIDE * SIDE],
            meetings: BTreeMap::new(),
            seen: HashSet::new(),
            text: String::new(),
            random,
            step: 0,
            sum: 0.0,
        };
        for k in 0..6 {
            let berth = (20 + k * 40, 30 + (k * 67) % 190);
            all.fields.push(all.flood(berth));
        }
        all
    }
    // Ways to a berth from everywhere.
    fn flood(&self, berth: (usize, usize)) -> Vec<f32> {
        let mut out = vec![1e9f32; SIDE * SIDE];
        let mut open = BinaryHeap::new();
        out[berth.1 * SIDE + berth.0] = 0.0;
        open.push(Reverse((0u32, berth.1 * SIDE + berth.0)));
        while let Some(Reverse((cost, at))) = open.pop() {
            if cost as f32 / 64.0 > out[at] + 0.01 {
                continue;
            }
            for step in [1isize, -1, SIDE as isize, -(SIDE as isize)] {
                let next = at as isize + step;
                if next < 0 || next as usize >= SIDE * SIDE || self.chart.shoal[next as usize] != 0 {
                    continue;
                }
                let next = next as usize;
                let new = cost + 64 + (40.0 / (self.chart.depth[next] + 1.0)) as u32;
                if (new as f32 / 64.0) < out[next] {
                    out[next] = new as f32 / 64.0;
                    open.push(Reverse((new, next)));
                }
            }
        }
        out
    }
    fn advance(&mut self) {
        self.drift();
        self.lay();
        self.ping();
        self.steer();
        self.rock();
        self.meet();
        self.trail();
        if self.step % 3 == 0 {
            self.berth();
        }
        self.report();
        self.step += 1;
    }
    // The tide's currents, on a coarse grid.
    fn drift(&mut self) {
        let t = self.step as f32 * 0.01;
        let width = SIDE / 4;
        for y in 0..width {
            let s = (y as f32 * 0.21 - t * 0.7).cos();
            for x in 0..width {
                let one = &mut self.currents[y * width + x];
                let push = (x as f32 * 0.17 + t).sin() * s;
                one.0 = one.0 * 0.9 + 0.1 * push;
                one.1 = one.1 * 0.9 - 0.1 * push * 0.4;
            }
        }
    }
    fn lay(&mut self) {
        self.hulls.fill(0);
        for one in &self.boats {
            self.hulls[self.chart.at(one.x, one.y)] = 1;
        }
    }
    fn ping(&mut self) {
        let medium = Pulse { chart: &self.chart, hulls: &self.hulls };
        for one in &mut self.boats {
            for k in 0..12 {
                let turn = one.turn + (k as f64 - 5.5) * 0.25;
                one.echoes[k] = self.probe.reach(&medium, one.x, one.y, turn, 9.0);
            }
        }
    }
    fn steer(&mut self) {
        let width = SIDE / 4;
        for one in &mut self.boats {
            let (mut best, mut to) = (1e9, one.turn);
            for k in 0..24 {
                let turn = k as f64 * 0.2618;
                let (s, c) = turn.sin_cos();
                let mut cost = 0.0;
                for far in [2.0, 4.0, 7.0] {
                    cost += self.fields[one.field][self.chart.at(one.x + far * c, one.y + far * s)].min(2000.0) as f64;
                }
                let off = (turn - one.turn).sin().abs();
                let bin = (((turn - one.turn).rem_euclid(6.2832) / 0.25) as usize + 5) % 25;
                let echo = if bin < 12 { one.echoes[bin] as f64 } else { 6.0 };
                cost += 6.0 * off + 30.0 / (echo + 0.3);
                if cost < best {
                    best = cost;
                    to = turn;
                }
            }
            let off = (to - one.turn + 3.1416).rem_euclid(6.2832) - 3.1416;
            one.turn += off.clamp(-0.15, 0.15);
            one.speed = 0.1 + 0.02 * one.echoes[5].min(6.0) as f64;
            let current = self.currents[(one.y as usize / 4).min(width - 1) * width + (one.x as usize / 4).min(width - 1)];
            let (x, y) = (one.x + one.speed * one.turn.cos() + 0.02 * current.0 as f64, one.y + one.speed * one.turn.sin() + 0.02 * current.1 as f64);
            if self.chart.shoal[self.chart.at(x, y)] == 0 {
                one.x = x;
                one.y = y;
            } else {
                one.turn += 1.3;
            }
        }
    }
    // Rolling of the hulls in eight waves.
    fn rock(&mut self) {
        let t = self.step as f64 * 0.1;
        for one in &mut self.boats {
            let mut push = 0.0;
            for k in 1..9 {
                let k = k as f64;
                push += (t * k.sqrt() + one.x * 0.3 * k + one.y * 0.1 * k).sin() / k;
            }
            one.rolling += (push * 0.3 - one.roll * 1.1 - one.rolling * 0.2) * 0.1;
            one.roll += one.rolling * 0.1;
        }
    }
    // Boats that come near each other, by a sweep along x.
    fn meet(&mut self) {
        let mut order: Vec<u32> = (0..self.boats.len() as u32).collect();
        order.sort_by(|a, b| self.boats[*a as usize].x.total_cmp(&self.boats[*b as usize].x));
        self.seen.clear();
        for (i, a) in order.iter().enumerate() {
            let one = &self.boats[*a as usize];
            for b in &order[i + 1..] {
                let other = &self.boats[*b as usize];
                if other.x - one.x > 3.0 {
                    break;
                }
                if (other.y - one.y).abs() < 3.0 {
                    let key = (*a.min(b), *a.max(b));
                    let far = (other.x - one.x).hypot(other.y - one.y);
                    let entry = self.meetings.entry(key).or_insert((far, 0.0));
                    entry.1 = 0.8 * entry.1 + 0.2 * (entry.0 - far);
                    entry.0 = far;
                    self.seen.insert(key);
                }
            }
        }
        let seen = &self.seen;
        self.meetings.retain(|key, _| seen.contains(key));
    }
    fn trail(&mut self) {
        for one in &self.boats {
            let (cx, cy) = (one.x as usize, one.y as usize);
            for dy in 0..5 {
                for dx in 0..5 {
                    let (x, y) = ((cx + dx).saturating_sub(2).min(SIDE - 1), (cy + dy).saturating_sub(2).min(SIDE - 1));
                    let (fx, fy) = (x as f64 + 0.5 - one.x, y as f64 + 0.5 - one.y);
                    let cell = &mut self.plot[y * SIDE + x];
                    *cell = 0.995 * *cell + 0.1 / (1.0 + (fx * fx + fy * fy) as f32);
                }
            }
        }
    }
    // Boats at their berth get another.
    fn berth(&mut self) {
        for i in 0..self.boats.len() {
            let at = self.chart.at(self.boats[i].x, self.boats[i].y);
            if self.fields[self.boats[i].field][at] < 8.0 {
                self.boats[i].field = self.random.next() as usize % 6;
            }
        }
    }
    fn report(&mut self) {
        use std::fmt::Write;
        if self.text.len() > 1 << 18 {
            self.text.clear();
        }
        let mut by_field: HashMap<usize, (u32, f64)> = HashMap::new();
        for (i, one) in self.boats.iter().enumerate() {
            let entry = by_field.entry(one.field).or_default();
            entry.0 += 1;
            entry.1 += one.roll.abs();
            if (i as u64 + self.step) % 6 == 0 {
                let _ = writeln!(self.text, "{} {:.2} {:.2} {:.3} {}", i, one.x, one.y, one.turn, one.field);
            }
        }
        self.sum += by_field.values().map(|one| one.0 as f64).sum::<f64>() * 1e-3 + self.text.len() as f64 * 1e-6;
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let fine = arguments.get(1).map_or(false, |one| one == "slow");
    let steps: u64 = arguments.get(2).and_then(|one| one.parse().ok()).unwrap_or(1 << 40);
    let mut harbour = Harbour::new(fine, 600);
    for _ in 0..steps {
        harbour.advance();
    }
    let places: f64 = harbour.boats.iter().map(|one| one.x + one.y).sum();
    println!("sum {:.6} {:.3} {}", harbour.sum, places, harbour.meetings.len());
}
