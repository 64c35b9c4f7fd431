//! The proving ground's program: `ground run`, `ground world`, `ground list`, `ground echo`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand, ValueEnum};
use ground::sdf::Source;
use ground::server::{LoadError, Server, ServerOptions};
use ground::switches::{PATHOLOGIES, Switches};
use ground::systems::state_log::LogThread;
use ground::transport;
use ground::worlds::{Mobility, WorldKind, WorldSpec, write_world};

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
    Run(RunArgs),
    /// Write a world as SDF to standard output
    World(WorldArgs),
    /// List the switches: what each does slow and fast, and where a profile shows it
    List,
    /// Subscribe to a simulator that was started with --port, and print what it publishes
    Echo {
        /// The port it publishes at
        #[arg(long)]
        port: u16,
    },
}

#[derive(Args)]
struct WorldArgs {
    /// The world
    #[arg(long, value_enum, default_value = "shapes")]
    world: WorldKind,
    /// Number of shapes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    n: u32,
    /// Number of robots that never stop moving
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    robots: u32,
    /// Shapes that never move (the default)
    #[arg(long = "static", conflicts_with = "dynamic")]
    is_static: bool,
    /// Shapes that can move
    #[arg(long)]
    dynamic: bool,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    world: WorldArgs,
    /// Read the world from this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["world", "n", "robots", "is_static", "dynamic"])]
    sdf: Option<PathBuf>,
    /// What is slow: names from `ground list` separated by commas, or `all`
    #[arg(long, value_name = "NAMES", default_value = "")]
    slow: Switches,
    /// End after this many steps
    #[arg(long, conflicts_with = "seconds")]
    steps: Option<u64>,
    /// End after this much wall time; without either, run until interrupted
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    seconds: Option<Duration>,
    /// Make this file when the world is loaded and its first step done
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Publish the scene and changed poses at this port of the loopback interface (0: any)
    #[arg(long)]
    port: Option<u16>,
    /// Log every changed pose to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the log on a thread that no step waits for
    #[arg(long, requires = "log")]
    log_in_background: bool,
}

impl WorldArgs {
    fn spec(&self) -> WorldSpec {
        let mobility = if self.dynamic { Mobility::Dynamic } else { Mobility::Static };
        WorldSpec { kind: self.world, shapes: self.n, robots: self.robots, mobility }
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is not a duration"))
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("cannot make the ready file {path}: {source}")]
    ReadyFile { path: PathBuf, source: io::Error },
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error("cannot write the world: {0}")]
    Write(io::Error),
    #[error(
        "cannot subscribe at port {port} of the loopback interface: {source}; is `ground run --port {port}` there?"
    )]
    Echo { port: u16, source: io::Error },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::World(args) => print_world(&args.spec()),
        Command::List => print_list(),
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

fn print_world(spec: &WorldSpec) -> Result<(), Failure> {
    let mut text = String::new();
    write_world(spec, &mut text).expect("a String takes all that is written");
    io::stdout().write_all(text.as_bytes()).map_err(Failure::Write)
}

fn print_list() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for pathology in &PATHOLOGIES {
        let text = format!(
            "{name} ({phase}; study: {study})\n  slow  {slow}\n  fast  {fast}\n  look  {share} % of the CPU time \
             under {function} at --world {world} --n {n}\n",
            name = pathology.name,
            phase = pathology.phase,
            study = pathology.study,
            slow = pathology.slow,
            fast = pathology.fast,
            share = pathology.share_percent,
            function = pathology.function,
            world = world_name(pathology.world),
            n = pathology.shapes,
        );
        out.write_all(text.as_bytes()).map_err(Failure::Write)?;
    }
    Ok(())
}

fn world_name(world: WorldKind) -> String {
    world.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn echo(port: u16) -> Result<(), Failure> {
    match transport::echo(port, &mut io::stdout().lock()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|source| Failure::Echo { port, source }),
    }
}

fn run(args: &RunArgs) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::Signals)?;
    let started = Instant::now();
    let source = match &args.sdf {
        Some(path) => Source::File(path.clone()),
        None => args.world.spec().into(),
    };
    let log_thread = if args.log_in_background { LogThread::Background } else { LogThread::System };
    let options = ServerOptions { switches: args.slow.clone(), port: args.port, log: args.log.clone(), log_thread };
    let mut server = Server::load(&source, options)?;
    if args.steps != Some(0) {
        server.runner().step();
    }
    let loading = Cost { wall: started.elapsed(), cpu: process_cpu_time() };
    if let Some(path) = &args.ready_file {
        std::fs::write(path, "").map_err(|source| Failure::ReadyFile { path: path.clone(), source })?;
    }
    say(&ready_line(&mut server, &loading));

    let mut session =
        Session { first_step: server.runner().steps(), began: Instant::now(), last_status: Instant::now() };
    while !stop.load(Ordering::Relaxed) && !session.is_over(args, &mut server) {
        server.runner().step();
        session.report(&mut server);
        session.pace(&mut server);
    }
    let steady = Cost { wall: session.began.elapsed(), cpu: process_cpu_time().saturating_sub(loading.cpu) };
    say(&final_line(&mut server, &args.slow, &loading, &steady, session.first_step));
    Ok(())
}

/// Set by SIGINT and SIGTERM; a second one ends the program at once.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// What a phase took.
struct Cost {
    wall: Duration,
    cpu: Duration,
}

/// The part of a run after the world is ready.
struct Session {
    first_step: u64,
    began: Instant,
    last_status: Instant,
}

impl Session {
    const STATUS_INTERVAL: Duration = Duration::from_secs(1);

    fn is_over(&self, args: &RunArgs, server: &mut Server) -> bool {
        args.steps.is_some_and(|steps| server.runner().steps() >= steps)
            || args.seconds.is_some_and(|limit| self.began.elapsed() >= limit)
    }

    fn sim_time_s(&self, server: &mut Server) -> f64 {
        let runner = server.runner();
        runner.sim_time_s() * (1.0 - self.first_step as f64 / runner.steps().max(1) as f64)
    }

    fn report(&mut self, server: &mut Server) {
        if self.last_status.elapsed() < Self::STATUS_INTERVAL {
            return;
        }
        self.last_status = Instant::now();
        let rtf = self.sim_time_s(server) / self.began.elapsed().as_secs_f64();
        let runner = server.runner();
        say(&format!("ground: steps={} sim_time_s={:.3} rtf={rtf:.2}", runner.steps(), runner.sim_time_s()));
    }

    /// Waits until simulated time is due, in a world that asks for a real-time factor.
    fn pace(&self, server: &mut Server) {
        let factor = server.real_time_factor();
        if factor > 0.0 {
            let due = Duration::from_secs_f64(self.sim_time_s(server) / factor);
            std::thread::sleep(due.saturating_sub(self.began.elapsed()));
        }
    }
}

fn ready_line(server: &mut Server, loading: &Cost) -> String {
    let port = server.port().map_or_else(String::new, |port| format!(" port={port}"));
    format!(
        "ground: world ready name={} load_wall_s={:.3} load_cpu_s={:.3}{port}",
        server.runner().world_name(),
        loading.wall.as_secs_f64(),
        loading.cpu.as_secs_f64()
    )
}

fn final_line(server: &mut Server, slow: &Switches, loading: &Cost, steady: &Cost, first_step: u64) -> String {
    let decoding = server.decoding();
    let runner = server.runner();
    let steps = runner.steps() - first_step;
    let sim_time_s = runner.sim_time_s();
    let steady_sim_s = sim_time_s * steps as f64 / runner.steps().max(1) as f64;
    let wall_s = steady.wall.as_secs_f64();
    format!(
        "ground: done steps={} sim_time_s={sim_time_s:.3} wall_s={wall_s:.3} rtf={:.2} cpu_s={:.3} load_wall_s={:.3} \
         load_cpu_s={:.3} decodes={} decode_cpu_s={:.4} slow={slow} state={:016x}",
        runner.steps(),
        steady_sim_s / wall_s.max(1e-9),
        steady.cpu.as_secs_f64(),
        loading.wall.as_secs_f64(),
        loading.cpu.as_secs_f64(),
        decoding.decodes,
        decoding.cpu.as_secs_f64(),
        runner.state_hash(),
    )
}

/// Prints a line for whoever watches. That nobody does is no reason to stop simulating.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// CPU time of all threads of this process so far.
fn process_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives through the call.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(done, 0, "Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
