//! Loads a world and makes what is needed to run it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::account;
use crate::python::{self, PythonError};
use crate::runner::{Reporters, SimulationRunner};
use crate::sdf::{Model, Root, SdfError, Source, load_sdf_root};
use crate::simulation::Simulation;
use crate::switches::{Switch, Switches};
use crate::systems::PostUpdate;
use crate::systems::camera::Camera;
use crate::systems::depth_camera::DepthCameras;
use crate::systems::imu::Imu;
use crate::systems::lidar::Lidars;
use crate::systems::scene_broadcaster::SceneBroadcaster;
use crate::systems::state_log::{LogThread, StateLog};
use crate::textures;
use crate::transport::Transport;
use crate::worlds::{WorldSpec, write_world};

/// How to run a world.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// What is slow.
    pub switches: Switches,
    /// Port of the loopback interface to publish at; 0 takes a free one, `None` publishes nothing.
    pub port: Option<u16>,
    /// File to log every changed pose to.
    pub log: Option<PathBuf>,
    /// Who writes it.
    pub log_thread: LogThread,
}

/// Why a world could not be made to run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The world is at fault.
    #[error(transparent)]
    World(#[from] SdfError),
    /// The port cannot be listened at.
    #[error("cannot listen at port {port} of the loopback interface: {source}; give another with --port")]
    Port {
        /// The port.
        port: u16,
        /// The error of the system.
        source: io::Error,
    },
    /// The log cannot be written.
    #[error("cannot write the log {path}: {source}")]
    Log {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// No thread could be started to load with.
    #[error("cannot start a thread to load the world: {0}")]
    Thread(io::Error),
    /// The world asks for a system written in Python, which cannot be run.
    #[error("cannot run a system of the world that is written in Python: {0}")]
    Python(#[from] PythonError),
}

/// A loaded world.
pub struct Server {
    runner: SimulationRunner,
    transport: Option<Transport>,
    real_time_factor: f64,
}

impl From<WorldSpec> for Source {
    /// Writes the world's text in memory.
    fn from(spec: WorldSpec) -> Self {
        let mut text = String::new();
        write_world(&spec, &mut text).expect("a String takes all that is written");
        Source::Text { name: spec.name(), text: text.into() }
    }
}

impl Server {
    /// Loads a world: its settings first, then its models.
    ///
    /// # Errors
    /// If the world cannot be read, the port is taken, or the log cannot be created.
    #[inline(never)]
    pub fn load(source: &Source, options: ServerOptions) -> Result<Self, LoadError> {
        let _timed = account::scope("ground::server::Server::load");
        if options.switches.is_slow(Switch::InterpInit) {
            initialize_interpreter_unasked();
        }
        let mut root = load_sdf_root(source)?;
        let sensors = sensor_kinds(&root);
        let kept = if options.switches.is_slow(Switch::ParseTwice) {
            root.world.clear_models();
            None
        } else {
            Some(std::mem::take(&mut root.world.models))
        };
        let transport = options.port.map(listen).transpose()?;
        let reporters = reporters(&root, &sensors, &options, transport.as_ref())?;
        let mut runner = SimulationRunner::new(&root.world, &options.switches, reporters);
        let models = match kept {
            Some(models) => models,
            None => load_in_background(source)?,
        };
        run_python_systems(&models)?;
        runner.create_entities(models);
        Ok(Self { runner, transport, real_time_factor: root.world.real_time_factor })
    }

    /// The runner, which steps the world.
    pub fn runner(&mut self) -> &mut SimulationRunner {
        &mut self.runner
    }

    /// The port on which it publishes.
    pub fn port(&self) -> Option<u16> {
        self.transport.as_ref().map(Transport::port)
    }
}

impl Simulation for Server {
    fn name(&self) -> String {
        self.runner.world_name().to_owned()
    }

    fn step(&mut self, _step: u64) {
        self.runner.step();
    }

    fn step_s(&self) -> f64 {
        self.runner.step_s()
    }

    fn real_time_factor(&self) -> f64 {
        self.real_time_factor
    }

    fn state_hash(&self) -> u64 {
        self.runner.state_hash()
    }

    fn ready_fields(&self) -> String {
        self.port().map_or_else(String::new, |port| format!(" port={port}"))
    }

    fn close(&mut self) {
        self.runner.close();
    }

    fn final_fields(&self) -> String {
        let decoding = textures::decoding();
        format!(" decodes={} decode_cpu_s={:.4}", decoding.calls, decoding.cpu_ns as f64 * 1e-9)
    }
}

/// Starts an interpreter that the world may not need. A machine without one only prints a warning.
fn initialize_interpreter_unasked() {
    if let Err(error) = python::initialize_interpreter() {
        eprintln!("ground: switch interp-init has no effect: {error}");
    }
}

/// Name of the plugin whose `<script>` is run when the world is loaded.
const PYTHON_SYSTEM: &str = "ground::systems::PythonSystem";

fn run_python_systems(models: &[Model]) -> Result<(), PythonError> {
    let plugins = models.iter().flat_map(|model| &model.plugins).filter(|plugin| plugin.name == PYTHON_SYSTEM);
    let mut scripts = plugins.filter_map(|plugin| plugin.element.child("script")?.text());
    scripts.try_for_each(python::run)
}

fn load_in_background(source: &Source) -> Result<Vec<Model>, LoadError> {
    let source = source.clone();
    let thread = std::thread::Builder::new().name("DownloadAssets".into()).spawn(move || download_assets(&source));
    match thread.map_err(LoadError::Thread)?.join() {
        Ok(models) => Ok(models?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The models with all files they refer to. Worlds here refer to none, so this only restores the dropped models.
#[inline(never)]
fn download_assets(source: &Source) -> Result<Vec<Model>, SdfError> {
    let _timed = account::scope("ground::server::download_assets");
    Ok(load_sdf_root(source)?.world.models)
}

fn listen(port: u16) -> Result<Transport, LoadError> {
    Transport::listen(port).map_err(|source| LoadError::Port { port, source })
}

/// The kinds of sensors in the world; each has a system.
fn sensor_kinds(root: &Root) -> BTreeSet<String> {
    let links = root.world.models.iter().flat_map(|model| &model.links);
    links.flat_map(|link| &link.sensors).map(|sensor| sensor.kind.clone()).collect()
}

/// Threads that share the lidars.
const LIDAR_WORKERS: usize = 3;

fn reporters(
    root: &Root,
    sensors: &BTreeSet<String>,
    options: &ServerOptions,
    transport: Option<&Transport>,
) -> Result<Reporters, LoadError> {
    let readings = Arc::default();
    let publisher = transport.map(Transport::publisher);
    let mut reporters = Reporters {
        systems: vec![
            Box::new(SceneBroadcaster::new(options.switches.clone(), publisher)),
            Box::new(Imu::new(root.world.gravity, Arc::clone(&readings))),
        ],
        readings,
    };
    let mut add = |system: Box<dyn PostUpdate>| reporters.systems.push(system);
    let (switches, readings) = (&options.switches, &reporters.readings);
    if sensors.contains("camera") {
        add(Box::new(Camera::new(switches.clone(), readings.clone())));
    }
    if sensors.contains("gpu_lidar") {
        for worker in 0..LIDAR_WORKERS {
            add(Box::new(Lidars::new(worker, LIDAR_WORKERS, switches.clone(), readings.clone())));
        }
    }
    if sensors.contains("depth_camera") {
        add(Box::new(DepthCameras::new(switches.clone(), readings.clone())));
    }
    if let Some(path) = &options.log {
        let log = StateLog::create(path, options.log_thread)
            .map_err(|source| LoadError::Log { path: path.clone(), source })?;
        reporters.systems.push(Box::new(log));
    }
    Ok(reporters)
}
