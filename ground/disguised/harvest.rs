// defect: the yield of each row of the field is appended to a file that is opened for it
// kinds: file-opened-each-time
// guilty: harvest::record, harvest::row
use std::io::Write;
use std::path::Path;

#[inline(never)]
fn record(path: &Path, value: f64) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(&value.to_ne_bytes()).unwrap();
}

#[inline(never)]
fn row(at: f64) -> f64 { (0..2000).map(|i| (at + f64::from(i)).sin()).sum() }

fn main() {
    let each = std::env::args().nth(1).as_deref() == Some("slow");
    let path = Path::new("/dev/shm").join(format!("harvest-{}", std::process::id()));
    let mut kept = Vec::new();
    for number in 0u32.. {
        let value = row(f64::from(number));
        if each { record(&path, value); } else { kept.push(value); if kept.len() > 4096 { kept.clear(); } }
        if number % 100_000 == 0 { let _ = std::fs::remove_file(&path); }
    }
}
