// defect: all splats are sorted by distance in each frame, though only the camera's height changes
// kinds: sort-each-step
// guilty: splats::Frame::draw, splats::Frame::order
struct Splat { at: [f32; 3], colour: [f32; 3] }
struct Frame { splats: Vec<Splat>, by_distance: Vec<u32>, light: f32 }

impl Frame {
    #[inline(never)]
    fn order(&mut self, eye: f32) {
        let splats = &self.splats;
        let distance = |one: &u32| { let at = splats[*one as usize].at; at[0] * at[0] + (at[1] - eye) * (at[1] - eye) };
        self.by_distance.sort_unstable_by(|a, b| distance(a).total_cmp(&distance(b)));
    }
    #[inline(never)]
    fn draw(&mut self, eye: f32, sorts: bool) {
        if sorts { self.order(eye); }
        for one in &self.by_distance {
            let splat = &self.splats[*one as usize];
            for i in 0..6 { self.light = 0.9 * self.light + (splat.colour[i % 3] * eye + i as f32).sin(); }
        }
    }
}

fn main() {
    let sorts = std::env::args().nth(1).as_deref() == Some("slow");
    let splats = (0..20_000).map(|i| { let f = i as f32; Splat { at: [f.sin(), (f * 1.3).cos(), f], colour: [f, 1.0, 0.5] } });
    let mut frame = Frame { splats: splats.collect(), by_distance: (0..20_000).collect(), light: 0.0 };
    let mut eye = 0.0;
    loop { frame.draw(eye, sorts); eye = (eye + 1.37) % 50.0; }
}
