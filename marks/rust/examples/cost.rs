//! Measures the cost of a scope in ns: run alone, of marks that are not recorded; run by `stepscope record -- …/cost`,
//! of recorded ones.

use std::time::{Duration, Instant};

const BATCH: u32 = 20_000;

fn main() {
    let mut times: Vec<f64> = (0..40)
        .map(|_| {
            // The recorder empties the ring.
            std::thread::sleep(Duration::from_millis(60));
            let start = Instant::now();
            for _ in 0..BATCH {
                stepscope_marks::scope!("scope");
                std::hint::black_box(());
            }
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{:.2}", times[times.len() / 2]);
}
