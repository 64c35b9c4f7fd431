// defect: the height of each load is summed over its ropes up to the ceiling again, by indices in an arena, through a trait
// kinds: chain-climbed-each-time
// guilty: pulley::Rig::height, pulley::hoist, pulley::heights, pulley::main
trait Hangs {
    fn above(&self) -> Option<usize>;
    fn length(&self) -> f64;
}
struct Rope {
    above: Option<usize>,
    length: f64,
    sway: [f64; 5],
}
impl Hangs for Rope {
    fn above(&self) -> Option<usize> { self.above }
    fn length(&self) -> f64 { self.length }
}
struct Rig<R: Hangs> {
    ropes: Vec<R>,
    heights: Vec<f64>,
}
impl<R: Hangs> Rig<R> {
    #[inline(never)]
    fn height(&self, of: usize) -> f64 {
        let (mut sum, mut at) = (0.0, Some(of));
        while let Some(rope) = at {
            sum += self.ropes[rope].length();
            at = self.ropes[rope].above();
        }
        sum
    }
    // Ropes are stored from the ceiling down.
    #[inline(never)]
    fn heights(&mut self) {
        for i in 0..self.ropes.len() {
            let above = self.ropes[i].above().map_or(0.0, |above| self.heights[above]);
            self.heights[i] = above + self.ropes[i].length();
        }
    }
}
#[inline(never)]
fn hoist(rig: &mut Rig<Rope>, climbs: bool) -> f64 {
    if climbs {
        for i in 0..rig.ropes.len() { rig.heights[i] = rig.height(i); }
    } else {
        rig.heights();
    }
    rig.heights.iter().sum()
}
#[inline(never)]
fn swing(ropes: &mut [Rope], t: f64) {
    for (i, rope) in ropes.iter_mut().enumerate() {
        for (k, sway) in rope.sway.iter_mut().enumerate() { *sway = (t + i as f64 * 0.3 + k as f64).sin(); }
        rope.length = 2.0 + 0.01 * rope.sway[0];
    }
}
fn main() {
    let mut arguments = std::env::args().skip(1);
    let climbs = arguments.next().as_deref() == Some("slow");
    let steps: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let ropes: Vec<Rope> = (0..1800)
        .map(|i| Rope { above: if i < 20 { None } else { Some(i - 20) }, length: 2.0, sway: [0.0; 5] })
        .collect();
    let heights = vec![0.0; ropes.len()];
    let mut rig = Rig { ropes, heights };
    let mut total = 0.0;
    for step in 0..steps {
        swing(&mut rig.ropes, step as f64 * 0.01);
        total += hoist(&mut rig, climbs);
    }
    println!("{total}");
}
