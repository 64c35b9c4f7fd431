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
        switches: pathologies().map(entry).collect(),
        controls: controls().map(|control| ControlEntry { control, arguments: control.arguments() }).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &catalogue)?;
    writeln!(out)
}
