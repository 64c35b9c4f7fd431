// defect: the lamp's loop sleeps 8 ms after each turn, whose work takes 2 to 4 ms, so it turns too slowly
// kinds: fixed-sleep-each-cycle
// guilty: lighthouse::Lamp::turn, lighthouse::main, lighthouse::keep
use std::time::{Duration, Instant};

struct Lamp { beams: Vec<f64>, angle: f64 }

impl Lamp {
    #[inline(never)]
    fn turn(&mut self, at: u64) {
        for _ in 0..20 + at % 20 {
            for beam in &mut self.beams { *beam = 0.999 * *beam + 0.001 * (self.angle + *beam).sin(); }
            self.angle += 1e-3;
        }
    }
}

fn keep(lamp: &mut Lamp, slow: bool) {
    let mut next = Instant::now();
    for at in 0.. {
        lamp.turn(at);
        next += Duration::from_millis(8);
        let rest = next.saturating_duration_since(Instant::now());
        std::thread::sleep(if slow { Duration::from_millis(8) } else { rest });
    }
}

fn main() {
    let slow = std::env::args().nth(1).as_deref() == Some("slow");
    keep(&mut Lamp { beams: (0..6000).map(|i| i as f64 * 0.01).collect(), angle: 0.0 }, slow);
}
