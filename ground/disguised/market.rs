// defect: the pricing thread computes while it holds the lock of the order book, and the trading loop waits
// kinds: lock-wait
// guilty: market::trade, market::price, market::main
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Book { orders: Vec<f64>, mid: f64 }

#[inline(never)]
fn fair(orders: &[f64]) -> f64 {
    let mut sum = 0.0;
    for round in 0..400 { for order in orders { sum += (order + f64::from(round)).sqrt(); } }
    sum
}

#[inline(never)]
fn price(book: &Mutex<Book>, holds: bool) {
    if holds {
        let mut book = book.lock().unwrap();
        book.mid = fair(&book.orders);
    } else {
        let orders = book.lock().unwrap().orders.clone();
        let mid = fair(&orders);
        book.lock().unwrap().mid = mid;
    }
}

#[inline(never)]
fn trade(book: &Mutex<Book>, at: f64) {
    let mut signal = at;
    for i in 0..20_000 { signal += 1e-5 * (signal + f64::from(i)).sin(); }
    let mut book = book.lock().unwrap();
    let mid = book.mid;
    let slot = (at as usize) % book.orders.len();
    book.orders[slot] = signal + mid * 1e-9;
}

fn main() {
    let holds = std::env::args().nth(1).as_deref() == Some("slow");
    let book = Arc::new(Mutex::new(Book { orders: (0..3000).map(f64::from).collect(), mid: 0.0 }));
    let theirs = book.clone();
    std::thread::spawn(move || loop { price(&theirs, holds); std::thread::sleep(Duration::from_micros(500)); });
    let mut at = 0.0;
    loop { trade(&book, at); at += 1.0; std::thread::sleep(Duration::from_micros(200)); }
}
