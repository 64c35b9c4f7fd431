// defect: each casting gets a thread of its own, which lives for some microseconds
// kinds: threads-each-step, thread-per-client
// guilty: foundry::Hall::dispatch, foundry::Hall::serve, foundry::main
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
struct Casting { metal: f64, mould: [f64; 24], number: u64 }

struct Furnace { heat: Vec<f64> }

impl Furnace {
    #[inline(never)]
    fn stoke(&mut self) {
        for i in 1..self.heat.len() - 1 {
            self.heat[i] += 0.1 * (self.heat[i - 1] - 2.0 * self.heat[i] + self.heat[i + 1]) + 1e-4 * self.heat[i].sin();
        }
    }
    fn at(&self, number: u64) -> f64 { self.heat[(number * 17) as usize % self.heat.len()] }
}

#[inline(never)]
fn cool(casting: &mut Casting) -> f64 {
    for round in 0..40 {
        for (i, cell) in casting.mould.iter_mut().enumerate() {
            *cell = 0.98 * *cell + 0.02 * (casting.metal + 0.01 * (i as f64 + round as f64).sin());
        }
    }
    casting.mould.iter().sum()
}

struct Hall { done: Arc<Mutex<(u64, f64)>>, spawns: bool, out: Vec<Sender<Casting>>, furnace: Furnace }

impl Hall {
    fn new(spawns: bool) -> Hall {
        let done = Arc::new(Mutex::new((0, 0.0)));
        let mut out = Vec::new();
        for _ in 0..2 {
            let (sender, receiver): (Sender<Casting>, Receiver<Casting>) = channel();
            let done = done.clone();
            std::thread::spawn(move || {
                while let Ok(mut casting) = receiver.recv() {
                    let sum = cool(&mut casting);
                    let mut done = done.lock().unwrap();
                    done.0 += 1;
                    done.1 += sum;
                }
            });
            out.push(sender);
        }
        Hall { done, spawns, out, furnace: Furnace { heat: (0..2000).map(|i| (i as f64 * 0.1).sin()).collect() } }
    }
    #[inline(never)]
    fn dispatch(&self, casting: Casting) {
        if self.spawns {
            let done = self.done.clone();
            std::thread::spawn(move || {
                let mut casting = casting;
                let sum = cool(&mut casting);
                let mut done = done.lock().unwrap();
                done.0 += 1;
                done.1 += sum;
            });
        } else {
            let number = casting.number as usize;
            let _ = self.out[number % 2].send(casting);
        }
    }
    #[inline(never)]
    fn serve(&mut self, count: u64) {
        for number in 0..count {
            for _ in 0..2 { self.furnace.stoke(); }
            let metal = self.furnace.at(number);
            self.dispatch(Casting { metal, mould: [metal; 24], number });
        }
        while self.done.lock().unwrap().0 < count { std::thread::yield_now(); }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let spawns = arguments.next().as_deref() == Some("slow");
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    Hall::new(spawns).serve(count);
}
