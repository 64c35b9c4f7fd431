// defect: while the pages are set, a map of all footnotes is built again for each page
// kinds: allocations-each-step, copies-each-step, text-keys-each-step
// guilty: bindery::notes_by_mark, bindery::set_page, bindery::bind
// seconds: 20
use std::collections::HashMap;
use std::fmt::Write;

struct Note { mark: u64, words: u32, weight: f64 }
struct Page { words: Vec<u32>, marks: Vec<u64>, badness: f64 }

#[inline(never)]
fn manuscript(pages: usize, notes: usize) -> (Vec<Page>, Vec<Note>) {
    let mut seed = 88172645463325252u64;
    let mut next = move || { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; seed };
    let notes: Vec<Note> = (0..notes).map(|i| Note { mark: next() | 1, words: (i % 40) as u32, weight: 1.0 + (i % 7) as f64 }).collect();
    let mut all = Vec::new();
    for _ in 0..pages {
        let words = (0..320).map(|_| (next() % 11 + 1) as u32).collect();
        let marks = (0..6).map(|_| notes[(next() % notes.len() as u64) as usize].mark).collect();
        all.push(Page { words, marks, badness: 0.0 });
    }
    (all, notes)
}

#[inline(never)]
fn notes_by_mark(notes: &[Note]) -> HashMap<u64, (u32, f64)> {
    let mut by_mark = HashMap::new();
    for note in notes { by_mark.insert(note.mark, (note.words, note.weight)); }
    by_mark
}

// The best breaks of a paragraph's lines, by dynamic programming.
#[inline(never)]
fn break_lines(words: &[u32], width: u32) -> f64 {
    let mut best = vec![f64::MAX; words.len() + 1];
    best[0] = 0.0;
    for from in 0..words.len() {
        let mut length = 0;
        for to in from..words.len() {
            length += words[to] + 1;
            if length > width { break; }
            let slack = f64::from(width - length) / f64::from(width);
            best[to + 1] = best[to + 1].min(best[from] + slack.powi(3) * 100.0 + 0.01 * slack.sqrt());
        }
    }
    best[words.len()]
}

#[inline(never)]
fn set_page(page: &mut Page, kept: &HashMap<u64, (u32, f64)>, notes: &[Note], again: bool) {
    let fresh = if again { Some(notes_by_mark(notes)) } else { None };
    let by_mark = fresh.as_ref().unwrap_or(kept);
    let mut foot = 0.0;
    for mark in &page.marks {
        if let Some((words, weight)) = by_mark.get(mark) { foot += f64::from(*words) * weight; }
    }
    page.badness = break_lines(&page.words, 66) + break_lines(&page.words, 60) + foot * 1e-3;
}

#[inline(never)]
fn bind(pages: &mut [Page], notes: &[Note], again: bool) {
    let kept = notes_by_mark(notes);
    for page in pages { set_page(page, &kept, notes, again); }
}

// The index: words of all pages, sorted once, and the text of it.
#[inline(never)]
fn index(pages: &[Page]) -> String {
    let mut entries: Vec<(u32, usize)> = Vec::new();
    for (number, page) in pages.iter().enumerate() {
        entries.extend(page.words.iter().map(|word| (word * 7919 % 1013, number)));
    }
    entries.sort_unstable();
    entries.dedup();
    let mut text = String::new();
    for (word, number) in &entries { let _ = write!(text, "{word}:{number} "); }
    text
}

#[inline(never)]
fn proof(pages: &[Page], rounds: usize) -> f64 {
    let mut ink: Vec<f64> = pages.iter().map(|page| page.badness).collect();
    for _ in 0..rounds {
        for i in 1..ink.len() - 1 { ink[i] += 0.1 * (ink[i - 1] - 2.0 * ink[i] + ink[i + 1]) + 1e-5 * ink[i].sin(); }
    }
    ink.iter().sum()
}

fn main() {
    let slow = std::env::args().nth(1).is_some_and(|setting| setting == "slow");
    let (mut pages, notes) = manuscript(9000, 2500);
    bind(&mut pages, &notes, slow);
    let text = index(&pages);
    let ink = proof(&pages, 6000);
    println!("{} {ink:.3}", text.len());
}
