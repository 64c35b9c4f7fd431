//! The region of a virtual world, like that of OpenSim: prims in groups, scripts with timers, avatars over UDP, an SQLite
//! store.
//!
//! A step is a heartbeat: run scripts, receive from clients, step physics, collect updates, send to clients.

mod asset_workers;
mod bots;
mod clients;
mod compiler;
mod lsl;
mod mesh;
mod packets;
mod physics;
mod scene;
mod scripts;
mod store;
mod timers;
mod vm;

use std::io;

use clap::Args;

use crate::folder::TemporaryFolder;
use crate::random::{Random, StateHash};
use crate::simulation::Simulation;
use crate::switches::Switches;
use asset_workers::AssetWorkers;
use clients::Clients;
use packets::AgentUpdate;
use physics::{PhysicsScene, REGION_M};
use scene::{ObjectUpdate, STEP_S, SceneGraph, ScenePresence};
use scripts::ScriptEngine;
use store::{Furnishing, RegionStore};

/// Options of this world.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(next_help_heading = "Options of world `region`")]
pub struct Options {
    /// Number of prims that hold a script [default: all]
    #[arg(long, value_name = "PRIMS")]
    scripted: Option<u32>,
    /// Number of avatars, each with a client
    #[arg(long, value_name = "N", default_value_t = Options::default().clients)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    clients: u32,
    /// Number of vertices of each of the eight meshes
    #[arg(long, value_name = "N", default_value_t = Options::default().vertices)]
    #[arg(value_parser = clap::value_parser!(u32).range(96..=1_000_000))]
    vertices: u32,
    /// Number of script states in the script engine's directory
    #[arg(long, value_name = "FILES", default_value_t = Options::default().state_files)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    state_files: u32,
    /// Number of threads that wait for uploads, which never come
    #[arg(long, value_name = "THREADS", default_value_t = Options::default().asset_workers)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    asset_workers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { scripted: None, clients: 8, vertices: 96, state_files: 64, asset_workers: 0 }
    }
}

/// Loads the world.
///
/// # Errors
/// If files, sockets or threads cannot be created.
pub fn load(size: u32, options: &Options, switches: &Switches) -> io::Result<Box<dyn Simulation>> {
    Ok(Box::new(Region::load(size, options, switches)?))
}

struct Region {
    prims: u32,
    folder: TemporaryFolder,
    scene: SceneGraph,
    scripts: ScriptEngine,
    physics: PhysicsScene,
    clients: Clients,
    news: Vec<ObjectUpdate>,
    _asset_workers: AssetWorkers,
}

impl Region {
    fn load(prims: u32, options: &Options, switches: &Switches) -> io::Result<Self> {
        let folder = TemporaryFolder::new("region")?;
        let directory = folder.path().join("script_engine");
        compiler::leave_directory(&directory, options.state_files)?;
        let furnishing = Furnishing { prims, scripted: options.scripted.unwrap_or(prims).min(prims) };
        let store = RegionStore::create(&folder.path().join("region.sqlite"), furnishing, switches)?;

        let mut groups = store.load_objects()?;
        store.load_items(&mut groups)?;
        let mut scripts = ScriptEngine::start(&directory, switches)?;
        let parts = || groups.iter().flat_map(|group| &group.parts);
        scripts.rez_scripts(parts(), &store.load_scripts()?)?;
        let mut physics = PhysicsScene::new(options.vertices, switches);
        physics.add_prims(parts());

        let mut scene = SceneGraph::new(groups, switches);
        (0..options.clients).for_each(|agent| scene.add_presence(presence(prims + 1 + agent)));
        let clients = Clients::connect(options.clients, switches)?;
        let _asset_workers = AssetWorkers::start(options.asset_workers)?;
        Ok(Self { prims, folder, scene, scripts, physics, clients, news: Vec::new(), _asset_workers })
    }
}

/// A new avatar at a random place.
fn presence(local_id: u32) -> ScenePresence {
    let mut random = Random::new(u64::from(local_id));
    let mut somewhere = || random.next_unit() as f32 * REGION_M;
    ScenePresence { local_id, position: [somewhere(), somewhere(), 0.0], heading: 0.0, speed: 0.0 }
}

impl Simulation for Region {
    fn name(&self) -> String {
        format!("region_{}", self.prims)
    }

    fn step(&mut self, step: u64) {
        self.clients.start_step(step);
        let commands = self.scripts.run(step);
        self.scene.apply_changes(&commands.changes);
        for AgentUpdate { agent, heading, speed, .. } in self.clients.receive_agent_updates() {
            let Some(presence) = self.scene.presence_mut(agent) else { continue };
            (presence.heading, presence.speed) = (heading, speed);
        }
        self.physics.simulate(&commands.changes, self.scene.presences_mut());
        self.news.clear();
        self.scene.update(&mut self.news);
        self.clients.send_object_updates(&self.news);
    }

    fn step_s(&self) -> f64 {
        STEP_S
    }

    fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        self.scene.hash(&mut hash);
        self.scripts.hash(&mut hash);
        self.physics.hash(&mut hash);
        self.clients.hash(&mut hash);
        hash.get()
    }

    fn close(&mut self) {
        self.folder.remove();
    }
}
