//! Draws the pictures of `docs/statistics.md` and `docs/gate.md`, with the code that draws those of reports.
//!
//! ```text
//! cargo run -p stepscope-view --example pictures -- docs/pictures
//! ```

use std::path::Path;

use stepscope_model::{Column, Kind, Table, Value};
use stepscope_view::chart::{Chart, Floor, Forest, Mark, document};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/pictures".to_owned());
    let pictures = [
        ("verdicts.svg", verdicts().svg()),
        ("shares-mislead.svg", shares_mislead().svg()),
        ("noise.svg", noise().svg()),
        ("more-runs.svg", more_runs().svg()),
        ("history.svg", history().svg()),
        ("gate.svg", gate().svg()),
    ];
    for (name, svg) in pictures {
        std::fs::write(Path::new(&folder).join(name), document(&svg))?;
    }
    Ok(())
}

/// A row of a forest: name, ratio, the ends of its interval, verdict.
type Estimate = (&'static str, f64, f64, f64, &'static str);

fn forest(title: &str, rows: &[Estimate]) -> Forest {
    let text = |name: &str| Column::new(name, Kind::Text, "", "");
    let ratios = ["ratio", "ratio_low", "ratio_high"].map(|name| Column::new(name, Kind::Number, "", ""));
    let columns = [text("name")].into_iter().chain(ratios).chain([text("verdict")]);
    let mut table = Table::new("picture", title, columns.collect());
    for &(name, ratio, low, high, verdict) in rows {
        table.push(vec![name.into(), ratio.into(), low.into(), high.into(), verdict.into()]);
    }
    Forest::new(table, "name").tolerance(0.05)
}

fn verdicts() -> Forest {
    forest(
        "The three verdicts",
        &[
            ("half, narrow interval", 0.51, 0.48, 0.55, "changed"),
            ("3 % less, narrow interval", 0.97, 0.956, 0.984, "changed"),
            ("twice, wide interval", 2.1, 1.25, 3.4, "changed"),
            ("no change, narrow interval", 1.003, 0.985, 1.022, "equivalent"),
            ("no change? wide interval", 1.02, 0.9, 1.16, "inconclusive"),
            ("16 % less? wide interval", 0.84, 0.66, 1.08, "inconclusive"),
        ],
    )
}

/// Of a step of 10 ms, `collide` took 6 ms and takes 3: per step, and as shares of the whole.
fn shares_mislead() -> Forest {
    let share = |before: f64, after: f64| (after / 7.0) / (before / 10.0);
    let mut rows = vec![
        ("collide, time per step", 0.5, 0.48, 0.52, "changed"),
        ("integrate, time per step", 1.0, 0.98, 1.02, "equivalent"),
        ("publish, time per step", 1.0, 0.97, 1.03, "equivalent"),
    ];
    let shares = [("collide, share", 6.0, 3.0), ("integrate, share", 3.0, 3.0), ("publish, share", 1.0, 1.0)];
    for (name, before, after) in shares {
        let ratio = share(before, after);
        rows.push((name, ratio, ratio * 0.97, ratio * 1.03, "changed"));
    }
    forest("The same change in time per step and in shares", &rows)
}

/// Runs of two sides of the same program: what one run knows of itself, and where the runs are.
fn noise() -> Chart {
    let number = |name: &str, unit: &str, kind| Column::new(name, kind, unit, "");
    let columns = vec![
        number("run", "", Kind::Count),
        number("step_time", "ns", Kind::Duration),
        number("low", "ns", Kind::Duration),
        number("high", "ns", Kind::Duration),
    ];
    let mut table = Table::new("noise", "Eight runs of the same program", columns);
    let runs = [4.21, 4.35, 4.18, 4.29, 4.44, 4.24, 4.15, 4.38];
    for (run, ms) in (1_u32..).zip(runs) {
        let ns = |ms: f64| Value::from(ms * 1e6);
        table.push(vec![run.into(), ns(ms), ns(ms - 0.03), ns(ms + 0.03)]);
    }
    let marks = vec![Mark::Interval("low".into(), "high".into()), Mark::Points("step_time".into())];
    Chart::new(table, "run", marks).floor(Floor::Least).caption("step time of each run; line: its sampling noise")
}

/// How wide an interval is, by the number of runs per side: Student's t at 95 % times the scatter of runs, 2.2 %.
fn more_runs() -> Forest {
    let half_width = |t: f64, runs: f64| 0.022 * t * (2.0 / runs).sqrt();
    let row = |name: &'static str, t: f64, runs: f64, verdict: &'static str| {
        let half = half_width(t, runs);
        (name, 0.96, 0.96 - half, 0.96 + half, verdict)
    };
    let rows = [
        row("2 runs per side", 4.303, 2.0, "inconclusive"),
        row("3 runs per side", 2.776, 3.0, "inconclusive"),
        row("4 runs per side", 2.447, 4.0, "inconclusive"),
        row("6 runs per side", 2.228, 6.0, "changed"),
        row("8 runs per side", 2.145, 8.0, "changed"),
        row("16 runs per side", 2.042, 16.0, "changed"),
    ];
    forest("The same 4 % less, by number of runs", &rows)
}

fn history() -> Chart {
    let columns = vec![
        Column::new("run", Kind::Count, "", ""),
        Column::new("p99", Kind::Duration, "ns", ""),
        Column::new("level", Kind::Duration, "ns", ""),
        Column::new("environment", Kind::Text, "", ""),
    ];
    let mut table = Table::new("history", "Step time (p99) over 40 runs", columns);
    let levels = [(0..14, 11.9), (14..27, 13.1), (27..40, 9.4)];
    let mut random = 0x2545_f491_u32;
    for (runs, level) in levels {
        for run in runs {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(random >> 16) / 65_536.0 - 0.5;
            let happened = if run == 14 { "Linux 6.12 to 6.18" } else { "" };
            let ns = |ms: f64| Value::from(ms * 1e6);
            table.push(vec![run.into(), ns(level + noise * 0.7), ns(level), happened.into()]);
        }
    }
    let marks = vec![Mark::Steps("level".into()), Mark::Points("p99".into()), Mark::Rules("environment".into())];
    Chart::new(table, "run", marks)
        .floor(Floor::Least)
        .caption("p99 of each run; level between change points; dashed: the environment changed")
}

/// A limit of +5 %: rows that pass, fail, and are inconclusive.
fn gate() -> Forest {
    let rows = [
        ("pass: interval below 1.05", 0.99, 0.96, 1.02, "pass"),
        ("pass: changed, but below 1.05", 1.03, 1.015, 1.045, "pass"),
        ("regression: interval above 1.05", 1.12, 1.07, 1.17, "regression"),
        ("inconclusive: 1.05 in the interval", 1.04, 0.98, 1.1, "inconclusive"),
    ];
    forest("A limit of +5 %", &rows)
}
