//! What can be slow in a monitor, and what must stay silent there.

use crate::catalogue::{Axis, Control, Expected, Pathology, Phase, Saves, World};
use crate::switches::Switch;

/// What can be slow.
pub const PATHOLOGIES: &[Pathology] = &[Pathology {
    switch: Switch::ProcPerPid,
    name: "proc-per-pid",
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
    seam: &["ground::monitor::Monitor::connections"],
    slow: "reads four tables of connections for each process, which are the same for all",
    fast: "reads them once a tick",
    saves: Saves::Cpu,
    downstream: "",
    expected: Expected { share_percent: 100.0, gain_percent: 97.0, growth_slow: 1.0, growth_fast: 0.0 },
}];

/// What must stay silent.
pub const CONTROLS: &[Control] = &[Control {
    name: "watched-processes",
    world: World::Monitor,
    options: &["--n", "40"],
    why: "forty processes are watched, and wait for input all the time: looking at them is cheap",
    silent: &[],
}];
