//! Steps a world: PreUpdate and Update on the main thread, then PostUpdate with one thread per system, between two barriers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, RwLock};
use std::thread::JoinHandle;

use crate::account;
use crate::components::{
    Camera, Collision, DepthCamera, ForceCommand, Imu, Lidar, Link, LocalPose, Model, Patrol, Recreate, Static,
    Textured, Visual, WorldPose, WorldVelocity,
};
use crate::ecs::{Entity, EntityComponentManager};
use crate::physics::Physics;
use crate::sdf;
use crate::switches::{Switch, Switches};
use crate::systems::{PostUpdate, Readings, UpdateInfo, patrol};

/// One world and the threads that step it.
pub struct SimulationRunner {
    world_name: String,
    step_s: f64,
    steps: u64,
    switches: Switches,
    ecm: Arc<RwLock<EntityComponentManager>>,
    physics: Physics,
    post_update: PostUpdateThreads,
    readings: Arc<Readings>,
}

impl SimulationRunner {
    /// A runner for a world without its models. `reporters` read the world after each step.
    pub fn new(world: &sdf::World, switches: &Switches, reporters: Reporters) -> Self {
        let ecm = Arc::default();
        Self {
            world_name: world.name.clone(),
            step_s: world.max_step_size_s,
            steps: 0,
            switches: switches.clone(),
            physics: Physics::new(world.max_step_size_s, world.gravity, switches.clone()),
            post_update: PostUpdateThreads::start(reporters.systems, &ecm),
            readings: reporters.readings,
            ecm,
        }
    }

    /// Adds models to the world.
    #[inline(never)]
    pub fn create_entities(&mut self, models: Vec<sdf::Model>) {
        let _timed = account::scope("ground::runner::SimulationRunner::create_entities");
        let mut ecm = self.ecm.write().expect("threads that panic end the program");
        for model in models {
            create_model(&mut ecm, &mut self.physics, Arc::new(model));
        }
    }

    /// Simulates one step.
    pub fn step(&mut self) {
        self.process_recreate_entities_remove();
        self.update_systems();
        self.steps += 1;
    }

    /// Ends the reporting systems. No step can follow.
    pub fn close(&mut self) {
        self.post_update.end();
    }

    /// Number of steps simulated.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Simulated time, s.
    pub fn sim_time_s(&self) -> f64 {
        self.steps as f64 * self.step_s
    }

    /// Simulated time of a step, s.
    pub fn step_s(&self) -> f64 {
        self.step_s
    }

    /// Name of the world.
    pub fn world_name(&self) -> &str {
        &self.world_name
    }

    /// Requests that every model of this name is removed and created again before the next step. Returns their number.
    pub fn request_recreate(&mut self, name: &str) -> usize {
        let mut ecm = self.ecm.write().expect("threads that panic end the program");
        let mut found = Vec::new();
        ecm.each::<(Entity, &Model)>(|(entity, model)| {
            if model.0.name == name {
                found.push(entity);
            }
        });
        for entity in &found {
            ecm.set_component(*entity, Recreate);
        }
        found.len()
    }

    /// A hash of the simulated state: all bits of every link's pose and velocity, by model, and the sensor readings. Equal
    /// for all switches.
    pub fn state_hash(&self) -> u64 {
        let ecm = self.ecm.read().expect("threads that panic end the program");
        let mut links = Vec::new();
        ecm.each::<(Entity, &Link, &WorldPose, &WorldVelocity)>(|(entity, _, pose, velocity)| {
            let (at, turn) = (pose.0.translation, pose.0.rotation);
            let numbers = [at.to_array(), velocity.linear.to_array(), velocity.angular.to_array()];
            let bits: Vec<u32> = numbers.as_flattened().iter().chain(&turn.to_array()).map(|x| x.to_bits()).collect();
            let model = ecm.entities().vertex(entity).and_then(|link| ecm.entities().vertex(link.parent?));
            links.push((model.map(|model| model.name.as_str()), bits));
        });
        links.sort_unstable();
        let mut hasher = DefaultHasher::new();
        (self.steps, links, self.readings.count(), self.readings.digest()).hash(&mut hasher);
        hasher.finish()
    }

    /// Removes and creates again the requested models.
    #[inline(never)]
    fn process_recreate_entities_remove(&mut self) {
        stepscope_marks::scope!("ProcessRecreateEntitiesRemove");
        let _timed = account::scope("ground::runner::SimulationRunner::process_recreate_entities_remove");
        let mut ecm = self.ecm.write().expect("threads that panic end the program");
        let mut models = Vec::new();
        let visit = |(entity, model, _): (Entity, &Model, &Recreate)| models.push((entity, model.0.clone()));
        if self.switches.is_slow(Switch::FullScan) {
            ecm.each_no_cache::<(Entity, &Model, &Recreate)>(visit);
        } else {
            ecm.each::<(Entity, &Model, &Recreate)>(visit);
        }
        for (entity, model) in models {
            for removed in ecm.remove_entity(entity) {
                self.physics.remove_link(removed);
            }
            create_model(&mut ecm, &mut self.physics, model);
        }
    }

    fn update_systems(&mut self) {
        let step = self.steps;
        let info = UpdateInfo { step, sim_time_s: (step + 1) as f64 * self.step_s, step_s: self.step_s };
        let mut ecm = self.ecm.write().expect("threads that panic end the program");
        {
            stepscope_marks::scope!("PreUpdate");
            patrol::pre_update(&info, &ecm);
        }
        {
            stepscope_marks::scope!("Physics::Update");
            self.physics.update(&mut ecm);
        }
        drop(ecm);
        stepscope_marks::scope!("PostUpdate");
        self.post_update.run(info);
        self.ecm.write().expect("threads that panic end the program").reset_changes();
    }
}

/// The reporting systems and their readings.
#[derive(Default)]
pub struct Reporters {
    /// The systems; each gets a thread.
    pub systems: Vec<Box<dyn PostUpdate>>,
    /// The readings of sensors.
    pub readings: Arc<Readings>,
}

fn create_model(ecm: &mut EntityComponentManager, physics: &mut Physics, model: Arc<sdf::Model>) {
    let entity = ecm.create_entity(&model.name, None, (Model(model.clone()), LocalPose(model.pose)));
    if model.is_static {
        ecm.set_component(entity, Static);
    }
    for link in &model.links {
        create_link(ecm, physics, entity, &model, link);
    }
    let first_link = ecm.entities().vertex(entity).and_then(|vertex| vertex.children.first().copied());
    let patrol = model.plugins.iter().find(|plugin| plugin.name == "ground::systems::Patrol");
    if let (Some(link), Some(plugin)) = (first_link, patrol) {
        let patrol = Patrol {
            centre: plugin.vector("centre"),
            radius: plugin.number("radius", 1.0),
            period_s: plugin.number("period", 10.0).max(model_step_floor()),
        };
        ecm.set_component(link, patrol);
        ecm.set_component(link, ForceCommand(Default::default()));
    }
}

/// A period of 0 has no angle.
const fn model_step_floor() -> f64 {
    1e-3
}

fn create_link(
    ecm: &mut EntityComponentManager,
    physics: &mut Physics,
    parent: Entity,
    model: &sdf::Model,
    link: &sdf::Link,
) {
    let velocity = WorldVelocity { linear: Default::default(), angular: Default::default() };
    let pose = WorldPose(model.pose * link.pose);
    let entity = ecm.create_entity(&link.name, Some(parent), (Link, LocalPose(link.pose), pose, velocity));
    physics.create_link(entity, model, link);
    for collision in &link.collisions {
        let shape = (Collision(collision.geometry), LocalPose(collision.pose));
        ecm.create_entity(&collision.name, Some(entity), shape);
    }
    for visual in &link.visuals {
        let seen = ecm.create_entity(&visual.name, Some(entity), (Visual(visual.geometry), LocalPose(visual.pose)));
        if let Some(texture) = &visual.texture {
            ecm.set_component(seen, Textured { link: entity, texture: texture.clone() });
        }
    }
    for sensor in link.sensors.iter().filter(|sensor| sensor.update_rate_hz > 0.0) {
        let interval_s = 1.0 / sensor.update_rate_hz;
        let on_link = Some(entity);
        match sensor.kind.as_str() {
            "imu" => ecm.create_entity(&sensor.name, on_link, (Imu { link: entity, interval_s },)),
            "gpu_lidar" => ecm.create_entity(&sensor.name, on_link, (Lidar { link: entity, interval_s },)),
            "depth_camera" => ecm.create_entity(&sensor.name, on_link, (DepthCamera { link: entity },)),
            "camera" => {
                let (period_s, field_of_view) = (sensor.turn_period_s.max(model_step_floor()), sensor.horizontal_fov);
                ecm.create_entity(&sensor.name, on_link, (Camera { link: entity, period_s, field_of_view },))
            }
            _ => continue,
        };
    }
}

/// A thread per reporting system. The threads wait at a barrier between steps.
struct PostUpdateThreads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    start: Barrier,
    stop: Barrier,
    running: AtomicBool,
    info: Mutex<UpdateInfo>,
    ecm: Arc<RwLock<EntityComponentManager>>,
}

impl PostUpdateThreads {
    fn start(systems: Vec<Box<dyn PostUpdate>>, ecm: &Arc<RwLock<EntityComponentManager>>) -> Self {
        let shared = Arc::new(Shared {
            start: Barrier::new(systems.len() + 1),
            stop: Barrier::new(systems.len() + 1),
            running: AtomicBool::new(true),
            info: Mutex::new(UpdateInfo { step: 0, sim_time_s: 0.0, step_s: 0.0 }),
            ecm: ecm.clone(),
        });
        let threads = systems.into_iter().enumerate().map(|(index, system)| {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name(format!("PostUpdate{index}"))
                .spawn(move || post_update_loop(system, &shared))
                .expect("the system has room for a few threads")
        });
        Self { threads: threads.collect(), shared }
    }

    /// Lets every system look at the world, and waits for them.
    fn run(&self, info: UpdateInfo) {
        *self.shared.info.lock().expect("threads that panic end the program") = info;
        self.shared.start.wait();
        self.shared.stop.wait();
    }
}

impl PostUpdateThreads {
    /// Ends the threads, and with them their systems, which complete what they write.
    fn end(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        self.shared.running.store(false, Ordering::Release);
        self.shared.start.wait();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for PostUpdateThreads {
    fn drop(&mut self) {
        self.end();
    }
}

fn post_update_loop(mut system: Box<dyn PostUpdate>, shared: &Shared) {
    let _guard = AbortOnPanic;
    loop {
        shared.start.wait();
        if !shared.running.load(Ordering::Acquire) {
            return;
        }
        let info = *shared.info.lock().expect("threads that panic end the program");
        let ecm = shared.ecm.read().expect("threads that panic end the program");
        system.post_update(&info, &ecm);
        drop(ecm);
        shared.stop.wait();
    }
}

/// A thread that panics would leave the others at the barrier for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
