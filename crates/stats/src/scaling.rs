//! [`Scaling`]: how a time falls with the number of CPUs.
//!
//! ```text
//! T(p) / T(1) = (1 + s (p - 1) + c p (p - 1)) / p
//! ```
//! With c = 0 this is Amdahl's law with the serial part s (Amdahl, AFIPS Conference Proceedings 30, 1967). With c > 0
//! it is the universal scalability law: c is the cost of keeping CPUs coherent, and beyond sqrt((1 - s) / c) CPUs the time
//! rises again (Gunther, *Guerrilla Capacity Planning*, 2007).
//!
//! s is uniform from 0 to 1; c is 0 with a probability of 0.5, else log-uniform from 10^-4 to 1. The likelihood is that of
//! [`growth`](crate::growth): noise is a factor, within and between numbers of CPUs.

use crate::growth::{Point, Table};
use crate::interval::Estimate;

const SERIAL: u32 = 200;
const COHERENCY: u32 = 24;

/// Numbers of CPUs that tell c from 0.
const MIN_FOR_COHERENCY: usize = 3;

/// How a time falls with the number of CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// The serial part, 0 to 1, with a 95 % interval.
    pub serial: Estimate,
    /// The coefficient of coherency, with a 95 % interval.
    pub coherency: Estimate,
    /// The probability that it is above 0; `None` with fewer than three numbers of CPUs.
    pub coherency_probability: Option<f64>,
    /// The number of CPUs beyond which the time rises; infinite without coherency.
    pub fastest: f64,
}

struct Candidate {
    serial: f64,
    coherency: f64,
    ln_weight: f64,
}

impl Scaling {
    /// Fits repeated times by number of CPUs. `None` without two numbers of CPUs.
    pub fn of(points: &[Point]) -> Option<Self> {
        let table = Table::of(points)?;
        let tells_coherency = table.sizes.len() >= MIN_FOR_COHERENCY;
        let coherencies = (0..COHERENCY).map(|step| 10_f64.powf(-4.0 * (f64::from(step) + 0.5) / f64::from(COHERENCY)));
        let coherencies: Vec<f64> = std::iter::once(0.0).chain(coherencies.filter(|_| tells_coherency)).collect();
        let mut candidates = Vec::new();
        for &coherency in &coherencies {
            let prior: f64 = if coherency == 0.0 { 1.0 } else { 1.0 / f64::from(COHERENCY) };
            for step in 0..SERIAL {
                let serial = (f64::from(step) + 0.5) / f64::from(SERIAL);
                let shape = |&p: &f64| ((1.0 + serial * (p - 1.0) + coherency * p * (p - 1.0)) / p).ln();
                let shapes: Vec<f64> = table.sizes.iter().map(shape).collect();
                candidates.push(Candidate { serial, coherency, ln_weight: prior.ln() + table.likelihood(&shapes).ln });
            }
        }
        let most = candidates.iter().map(|one| one.ln_weight).fold(f64::NEG_INFINITY, f64::max);
        let quantiles = |of: fn(&Candidate) -> f64| {
            let mut values: Vec<(f64, f64)> =
                candidates.iter().map(|one| (of(one), (one.ln_weight - most).exp())).collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            crate::growth::quantiles(&values)
        };
        let (serial, coherency) = (quantiles(|one| one.serial), quantiles(|one| one.coherency));
        let weight = |above: bool| {
            let part = candidates.iter().filter(|one| !above || one.coherency > 0.0);
            part.map(|one| (one.ln_weight - most).exp()).sum::<f64>()
        };
        let fastest = ((1.0 - serial.value) / coherency.value).sqrt();
        let coherency_probability = tells_coherency.then(|| weight(true) / weight(false));
        Some(Self { serial, coherency, coherency_probability, fastest })
    }

    /// The speed on `cpus` CPUs over that on one.
    pub fn speedup(&self, cpus: f64) -> f64 {
        cpus / (1.0 + self.serial.value * (cpus - 1.0) + self.coherency.value * cpus * (cpus - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(cpus: &[f64], time: impl Fn(f64) -> f64) -> Vec<Point> {
        let noise = [1.0, 1.012, 0.991, 1.006, 0.988];
        cpus.iter().map(|&p| Point::new(p, noise.map(|factor| factor * time(p)))).collect()
    }

    #[test]
    fn amdahls_serial_part_is_found() {
        let found = Scaling::of(&points(&[1.0, 2.0, 4.0, 8.0], |p| 0.3 + 0.7 / p)).unwrap();
        assert!(found.serial.low < 0.3 && 0.3 < found.serial.high, "{found:?}");
        assert!(found.serial.high - found.serial.low < 0.1, "{found:?}");
        assert!(found.coherency_probability.unwrap() < 0.5, "{found:?}");
        assert!((found.speedup(8.0) - 2.58).abs() < 0.15);
    }

    #[test]
    fn coherency_makes_more_cpus_slower() {
        let found =
            Scaling::of(&points(&[1.0, 2.0, 4.0, 8.0, 16.0], |p| (1.0 + 0.05 * (p - 1.0) + 0.02 * p * (p - 1.0)) / p));
        let found = found.unwrap();
        assert!(found.coherency_probability.unwrap() > 0.9, "{found:?}");
        assert!((5.0..9.0).contains(&found.fastest), "{found:?}");
    }

    #[test]
    fn two_numbers_of_cpus_give_a_serial_part_and_one_gives_nothing() {
        let found = Scaling::of(&points(&[1.0, 2.0], |p| 0.6 + 0.4 / p)).unwrap();
        assert!(found.serial.low < 0.6 && 0.6 < found.serial.high && found.coherency_probability.is_none());
        assert!(Scaling::of(&points(&[1.0], |_| 1.0)).is_none());
    }
}
