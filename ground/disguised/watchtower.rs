// defect: the tower asks for the state of each of its configuration files in each round, to notice a change
// kinds: file-state-each-step, directory-scan
// guilty: watchtower::changed, watchtower::round
use std::path::PathBuf;

#[inline(never)]
fn changed(files: &[PathBuf]) -> u64 { files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|one| one.len()).sum() }

#[inline(never)]
fn round(files: &[PathBuf], asks: bool, at: f64) -> f64 {
    let mut seen = if asks { changed(files) as f64 } else { 0.0 };
    for i in 0..6000 { seen += (at + f64::from(i)).sin(); }
    seen
}

fn main() {
    let asks = std::env::args().nth(1).as_deref() == Some("slow");
    let folder = std::env::temp_dir().join(format!("watchtower-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files: Vec<PathBuf> = (0..60).map(|i| folder.join(format!("zone-{i}.conf"))).collect();
    for file in &files { std::fs::write(file, "range = 3").unwrap(); }
    let mut at = 0.0;
    loop { std::hint::black_box(round(&files, asks, at)); at += 0.1; }
}
