// defect: while samples are sieved, each of four workers takes the lock of the common table for every grain
// kinds: lock-wait, work-in-small-pieces
// guilty: granules::sieve, granules::main, granules::Table::add, granules::worker
// seconds: 20
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Default, Clone)]
struct Table { count: Vec<u64>, mass: Vec<f64> }

impl Table {
    fn new(classes: usize) -> Table { Table { count: vec![0; classes], mass: vec![0.0; classes] } }
    #[inline(never)]
    fn add(&mut self, class: usize, mass: f64) {
        self.count[class] += 1;
        // A running estimate of each class near this one.
        for i in 0..self.mass.len() {
            let far = (i as f64 - class as f64).abs();
            self.mass[i] += mass * (-far * far).exp();
        }
    }
    fn merge(&mut self, other: &Table) {
        for (own, one) in self.count.iter_mut().zip(&other.count) { *own += one; }
        for (own, one) in self.mass.iter_mut().zip(&other.mass) { *own += one; }
    }
}

#[inline(never)]
fn quarry(grains: usize) -> Vec<f64> {
    let mut seed = 1u64;
    let mut all = Vec::with_capacity(grains);
    for _ in 0..grains {
        let mut sum = 0.0;
        for _ in 0..20 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum += ((seed >> 33) as f64 / 2147483648.0).ln_1p();
        }
        all.push(sum / 12.0);
    }
    all
}

#[inline(never)]
fn class_of(grain: f64) -> usize {
    let mut size = grain;
    for _ in 0..6 { size = size * 0.9 + 0.1 * (size * 3.0).sin().abs(); }
    ((size * 9.0) as usize).min(29)
}

#[inline(never)]
fn sieve(grains: &[f64], table: &Mutex<Table>, shares: bool) {
    let mut own = Table::new(30);
    for grain in grains {
        let class = class_of(*grain);
        if shares { table.lock().unwrap().add(class, grain.powi(3)); } else { own.add(class, grain.powi(3)); }
    }
    if !shares { table.lock().unwrap().merge(&own); }
}

#[inline(never)]
fn settle(table: &Table, rounds: usize) -> f64 {
    let mut layers: Vec<f64> = (0..2000).map(|i| table.mass[i % table.mass.len()] * 1e-6).collect();
    for _ in 0..rounds {
        for i in 1..layers.len() { layers[i] += 0.02 * (layers[i - 1] - layers[i]).tanh(); }
    }
    layers.iter().sum()
}

fn main() {
    let slow = std::env::args().nth(1).is_some_and(|setting| setting == "slow");
    let grains = Arc::new(quarry(2_000_000));
    let table = Arc::new(Mutex::new(Table::new(30)));
    let part = grains.len() / 4;
    let workers: Vec<_> = (0..4).map(|worker| {
        let (grains, table) = (grains.clone(), table.clone());
        thread::spawn(move || sieve(&grains[worker * part..(worker + 1) * part], &table, slow))
    }).collect();
    for worker in workers { worker.join().unwrap(); }
    let mass = settle(&table.lock().unwrap(), 12_000);
    println!("{mass:.4}");
}
