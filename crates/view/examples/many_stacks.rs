//! Prints folded stacks that make a call tree of about 200,000 frames, each wide enough to be drawn by tools that draw
//! all that is wider than a tenth of a pixel: the hard case for a flame graph, and the same bytes every time.
//!
//! ```text
//! cargo run --release -p stepscope-view --example many_stacks > many.folded
//! ```
//!
//! 4,000 stacks of 60 frames fork into two at each of the first twelve levels; below, each has its own frames, of 4,000
//! functions with names as long as those of C++ templates.

use std::io::{BufWriter, Write};

const STACKS: u64 = 4_000;
const DEPTH: u64 = 60;
const FORKING_LEVELS: u64 = 12;
const FUNCTIONS: u64 = 4_000;

fn main() -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for stack in 0..STACKS {
        write!(out, "worker")?;
        for level in 0..DEPTH {
            let branch = if level < FORKING_LEVELS { stack >> (FORKING_LEVELS - level) } else { stack };
            write!(out, ";{}", function(mixed(branch << 8 | level) % FUNCTIONS))?;
        }
        writeln!(out, " {}", 900_000 + mixed(stack) % 200_000)?;
    }
    out.flush()
}

fn function(number: u64) -> String {
    let space = ["gz::sim", "dart::constraint", "std", "boost::asio::detail", "Eigen::internal"][number as usize % 5];
    let width = number % 7;
    format!(
        "{space}::Stage{number}<double, Eigen::Matrix<double, {width}, 1, 0>, std::allocator<std::pair<unsigned long const, Pose3d> > >::Apply{number}"
    )
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
