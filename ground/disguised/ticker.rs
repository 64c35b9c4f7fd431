// defect: the feed sends each tick as a message of its own to the strategy thread, over a channel without room
// kinds: work-in-small-pieces
// guilty: ticker::feed, ticker::strategy, ticker::main
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

#[inline(never)]
fn feed(out: &SyncSender<Vec<f64>>, size: usize) {
    for at in 0u64.. { if out.send(vec![at as f64; size]).is_err() { return; } }
}

#[inline(never)]
fn strategy(input: &Receiver<Vec<f64>>) {
    let mut mean = 0.0;
    for ticks in input { for tick in ticks { mean = 0.99 * mean + 0.01 * tick.sqrt(); } std::hint::black_box(mean); }
}

fn main() {
    let size = if std::env::args().nth(1).as_deref() == Some("slow") { 1 } else { 100_000 };
    let (out, input) = sync_channel(0);
    std::thread::spawn(move || feed(&out, size));
    strategy(&input);
}
