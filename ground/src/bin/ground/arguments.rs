//! Arguments that several subcommands share.

use std::time::Duration;

use clap::{Args, ValueEnum as _};
use ground::catalogue::pathology::World;
use ground::switches::name_of;
use ground::worlds::{Mobility, WorldKind, WorldSpec};

/// Which world, and how large.
#[derive(Args)]
pub(crate) struct WorldArgs {
    /// World to simulate
    #[arg(long, value_enum, default_value = "shapes")]
    pub(crate) world: World,
    /// Size of the world: number of shapes, buoys, prims, devices, processes or nodes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) n: u32,
    /// Number of robots, which never stop moving (worlds `shapes`, `sensors`, `marina`)
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    robots: u32,
    /// Number of depth cameras (world `sensors`)
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    cameras: u32,
    /// Use shapes that never move (default)
    #[arg(long = "static", conflicts_with = "dynamic")]
    is_static: bool,
    /// Use shapes that can move
    #[arg(long)]
    dynamic: bool,
}

impl WorldArgs {
    /// The description of a world that SDF can describe; `None` for the others.
    pub(crate) fn spec(&self) -> Option<WorldSpec> {
        let kind = WorldKind::from_str(&name_of(&self.world), false).ok()?;
        let mobility = if self.dynamic { Mobility::Dynamic } else { Mobility::Static };
        Some(WorldSpec { kind, shapes: self.n, robots: self.robots, mobility, cameras: self.cameras })
    }
}

/// Reads a duration in seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is not a duration"))
}
