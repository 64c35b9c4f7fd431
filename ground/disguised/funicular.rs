// defect: the occupancy of all lanes is made as a new ordered map of new vectors in each step, instead of being cleared and filled again
// kinds: allocations-each-step
// guilty: funicular::Network::occupancy_map, funicular::occupancy_map
// gain: 48
//
// Traffic on a ring road town: car following, lane changes, signals, detectors and emissions.

use std::collections::BTreeMap;
use std::env;

#[derive(Clone, Copy)]
struct Car {
    edge: u32,
    lane: u32,
    pos: f64,
    speed: f64,
    desired: f64,
    gap: f64,
    lead_speed: f64,
    emitted: f64,
}

struct Edge {
    length: f64,
    next: [u32; 2],
    green_from: f64,
    limit: f64,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

const LANES: u32 = 3;

struct Network {
    edges: Vec<Edge>,
    cars: Vec<Car>,
    lanes: Vec<Vec<u32>>, // cars of each lane, by position
    detectors: Vec<(u32, f64, u32)>,
    time: f64,
}

impl Network {
    fn new(edges: usize, cars: usize) -> Network {
        let mut rnd = Random(0x9E3779B97F4A7C15);
        let edges: Vec<Edge> = (0..edges)
            .map(|i| Edge {
                length: 120.0 + 200.0 * rnd.next(),
                next: [((i + 1) % edges) as u32, (rnd.next() * edges as f64) as u32],
                green_from: 60.0 * rnd.next(),
                limit: if i % 5 == 0 { 22.0 } else { 14.0 },
            })
            .collect();
        let cars = (0..cars)
            .map(|_| {
                let edge = (rnd.next() * edges.len() as f64) as usize;
                Car {
                    edge: edge as u32,
                    lane: (rnd.next() * LANES as f64) as u32,
                    pos: rnd.next() * edges[edge].length,
                    speed: 8.0,
                    desired: 10.0 + 12.0 * rnd.next(),
                    gap: 0.0,
                    lead_speed: 0.0,
                    emitted: 0.0,
                }
            })
            .collect();
        let lanes = vec![Vec::with_capacity(32); edges.len() * LANES as usize];
        let detectors = (0..edges.len()).map(|e| (e as u32, 0.5 * edges[e].length, 0)).collect();
        Network { edges, cars, lanes, detectors, time: 0.0 }
    }

    fn lane_of(car: &Car) -> u32 {
        car.edge * LANES + car.lane
    }

    /// The cars of each lane that has any.
    fn occupancy_map(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut map = BTreeMap::new();
        for (i, car) in self.cars.iter().enumerate() {
            map.entry(Self::lane_of(car)).or_insert_with(Vec::new).push(i as u32);
        }
        map
    }

    fn fill_lanes(&mut self) {
        for lane in &mut self.lanes {
            lane.clear();
        }
        for (i, car) in self.cars.iter().enumerate() {
            self.lanes[Self::lane_of(car) as usize].push(i as u32);
        }
    }

    fn order_lane(cars: &[Car], lane: &mut [u32]) {
        lane.sort_unstable_by(|&a, &b| {
            let (p, q) = (cars[a as usize].pos, cars[b as usize].pos);
            p.partial_cmp(&q).unwrap().then(a.cmp(&b))
        });
    }

    fn red(&self, edge: u32) -> bool {
        let phase = (self.time + self.edges[edge as usize].green_from) % 60.0;
        phase > 38.0
    }

    /// Gap and speed of the leader for each car of one lane.
    fn look_ahead(&mut self, lane: &[u32]) {
        let edge = self.cars[lane[0] as usize].edge;
        let length = self.edges[edge as usize].length;
        let red = self.red(edge);
        for w in lane.windows(2) {
            let lead = self.cars[w[1] as usize];
            let car = &mut self.cars[w[0] as usize];
            car.gap = (lead.pos - car.pos - 4.5).max(0.1);
            car.lead_speed = lead.speed;
        }
        let last = &mut self.cars[lane[lane.len() - 1] as usize];
        last.gap = if red { (length - last.pos).max(0.1) } else { 200.0 };
        last.lead_speed = if red { 0.0 } else { last.speed };
    }

    fn detect(&mut self, lane: &[u32], dt: f64) {
        let edge = self.cars[lane[0] as usize].edge as usize;
        let at = self.detectors[edge].1;
        let from = lane.partition_point(|&c| self.cars[c as usize].pos < at);
        for &c in lane[..from].iter().rev().take(2) {
            let car = &self.cars[c as usize];
            if car.pos + car.speed * dt >= at {
                self.detectors[edge].2 += 1;
            }
        }
    }

    fn follow(&mut self, dt: f64) {
        for car in &mut self.cars {
            let edge = &self.edges[car.edge as usize];
            let v0 = car.desired.min(edge.limit);
            let closing = car.speed - car.lead_speed;
            let want = 2.0 + (1.4 * car.speed + car.speed * closing / 3.4).max(0.0);
            let free = (car.speed / v0).powi(4);
            let accel = 1.6 * (1.0 - free - (want / car.gap) * (want / car.gap));
            car.speed = (car.speed + accel.clamp(-7.0, 1.6) * dt).max(0.0);
            car.pos += car.speed * dt;
        }
    }

    fn emissions(&mut self) -> f64 {
        let mut sum = 0.0;
        for car in &mut self.cars {
            let v = car.speed;
            let power = 0.3 + 0.9 * v + 0.004 * v * v * v;
            let rate = 0.02 + 0.001 * power + 0.0004 * (0.08 * power).exp().min(50.0);
            car.emitted += rate;
            sum += rate;
        }
        sum
    }

    fn change_lanes(&mut self, step: u64) {
        for (i, car) in self.cars.iter_mut().enumerate() {
            if (i as u64 + step) % 12 == 0 && car.gap < 12.0 && car.speed < 0.7 * car.desired {
                car.lane = (car.lane + 1 + (i as u32 & 1)) % LANES;
            }
        }
    }

    fn cross(&mut self) {
        for (i, car) in self.cars.iter_mut().enumerate() {
            let edge = &self.edges[car.edge as usize];
            if car.pos >= edge.length {
                car.pos -= edge.length;
                car.edge = edge.next[(i + car.lane as usize) % 2];
            }
        }
    }

    fn noise_map(&self, grid: &mut [f64]) {
        for g in grid.iter_mut() {
            *g *= 0.97;
        }
        let n = grid.len() as f64;
        for car in &self.cars {
            let at = (car.edge as f64 * 37.0 + car.pos * 0.1) % n;
            grid[at as usize] += (1.0 + car.speed).ln();
        }
    }
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.len() < 2 {
        eprintln!("usage: funicular slow|fast [steps]");
        std::process::exit(1);
    }
    let reuse = args[1] == "fast";
    let steps: u64 = args.get(2).map_or(u64::MAX, |s| s.parse().expect("steps"));
    let dt = 0.5;
    let mut net = Network::new(600, 7000);
    let mut grid = vec![0.0; 2048];
    let mut total = 0.0;
    let mut step = 0;
    while step < steps {
        if reuse {
            net.fill_lanes();
            let mut lanes = std::mem::take(&mut net.lanes);
            for lane in lanes.iter_mut().filter(|l| !l.is_empty()) {
                Network::order_lane(&net.cars, lane);
                net.look_ahead(lane);
                net.detect(lane, dt);
            }
            net.lanes = lanes;
        } else {
            let mut lanes = net.occupancy_map();
            for lane in lanes.values_mut() {
                Network::order_lane(&net.cars, lane);
                net.look_ahead(lane);
                net.detect(lane, dt);
            }
        }
        net.follow(dt);
        total += net.emissions();
        net.change_lanes(step);
        net.cross();
        net.noise_map(&mut grid);
        net.time += dt;
        step += 1;
    }
    let counted: u64 = net.detectors.iter().map(|d| d.2 as u64).sum();
    println!("{:.6} {} {:.6}", total, counted, grid.iter().sum::<f64>());
}
