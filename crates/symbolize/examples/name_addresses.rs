//! Names offsets of a file: `name_addresses FILE [OFFSET...]`, or offsets from standard input, one a line, hexadecimal.
//!
//! Prints, per offset, the innermost frame first, as `addr2line -fi` does: function, then `file:line`.

use std::io::{BufRead, Write};

use stepscope_symbolize::{Code, Symbolizer};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: name_addresses FILE [OFFSET...] (or offsets on standard input)");
        std::process::exit(2);
    };
    let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let mut offsets: Vec<u64> = arguments.filter_map(|text| number(&text)).collect();
    if offsets.is_empty() {
        offsets = std::io::stdin().lock().lines().map_while(Result::ok).filter_map(|line| number(&line)).collect();
    }
    let named = Symbolizer::default().name(&Code::file(file), &offsets);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (offset, place) in offsets.iter().zip(&named.places) {
        let _ = writeln!(out, "{offset:#x}");
        for frame in place.frames.iter().rev() {
            let line = frame.line.map_or("?".to_owned(), |line| line.to_string());
            let _ = writeln!(out, "{}\n{}:{line}", frame.function, frame.file.as_deref().unwrap_or("??"));
        }
    }
    for problem in &named.problems {
        eprintln!("{problem}");
    }
    eprintln!("{:?}", named.symbols);
}
