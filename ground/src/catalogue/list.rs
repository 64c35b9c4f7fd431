//! Prints the catalogue as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::pathology::{Control, Pathology, Saves, World};
use super::{controls, pathologies};
use crate::switches::name_of;

/// Prints the catalogue as text.
///
/// # Errors
/// If `out` fails.
pub fn print_text(out: &mut impl Write) -> io::Result<()> {
    for pathology in pathologies() {
        write_pathology(pathology, out)?;
    }
    for control in controls() {
        let command = control.arguments().join(" ");
        writeln!(out, "{} (control)\n  why   {}\n  run   ground {command}", control.name, control.why)?;
    }
    Ok(())
}

fn write_pathology(pathology: &Pathology, out: &mut impl Write) -> io::Result<()> {
    let Pathology { axis, expected, .. } = pathology;
    let saves = match pathology.saves {
        Saves::Cpu => "CPU time",
        Saves::Wall => "wall time",
    };
    write!(
        out,
        "{name} ({phase}; study: {study})\n  slow  {slow}\n  fast  {fast}\n  look  {share} % of the CPU time is under \
         {function}\n  run   ground {command} --slow {name}\n  gain  the fix saves {gain} % of the {phase} {saves}\n  \
         cost  grows with the {count} ({option}) by a power of {steep} slow, {flat} fast\n",
        name = pathology.name(),
        phase = name_of(&pathology.phase),
        study = pathology.study,
        slow = pathology.slow,
        fast = pathology.fast,
        share = expected.share_percent,
        function = pathology.function,
        command = pathology.arguments(axis.size).join(" "),
        gain = expected.gain_percent,
        count = axis.counts,
        option = axis.option,
        steep = expected.growth_slow,
        flat = expected.growth_fast,
    )
}

/// The catalogue in JSON.
#[derive(Serialize)]
struct Catalogue {
    schema: u32,
    program: &'static str,
    version: &'static str,
    /// Namespaces of the program's own code.
    owned: [&'static str; 1],
    /// Marked scopes whose number a counter knows.
    counted_scopes: &'static [CountedScope],
    /// Allocations whose number counters know.
    counted_allocations: &'static [CountedAllocations],
    /// System calls whose number a counter knows.
    counted_calls: &'static [CountedCalls],
    switches: Vec<SwitchEntry>,
    controls: Vec<ControlEntry>,
}

/// A marked scope whose number a counter knows.
#[derive(Serialize)]
struct CountedScope {
    world: World,
    scope: &'static str,
    counter: &'static str,
}

const COUNTED_SCOPES: [CountedScope; 6] = [
    CountedScope { world: World::Shapes, scope: "ProcessRecreateEntitiesRemove", counter: "steps" },
    CountedScope { world: World::Shapes, scope: "Physics::Update", counter: "steps" },
    CountedScope { world: World::Shapes, scope: "SceneBroadcaster::PostUpdate", counter: "steps" },
    CountedScope { world: World::Sensors, scope: "DepthCameras::PostUpdate", counter: "steps" },
    CountedScope { world: World::Marina, scope: "Camera::PostUpdate", counter: "steps" },
    CountedScope { world: World::Marina, scope: "decode_texture", counter: "decodes" },
];

/// Allocations of a function and all that it calls, whose number is that of a counter less that of others.
#[derive(Serialize)]
struct CountedAllocations {
    world: World,
    function: &'static str,
    /// Temporary ones only.
    temporary: bool,
    counter: &'static str,
    less: &'static [&'static str],
}

const fn counted_allocations(world: World, function: &'static str, counter: &'static str) -> CountedAllocations {
    CountedAllocations { world, function, temporary: false, counter, less: &[] }
}

const COUNTED_ALLOCATIONS: [CountedAllocations; 4] = [
    counted_allocations(World::Stats, "ground::stats::queue_disc::count_drops", "allocations_for_drops"),
    // A key of a map is stored; any other string for a look-up is temporary.
    CountedAllocations {
        world: World::Stats,
        function: "ground::stats::queue_disc::count_drops",
        temporary: true,
        counter: "look_ups",
        less: &["keys_stored"],
    },
    counted_allocations(World::Shapes, "ground::physics::Physics::write_changed_world_poses", "allocations_for_poses"),
    counted_allocations(
        World::Sensors,
        "ground::systems::depth_camera::DepthCameras::prepare_frames",
        "allocations_for_frames",
    ),
];

/// System calls of functions, whose number a counter knows.
#[derive(Serialize)]
struct CountedCalls {
    world: World,
    /// Parts of the names of the functions that make them.
    functions: &'static [&'static str],
    call: &'static str,
    counter: &'static str,
}

const fn counted_calls(
    world: World,
    functions: &'static [&'static str],
    call: &'static str,
    counter: &'static str,
) -> CountedCalls {
    CountedCalls { world, functions, call, counter }
}

const RECORDS: &[&str] = &["ground::stats::record_files::"];
const TABLES: &[&str] = &["ground::monitor::connections::read_file"];
const SCRIPTS: &[&str] = &["ground::region::compiler::is_source_or_binary", "ground::region::compiler::write_file"];
const CLIENTS: &[&str] = &["ground::region::clients::"];

const COUNTED_CALLS: [CountedCalls; 9] = [
    counted_calls(World::Stats, RECORDS, "openat", "file_opens"),
    counted_calls(World::Stats, RECORDS, "write", "file_writes"),
    counted_calls(World::Monitor, TABLES, "openat", "file_opens"),
    counted_calls(World::Monitor, TABLES, "read", "file_reads"),
    counted_calls(World::Region, SCRIPTS, "openat", "file_opens"),
    counted_calls(World::Region, SCRIPTS, "read", "file_reads"),
    counted_calls(World::Region, SCRIPTS, "write", "file_writes"),
    counted_calls(World::Region, CLIENTS, "sendto", "datagrams_sent"),
    counted_calls(World::Region, CLIENTS, "recvfrom", "datagrams_received"),
];

#[derive(Serialize)]
struct SwitchEntry {
    #[serde(flatten)]
    pathology: &'static Pathology,
    /// The arguments that run it at the axis's size, without `--slow`.
    arguments: Vec<String>,
}

#[derive(Serialize)]
struct ControlEntry {
    #[serde(flatten)]
    control: &'static Control,
    arguments: Vec<String>,
}

/// Prints the catalogue as JSON, which `stepscope prove` reads.
///
/// # Errors
/// If `out` fails.
pub fn print_json(out: &mut impl Write) -> io::Result<()> {
    let entry =
        |pathology: &'static Pathology| SwitchEntry { pathology, arguments: pathology.arguments(pathology.axis.size) };
    let catalogue = Catalogue {
        schema: 1,
        program: "ground",
        version: env!("CARGO_PKG_VERSION"),
        owned: ["ground::"],
        counted_scopes: &COUNTED_SCOPES,
        counted_allocations: &COUNTED_ALLOCATIONS,
        counted_calls: &COUNTED_CALLS,
        switches: pathologies().map(entry).collect(),
        controls: controls().map(|control| ControlEntry { control, arguments: control.arguments() }).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &catalogue)?;
    writeln!(out)
}
