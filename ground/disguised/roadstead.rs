// defect: the state of the harbour is put together, delta coded and checksummed for the stream of the spectators in each step, though no spectator is connected
// kinds: no-consumer, no-effect-each-call, encoding-in-steps
// guilty: roadstead::SpectatorStream::publish, roadstead::SpectatorStream::encode_frame, roadstead::put_varint, roadstead::crc32
// gain: 22
//
// A harbour in real time: ships with their dynamics, tides and wind, a radar, collision warnings, port control.

use std::env;
use std::thread::sleep;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[derive(Clone, Copy, Default)]
struct Ship {
    x: f64, y: f64, heading: f64,
    vx: f64, vy: f64,
    surge: f64, sway: f64, yaw: f64,
    rudder: f64, throttle: f64,
    length: f64,
    goal: usize,
    trim: [f64; 6],
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut v = ((value << 1) ^ (value >> 63)) as u64;
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

fn crc_table() -> [u32; 256] {
    std::array::from_fn(|i| (0..8).fold(i as u32, |c, _| if c & 1 == 1 { 0xEDB88320 ^ (c >> 1) } else { c >> 1 }))
}

fn crc32(table: &[u32; 256], data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |c, &b| table[((c ^ b as u32) & 255) as usize] ^ (c >> 8))
}

/// Frames for those who watch: all ships, as differences from the last frame, in fixed point.
struct SpectatorStream {
    spectators: Vec<std::net::UdpSocket>,
    last: Vec<[i64; 14]>,
    frame: Vec<u8>,
    table: [u32; 256],
    only_if_watched: bool,
    sent: u64,
}

impl SpectatorStream {
    fn new(ships: usize, only_if_watched: bool) -> SpectatorStream {
        SpectatorStream {
            spectators: Vec::new(),
            last: vec![[0; 14]; ships],
            frame: Vec::with_capacity(1 << 16),
            table: crc_table(),
            only_if_watched,
            sent: 0,
        }
    }

    fn encode_frame(&mut self, ships: &[Ship], time: f64) {
        self.frame.clear();
        self.frame.extend_from_slice(b"HBR1");
        put_varint(&mut self.frame, (time * 1000.0) as i64);
        for (s, last) in ships.iter().zip(self.last.iter_mut()) {
            let mut now = [0i64; 14];
            let values = [s.x, s.y, s.vx, s.vy, s.heading, s.yaw, s.rudder, s.throttle];
            for (n, v) in now.iter_mut().zip(values.iter().chain(&s.trim)) {
                *n = (v * 10000.0).round() as i64;
            }
            for (n, l) in now.iter().zip(last.iter()) {
                put_varint(&mut self.frame, n - l);
            }
            *last = now;
        }
        let crc = crc32(&self.table, &self.frame);
        self.frame.extend_from_slice(&crc.to_le_bytes());
    }

    fn publish(&mut self, ships: &[Ship], time: f64) {
        if self.only_if_watched && self.spectators.is_empty() {
            return;
        }
        self.encode_frame(ships, time);
        for s in &self.spectators {
            for part in self.frame.chunks(1400) {
                self.sent += s.send(part).unwrap_or(0) as u64;
            }
        }
    }
}

struct Radar {
    echoes: Vec<f32>,
    bearing: f64,
}

impl Radar {
    const RANGE_BINS: usize = 256;
    const BEAMS: usize = 360;

    fn sweep(&mut self, ships: &[Ship], degrees: usize) -> f64 {
        let mut sum = 0.0;
        for _ in 0..degrees {
            let beam = self.bearing as usize % Self::BEAMS;
            let (sin, cos) = self.bearing.to_radians().sin_cos();
            let row = &mut self.echoes[beam * Self::RANGE_BINS..(beam + 1) * Self::RANGE_BINS];
            row.iter_mut().for_each(|e| *e *= 0.6);
            for s in ships {
                let along = s.x * cos + s.y * sin;
                let off = s.y * cos - s.x * sin;
                if along > 0.0 && off.abs() < 0.5 * s.length {
                    let bin = (along / 12.0) as usize;
                    if bin < Self::RANGE_BINS {
                        row[bin] += (s.length / (1.0 + 0.01 * along)) as f32;
                    }
                }
            }
            sum += row.iter().sum::<f32>() as f64;
            self.bearing = (self.bearing + 1.0) % 360.0;
        }
        sum
    }
}

struct Harbour {
    ships: Vec<Ship>,
    buoys: Vec<(f64, f64)>,
    radar: Radar,
    stream: SpectatorStream,
    forces: Vec<(f64, f64, f64)>,
    order: Vec<usize>,
    time: f64,
    warnings: u64,
    echo: f64,
}

impl Harbour {
    fn new(count: usize, only_if_watched: bool) -> Harbour {
        let mut rnd = Random(31337);
        let buoys: Vec<(f64, f64)> = (0..40).map(|_| (4000.0 * (rnd.next() - 0.5), 4000.0 * (rnd.next() - 0.5))).collect();
        let ships: Vec<Ship> = (0..count)
            .map(|i| Ship {
                x: 5000.0 * (rnd.next() - 0.5),
                y: 5000.0 * (rnd.next() - 0.5),
                heading: 6.28 * rnd.next(),
                throttle: 0.6,
                length: 20.0 + 120.0 * rnd.next(),
                goal: i % buoys.len(),
                ..Ship::default()
            })
            .collect();
        Harbour {
            forces: vec![(0.0, 0.0, 0.0); count],
            order: (0..count).collect(),
            ships,
            buoys,
            radar: Radar { echoes: vec![0.0; Radar::BEAMS * Radar::RANGE_BINS], bearing: 0.0 },
            stream: SpectatorStream::new(count, only_if_watched),
            time: 0.0,
            warnings: 0,
            echo: 0.0,
        }
    }

    fn environment(&mut self) {
        let tide = 0.8 * (0.0005 * self.time).sin();
        for (s, f) in self.ships.iter_mut().zip(&mut self.forces) {
            let gust = 6.0 + 2.0 * (0.2 * self.time + 0.003 * s.x).sin() + (0.7 * self.time + 0.01 * s.y).cos();
            let angle = 0.6 - s.heading;
            *f = (0.02 * gust * angle.cos(), 0.05 * gust * angle.sin() + 0.1 * tide, 0.001 * gust * (2.0 * angle).sin());
            for (k, t) in s.trim.iter_mut().enumerate() {
                *t += 0.05 * ((0.4 * (k + 1) as f64 * self.time + 0.01 * s.x).sin() * 0.2 - *t);
            }
        }
    }

    fn steer(&mut self) {
        for s in &mut self.ships {
            let (gx, gy) = self.buoys[s.goal];
            let (dx, dy) = (gx - s.x, gy - s.y);
            if dx.hypot(dy) < 80.0 {
                s.goal = (s.goal * 7 + 3) % self.buoys.len();
            }
            let error = (dy.atan2(dx) - s.heading).sin();
            s.rudder += (error.clamp(-0.6, 0.6) - 0.8 * s.yaw - s.rudder) * 0.2;
        }
    }

    fn sail(&mut self, dt: f64) {
        for (s, f) in self.ships.iter_mut().zip(&self.forces) {
            s.surge += (s.throttle + f.0 - 0.08 * s.surge - 0.01 * s.surge * s.surge.abs()) * dt;
            s.sway += (f.1 - 0.6 * s.sway) * dt;
            s.yaw += (0.05 * s.rudder * s.surge + f.2 - 0.7 * s.yaw) * dt;
            s.heading += s.yaw * dt;
            let (sin, cos) = s.heading.sin_cos();
            s.vx = cos * s.surge - sin * s.sway;
            s.vy = sin * s.surge + cos * s.sway;
            s.x += s.vx * dt;
            s.y += s.vy * dt;
        }
    }

    /// Closest points of approach of ships near each other along x.
    fn warn(&mut self) {
        let ships = &self.ships;
        self.order.sort_by(|&a, &b| ships[a].x.partial_cmp(&ships[b].x).unwrap());
        for (k, &i) in self.order.iter().enumerate() {
            for &j in self.order[k + 1..].iter().take_while(|&&j| ships[j].x - ships[i].x < 80.0) {
                let (dx, dy) = (ships[j].x - ships[i].x, ships[j].y - ships[i].y);
                if dy.abs() > 80.0 {
                    continue;
                }
                let (dvx, dvy) = (ships[j].vx - ships[i].vx, ships[j].vy - ships[i].vy);
                let t = (-(dx * dvx + dy * dvy) / (dvx * dvx + dvy * dvy + 1e-6)).clamp(0.0, 60.0);
                if (dx + t * dvx).hypot(dy + t * dvy) < 0.5 * (ships[i].length + ships[j].length) {
                    self.warnings += 1;
                }
            }
        }
    }

    fn step(&mut self, dt: f64) {
        self.environment();
        self.steer();
        self.sail(dt);
        self.warn();
        self.echo += self.radar.sweep(&self.ships, 3);
        self.stream.publish(&self.ships, self.time);
        self.time += dt;
    }
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.len() < 2 {
        eprintln!("usage: mooring slow|fast [steps]");
        std::process::exit(1);
    }
    let steps: u64 = args.get(2).map_or(u64::MAX, |s| s.parse().expect("steps"));
    let mut harbour = Harbour::new(900, args[1] == "fast");
    let period = Duration::from_micros(1000);
    let mut due = Instant::now();
    for _ in 0..steps {
        harbour.step(0.1);
        due += period;
        let now = Instant::now();
        if due > now {
            sleep(due - now);
        } else if now - due > Duration::from_millis(50) {
            due = now;
        }
    }
    println!("{:.4} {} {}", harbour.echo, harbour.warnings, harbour.stream.sent);
}
