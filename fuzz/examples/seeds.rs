//! Writes the seeds of `capture` and `dwarf`: `cargo run --example seeds` in `fuzz/`, after a change of the format on disk
//! or of `seeds/elf/dwarf-5.elf`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let capture = stepscope_fuzz::Folder::new().seeds();
    for (target, seeds) in [("capture", capture), ("dwarf", stepscope_fuzz::section_seeds())] {
        for (name, content) in seeds {
            std::fs::write(folder.join(target).join(name), content)?;
        }
    }
    Ok(())
}
