//! World `topology`.

use super::pathology::{Axis, Control, Expected, Pathology, Phase, Saves, World};
use crate::switches::Switch;

/// The pathologies.
pub const PATHOLOGIES: &[Pathology] = &[
    Pathology {
        switch: Switch::WaitSet,
        study: "ROS 2 executors",
        phase: Phase::Steady,
        world: World::Topology,
        options: &[],
        axis: Axis { option: "--n", counts: "nodes", size: 160, smaller: &[20, 40, 80] },
        function: "ground::topology::executor::wait_set::WaitSetExecutor::spin_all",
        guilty: &[
            "ground::topology::executor::wait_set::WaitSetExecutor::spin_all",
            "ground::topology::executor::wait_set::WaitSetExecutor::get_next_ready_executable",
            "ground::topology::executor::wait_set::WaitSetExecutor::wait_for_work",
            "ground::topology::executor::wait_set::WaitSetExecutor::rebuild",
            "ground::topology::node::CallbackGroup::find_endpoint",
            "ground::topology::node::CallbackGroup::find_timer",
        ],
        kinds: &["list-search", "superlinear-lookup", "allocations-each-step"],
        seam: &["ground::topology::ticked::Ticked::serve"],
        slow: "collects the wait set from all nodes before each wait and searches the owner of each callback",
        fast: "listeners put ready callbacks into a queue of events",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 100.0, gain_percent: 98.0, growth_slow: 1.9, growth_fast: 1.1 },
    },
    Pathology {
        switch: Switch::OnePerWait,
        study: "ROS 2 executors",
        phase: Phase::Steady,
        world: World::Topology,
        options: &["--executor", "static"],
        axis: Axis { option: "--n", counts: "nodes", size: 40, smaller: &[10, 20] },
        function: "ground::topology::executor::collected::StaticExecutor::spin_one_per_wait",
        guilty: &[
            "ground::topology::executor::collected::StaticExecutor::spin_one_per_wait",
            "ground::topology::executor::collected::StaticExecutor::refresh_wait_set",
            "ground::topology::wait_set::WaitSet::wait",
            "ground::topology::reader::Notice::attach",
            "ground::topology::reader::Notice::detach",
        ],
        kinds: &["allocations-each-step", "superlinear-lookup"],
        seam: &["ground::topology::ticked::Ticked::serve"],
        slow: "waits again after each callback, however many are ready",
        fast: "runs all ready callbacks before the next wait",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 100.0, gain_percent: 96.0, growth_slow: 1.9, growth_fast: 1.0 },
    },
];

/// The controls.
pub const CONTROLS: &[Control] = &[Control {
    name: "idle-transport",
    world: World::Topology,
    options: &["--n", "40", "--transport-threads", "8"],
    why: "transport threads sleep in poll until the program ends, and no thread waits for them",
    silent: &["ground::topology::loopback::idle_thread", "ground::topology::loopback::wait_readable"],
}];
