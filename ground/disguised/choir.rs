// defect: each note wakes all singers, though only one of them sings it
// kinds: threads-woken-for-nothing
// guilty: choir::Score::next, choir::Score::write
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

struct Score { notes: Mutex<VecDeque<u32>>, written: Condvar, all: bool }

impl Score {
    #[inline(never)]
    fn write(&self, note: u32) {
        self.notes.lock().unwrap().push_back(note);
        if self.all { self.written.notify_all(); } else { self.written.notify_one(); }
    }
    #[inline(never)]
    fn next(&self) -> u32 {
        let mut notes = self.notes.lock().unwrap();
        loop {
            if let Some(note) = notes.pop_front() { return note; }
            notes = self.written.wait(notes).unwrap();
        }
    }
}

#[inline(never)]
fn sing(note: u32) -> f64 { (0..20_000).map(|i| (f64::from(note) * f64::from(i)).sin()).sum() }

fn main() {
    let all = std::env::args().nth(1).as_deref() == Some("slow");
    let score = Arc::new(Score { notes: Mutex::default(), written: Condvar::new(), all });
    for _ in 0..20 {
        let score = score.clone();
        std::thread::spawn(move || loop { std::hint::black_box(sing(score.next())); });
    }
    for note in 0.. { score.write(note); std::thread::sleep(Duration::from_micros(800)); }
}
