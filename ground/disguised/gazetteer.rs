// defect: the report is put together with format!, which copies the whole text so far for each place
// kinds: copies-each-step, allocations-each-step
// guilty: gazetteer::report, gazetteer::with_line
// seconds: 20
use std::collections::BTreeMap;

struct Place { name: String, east: f64, north: f64, people: u64 }

#[inline(never)]
fn survey(number: usize) -> Vec<Place> {
    let mut seed = 7u64;
    let mut next = move || { seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); seed >> 33 };
    (0..number).map(|i| {
        let mut people = 40.0;
        for _ in 0..400 { people = people * 0.999 + (next() % 100) as f64 * 0.5; }
        Place { name: format!("place {i}"), east: (next() % 4000) as f64 / 100.0, north: (next() % 4000) as f64 / 100.0, people: people as u64 }
    }).collect()
}

#[inline(never)]
fn neighbours(places: &[Place]) -> BTreeMap<(i64, i64), Vec<usize>> {
    let mut cells: BTreeMap<(i64, i64), Vec<usize>> = BTreeMap::new();
    for (i, place) in places.iter().enumerate() { cells.entry((place.east as i64, place.north as i64)).or_default().push(i); }
    cells
}

#[inline(never)]
fn reach(places: &[Place], cells: &BTreeMap<(i64, i64), Vec<usize>>) -> Vec<f64> {
    places.iter().map(|place| {
        let mut sum = 0.0;
        for east in -1..=1 {
            for north in -1..=1 {
                let Some(near) = cells.get(&(place.east as i64 + east, place.north as i64 + north)) else { continue };
                for &other in near {
                    let far = (places[other].east - place.east).hypot(places[other].north - place.north);
                    sum += places[other].people as f64 * (-far).exp();
                }
            }
        }
        sum
    }).collect()
}

#[inline(never)]
fn with_line(text: String, line: &str) -> String { format!("{text}{line}") }

#[inline(never)]
fn report(places: &[Place], reach: &[f64], slow: bool) -> String {
    let mut text = String::new();
    for (place, reach) in places.iter().zip(reach) {
        let line = format!("{} ({:.2}, {:.2}): {} people, reach {:.1}\n", place.name, place.east, place.north, place.people, reach);
        if slow { text = with_line(text, &line); } else { text.push_str(&line); }
    }
    text
}

#[inline(never)]
fn plan(reach: &[f64], rounds: usize) -> f64 {
    let mut roads: Vec<f64> = reach.iter().map(|one| one.ln_1p()).collect();
    for round in 0..rounds {
        for i in 1..roads.len() { roads[i] += 1e-3 * ((roads[i - 1] - roads[i]) * round as f64).sin(); }
    }
    roads.iter().sum()
}

fn main() {
    let slow = std::env::args().nth(1).is_some_and(|setting| setting == "slow");
    let places = survey(16_000);
    let cells = neighbours(&places);
    let reach = reach(&places, &cells);
    let text = report(&places, &reach, slow);
    println!("{} {:.3}", text.len(), plan(&reach, 2500));
}
