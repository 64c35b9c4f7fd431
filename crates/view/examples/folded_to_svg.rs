//! Draws a flame graph of folded stacks, to look at the drawing with real input and to measure it.
//!
//! ```text
//! cargo run --release -p stepscope-view --example folded_to_svg -- stacks.folded out.svg [--inverted] [--module] [--owned PREFIX] [--base OTHER [--judged]]
//! ```
//!
//! `--judged` gives each frame of a difference a verdict by a rule of thumb, to look at how verdicts are drawn.

mod folded;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use folded::{Order, tree_of};
use stepscope_model::{BaseWeight, CallNode, TreeDifference, Verdict};
use stepscope_view::flamegraph::{Colours, Options, write_difference_svg, write_svg};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, flags @ ..] = arguments.as_slice() else {
        eprintln!("usage: folded_to_svg STACKS OUT [--inverted] [--module] [--owned PREFIX] [--base OTHER [--judged]]");
        return ExitCode::from(2);
    };
    let value_of = |name: &str| flags.iter().skip_while(|flag| *flag != name).nth(1).map(String::as_str);
    let owned = value_of("--owned").unwrap_or("gz::");
    let folded = std::fs::read(input).expect("the input can be read");
    let order = if flags.iter().any(|flag| flag == "--inverted") { Order::FromLeaf } else { Order::FromRoot };
    let tree = tree_of(&String::from_utf8_lossy(&folded), input, owned, order);
    let colours = if flags.iter().any(|flag| flag == "--module") { Colours::Module } else { Colours::Kind };
    let mut out = BufWriter::new(File::create(output).expect("the output can be created"));
    let written = match value_of("--base") {
        None => write_svg(&tree, &Options { colours, growth: None }, &mut out),
        Some(other) => {
            let folded = std::fs::read(other).expect("the other input can be read");
            let other = tree_of(&String::from_utf8_lossy(&folded), other, owned, order);
            let mut difference = TreeDifference::of(("slow", &tree), ("typical", &other));
            difference.verdicts = flags.iter().any(|flag| flag == "--judged").then(|| judged(&difference));
            write_difference_svg(&difference, &Options::of_difference(), &mut out)
        }
    };
    written.and_then(|()| out.flush()).expect("the output is written");
    eprintln!("{} nodes", tree.nodes.len());
    ExitCode::SUCCESS
}

/// No statistics: fewer than 20 samples on both sides are inconclusive; of the rest, a difference above 5 % is a change.
fn judged(difference: &TreeDifference) -> Vec<Verdict> {
    let verdict = |(node, base): (&CallNode, &BaseWeight)| match (node.total, base.total) {
        (now, before) if now.max(before) < 20 => Verdict::Inconclusive,
        (now, before) if now.abs_diff(before) * 20 > now.max(before) => Verdict::Changed,
        _ => Verdict::Equivalent,
    };
    difference.tree.nodes.iter().zip(&difference.base).map(verdict).collect()
}
