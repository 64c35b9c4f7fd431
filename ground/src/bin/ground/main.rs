//! The proving ground's program: `ground run`, `ground world`, `ground list`, `ground echo`, `ground topology`.

mod run;
mod topology;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ground::account::CountingAllocator;
use ground::catalogue;
use ground::catalogue::pathology::World;
use ground::server::LoadError;
use ground::transport;
use ground::worlds::{Mobility, WorldKind, WorldSpec, write_world};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A small, real, headless simulator whose performance pathologies are known and can be switched on.
#[derive(Parser)]
#[command(name = "ground", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a world, as fast as the machine can unless its file asks for a real-time factor
    Run(Box<run::RunArgs>),
    /// Write a world of entities as SDF to standard output
    World(WorldArgs),
    /// List the switches: what each does slow and fast, where a profile shows it, and how much of it
    List {
        /// How to print it
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Run a topology of the ROS 2 performance framework in real time: latency, losses, CPU time and memory
    Topology(Box<topology::TopologyArgs>),
    /// Subscribe to a simulator that was started with --port, and print what it publishes
    Echo {
        /// The port it publishes at
        #[arg(long)]
        port: u16,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum ListFormat {
    /// To be read
    Text,
    /// For programs, as `stepscope prove`
    Json,
}

#[derive(Args)]
struct WorldArgs {
    /// The world
    #[arg(long, value_enum, default_value = "shapes")]
    world: World,
    /// Its size: number of shapes, buoys, prims, devices, processes or nodes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    n: u32,
    /// Number of robots that never stop moving, in worlds of entities
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    robots: u32,
    /// Number of depth cameras that look at the shapes, in world `sensors`
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    cameras: u32,
    /// Shapes that never move (the default)
    #[arg(long = "static", conflicts_with = "dynamic")]
    is_static: bool,
    /// Shapes that can move
    #[arg(long)]
    dynamic: bool,
}

impl WorldArgs {
    /// The world of entities that is asked for; `None` for the other worlds.
    fn spec(&self) -> Option<WorldSpec> {
        let kind = match self.world {
            World::Shapes => WorldKind::Shapes,
            World::Sensors => WorldKind::Sensors,
            World::Marina => WorldKind::Marina,
            World::Region | World::Stats | World::Monitor | World::Topology => return None,
        };
        let mobility = if self.dynamic { Mobility::Dynamic } else { Mobility::Static };
        Some(WorldSpec { kind, shapes: self.n, robots: self.robots, mobility, cameras: self.cameras })
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("cannot make the world `{world}`: {source}")]
    World { world: String, source: io::Error },
    #[error("world `{0}` is not described by SDF; shapes, sensors and marina are")]
    NoSdf(String),
    #[error(transparent)]
    Schema(#[from] ground::topology::schema::SchemaError),
    #[error("cannot run {path}: {source}")]
    Topology { path: PathBuf, source: ground::topology::system::SystemError },
    #[error(transparent)]
    Report(#[from] ground::topology::report::WriteError),
    #[error("cannot write {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    #[error(
        "cannot subscribe at port {port} of the loopback interface: {source}; is `ground run --port {port}` there?"
    )]
    Echo { port: u16, source: io::Error },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::World(args) => print_world(&args),
        Command::List { format: ListFormat::Text } => {
            catalogue::list::print_text(&mut io::stdout().lock()).map_err(Failure::Write)
        }
        Command::List { format: ListFormat::Json } => {
            catalogue::list::print_json(&mut io::stdout().lock()).map_err(Failure::Write)
        }
        Command::Topology(args) => topology::run(&args),
        Command::Echo { port } => echo(port),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ground: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn print_world(args: &WorldArgs) -> Result<(), Failure> {
    let spec = args.spec().ok_or_else(|| Failure::NoSdf(args.world.name()))?;
    let mut text = String::new();
    write_world(&spec, &mut text).expect("a String takes all that is written");
    io::stdout().write_all(text.as_bytes()).map_err(Failure::Write)
}

fn echo(port: u16) -> Result<(), Failure> {
    match transport::echo(port, &mut io::stdout().lock()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|source| Failure::Echo { port, source }),
    }
}
