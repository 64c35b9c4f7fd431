//! World `stats`.

use super::pathology::{Axis, Expected, Pathology, Phase, Saves, World};
use crate::switches::Switch;

/// The pathologies.
pub const PATHOLOGIES: &[Pathology] = &[
    Pathology {
        switch: Switch::Reopen,
        study: "ns-3, system calls",
        phase: Phase::Steady,
        world: World::Stats,
        options: &["--n", "200"],
        axis: Axis { option: "--records", counts: "records per step", size: 20, smaller: &[5, 10] },
        function: "ground::stats::record_files::RecordFiles::write_stats",
        guilty: &[
            "ground::stats::record_files::RecordFiles::write_stats",
            "ground::stats::record_files::append_record",
            "<ground::stats::record_files::CountedFile as std::io::Write>::write",
        ],
        kinds: &["file-opened-each-time"],
        seam: &["ground::stats::record_files::RecordFiles::write_stats"],
        slow: "opens the file, seeks to its end, writes and closes it for each record",
        fast: "keeps the files open and writes when a buffer is full",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 52.0, gain_percent: 54.0, growth_slow: 0.5, growth_fast: 0.3 },
    },
    Pathology {
        switch: Switch::StringTemp,
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
        kinds: &["allocations-each-step"],
        seam: &["ground::stats::queue_disc::count_drops"],
        slow: "builds a string of the reason for a dropped packet, for each of two maps of counts",
        fast: "looks the reason up without a copy",
        saves: Saves::Cpu,
        downstream: "",
        expected: Expected { share_percent: 48.0, gain_percent: 24.0, growth_slow: 1.2, growth_fast: 1.4 },
    },
    Pathology {
        switch: Switch::AttrLookup,
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
        kinds: &["text-compared-each-step", "called-very-often"],
        seam: &["ground::stats::Network::resolve_limits"],
        slow: "finds the attributes that limit what a device may send by name in each step",
        fast: "finds them once, when the device is created",
        saves: Saves::Cpu,
        downstream: "the look-ups evict the queues from the caches, so counting drops costs more, too",
        expected: Expected { share_percent: 50.0, gain_percent: 49.0, growth_slow: 0.8, growth_fast: 0.6 },
    },
];
