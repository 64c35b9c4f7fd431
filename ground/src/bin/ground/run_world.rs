//! `ground run`: creates a world and steps it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use ground::account::{self, Account, Moment};
use ground::catalogue::pathology::World;
use ground::sdf::Source;
use ground::server::{Server, ServerOptions};
use ground::simulation::{Simulation, Stepper};
use ground::switches::{Switches, name_of};
use ground::systems::state_log::LogThread;
use ground::{monitor, region, stats, topology};
use serde::Serialize;

use crate::arguments::{WorldArgs, parse_seconds};
use crate::console::{print_line, stop_flag};
use crate::failure::Failure;

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    world: WorldArgs,
    /// Simulate the world in this SDF file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["world", "n", "robots", "cameras", "is_static", "dynamic"])]
    sdf: Option<PathBuf>,
    /// Switches to make slow: comma-separated names from `ground list`, or `all`; `-NAME` removes one
    #[arg(long, value_name = "NAMES", default_value = "", allow_hyphen_values = true)]
    slow: Switches,
    /// Stop after this many steps
    #[arg(long, conflicts_with = "seconds")]
    steps: Option<u64>,
    /// Stop after this much wall time [default without --steps: run until interrupted]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    seconds: Option<Duration>,
    /// Wait for a signal after the last step, so that a recording does not contain the shutdown
    #[arg(long)]
    linger: bool,
    /// Number of steps before the world is ready and the steady phase starts
    #[arg(long, value_name = "STEPS", default_value_t = 1)]
    warm_steps: u64,
    /// Stay idle this long between being ready and the steady phase, so that a recorder can attach
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "0")]
    pause: Duration,
    /// Create this file when the world is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Write the time, context switches and exact counts of each phase to this file, as JSON
    #[arg(long, value_name = "FILE")]
    account: Option<PathBuf>,
    /// Add the CPU time of known functions to the account, measured by their thread's CPU clock
    #[arg(long, requires = "account")]
    scopes: bool,
    /// Add the number of allocations to the account
    #[arg(long, requires = "account")]
    allocations: bool,
    /// Publish the scene and changed poses at this TCP port of the loopback interface (0: any)
    #[arg(long)]
    port: Option<u16>,
    /// Log every changed pose to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the log on a background thread that no step waits for
    #[arg(long, requires = "log")]
    log_in_background: bool,
    #[command(flatten)]
    region: region::Options,
    #[command(flatten)]
    stats: stats::Options,
    #[command(flatten)]
    topology: topology::Options,
}

impl RunArgs {
    fn load(&self) -> Result<Box<dyn Simulation>, Failure> {
        let (size, slow) = (self.world.n, &self.slow);
        let loaded = match self.world.world {
            World::Shapes | World::Sensors | World::Marina => return self.load_entities(),
            World::Region => region::load(size, &self.region, slow),
            World::Stats => stats::load(size, &self.stats, slow),
            World::Monitor => monitor::load(size, slow),
            World::Topology => topology::load(size, &self.topology, slow),
        };
        loaded.map_err(|source| Failure::World { world: name_of(&self.world.world), source })
    }

    fn load_entities(&self) -> Result<Box<dyn Simulation>, Failure> {
        let source = match (&self.sdf, self.world.spec()) {
            (Some(path), _) => Source::File(path.clone()),
            (None, Some(spec)) => spec.into(),
            (None, None) => return Err(Failure::NoSdf(name_of(&self.world.world))),
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
    print_line(&ready_line(&stepper, &loading));

    std::thread::sleep(args.pause);
    let steady_start = Moment::now();
    let mut session = Session { first_step: stepper.steps(), start: Instant::now(), last_status: Instant::now() };
    while !stop.load(Ordering::Relaxed) && !session.is_over(args, &stepper) {
        stepper.step();
        session.report(&stepper);
        session.pace(&stepper);
    }
    let ended = Moment::now();
    let (steady, whole) = (ended.since(&steady_start), ended.since(&started));
    while args.linger && !stop.load(Ordering::Relaxed) {
        // A signal ends this early.
        std::thread::park_timeout(Duration::from_millis(50));
    }
    if let Some(path) = &args.account {
        let text = account_text(args, &stepper, [&loading, &steady, &whole]);
        std::fs::write(path, text).map_err(|source| Failure::File { path: path.clone(), source })?;
    }
    print_line(&final_line(&stepper, &args.slow, &loading, &steady, session.first_step));
    stepper.close();
    // Dropping the world would take time that belongs to no phase.
    std::process::exit(0)
}

/// The part of a run after the world is ready.
struct Session {
    first_step: u64,
    start: Instant,
    last_status: Instant,
}

impl Session {
    const STATUS_INTERVAL: Duration = Duration::from_secs(1);

    fn is_over(&self, args: &RunArgs, stepper: &Stepper) -> bool {
        args.steps.is_some_and(|steps| stepper.steps() >= steps)
            || args.seconds.is_some_and(|limit| self.start.elapsed() >= limit)
    }

    fn sim_time_s(&self, stepper: &Stepper) -> f64 {
        stepper.sim_time_s() * (1.0 - self.first_step as f64 / stepper.steps().max(1) as f64)
    }

    fn report(&mut self, stepper: &Stepper) {
        if self.last_status.elapsed() < Self::STATUS_INTERVAL {
            return;
        }
        self.last_status = Instant::now();
        let rtf = self.sim_time_s(stepper) / self.start.elapsed().as_secs_f64();
        print_line(&format!("ground: steps={} sim_time_s={:.3} rtf={rtf:.2}", stepper.steps(), stepper.sim_time_s()));
    }

    /// Waits until simulated time is due, if the world has a real-time factor.
    fn pace(&self, stepper: &Stepper) {
        let factor = stepper.simulation().real_time_factor();
        if factor > 0.0 {
            let due = Duration::from_secs_f64(self.sim_time_s(stepper) / factor);
            std::thread::sleep(due.saturating_sub(self.start.elapsed()));
        }
    }
}

fn ready_line(stepper: &Stepper, loading: &Account) -> String {
    format!(
        "ground: world ready name={} load_wall_s={:.3} load_cpu_s={:.3}{}",
        stepper.simulation().name(),
        loading.wall_s,
        loading.cpu_s,
        stepper.simulation().ready_fields(),
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
        stepper.simulation().final_fields(),
        stepper.simulation().state_hash(),
    )
}

/// The account of a run, in JSON.
#[derive(Serialize)]
struct AccountFile<'a> {
    schema: u32,
    world: String,
    slow: String,
    /// Equal for all switches.
    state: String,
    steps: u64,
    /// From the start to the end of the first step.
    loading: &'a Account,
    /// From being ready, and the pause, to the last step.
    steady: &'a Account,
    /// From the start to the last step.
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
