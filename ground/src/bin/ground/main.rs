//! The command line of the bundled simulator.

mod arguments;
mod console;
mod failure;
mod run_topology;
mod run_world;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use ground::account::CountingAllocator;
use ground::catalogue;
use ground::switches::name_of;
use ground::transport;
use ground::worlds::write_world;

use crate::arguments::WorldArgs;
use crate::failure::Failure;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A small headless simulator with known performance defects that can be switched on
#[derive(Parser)]
#[command(name = "ground", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a world, as fast as possible unless its file sets a real-time factor
    Run(Box<run_world::RunArgs>),
    /// Print a world as SDF (worlds `shapes`, `sensors`, `marina`)
    World(WorldArgs),
    /// List the switches: the defect, its fix, the function that a profile shows, and how much it costs
    List {
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// Run a topology of the ROS 2 performance framework in real time and report latency, losses, CPU time and memory
    Topology(Box<run_topology::TopologyArgs>),
    /// Connect to a simulator that runs with --port, and print what it publishes
    Echo {
        /// Port of the simulator
        #[arg(long)]
        port: u16,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum ListFormat {
    /// Text for people
    Text,
    /// JSON, which `stepscope prove` reads
    Json,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run_world::run(&args),
        Command::World(args) => print_world(&args),
        Command::List { format: ListFormat::Text } => {
            catalogue::list::print_text(&mut io::stdout().lock()).map_err(Failure::Write)
        }
        Command::List { format: ListFormat::Json } => {
            catalogue::list::print_json(&mut io::stdout().lock()).map_err(Failure::Write)
        }
        Command::Topology(args) => run_topology::run(&args),
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
    let spec = args.spec().ok_or_else(|| Failure::NoSdf(name_of(&args.world)))?;
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
