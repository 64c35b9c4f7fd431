//! `ground run`: makes a world and steps it until it is to end.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use ground::account::{self, Account, Moment};
use ground::catalogue::pathology::World;
use ground::sdf::Source;
use ground::server::{Server, ServerOptions};
use ground::simulation::{Simulation, Stepper};
use ground::switches::Switches;
use ground::systems::state_log::LogThread;
use ground::{monitor, region, stats, topology};
use serde::Serialize;

use crate::{Failure, WorldArgs};

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    world: WorldArgs,
    /// Read the world from this SDF file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["world", "n", "robots", "cameras", "is_static", "dynamic"])]
    sdf: Option<PathBuf>,
    /// What is slow: names from `ground list` separated by commas, or `all`; `-NAME` takes one out of all
    #[arg(long, value_name = "NAMES", default_value = "", allow_hyphen_values = true)]
    slow: Switches,
    /// End after this many steps
    #[arg(long, conflicts_with = "seconds")]
    steps: Option<u64>,
    /// End after this much wall time; without either, run until interrupted
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    seconds: Option<Duration>,
    /// After the last step, wait to be ended: what is recorded of a run then holds nothing of its end
    #[arg(long)]
    linger: bool,
    /// Be ready, and begin the steady phase, after this many steps
    #[arg(long, value_name = "STEPS", default_value_t = 1)]
    warm_steps: u64,
    /// Stay idle for so long after being ready, before the steady phase: whoever waits for that can take its time
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "0")]
    pause: Duration,
    /// Make this file when ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Write what was done in each phase to this file, as JSON: time, context switches, and exact counts
    #[arg(long, value_name = "FILE")]
    account: Option<PathBuf>,
    /// Time calls of known functions by their thread's CPU clock, for the account
    #[arg(long, requires = "account")]
    scopes: bool,
    /// Count allocations, for the account
    #[arg(long, requires = "account")]
    allocations: bool,
    /// Publish the scene and changed poses at this port of the loopback interface (0: any)
    #[arg(long)]
    port: Option<u16>,
    /// Log every changed pose to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the log on a thread that no step waits for
    #[arg(long, requires = "log")]
    log_in_background: bool,
    #[command(flatten)]
    region: region::Options,
    #[command(flatten)]
    stats: stats::Options,
    #[command(flatten)]
    monitor: monitor::Options,
    #[command(flatten)]
    topology: topology::Options,
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is not a duration"))
}

impl RunArgs {
    fn load(&self) -> Result<Box<dyn Simulation>, Failure> {
        let (size, slow) = (self.world.n, &self.slow);
        let made = match self.world.world {
            World::Shapes | World::Sensors | World::Marina => return self.load_entities(),
            World::Region => region::load(size, &self.region, slow),
            World::Stats => stats::load(size, &self.stats, slow),
            World::Monitor => monitor::load(size, &self.monitor, slow),
            World::Topology => topology::load(size, &self.topology, slow),
        };
        made.map_err(|source| Failure::World { world: self.world.world.name(), source })
    }

    fn load_entities(&self) -> Result<Box<dyn Simulation>, Failure> {
        let source = match (&self.sdf, self.world.spec()) {
            (Some(path), _) => Source::File(path.clone()),
            (None, Some(spec)) => spec.into(),
            (None, None) => return Err(Failure::NoSdf(self.world.world.name())),
        };
        let log_thread = if self.log_in_background { LogThread::Background } else { LogThread::System };
        let options = ServerOptions { switches: self.slow.clone(), port: self.port, log: self.log.clone(), log_thread };
        Ok(Box::new(Server::load(&source, options)?))
    }
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::Signals)?;
    if args.scopes {
        account::time_scopes();
    }
    if args.allocations {
        account::count_allocations();
    }
    let started = Moment::now();
    let mut stepper = Stepper::new(args.load()?);
    if args.steps != Some(0) {
        stepper.step();
    }
    let loading = Moment::now().since(&started);
    while stepper.steps() < args.warm_steps && !stop.load(Ordering::Relaxed) {
        stepper.step();
    }
    if let Some(path) = &args.ready_file {
        std::fs::write(path, "").map_err(|source| Failure::File { path: path.clone(), source })?;
    }
    say(&ready_line(&stepper, &loading));

    std::thread::sleep(args.pause);
    let began = Moment::now();
    let mut session = Session { first_step: stepper.steps(), began: Instant::now(), last_status: Instant::now() };
    while !stop.load(Ordering::Relaxed) && !session.is_over(args, &stepper) {
        stepper.step();
        session.report(&stepper);
        session.pace(&stepper);
    }
    let ended = Moment::now();
    let (steady, whole) = (ended.since(&began), ended.since(&started));
    while args.linger && !stop.load(Ordering::Relaxed) {
        // Ends early at a signal.
        std::thread::park_timeout(Duration::from_millis(50));
    }
    if let Some(path) = &args.account {
        let text = account_text(args, &stepper, [&loading, &steady, &whole]);
        std::fs::write(path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    }
    say(&final_line(&stepper, &args.slow, &loading, &steady, session.first_step));
    stepper.close();
    // What dropping a world would take belongs to no phase.
    std::process::exit(0)
}

/// Set by SIGINT and SIGTERM; a second one ends the program at once.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// The part of a run after the world is ready.
struct Session {
    first_step: u64,
    began: Instant,
    last_status: Instant,
}

impl Session {
    const STATUS_INTERVAL: Duration = Duration::from_secs(1);

    fn is_over(&self, args: &RunArgs, stepper: &Stepper) -> bool {
        args.steps.is_some_and(|steps| stepper.steps() >= steps)
            || args.seconds.is_some_and(|limit| self.began.elapsed() >= limit)
    }

    fn sim_time_s(&self, stepper: &Stepper) -> f64 {
        stepper.sim_time_s() * (1.0 - self.first_step as f64 / stepper.steps().max(1) as f64)
    }

    fn report(&mut self, stepper: &Stepper) {
        if self.last_status.elapsed() < Self::STATUS_INTERVAL {
            return;
        }
        self.last_status = Instant::now();
        let rtf = self.sim_time_s(stepper) / self.began.elapsed().as_secs_f64();
        say(&format!("ground: steps={} sim_time_s={:.3} rtf={rtf:.2}", stepper.steps(), stepper.sim_time_s()));
    }

    /// Waits until simulated time is due, in a world that asks for a real-time factor.
    fn pace(&self, stepper: &Stepper) {
        let factor = stepper.simulation().real_time_factor();
        if factor > 0.0 {
            let due = Duration::from_secs_f64(self.sim_time_s(stepper) / factor);
            std::thread::sleep(due.saturating_sub(self.began.elapsed()));
        }
    }
}

fn ready_line(stepper: &Stepper, loading: &Account) -> String {
    format!(
        "ground: world ready name={} load_wall_s={:.3} load_cpu_s={:.3}{}",
        stepper.simulation().name(),
        loading.wall_s,
        loading.cpu_s,
        stepper.simulation().ready_words(),
    )
}

fn final_line(stepper: &Stepper, slow: &Switches, loading: &Account, steady: &Account, first_step: u64) -> String {
    let steps = stepper.steps() - first_step;
    let sim_time_s = stepper.sim_time_s();
    let steady_sim_s = sim_time_s * steps as f64 / stepper.steps().max(1) as f64;
    format!(
        "ground: done steps={} sim_time_s={sim_time_s:.3} wall_s={:.3} rtf={:.2} cpu_s={:.3} load_wall_s={:.3} \
         load_cpu_s={:.3}{} slow={slow} state={:016x}",
        stepper.steps(),
        steady.wall_s,
        steady_sim_s / steady.wall_s.max(1e-9),
        steady.cpu_s,
        loading.wall_s,
        loading.cpu_s,
        stepper.simulation().final_words(),
        stepper.simulation().state_hash(),
    )
}

/// What a run did, for other programs.
#[derive(Serialize)]
struct AccountFile<'a> {
    schema: u32,
    world: String,
    slow: String,
    /// Equal for all switches.
    state: String,
    steps: u64,
    /// Until the first step was done.
    loading: &'a Account,
    /// From being ready to the end.
    steady: &'a Account,
    /// From the start to the end.
    whole: &'a Account,
}

fn account_text(args: &RunArgs, stepper: &Stepper, [loading, steady, whole]: [&Account; 3]) -> String {
    let file = AccountFile {
        schema: 1,
        world: stepper.simulation().name(),
        slow: args.slow.to_string(),
        state: format!("{:016x}", stepper.simulation().state_hash()),
        steps: stepper.steps(),
        loading,
        steady,
        whole,
    };
    serde_json::to_string_pretty(&file).expect("numbers and names can be written")
}

/// Prints a line for whoever watches. That nobody does is no reason to stop simulating.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
