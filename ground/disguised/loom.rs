// defect: the warp is divided among the workers by number, over channels, and the last worker's threads take four times as long
// kinds: barrier-imbalance
// guilty: loom::weave, loom::Shuttle::pass, loom::worker, loom::main
use std::sync::mpsc::{channel, Receiver, Sender};

#[derive(Clone, Copy)]
struct Strand {
    knots: u32,
    tension: f64,
}
struct Shuttle {
    strands: Vec<Strand>,
}
impl Shuttle {
    #[inline(never)]
    fn pass(&mut self, time: f64) -> f64 {
        let mut sum = 0.0;
        for strand in &mut self.strands {
            for k in 0..strand.knots { strand.tension = (strand.tension + time + k as f64).sin(); }
            sum += strand.tension;
        }
        sum
    }
}
fn worker(orders: Receiver<f64>, done: Sender<f64>, mut shuttle: Shuttle) {
    for time in orders {
        if done.send(shuttle.pass(time)).is_err() { return; }
    }
}
#[inline(never)]
fn weave(workers: &[Sender<f64>], done: &Receiver<f64>, time: f64) -> f64 {
    for one in workers { one.send(time).unwrap(); }
    workers.iter().map(|_| done.recv().unwrap()).sum()
}
#[inline(never)]
fn inspect(cloth: &mut [f64], time: f64) -> f64 {
    for (i, one) in cloth.iter_mut().enumerate() { *one = 0.9 * *one + (time + i as f64).cos(); }
    cloth.iter().sum()
}
fn main() {
    let mut arguments = std::env::args().skip(1);
    let uneven = arguments.next().as_deref() == Some("slow");
    let steps: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let strands: Vec<Strand> =
        (0..400).map(|i| Strand { knots: if i < 200 { 24 } else { 96 }, tension: 0.1 }).collect();
    let (sender, done) = channel();
    let mut workers = Vec::new();
    for at in 0..2 {
        let own: Vec<Strand> = if uneven {
            strands[at * 200..(at + 1) * 200].to_vec()
        } else {
            strands.iter().copied().skip(at).step_by(2).collect()
        };
        let (orders, taken) = channel();
        let sender = sender.clone();
        std::thread::spawn(move || worker(taken, sender, Shuttle { strands: own }));
        workers.push(orders);
    }
    let (mut cloth, mut total) = (vec![0.0; 4000], 0.0);
    for step in 0..steps {
        let time = step as f64 * 0.01;
        total += weave(&workers, &done, time) + inspect(&mut cloth, time);
    }
    println!("{total}");
}
