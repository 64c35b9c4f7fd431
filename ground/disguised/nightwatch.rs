// defect: all guards are asked in each tick whether they sleep, through a boxed trait object's shared state; four are awake
// kinds: full-scan-each-step, list-search
// guilty: nightwatch::Castle::tick, nightwatch::Castle::rounds
struct Guard { asleep: bool, post: u32, steps: f64, log: [u64; 6] }
struct Castle { guards: Vec<Box<Guard>>, awake: Vec<usize>, scans: bool }
impl Castle {
    #[inline(never)]
    fn rounds(&mut self, t: f64) -> f64 {
        let mut sum = 0.0;
        if self.scans {
            for guard in self.guards.iter_mut() {
                if guard.asleep { continue; }
                guard.steps += (t + guard.post as f64).sin();
                guard.log[(guard.post % 6) as usize] += 1;
                sum += guard.steps;
            }
        } else {
            for &at in &self.awake {
                let guard = &mut self.guards[at];
                guard.steps += (t + guard.post as f64).sin();
                guard.log[(guard.post % 6) as usize] += 1;
                sum += guard.steps;
            }
        }
        sum
    }
    #[inline(never)]
    fn tick(&mut self, t: f64) -> f64 {
        let sum = self.rounds(t);
        (0..1200).map(|i| (t * 0.1 + i as f64).cos().abs().sqrt()).sum::<f64>() + sum
    }
}
fn main() {
    let mut arguments = std::env::args().skip(1);
    let scans = arguments.next().as_deref() == Some("slow");
    let steps: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let guards: Vec<Box<Guard>> = (0..40000).map(|i| Box::new(Guard { asleep: i % 10000 != 7, post: i, steps: 0.0, log: [0; 6] })).collect();
    let awake = guards.iter().enumerate().filter(|(_, one)| !one.asleep).map(|(at, _)| at).collect();
    let mut castle = Castle { guards, awake, scans };
    let mut sum = 0.0;
    for step in 0..steps { sum += castle.tick(step as f64 * 0.01); }
    println!("{sum}");
}
