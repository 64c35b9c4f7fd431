//! Chains of messages through three processes that measure their own latency.

mod common;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use common::{json, stepscope, text};

#[test]
fn latencies_of_chains_are_those_that_the_programs_measured() {
    const NAME: &str = "latencies_of_chains_are_those_that_the_programs_measured";
    if !stepscope(Path::new("/"), &["doctor"]).status.success() {
        return println!("skipped: {NAME}: this machine records nothing (see stepscope doctor)");
    }
    let folder = tempfile::tempdir().unwrap();
    let (at, sources) = (folder.path(), Path::new(env!("CARGO_MANIFEST_DIR")));
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-DSTEPSCOPE_MARKS=1", "-I"])
        .arg(sources.join("../../marks/c"))
        .arg(sources.join("tests/chains/chain.c"))
        .arg("-o")
        .arg(at.join("chain"))
        .args(["-lpthread", "-ldl"])
        .status();
    let Ok(compiled) = compiled else { return println!("skipped: {NAME}: no gcc to build the program") };
    assert!(compiled.success(), "chain.c compiles");
    let recorded = stepscope(at, &["record", "-o", "c", "--", "./chain"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let mut measured: Vec<u64> =
        text(&recorded.stdout).lines().filter_map(|line| line.strip_prefix("latency ")?.parse().ok()).collect();
    measured.sort_unstable();
    assert_eq!(measured.len(), 270);

    let shown = json(&stepscope(at, &["show", "c", "--view", "chains", "--format", "json"]));
    let table = |name: &str| -> Vec<Value> {
        let tables = shown["tables"].as_array().unwrap();
        tables.iter().find(|table| table["table"] == name).unwrap()["rows"].as_array().unwrap().clone()
    };
    let chains = table("chains");
    assert_eq!(chains.len(), 1, "{shown}");
    let number = |column: &str| chains[0][column].as_u64().unwrap();
    assert_eq!(chains[0]["chain"], "/scan > /cmd");
    assert_eq!(["starts", "complete", "lost", "pending"].map(number), [300, 270, 30, 0]);
    println!("median: {} ns, measured by the programs: {} ns", number("median"), measured[135]);
    assert!(number("median").abs_diff(measured[135]) < 5_000, "{} and {}", number("median"), measured[135]);

    let parts = table("chain_stages");
    let reached: Vec<_> = parts
        .iter()
        .map(|part| {
            (part["topic"].as_str().unwrap(), part["stage"].as_str().unwrap(), part["chains"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(reached, [("/scan", "arrived", 300), ("/cmd", "published", 270), ("/cmd", "arrived", 270)]);
    // The planner computes for 200 us.
    assert!(parts[1]["median"].as_u64().unwrap() >= 200_000, "{parts:?}");
}
