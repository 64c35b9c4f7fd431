//! World `monitor`.

use super::pathology::{Axis, Control, Expected, Pathology, Phase, Saves, World};
use crate::switches::Switch;

/// The pathologies.
pub const PATHOLOGIES: &[Pathology] = &[Pathology {
    switch: Switch::ProcPerPid,
    study: "play_launch, optimization 1",
    phase: Phase::Steady,
    world: World::Monitor,
    options: &[],
    axis: Axis { option: "--n", counts: "processes", size: 40, smaller: &[5, 10, 20] },
    function: "ground::monitor::Monitor::connections",
    guilty: &[
        "ground::monitor::Monitor::connections",
        "ground::monitor::connections::count_connections",
        "ground::monitor::connections::count_connections_in_file",
        "ground::monitor::connections::read_file",
    ],
    kinds: &["kernel-files-read-again"],
    seam: &["ground::monitor::Monitor::connections"],
    slow: "reads four tables of connections for each process, although all processes share them",
    fast: "reads them once per tick",
    saves: Saves::Cpu,
    downstream: "",
    expected: Expected { share_percent: 100.0, gain_percent: 97.0, growth_slow: 1.0, growth_fast: 0.0 },
}];

/// The controls.
pub const CONTROLS: &[Control] = &[Control {
    name: "watched-processes",
    world: World::Monitor,
    options: &["--n", "40"],
    why: "40 processes wait for input all the time, and watching them is cheap",
    silent: &[],
}];
