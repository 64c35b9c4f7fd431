//! What can be slow where records are written, and what must stay silent there.

use crate::catalogue::{Axis, Control, Expected, Pathology, Phase, Saves, World};
use crate::switches::Switch;

/// What can be slow.
pub const PATHOLOGIES: &[Pathology] = &[
    Pathology {
        switch: Switch::Reopen,
        name: "reopen",
        study: "ns-3, system calls",
        phase: Phase::Steady,
        world: World::Stats,
        options: &["--n", "200"],
        axis: Axis { option: "--records", counts: "records a step", size: 20, smaller: &[5, 10] },
        function: "ground::stats::record_files::RecordFiles::write_stats",
        guilty: &[
            "ground::stats::record_files::RecordFiles::write_stats",
            "ground::stats::record_files::append_record",
            "<ground::stats::record_files::CountedFile as std::io::Write>::write",
        ],
        seam: &["ground::stats::record_files::RecordFiles::write_stats"],
        slow: "opens the file, seeks its end, writes and closes it, for each record",
        fast: "keeps files open and writes when a buffer is full",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 52.0, gain_percent: 54.0, growth_slow: 0.5, growth_fast: 0.3 },
    },
    Pathology {
        switch: Switch::StringTemp,
        name: "string-temp",
        study: "ns-3, heap allocations",
        phase: Phase::Steady,
        world: World::Stats,
        options: &[],
        axis: Axis { option: "--n", counts: "devices", size: 10_000, smaller: &[2500, 5000] },
        function: "ground::stats::queue_disc::count_drops",
        guilty: &[
            "ground::stats::queue_disc::count_drops",
            "ground::stats::queue_disc::QueueDisc::drop_before_enqueue_by_string",
        ],
        seam: &["ground::stats::queue_disc::count_drops"],
        slow: "makes a string of the reason why a packet was dropped, for each of two maps that count by it",
        fast: "looks the reason up as it is",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 48.0, gain_percent: 24.0, growth_slow: 1.2, growth_fast: 1.4 },
    },
    Pathology {
        switch: Switch::AttrLookup,
        name: "attr-lookup",
        study: "ns-3, CPU profilers",
        phase: Phase::Steady,
        world: World::Stats,
        options: &[],
        axis: Axis { option: "--n", counts: "devices", size: 450, smaller: &[150, 300] },
        function: "ground::stats::Network::resolve_limits",
        guilty: &[
            "ground::stats::Network::resolve_limits",
            "ground::stats::Device::limits",
            "ground::stats::attributes::TypeId::get_attribute",
        ],
        seam: &["ground::stats::Network::resolve_limits"],
        slow: "finds by name, each step, the attributes that say how much a device may send at once",
        fast: "found them when the device was made",
        saves: Saves::Cpu,
        downstream: "what look-ups read drives queues out of the caches, so that counting drops in them is dearer too",
        expected: Expected { share_percent: 50.0, gain_percent: 49.0, growth_slow: 0.8, growth_fast: 0.6 },
    },
];

/// What must stay silent.
pub const CONTROLS: &[Control] = &[];
