// defect: each seed is sent to a worker thread and awaited, instead of a bag of them
// kinds: work-in-small-pieces, threads-woken-for-nothing
// guilty: hamster::carry, hamster::main
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;

fn weight(seed: u32) -> f64 { (0..60).map(|k| ((seed + k) as f64).sqrt()).sum() }

#[inline(never)]
fn carry(bag: &[u32], out: &Sender<Vec<u32>>, back: &Receiver<f64>, pieces: usize) -> f64 {
    let mut total = 0.0;
    for piece in bag.chunks(bag.len().div_ceil(pieces)) {
        out.send(piece.to_vec()).unwrap();
        total += back.recv().unwrap();
    }
    total
}
#[inline(never)]
fn gather(bag: &mut [u32], step: u64) -> f64 {
    let mut sum = 0.0;
    for (i, seed) in bag.iter_mut().enumerate() { *seed = (i as u64 * 31 + step) as u32 % 9973; for k in 0..40 { sum += ((*seed + k) as f64).sin(); } }
    sum
}
fn main() {
    let mut arguments = std::env::args().skip(1);
    let pieces = if arguments.next().as_deref() == Some("slow") { 512 } else { 1 };
    let steps: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let (out, work) = channel::<Vec<u32>>();
    let (done, back) = channel();
    thread::spawn(move || for bag in work { if done.send(bag.iter().map(|one| weight(*one)).sum::<f64>()).is_err() { break; } });
    let mut bag = vec![0; 512];
    let mut sum = 0.0;
    for step in 0..steps { sum += gather(&mut bag, step); sum += carry(&bag, &out, &back, pieces); }
    println!("{sum}");
}
