//! The laws of tables, and how often they are right:
//!
//! ```sh
//! cargo run --release -p stepscope-stats --example growth -- calibrate [tables per design]
//! echo '100:1.2,1.3 200:2.5,2.4 400:4.9,5.1' | cargo run --release -p stepscope-stats --example growth -- fit
//! ```
//!
//! `fit` reads one table per line, each size with the costs of its runs, and writes a line of tab-separated values: most
//! probable law, its probability, the law that is named or `inconclusive`, the exponent with its interval, the cost at
//! four times the largest size with its interval.
//!
//! `calibrate` draws tables of known laws. Intervals should hold the truth in 90 to 99 %, and a named law should be right
//! in 90 % at least.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::time::Instant;

use statrs::distribution::{ContinuousCDF, Normal};
use stepscope_stats::SplitMix64;
use stepscope_stats::growth::{Growth, Law, Point};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("fit") => io::stdin().lock().lines().map_while(Result::ok).for_each(|line| println!("{}", fit(&line))),
        Some("calibrate") => calibrate(arguments.get(1).and_then(|count| count.parse().ok()).unwrap_or(20)),
        _ => {
            eprintln!("growth fit < TABLES | growth calibrate [COUNT]");
            std::process::exit(2);
        }
    }
}

fn fit(line: &str) -> String {
    let points: Vec<Point> = line.split_whitespace().filter_map(point).collect();
    let Some(growth) = Growth::of(&points) else { return "unusable".to_owned() };
    let (law, probability) = growth.laws[0];
    let named = growth.law().map_or("inconclusive", Law::name);
    let exponent = growth.exponent;
    let predicted = growth.predict(4.0 * growth.sizes.1).expect("4 is below 10");
    format!(
        "{law}\t{probability:.4}\t{named}\t{:.4}\t{:.4}\t{:.4}\t{:e}\t{:e}\t{:e}",
        exponent.value, exponent.low, exponent.high, predicted.value, predicted.low, predicted.high
    )
}

fn point(text: &str) -> Option<Point> {
    let (n, values) = text.split_once(':')?;
    let values: Option<Vec<f64>> = values.split(',').map(|value| value.parse().ok()).collect();
    Some(Point::new(n.parse().ok()?, values?))
}

/// The laws of the tables, as powers of n and of log n.
const TRUTHS: [(&str, f64, f64); 10] = [
    ("constant", 0.0, 0.0),
    ("log n", 0.0, 1.0),
    ("n^0.5", 0.5, 0.0),
    ("n", 1.0, 0.0),
    ("n^1.2", 1.2, 0.0),
    ("n log n", 1.0, 1.0),
    ("n^1.5", 1.5, 0.0),
    ("n^1.7", 1.7, 0.0),
    ("n^2", 2.0, 0.0),
    ("n^3", 3.0, 0.0),
];

#[derive(Default)]
struct Score {
    tables: u32,
    most_probable: u32,
    named: u32,
    right: u32,
    exponents: u32,
    covered: u32,
    predictions: [u32; 3],
    errors: Vec<f64>,
}

impl Score {
    fn add(&mut self, truth: (&str, f64, f64), growth: &Growth, at: &dyn Fn(f64) -> f64, random: &mut Draw) {
        let (name, power, logs) = truth;
        let is_right =
            |law: Law| law.name() == name || (law == Law::Free && !Law::ALL.iter().any(|law| law.name() == name));
        self.tables += 1;
        self.most_probable += u32::from(is_right(growth.most_probable()));
        if let Some(law) = growth.law() {
            self.named += 1;
            self.right += u32::from(is_right(law));
        }
        if logs == 0.0 {
            self.exponents += 1;
            self.covered += u32::from((growth.exponent.low..=growth.exponent.high).contains(&power));
        }
        for (factor, hits) in [2.0, 4.0, 10.0].into_iter().zip(&mut self.predictions) {
            let n = growth.sizes.1 * factor;
            let predicted = growth.predict(n).expect("at most ten times");
            *hits += u32::from((predicted.low..=predicted.high).contains(&(at(n) * random.factor())));
            if factor == 4.0 {
                self.errors.push((predicted.value / at(n) - 1.0).abs());
            }
        }
    }

    fn print(&mut self, name: &str) {
        let of = |part: u32, all: u32| {
            if all == 0 { "    -".to_owned() } else { format!("{:5.1}", 100.0 * f64::from(part) / f64::from(all)) }
        };
        self.errors.sort_by(f64::total_cmp);
        let median = self.errors.get(self.errors.len() / 2).copied().unwrap_or(f64::NAN);
        println!(
            "{name:24} {:6} {} {} {} {} {} {} {} {:6.1}",
            self.tables,
            of(self.most_probable, self.tables),
            of(self.named, self.tables),
            of(self.right, self.named),
            of(self.covered, self.exponents),
            of(self.predictions[0], self.tables),
            of(self.predictions[1], self.tables),
            of(self.predictions[2], self.tables),
            100.0 * median
        );
    }
}

fn calibrate(count: usize) {
    println!(
        "percent of the tables: most probable law right; a law is named; it is right; the exponent's interval holds"
    );
    println!(
        "the truth; the prediction's holds a new run at 2, 4 and 10 times the largest size; median error at 4 times\n"
    );
    println!("{:24} tables  best named right  expo.  2x    4x   10x   error", "");
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    let mut fits = 0;
    let mut seconds = 0.0;
    for points in [3_usize, 4, 5, 6, 8] {
        for noise in [0.02, 0.05, 0.1] {
            for runs in [3, 5, 10] {
                for between in [0.0, 0.5] {
                    for (law, truth) in TRUTHS.into_iter().enumerate() {
                        for draw in 0..count {
                            let seed = (((points * 100 + runs) * 1000 + law) * 10_000 + draw) as u64;
                            let mut random =
                                Draw { random: SplitMix64::new(seed ^ (noise * 1e6) as u64), noise, between };
                            let offset = [0.0, 0.0, 1.0, 5.0][draw % 4];
                            let (table, cost) = random.table(points, runs, truth, offset);
                            let begin = Instant::now();
                            let growth = Growth::of(&table).expect("costs are positive");
                            seconds += begin.elapsed().as_secs_f64();
                            fits += 1;
                            let keys = [
                                "all".to_owned(),
                                format!("law {}", truth.0),
                                format!("points {points}"),
                                format!("noise {:.0} %", noise * 100.0),
                                format!("runs {runs:2}"),
                                format!("offset {offset}"),
                                format!("between {between}"),
                            ];
                            for key in keys {
                                let mut random = random.clone();
                                scores.entry(key).or_default().add(truth, &growth, &cost, &mut random);
                            }
                        }
                    }
                }
            }
        }
    }
    scores.iter_mut().for_each(|(name, score)| score.print(name));
    println!("\n{:.2} ms per fit", 1e3 * seconds / f64::from(fits));
}

/// Draws tables. `between` is the share of the noise's variance that all runs of a size have in common.
#[derive(Clone)]
struct Draw {
    random: SplitMix64,
    noise: f64,
    between: f64,
}

impl Draw {
    fn normal(&mut self) -> f64 {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Normal::standard().inverse_cdf(uniform.max(1e-300))
    }

    fn factor(&mut self) -> f64 {
        (self.noise * self.normal()).exp()
    }

    fn table(
        &mut self,
        points: usize,
        runs: usize,
        (_, power, logs): (&str, f64, f64),
        offset: f64,
    ) -> (Vec<Point>, impl Fn(f64) -> f64 + use<>) {
        let doubling = self.random.below(2) == 0;
        let sizes = (0..points)
            .map(|index| if doubling { 100.0 * 2_f64.powi(index as i32) } else { 100.0 * (index + 1) as f64 });
        let growing = move |n: f64| n.powf(power) * n.ln().powf(logs);
        let cost = move |n: f64| growing(n) + offset * growing(100.0);
        let table = sizes.map(|n| {
            let common = self.noise * self.between.sqrt() * self.normal();
            let own = self.noise * (1.0 - self.between).sqrt();
            let values: Vec<f64> = (0..runs).map(|_| cost(n) * (common + own * self.normal()).exp()).collect();
            Point::new(n, values)
        });
        (table.collect(), cost)
    }
}
