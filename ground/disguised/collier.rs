// defect: each source's batch is appended to the window, which is then sorted as a whole again: 24 sorts for each step instead of one
// kinds: sort-each-step
// guilty: Window::take_in, Window::admit, Window::tidy, Deck::gather, collier::Window::take_in, collier::Window::admit, collier::Window::tidy, collier::Deck::gather
// phase: steady
// gain: 45
//
// Player of robots' logs: topics with clocks of their own are brought into one order, decoded, checked, transformed,
// downsampled, and given to views: odometry, power, diagnostics, an occupancy view and a table of rates.
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::env;

#[derive(Clone, Debug)]
enum Body {
    Imu { gyro: [f32; 3], push: [f32; 3] },
    Ticks { left: i32, right: i32 },
    Power { volts: f32, amps: f32 },
    Ranges(Vec<u16>),
    Text(String),
}

#[derive(Clone, Debug)]
struct Item {
    at: u64,
    topic: u16,
    number: u32,
    check: u32,
    body: Body,
}

struct Random(u64);
impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }
    fn unit(&mut self) -> f64 {
        self.next() as f64 / 2147483648.0
    }
}

// One topic of a log: its messages, with the jitter of its clock.
struct Source {
    topic: u16,
    period: u64,
    next: u64,
    number: u32,
    random: Random,
}

impl Source {
    fn read(&mut self, until: u64) -> Vec<Item> {
        let mut out = Vec::new();
        while self.next < until {
            let jitter = self.random.next() as u64 % (self.period / 3);
            let body = match self.topic % 5 {
                0 => Body::Imu { gyro: [self.wave(1.0), self.wave(1.7), self.wave(2.3)], push: [self.wave(0.3), self.wave(0.6), 9.81] },
                1 => Body::Ticks { left: (self.random.next() % 20) as i32, right: (self.random.next() % 20) as i32 },
                2 => Body::Power { volts: 24.0 + self.wave(0.1), amps: 3.0 + self.wave(0.8) },
                3 => Body::Ranges((0..48).map(|k| 800 + ((k * 37 + self.number as usize * 11) % 900) as u16).collect()),
                _ => Body::Text(format!("node/{} state={} load={:.2}", self.topic, self.number % 7, self.wave(0.2).abs())),
            };
            let mut item = Item { at: self.next + jitter, topic: self.topic, number: self.number, check: 0, body };
            item.check = digest(&item);
            out.push(item);
            self.number += 1;
            self.next += self.period;
        }
        out.sort_by_key(|one| one.at);
        out
    }
    fn wave(&self, speed: f32) -> f32 {
        (self.number as f32 * 0.01 * speed + self.topic as f32).sin()
    }
}

fn digest(item: &Item) -> u32 {
    let mut hash = 0x811c9dc5u32 ^ item.number;
    let mut eat = |bytes: &[u8]| {
        for one in bytes {
            hash = (hash ^ *one as u32).wrapping_mul(16777619);
        }
    };
    match &item.body {
        Body::Imu { gyro, push } => gyro.iter().chain(push).for_each(|one| eat(&one.to_le_bytes())),
        Body::Ticks { left, right } => {
            eat(&left.to_le_bytes());
            eat(&right.to_le_bytes());
        }
        Body::Power { volts, amps } => {
            eat(&volts.to_le_bytes());
            eat(&amps.to_le_bytes());
        }
        Body::Ranges(all) => all.iter().for_each(|one| eat(&one.to_le_bytes())),
        Body::Text(text) => eat(text.as_bytes()),
    }
    hash
}

// The messages of a step, in one order.
struct Window {
    items: Vec<Item>,
    keys: Vec<(u64, u16, u32, u32)>,
    each: bool,
}

impl Window {
    fn take_in(&mut self, batch: Vec<Item>) {
        self.admit(batch);
        if self.each {
            self.tidy();
        }
    }
    fn admit(&mut self, batch: Vec<Item>) {
        for one in batch {
            self.keys.push((one.at, one.topic, one.number, self.items.len() as u32));
            self.items.push(one);
        }
    }
    fn tidy(&mut self) {
        self.keys.sort_unstable();
    }
    fn last(&mut self) {
        if !self.each {
            self.tidy();
        }
    }
}

#[derive(Default, Clone)]
struct Pose {
    x: f64,
    y: f64,
    turn: f64,
}

trait View {
    fn see(&mut self, item: &Item);
    fn end(&mut self, now: u64) -> f64;
}

#[derive(Default)]
struct Odometry {
    poses: HashMap<u16, Pose>,
    turn: [f64; 4],
}
impl View for Odometry {
    fn see(&mut self, item: &Item) {
        match &item.body {
            Body::Ticks { left, right } => {
                let one = self.poses.entry(item.topic).or_default();
                let (l, r) = (*left as f64 * 1e-3, *right as f64 * 1e-3);
                one.turn += (r - l) / 0.4;
                one.x += (l + r) / 2.0 * one.turn.cos();
                one.y += (l + r) / 2.0 * one.turn.sin();
            }
            Body::Imu { gyro, push } => {
                let q = &mut self.turn;
                let g = [gyro[0] as f64 * 5e-4, gyro[1] as f64 * 5e-4, gyro[2] as f64 * 5e-4];
                let n = [q[0] - q[1] * g[0] - q[2] * g[1] - q[3] * g[2], q[1] + q[0] * g[0] + q[2] * g[2] - q[3] * g[1], q[2] + q[0] * g[1] - q[1] * g[2] + q[3] * g[0], q[3] + q[0] * g[2] + q[1] * g[1] - q[2] * g[0]];
                let up = (push[0] * push[0] + push[1] * push[1] + push[2] * push[2]).sqrt() as f64;
                let size = (n.iter().map(|one| one * one).sum::<f64>() + 1e-12).sqrt() * (1.0 + (up - 9.81).abs() * 1e-9);
                for k in 0..4 {
                    q[k] = n[k] / size;
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, _: u64) -> f64 {
        let mut all: Vec<_> = self.poses.iter().collect();
        all.sort_by_key(|one| *one.0);
        all.iter().map(|(_, one)| one.x + one.y).sum::<f64>() + self.turn[0]
    }
}

#[derive(Default)]
struct Power {
    last: VecDeque<(u64, f32)>,
    charge: f64,
}
impl View for Power {
    fn see(&mut self, item: &Item) {
        if let Body::Power { volts, amps } = &item.body {
            self.charge += (volts * amps) as f64 * 1e-6;
            self.last.push_back((item.at, *amps));
            while self.last.front().map_or(false, |one| one.0 + 200_000_000 < item.at) {
                self.last.pop_front();
            }
        }
    }
    fn end(&mut self, _: u64) -> f64 {
        let mut amps: Vec<f32> = self.last.iter().map(|one| one.1).collect();
        amps.sort_by(f32::total_cmp);
        self.charge + amps.get(amps.len() / 2).copied().unwrap_or(0.0) as f64
    }
}

#[derive(Default)]
struct Diagnostics {
    states: BTreeMap<String, (u32, f32)>,
}
impl View for Diagnostics {
    fn see(&mut self, item: &Item) {
        if let Body::Text(text) = &item.body {
            let mut parts = text.split(' ');
            let (name, rest) = (parts.next().unwrap_or(""), parts);
            let mut state = 0;
            let mut load = 0.0;
            for part in rest {
                match part.split_once('=') {
                    Some(("state", value)) => state = value.parse().unwrap_or(0),
                    Some(("load", value)) => load = value.parse().unwrap_or(0.0),
                    _ => {}
                }
            }
            match self.states.get_mut(name) {
                Some(one) => *one = (state, one.1 * 0.9 + load * 0.1),
                None => drop(self.states.insert(name.to_string(), (state, load))),
            }
        }
    }
    fn end(&mut self, _: u64) -> f64 {
        self.states.values().map(|one| one.0 as f64 + one.1 as f64).sum()
    }
}

// Cells hit by ranges around the robot.
struct Cells {
    grid: Vec<f32>,
    angles: Vec<(f32, f32)>,
}
impl Cells {
    fn new() -> Self {
        Cells { grid: vec![0.0; 128 * 128], angles: (0..48).map(|k| (k as f32 * 0.1309).sin_cos()).collect() }
    }
}
impl View for Cells {
    fn see(&mut self, item: &Item) {
        if let Body::Ranges(all) = &item.body {
            for (range, (s, c)) in all.iter().zip(&self.angles) {
                let r = *range as f32 * 0.03;
                for k in [3, 5] {
                    let f = r * k as f32 / 5.0;
                    let (x, y) = ((64.0 + f * c) as usize & 127, (64.0 + f * s) as usize & 127);
                    let one = &mut self.grid[y * 128 + x];
                    *one = (*one + if k == 5 { 0.5 } else { -0.1 }).clamp(-4.0, 4.0);
                }
            }
        }
    }
    fn end(&mut self, _: u64) -> f64 {
        self.grid.iter().filter(|one| **one > 0.5).count() as f64
    }
}

#[derive(Default)]
struct Rates {
    counts: HashMap<u16, (u64, u64, f64)>,
    text: String,
}
impl View for Rates {
    fn see(&mut self, item: &Item) {
        let one = self.counts.entry(item.topic).or_insert((0, item.at, 0.0));
        one.0 += 1;
        one.2 += 0.02 * ((item.at - one.1.min(item.at)) as f64 - one.2);
        one.1 = item.at;
    }
    fn end(&mut self, now: u64) -> f64 {
        use std::fmt::Write;
        self.text.clear();
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_by_key(|one| *one.0);
        for (topic, (count, _, gap)) in all {
            let _ = writeln!(self.text, "{now} {topic} {count} {gap:.0}");
        }
        self.text.len() as f64
    }
}

struct Deck {
    sources: Vec<Source>,
    window: Window,
    views: Vec<Box<dyn View>>,
    now: u64,
    bad: u64,
    sum: f64,
}

impl Deck {
    fn new(each: bool) -> Self {
        let sources = (0..24u16).map(|k| Source { topic: k, period: 250_000 + 20_000 * k as u64, next: 1000 * k as u64, number: 0, random: Random(k as u64 + 5) }).collect();
        let views: Vec<Box<dyn View>> = vec![Box::new(Odometry { turn: [1.0, 0.0, 0.0, 0.0], ..Default::default() }), Box::<Power>::default(), Box::<Diagnostics>::default(), Box::new(Cells::new()), Box::<Rates>::default()];
        Deck { sources, window: Window { items: Vec::new(), keys: Vec::new(), each }, views, now: 0, bad: 0, sum: 0.0 }
    }
    fn gather(&mut self) {
        self.window.items.clear();
        self.window.keys.clear();
        for one in &mut self.sources {
            self.window.take_in(one.read(self.now));
        }
        self.window.last();
    }
    fn step(&mut self) {
        self.now += 40_000_000;
        self.gather();
        for key in &self.window.keys {
            let item = &self.window.items[key.3 as usize];
            if digest(item) != item.check {
                self.bad += 1;
                continue;
            }
            for view in &mut self.views {
                view.see(item);
            }
        }
        for view in &mut self.views {
            self.sum += view.end(self.now);
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let each = arguments.get(1).map_or(false, |one| one == "slow");
    let steps: u64 = arguments.get(2).and_then(|one| one.parse().ok()).unwrap_or(1 << 40);
    let mut deck = Deck::new(each);
    let mut noise = Random(3);
    for _ in 0..steps {
        deck.step();
        deck.sum += noise.unit() * 1e-9;
    }
    println!("sum {:.6} bad {}", deck.sum, deck.bad);
}
