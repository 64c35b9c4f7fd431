// defect: while gifts are booked, the giver is searched in a list from its start, by name, for each gift
// kinds: list-search, text-compared-each-step
// guilty: vestry::Books::giver, vestry::book
// seconds: 20
use std::collections::HashMap;

struct Giver { name: String, given: f64, gifts: u32 }
struct Books { givers: Vec<Giver>, by_name: HashMap<String, usize>, searches: bool }

impl Books {
    fn new(number: usize, searches: bool) -> Books {
        let givers: Vec<Giver> = (0..number).map(|i| Giver { name: format!("family number {i}"), given: 0.0, gifts: 0 }).collect();
        let by_name = givers.iter().enumerate().map(|(i, one)| (one.name.clone(), i)).collect();
        Books { givers, by_name, searches }
    }
    #[inline(never)]
    fn giver(&mut self, name: &str) -> Option<&mut Giver> {
        let place = if self.searches { self.givers.iter().position(|one| one.name == name) } else { self.by_name.get(name).copied() };
        place.map(|place| &mut self.givers[place])
    }
}

#[inline(never)]
fn collections(number: usize, families: usize) -> Vec<(String, f64)> {
    let mut seed = 3u64;
    (0..number).map(|_| {
        let mut pence = 1.0f64;
        for _ in 0..90 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            pence += ((seed >> 40) as f64 / 1e7).sqrt();
        }
        (format!("family number {}", (seed >> 33) as usize % families), pence)
    }).collect()
}

#[inline(never)]
fn book(books: &mut Books, gifts: &[(String, f64)]) -> f64 {
    let mut total = 0.0;
    for (name, pence) in gifts {
        let mut worth = *pence;
        for year in 1..30 { worth += 0.01 * (worth / f64::from(year)).ln_1p(); }
        if let Some(giver) = books.giver(name) { giver.given += worth; giver.gifts += 1; total += worth; }
    }
    total
}

#[inline(never)]
fn roof(books: &Books, rounds: usize) -> f64 {
    let mut stress: Vec<f64> = books.givers.iter().map(|one| one.given * 1e-3).collect();
    for _ in 0..rounds {
        for i in 1..stress.len() { stress[i] += 0.05 * (stress[i - 1] - stress[i]).tanh(); }
    }
    stress.iter().sum()
}

fn main() {
    let slow = std::env::args().nth(1).is_some_and(|setting| setting == "slow");
    let mut books = Books::new(1800, slow);
    let gifts = collections(260_000, 1800);
    let total = book(&mut books, &gifts);
    println!("{total:.2} {:.4} {}", roof(&books, 10_000), books.givers.iter().map(|one| one.gifts).max().unwrap_or(0));
}
