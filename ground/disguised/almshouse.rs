// defect: every door is asked through a boxed trait object whether it is open, at each knock, though three of them ever are
// kinds: full-scan-each-step, called-very-often, list-search
// guilty: almshouse::House::knock, almshouse::Door::is_open, <almshouse::Wooden as almshouse::Door>::is_open, <almshouse::Iron as almshouse::Door>::is_open, almshouse::Wooden::is_open, almshouse::Iron::is_open
trait Door {
    fn is_open(&self) -> bool;
    fn enter(&mut self) -> f64;
}
struct Wooden { open: bool, visits: f64 }
struct Iron { bolts: u32, visits: f64 }
impl Door for Wooden {
    fn is_open(&self) -> bool { self.open }
    fn enter(&mut self) -> f64 { self.visits += 1.0; self.visits.sqrt() }
}
impl Door for Iron {
    fn is_open(&self) -> bool { self.bolts == 0 }
    fn enter(&mut self) -> f64 { self.visits += 2.0; self.visits.ln() }
}
struct House { doors: Vec<Box<dyn Door>>, open: Vec<usize>, asks_all: bool }
impl House {
    #[inline(never)]
    fn knock(&mut self) -> f64 {
        let mut alms = 0.0;
        if self.asks_all {
            for door in self.doors.iter_mut() {
                if door.is_open() { alms += door.enter(); }
            }
        } else {
            for at in &self.open { alms += self.doors[*at].enter(); }
        }
        alms
    }
}
#[inline(never)]
fn garden(beds: &mut [f64], t: f64) -> f64 {
    for (i, bed) in beds.iter_mut().enumerate() { *bed = 0.9 * *bed + 0.1 * (t + i as f64 * 0.2).sin(); }
    beds.iter().sum()
}
fn main() {
    let mut arguments = std::env::args().skip(1);
    let asks_all = arguments.next().as_deref() == Some("slow");
    let steps: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let mut house = House { doors: Vec::new(), open: Vec::new(), asks_all };
    for i in 0..20_000_usize {
        let is_open = i % 7000 == 5;
        if is_open { house.open.push(i); }
        house.doors.push(if i % 3 == 0 {
            Box::new(Wooden { open: is_open, visits: 0.0 })
        } else {
            Box::new(Iron { bolts: u32::from(!is_open), visits: 0.0 })
        });
    }
    let (mut beds, mut total) = (vec![0.0; 3000], 0.0);
    for step in 0..steps { total += house.knock() + garden(&mut beds, step as f64 * 0.01); }
    println!("{total}");
}
