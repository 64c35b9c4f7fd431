// defect: a scan is copied for each of eight subscribers, which only read it
// kinds: copies-each-step, allocations-each-step
// guilty: fan_out::Topic::publish, fan_out::publish
use std::sync::Arc;

#[derive(Clone)]
struct Beam { range: f32, name: Option<Box<str>>, echoes: Vec<f32> }
#[derive(Clone)]
struct Scan { beams: Vec<Beam> }

struct Topic { copies: bool, subscribers: Vec<fn(&Scan) -> f32>, heard: f32 }

impl Topic {
    #[inline(never)]
    fn publish(&mut self, scan: Scan) {
        if self.copies {
            for subscriber in &self.subscribers { let own = scan.clone(); self.heard += subscriber(&own); }
        } else {
            let shared = Arc::new(scan);
            for subscriber in &self.subscribers { let own = shared.clone(); self.heard += subscriber(&own); }
        }
    }
}

#[inline(never)]
fn nearest(scan: &Scan) -> f32 { scan.beams.iter().map(|beam| beam.range.sqrt()).fold(1e9, f32::min) }

#[inline(never)]
fn sense(at: f32) -> Scan {
    let beams = (0..360).map(|i| Beam { range: ((at + i as f32) * 0.1).sin().abs(), name: None, echoes: vec![at; 3] });
    Scan { beams: beams.collect() }
}

#[inline(never)]
fn physics(state: &mut [f32]) { for value in state.iter_mut() { *value += 1e-3 * value.sin(); } }

fn main() {
    let copies = std::env::args().nth(1).as_deref() == Some("slow");
    let mut topic = Topic { copies, subscribers: vec![nearest; 8], heard: 0.0 };
    let mut state: Vec<f32> = (0..40_000).map(|i| i as f32).collect();
    let mut at = 0.0;
    loop { physics(&mut state); topic.publish(sense(at)); at += 0.01; std::hint::black_box(topic.heard); }
}
