// defect: none; packets are filtered by a mask, sorted into cells once, and cells' neighbours are tested
// kinds: -
// guilty: -
use std::collections::HashMap;

struct Grain { x: f32, y: f32, r: f32, kind: u32 }
#[inline(never)]
fn collide(grains: &[Grain], cells: &HashMap<(i32, i32), Vec<u32>>) -> (usize, f32) {
    let (mut hits, mut depth) = (0, 0.0);
    for (i, one) in grains.iter().enumerate() {
        let cell = ((one.x / 2.0) as i32, (one.y / 2.0) as i32);
        for dx in -1..=1 { for dy in -1..=1 {
            let Some(list) = cells.get(&(cell.0 + dx, cell.1 + dy)) else { continue };
            for &k in list {
                let other = &grains[k as usize];
                if k as usize <= i || other.kind & one.kind == 0 { continue; }
                let (ax, ay) = (one.x - other.x, one.y - other.y);
                let d2 = ax * ax + ay * ay;
                let r = one.r + other.r;
                if d2 < r * r { hits += 1; depth += r - d2.sqrt(); }
            }
        } }
    }
    (hits, depth)
}
#[inline(never)]
fn cells_of(grains: &[Grain], cells: &mut HashMap<(i32, i32), Vec<u32>>) {
    for list in cells.values_mut() { list.clear(); }
    for (i, one) in grains.iter().enumerate() { cells.entry(((one.x / 2.0) as i32, (one.y / 2.0) as i32)).or_default().push(i as u32); }
}
fn main() {
    let steps: u64 = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let mut grains: Vec<Grain> = (0..3000).map(|i| Grain { x: (i * 37 % 1009) as f32 * 0.06, y: (i * 53 % 997) as f32 * 0.06, r: 0.5, kind: 1 << (i % 5) | 1 }).collect();
    let mut cells = HashMap::new();
    let (mut hits, mut depth) = (0, 0.0);
    for step in 0..steps {
        cells_of(&grains, &mut cells);
        let (h, d) = collide(&grains, &cells);
        hits += h; depth += d;
        for (i, one) in grains.iter_mut().enumerate() { one.x = (one.x + ((i as u64 + step) % 3) as f32 * 0.01) % 60.0; }
    }
    println!("{hits} {depth}");
}
