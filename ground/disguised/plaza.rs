// defect: maps of all walkers are built again in each step, for a few look-ups
// kinds: allocations-each-step
// guilty: Concourse::note_positions, Concourse::bin, plaza::Concourse::note_positions, plaza::Concourse::bin
// phase: steady
// gain: 53
//
// plaza: pedestrians cross a station concourse; social forces on a uniform grid.
use std::collections::HashMap;
use std::env;

const W: f64 = 200.0;
const H: f64 = 150.0;
const CELL: f64 = 2.0;
const NX: usize = (W / CELL) as usize;
const NY: usize = (H / CELL) as usize;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct P2 {
    x: f64,
    y: f64,
}

impl P2 {
    fn sub(self, o: P2) -> P2 {
        P2 { x: self.x - o.x, y: self.y - o.y }
    }
    fn len(self) -> f64 {
        (self.x * self.x + self.y * self.y).sqrt()
    }
}

#[derive(Clone, Debug)]
struct Walker {
    id: u64,
    pos: P2,
    vel: P2,
    force: P2,
    goal: usize,
    pace: f64,
    buddy: Option<u64>,
    hurry: f64,
    walked: f64,
}

#[derive(Clone, Copy)]
struct Glimpse {
    pos: P2,
    vel: P2,
    hurry: f64,
    goal: usize,
    pace: f64,
}

struct Lcg(u64);

impl Lcg {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Where everybody stood at the beginning of the step.
enum Register {
    Drawn(HashMap<u64, Glimpse>),
    Kept { slot_of: Vec<u32>, rows: Vec<Glimpse> },
}

impl Register {
    fn get(&self, id: u64) -> Option<&Glimpse> {
        match self {
            Register::Drawn(map) => map.get(&id),
            Register::Kept { slot_of, rows } => {
                let s = *slot_of.get(id as usize)?;
                if s == u32::MAX {
                    None
                } else {
                    Some(&rows[s as usize])
                }
            }
        }
    }
}

struct Grid {
    start: Vec<u32>,
    items: Vec<u32>,
    cell: Vec<u32>,
}

struct Concourse {
    walkers: Vec<Walker>,
    register: Register,
    kept: bool,
    grid: Grid,
    field: Vec<Vec<P2>>,
    density: Vec<f32>,
    scratch: Vec<f32>,
    next_id: u64,
    rng: Lcg,
    arrived: u64,
    flow: [f64; 16],
}

impl Concourse {
    fn new(kept: bool, crowd: usize) -> Concourse {
        let register = if kept { Register::Kept { slot_of: Vec::new(), rows: Vec::new() } } else { Register::Drawn(HashMap::new()) };
        let mut c = Concourse {
            walkers: Vec::new(),
            register,
            kept,
            grid: Grid { start: vec![0; NX * NY + 1], items: Vec::new(), cell: Vec::new() },
            field: Vec::new(),
            density: vec![0.0; NX * NY],
            scratch: vec![0.0; NX * NY],
            next_id: 0,
            rng: Lcg(11),
            arrived: 0,
            flow: [0.0; 16],
        };
        for g in 0..6 {
            c.field.push(Concourse::directions(g));
        }
        for _ in 0..crowd {
            c.enter(true);
        }
        c
    }

    fn exit(g: usize) -> P2 {
        [
            P2 { x: 2.0, y: 60.0 },
            P2 { x: 158.0, y: 60.0 },
            P2 { x: 80.0, y: 2.0 },
            P2 { x: 80.0, y: 118.0 },
            P2 { x: 2.0, y: 2.0 },
            P2 { x: 158.0, y: 118.0 },
        ][g]
    }

    fn directions(g: usize) -> Vec<P2> {
        let e = Concourse::exit(g);
        let mut v = Vec::with_capacity(NX * NY);
        for j in 0..NY {
            for i in 0..NX {
                let p = P2 { x: (i as f64 + 0.5) * CELL, y: (j as f64 + 0.5) * CELL };
                let d = e.sub(p);
                let l = d.len().max(0.1);
                let swirl = 0.2 * ((p.x * 0.1).sin() * (p.y * 0.13).cos());
                v.push(P2 { x: d.x / l - swirl * d.y / l, y: d.y / l + swirl * d.x / l });
            }
        }
        v
    }

    fn enter(&mut self, anywhere: bool) {
        let id = self.next_id;
        self.next_id += 1;
        let pos = if anywhere {
            P2 { x: 1.0 + self.rng.unit() * (W - 2.0), y: 1.0 + self.rng.unit() * (H - 2.0) }
        } else {
            let e = Concourse::exit((self.rng.unit() * 6.0) as usize);
            P2 { x: (e.x + 8.0 * (self.rng.unit() - 0.5)).clamp(1.0, W - 1.0), y: (e.y + 8.0 * (self.rng.unit() - 0.5)).clamp(1.0, H - 1.0) }
        };
        let buddy = if id > 0 && self.rng.unit() < 0.06 { Some(id - 1) } else { None };
        let goal = (self.rng.unit() * 6.0) as usize;
        let pace = 1.0 + 0.6 * self.rng.unit();
        self.walkers.push(Walker { id, pos, vel: P2::default(), force: P2::default(), goal, pace, buddy, hurry: self.rng.unit(), walked: 0.0 });
    }

    fn note_positions(&mut self) {
        if self.kept {
            if let Register::Kept { slot_of, rows } = &mut self.register {
                rows.clear();
                slot_of.resize(self.next_id as usize, u32::MAX);
                for w in &self.walkers {
                    slot_of[w.id as usize] = rows.len() as u32;
                    rows.push(Glimpse { pos: w.pos, vel: w.vel, hurry: w.hurry, goal: w.goal, pace: w.pace });
                }
            }
            return;
        }
        let mut seen = HashMap::new();
        for w in &self.walkers {
            seen.insert(w.id, Glimpse { pos: w.pos, vel: w.vel, hurry: w.hurry, goal: w.goal, pace: w.pace });
        }
        self.register = Register::Drawn(seen);
    }

    fn cell_of(p: P2) -> usize {
        let i = ((p.x / CELL) as usize).min(NX - 1);
        let j = ((p.y / CELL) as usize).min(NY - 1);
        j * NX + i
    }

    fn bin(&mut self) {
        if !self.kept {
            let mut tiles: HashMap<(usize, usize), Vec<u32>> = HashMap::new();
            for (k, w) in self.walkers.iter().enumerate() {
                let c = Concourse::cell_of(w.pos);
                tiles.entry((c % NX, c / NX)).or_default().push(k as u32);
            }
            let g = &mut self.grid;
            g.items.clear();
            for c in 0..NX * NY {
                g.start[c] = g.items.len() as u32;
                if let Some(who) = tiles.get(&(c % NX, c / NX)) {
                    g.items.extend_from_slice(who);
                }
            }
            g.start[NX * NY] = g.items.len() as u32;
            return;
        }
        let g = &mut self.grid;
        g.start.iter_mut().for_each(|s| *s = 0);
        g.cell.clear();
        for w in &self.walkers {
            let c = Concourse::cell_of(w.pos);
            g.cell.push(c as u32);
            g.start[c + 1] += 1;
        }
        for c in 0..NX * NY {
            g.start[c + 1] += g.start[c];
        }
        g.items.resize(self.walkers.len(), 0);
        let mut cursor = g.start.clone();
        for (k, &c) in g.cell.iter().enumerate() {
            g.items[cursor[c as usize] as usize] = k as u32;
            cursor[c as usize] += 1;
        }
    }

    fn steer(&mut self) {
        for w in &mut self.walkers {
            let d = self.field[w.goal][Concourse::cell_of(w.pos)];
            let crowd = self.density[Concourse::cell_of(w.pos)] as f64;
            let pace = w.pace * (1.0 + 0.3 * w.hurry) / (1.0 + 0.1 * crowd);
            w.force = P2 { x: 2.0 * (pace * d.x - w.vel.x), y: 2.0 * (pace * d.y - w.vel.y) };
        }
    }

    fn repel(&mut self) {
        for c in 0..NX * NY {
            let (ci, cj) = (c % NX, c / NX);
            for k in self.grid.start[c]..self.grid.start[c + 1] {
                let me = self.grid.items[k as usize] as usize;
                let p = self.walkers[me].pos;
                let mut f = P2::default();
                for nj in cj.saturating_sub(1)..=(cj + 1).min(NY - 1) {
                    let row = nj * NX;
                    let from = self.grid.start[row + ci.saturating_sub(1)];
                    let to = self.grid.start[row + (ci + 1).min(NX - 1) + 1];
                    for q in from..to {
                        let o = self.grid.items[q as usize] as usize;
                        if o == me {
                            continue;
                        }
                        let d = p.sub(self.walkers[o].pos);
                        let r2 = d.x * d.x + d.y * d.y;
                        if r2 > 2.25 || r2 < 1e-9 {
                            continue;
                        }
                        let r = r2.sqrt();
                        let s = 2.5 * ((0.5 - r) * 3.0).exp() / r;
                        f.x += s * d.x;
                        f.y += s * d.y;
                    }
                }
                let w = &mut self.walkers[me];
                w.force.x += f.x.clamp(-12.0, 12.0);
                w.force.y += f.y.clamp(-12.0, 12.0);
            }
        }
    }

    fn stay_together(&mut self) {
        for w in &mut self.walkers {
            if let Some(b) = w.buddy {
                match self.register.get(b) {
                    Some(g) => {
                        let d = g.pos.sub(w.pos);
                        let l = d.len().max(0.3);
                        w.force.x += 0.4 * d.x / l + 0.1 * (g.vel.x - w.vel.x);
                        w.force.y += 0.4 * d.y / l + 0.1 * (g.vel.y - w.vel.y);
                        w.hurry = 0.99 * w.hurry + 0.01 * g.hurry;
                        if g.goal == w.goal {
                            w.pace = 0.999 * w.pace + 0.001 * g.pace;
                        }
                    }
                    None => w.buddy = None,
                }
            }
        }
    }

    fn walls(&mut self) {
        for w in &mut self.walkers {
            let p = w.pos;
            w.force.x += (-(p.x) * 2.0).exp() * 6.0 - (-(W - p.x) * 2.0).exp() * 6.0;
            w.force.y += (-(p.y) * 2.0).exp() * 6.0 - (-(H - p.y) * 2.0).exp() * 6.0;
            for k in 0..4 {
                let pillar = P2 { x: 32.0 + 32.0 * k as f64, y: 60.0 };
                let d = p.sub(pillar);
                let l = d.len();
                if l < 4.0 && l > 1e-6 {
                    w.force.x += 4.0 * (1.5 - l).exp() * d.x / l;
                    w.force.y += 4.0 * (1.5 - l).exp() * d.y / l;
                }
            }
        }
    }

    fn advance(&mut self, dt: f64) {
        for w in &mut self.walkers {
            w.vel.x += w.force.x * dt;
            w.vel.y += w.force.y * dt;
            let v = w.vel.len();
            if v > 2.5 {
                w.vel.x *= 2.5 / v;
                w.vel.y *= 2.5 / v;
            }
            w.pos.x = (w.pos.x + w.vel.x * dt).clamp(0.1, W - 0.1);
            w.pos.y = (w.pos.y + w.vel.y * dt).clamp(0.1, H - 0.1);
            w.walked += w.vel.len() * dt;
        }
    }

    fn doors(&mut self) {
        let before = self.walkers.len();
        self.walkers.retain(|w| Concourse::exit(w.goal).sub(w.pos).len() > 3.0);
        if let Register::Kept { slot_of, .. } = &mut self.register {
            slot_of.iter_mut().for_each(|s| *s = u32::MAX);
        }
        let left = before - self.walkers.len();
        self.arrived += left as u64;
        for _ in 0..left {
            self.enter(false);
        }
    }

    fn measure(&mut self) {
        for d in self.density.iter_mut() {
            *d *= 0.9;
        }
        for w in &self.walkers {
            self.density[Concourse::cell_of(w.pos)] += 0.1;
            let sector = (w.vel.y.atan2(w.vel.x) / std::f64::consts::TAU * 16.0 + 8.0) as usize;
            self.flow[sector.min(15)] += 1e-3;
        }
        for j in 1..NY - 1 {
            for i in 1..NX - 1 {
                let c = j * NX + i;
                let n = self.density[c - 1] + self.density[c + 1] + self.density[c - NX] + self.density[c + NX];
                self.scratch[c] = 0.96 * self.density[c] + 0.01 * n;
            }
        }
        std::mem::swap(&mut self.density, &mut self.scratch);
    }
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.len() < 2 {
        eprintln!("usage: plaza slow|fast [steps]");
        std::process::exit(2);
    }
    let steps: usize = args.get(2).and_then(|s| s.parse().ok()).unwrap_or(1350);
    let mut c = Concourse::new(args[1] == "fast", 9000);
    for _ in 0..steps {
        c.note_positions();
        c.bin();
        c.steer();
        c.repel();
        c.stay_together();
        c.walls();
        c.advance(0.05);
        c.measure();
        c.doors();
    }
    let s: f64 = c.walkers.iter().map(|w| w.pos.x + 2.0 * w.pos.y + w.walked).sum();
    println!("{} arrived, sum {:.9}, flow {:.6}", c.arrived, s, c.flow.iter().sum::<f64>());
}
