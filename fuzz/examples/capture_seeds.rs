//! Writes the seeds of the target `capture`: `cargo run --example capture_seeds` in `fuzz/`, after a change of the form on
//! disk.

fn main() -> std::io::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/capture");
    for (name, content) in stepscope_fuzz::Folder::new().seeds() {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(())
}
