// defect: each message goes to all listeners, which decode it whole and drop nearly all
// kinds: many-messages-each-step
// guilty: listen, Fleet::publish, Sample::read, pigeon::listen, pigeon::Fleet::publish, pigeon::Sample::read
// phase: steady
// gain: 38
//
// pigeon: a fleet simulator which publishes to other processes over Unix datagrams.
use std::collections::BTreeMap;
use std::env;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const ROBOTS: usize = 8;
const KINDS: usize = 5; // pose, scan, battery, joints, thumbnail

struct Bytes<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn u16(&mut self) -> u16 {
        let v = u16::from_le_bytes([self.data[self.at], self.data[self.at + 1]]);
        self.at += 2;
        v
    }
    fn u32(&mut self) -> u32 {
        let mut b = [0; 4];
        b.copy_from_slice(&self.data[self.at..self.at + 4]);
        self.at += 4;
        u32::from_le_bytes(b)
    }
    fn f64(&mut self) -> f64 {
        let mut b = [0; 8];
        b.copy_from_slice(&self.data[self.at..self.at + 8]);
        self.at += 8;
        f64::from_le_bytes(b)
    }
}

#[derive(Default)]
struct Sample {
    channel: u16,
    seq: u32,
    stamp: f64,
    values: Vec<f32>,
    check: u32,
}

fn fletcher(data: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    for &d in data {
        a = (a + d as u32) % 65521;
        b = (b + a) % 65521;
    }
    b << 16 | a
}

impl Sample {
    fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.channel.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.stamp.to_le_bytes());
        out.extend_from_slice(&(self.values.len() as u32).to_le_bytes());
        for v in &self.values {
            out.extend_from_slice(&v.to_le_bytes());
        }
        let sum = fletcher(out);
        out.extend_from_slice(&sum.to_le_bytes());
    }

    fn read(data: &[u8]) -> Sample {
        let mut b = Bytes { data, at: 0 };
        let mut s = Sample { channel: b.u16(), seq: b.u32(), stamp: b.f64(), ..Default::default() };
        let n = b.u32() as usize;
        s.values = (0..n).map(|_| f32::from_bits(b.u32())).collect();
        s.check = b.u32();
        if s.check != fletcher(&data[..data.len() - 4]) {
            s.values.clear();
        }
        s
    }
}

// ---- the listening side -----------------------------------------------------
fn wishes(role: &str) -> Vec<u16> {
    let ch = |r: usize, k: usize| (r * KINDS + k) as u16;
    match role {
        "mapper" => vec![ch(0, 1), ch(1, 1)],
        "dashboard" => (0..ROBOTS).map(|r| ch(r, 2)).collect(),
        "planner" => vec![ch(0, 0), ch(1, 0), ch(2, 0), ch(3, 0)],
        _ => vec![ch(5, 3)],
    }
}

struct Listener {
    role: String,
    wants: Vec<u16>,
    grid: Vec<f32>,
    mean: BTreeMap<u16, f64>,
    digest: u64,
    used: u64,
}

impl Listener {
    fn take(&mut self, s: &Sample) {
        self.used += 1;
        self.digest = (self.digest ^ s.check as u64).wrapping_mul(1099511628211);
        match self.role.as_str() {
            "mapper" => {
                for (i, v) in s.values.iter().enumerate() {
                    let a = i as f32 * 0.05;
                    for k in 0..6 {
                        let r = v * k as f32 / 6.0;
                        let x = (32.0 + r * a.cos()) as usize & 63;
                        let y = (32.0 + r * a.sin()) as usize & 63;
                        self.grid[y * 64 + x] = 0.99 * self.grid[y * 64 + x] + 0.01;
                    }
                }
            }
            "planner" => {
                let target = s.values[0] as f64;
                for i in 1..63 {
                    self.grid[i] = 0.5 * self.grid[i] + 0.25 * (self.grid[i - 1] + self.grid[i + 1]) + 1e-3 * target as f32;
                }
            }
            _ => {
                let m = self.mean.entry(s.channel).or_insert(0.0);
                for v in &s.values {
                    *m = 0.99 * *m + 0.01 * *v as f64;
                }
                *m += 1e-9 * s.stamp + 1e-12 * s.seq as f64;
            }
        }
    }
}

fn listen(role: &str, path: &str) -> io::Result<()> {
    let socket = UnixDatagram::bind(path)?;
    println!("ready");
    let mut l = Listener { role: role.to_string(), wants: wishes(role), grid: vec![0.0; 64 * 64], mean: BTreeMap::new(), digest: 0, used: 0 };
    let mut buf = vec![0u8; 8192];
    loop {
        let n = socket.recv(&mut buf)?;
        if n < 8 {
            break;
        }
        let s = Sample::read(&buf[..n]);
        if l.wants.contains(&s.channel) {
            l.take(&s);
        }
    }
    let m: f64 = l.mean.values().sum();
    eprintln!("{}: used {}, digest {:016x}, mean {:.9}", role, l.used, l.digest, m + l.grid.iter().sum::<f32>() as f64);
    Ok(())
}

// ---- the simulator ----------------------------------------------------------
#[derive(Clone, Default)]
struct Robot {
    x: f64,
    y: f64,
    th: f64,
    charge: f64,
    joints: [f64; 12],
    rates: [f64; 12],
}

struct Peer {
    socket: UnixDatagram,
    wants: Vec<u16>,
    child: Child,
    path: PathBuf,
}

struct Fleet {
    robots: Vec<Robot>,
    posts: Vec<(f64, f64, f64)>,
    seed: u64,
    seq: u32,
    time: f64,
    wire: Vec<u8>,
    peers: Vec<Peer>,
    picky: bool,
    scans: Vec<Vec<f32>>,
    thumbs: Vec<Vec<f32>>,
}

impl Fleet {
    fn new(picky: bool) -> io::Result<Fleet> {
        let mut f = Fleet {
            robots: vec![Robot::default(); ROBOTS],
            posts: Vec::new(),
            seed: 3,
            seq: 0,
            time: 0.0,
            wire: Vec::new(),
            peers: Vec::new(),
            picky,
            scans: vec![vec![0.0; 120]; ROBOTS],
            thumbs: vec![vec![0.0; 16 * 12]; ROBOTS],
        };
        for i in 0..120 {
            let p = (20.0 * f.unit() - 10.0, 20.0 * f.unit() - 10.0, 0.3 + 0.1 * (i % 4) as f64);
            f.posts.push(p);
        }
        for (i, r) in f.robots.iter_mut().enumerate() {
            r.x = i as f64 - 4.0;
            r.charge = 1.0;
        }
        for role in ["mapper", "dashboard", "planner"] {
            let path = env::temp_dir().join(format!("pigeon-{}-{}", std::process::id(), role));
            let mut child = Command::new(env::current_exe()?).arg("listen").arg(role).arg(&path).stdout(Stdio::piped()).spawn()?;
            let mut line = [0u8; 6];
            io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line)?;
            let socket = UnixDatagram::unbound()?;
            socket.connect(&path)?;
            f.peers.push(Peer { socket, wants: wishes(role), child, path });
        }
        Ok(f)
    }

    fn unit(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.seed >> 11) as f64 / (1u64 << 53) as f64
    }

    fn drive(&mut self, dt: f64) {
        for (i, r) in self.robots.iter_mut().enumerate() {
            for k in 0..10 {
                let v = 0.5 + 0.2 * (self.time + i as f64).sin();
                r.th += dt / 10.0 * (0.3 * (0.5 * self.time + k as f64 * 0.01).cos());
                r.x += v * dt / 10.0 * r.th.cos();
                r.y += v * dt / 10.0 * r.th.sin();
            }
            r.x = r.x.clamp(-10.0, 10.0);
            r.y = r.y.clamp(-10.0, 10.0);
        }
    }

    fn actuate(&mut self, dt: f64) {
        for r in &mut self.robots {
            for _ in 0..20 {
                for j in 0..12 {
                    let goal = (self.time * (1.0 + 0.1 * j as f64)).sin();
                    let acc = 40.0 * (goal - r.joints[j]) - 6.0 * r.rates[j];
                    r.rates[j] += acc * dt / 20.0;
                    r.joints[j] += r.rates[j] * dt / 20.0;
                }
            }
            let p: f64 = r.rates.iter().map(|v| v.abs()).sum();
            r.charge -= 1e-8 * p * (1.0 + (-r.charge).exp());
        }
    }

    fn range(&mut self) {
        for i in 0..ROBOTS {
            let (x, y, th) = (self.robots[i].x, self.robots[i].y, self.robots[i].th);
            for k in 0..120 {
                let a = th + k as f64 * 0.05236;
                let (dx, dy) = (a.cos(), a.sin());
                let mut best = 12.0f64;
                for &(px, py, pr) in &self.posts {
                    let (mx, my) = (x - px, y - py);
                    let b = mx * dx + my * dy;
                    let d = b * b - (mx * mx + my * my - pr * pr);
                    if d > 0.0 {
                        let t = -b - d.sqrt();
                        if t > 0.0 && t < best {
                            best = t;
                        }
                    }
                }
                self.scans[i][k] = best as f32;
            }
        }
    }

    fn speckle(&mut self) {
        for i in 0..ROBOTS {
            for k in 0..120 {
                let n = self.unit() + self.unit() + self.unit() - 1.5;
                self.scans[i][k] += 0.02 * n as f32;
            }
        }
    }

    fn thumbnail(&mut self) {
        for i in 0..ROBOTS {
            let (x, y) = (self.robots[i].x, self.robots[i].y);
            for (k, t) in self.thumbs[i].iter_mut().enumerate() {
                let (u, v) = ((k % 16) as f64, (k / 16) as f64);
                let s = (0.3 * u + x).sin() * (0.4 * v + y).cos() + 0.2 * (u * v * 0.1 + self.time).sin();
                *t = s as f32;
            }
        }
    }

    fn avoid(&mut self) {
        for i in 0..ROBOTS {
            let mut turn = 0.0;
            for j in 0..ROBOTS {
                if i != j {
                    let (dx, dy) = (self.robots[i].x - self.robots[j].x, self.robots[i].y - self.robots[j].y);
                    let d = (dx * dx + dy * dy).sqrt() + 0.1;
                    turn += 0.001 / d * dy.atan2(dx).sin();
                }
            }
            let near = self.scans[i].iter().cloned().fold(f32::MAX, f32::min);
            self.robots[i].th += turn + if near < 0.5 { 0.05 } else { 0.0 };
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        for i in 0..ROBOTS {
            for k in 0..KINDS {
                if (k == 1 && self.seq % 2 != 0) || (k == 4 && self.seq % 4 != 0) {
                    continue;
                }
                let r = &self.robots[i];
                let values: Vec<f32> = match k {
                    0 => vec![r.x as f32, r.y as f32, r.th as f32],
                    1 => self.scans[i].clone(),
                    2 => vec![r.charge as f32],
                    3 => r.joints.iter().chain(r.rates.iter()).map(|v| *v as f32).collect(),
                    _ => self.thumbs[i].clone(),
                };
                let s = Sample { channel: (i * KINDS + k) as u16, seq: self.seq, stamp: self.time, values, check: 0 };
                s.write(&mut self.wire);
                for p in &self.peers {
                    if self.picky && !p.wants.contains(&s.channel) {
                        continue;
                    }
                    p.socket.send(&self.wire)?;
                }
            }
        }
        self.seq += 1;
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        for p in &mut self.peers {
            p.socket.send(&[0])?;
            p.child.wait()?;
            let _ = std::fs::remove_file(&p.path);
        }
        Ok(())
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    if args.len() < 2 {
        eprintln!("usage: pigeon slow|fast [steps]");
        std::process::exit(2);
    }
    if args[1] == "listen" {
        return listen(&args[2], &args[3]);
    }
    let steps: usize = args.get(2).and_then(|s| s.parse().ok()).unwrap_or(6000);
    let mut fleet = Fleet::new(args[1] == "fast")?;
    for _ in 0..steps {
        fleet.drive(0.02);
        fleet.actuate(0.02);
        fleet.range();
        fleet.speckle();
        fleet.thumbnail();
        fleet.avoid();
        fleet.publish()?;
        fleet.time += 0.02;
    }
    fleet.close()?;
    let s: f64 = fleet.robots.iter().map(|r| r.x + r.y + r.th + r.charge).sum();
    println!("fleet {:.9}", s);
    Ok(())
}
