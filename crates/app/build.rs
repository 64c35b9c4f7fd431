//! Compresses the app's script and style: they would be half a megabyte of the program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for name in ["app.js", "app.css"] {
        let asset = Path::new("assets").join(name);
        println!("cargo::rerun-if-changed={}", asset.display());
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        io::copy(&mut fs::File::open(&asset)?, &mut encoder)?;
        fs::write(out.join(name), encoder.finish()?)?;
    }
    Ok(())
}
