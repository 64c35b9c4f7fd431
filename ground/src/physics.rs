//! The physics system: models' links as rigid bodies of the engine, commands in, poses out.

use std::collections::HashMap;

use rapier3d::math::{Pose, Vector};
use rapier3d::prelude::{Collider, ColliderBuilder, PhysicsWorld, RigidBodyBuilder, RigidBodyHandle, SharedShape};

use crate::account;
use crate::components::{ForceCommand, WorldPose, WorldVelocity};
use crate::ecs::{Entity, EntityComponentManager};
use crate::sdf::{self, Geometry};
use crate::switches::{Switch, Switches};

/// Number of a link within the engine, never used again; also its body's `user_data`.
type LinkId = usize;

/// A link and the body that stands for it.
struct LinkBody {
    entity: Entity,
    body: RigidBodyHandle,
}

/// The engine, and which of its bodies is which entity.
pub struct Physics {
    engine: PhysicsWorld,
    switches: Switches,
    /// By number; `None` where a link was removed.
    links: Vec<Option<LinkBody>>,
    link_of: HashMap<Entity, LinkId>,
    previous_poses: HashMap<LinkId, Pose>,
    /// Links whose pose may differ from the last one reported; what the fast way looks at.
    maybe_moved: Vec<LinkId>,
}

impl Physics {
    /// An engine without bodies.
    pub fn new(step_s: f64, gravity: Vector, switches: Switches) -> Self {
        let mut engine = PhysicsWorld { gravity, ..PhysicsWorld::default() };
        engine.integration_parameters.dt = step_s as f32;
        Self {
            engine,
            switches,
            links: Vec::new(),
            link_of: HashMap::new(),
            previous_poses: HashMap::new(),
            maybe_moved: Vec::new(),
        }
    }

    /// Makes a body for a link of a model.
    pub fn create_link(&mut self, entity: Entity, model: &sdf::Model, link: &sdf::Link) {
        let id = self.links.len();
        let body = match model.is_static {
            false => RigidBodyBuilder::dynamic(),
            true if self.sweeps_static(link) => RigidBodyBuilder::kinematic_position_based(),
            true => RigidBodyBuilder::fixed(),
        };
        let body = self.engine.insert_body(body.pose(model.pose * link.pose).user_data(id as u128));
        for collision in &link.collisions {
            self.engine.insert_collider(collider(collision, link), Some(body));
        }
        self.links.push(Some(LinkBody { entity, body }));
        self.link_of.insert(entity, id);
        self.maybe_moved.push(id);
    }

    /// Whether a static link is in the broad phase as if it moved. Floors never are, and what robots roll on is thereby
    /// the same body in both ways: a contact with a kinematic body differs from one with a fixed body in the last bits.
    fn sweeps_static(&self, link: &sdf::Link) -> bool {
        let is_floor = |collision: &sdf::Collision| matches!(collision.geometry, Geometry::Plane { .. });
        self.switches.is_slow(Switch::StaticKinematic) && !link.collisions.iter().any(is_floor)
    }

    /// Takes a link's body out. Entities that are no links are ignored.
    pub fn remove_link(&mut self, entity: Entity) {
        let Some(id) = self.link_of.remove(&entity) else { return };
        if let Some(link) = self.links[id].take() {
            self.engine.remove_body(link.body);
        }
        self.previous_poses.remove(&id);
    }

    /// One step of the world: commands to the engine, the engine's step, poses from the engine.
    pub fn update(&mut self, ecm: &mut EntityComponentManager) {
        self.update_physics(ecm);
        let changed = self.world_forward_step();
        self.update_sim(&changed, ecm);
    }

    /// Hands the commands of this step to the engine.
    fn update_physics(&mut self, ecm: &EntityComponentManager) {
        ecm.each::<(Entity, &ForceCommand)>(|(entity, command)| {
            let Some(link) = self.link_of.get(&entity).and_then(|id| self.links[*id].as_ref()) else { return };
            let body = &mut self.engine.bodies[link.body];
            body.reset_forces(false);
            body.add_force(command.0, true);
        });
    }

    fn world_forward_step(&mut self) -> Vec<(LinkId, Pose)> {
        if !self.switches.is_slow(Switch::PoseMap) {
            self.note_active_links();
        }
        self.engine.step();
        self.write_changed_world_poses()
    }

    /// The links whose pose differs from the last one reported, in order of their numbers.
    #[inline(never)]
    fn write_changed_world_poses(&mut self) -> Vec<(LinkId, Pose)> {
        let _timed = account::scope("ground::physics::Physics::write_changed_world_poses");
        if self.switches.is_slow(Switch::PoseMap) { self.rebuild_pose_map() } else { self.update_pose_map() }
    }

    fn rebuild_pose_map(&mut self) -> Vec<(LinkId, Pose)> {
        let mut changed = Vec::new();
        let mut new_poses = HashMap::new();
        for (id, link) in self.links.iter().enumerate() {
            let Some(link) = link else { continue };
            let pose = *self.engine.bodies[link.body].position();
            if self.previous_poses.get(&id) != Some(&pose) {
                changed.push((id, pose));
            }
            new_poses.insert(id, pose);
        }
        self.previous_poses = new_poses;
        changed
    }

    /// Bodies that move in a step are awake before or after it: one that falls asleep in it was awake before, one that
    /// is hit was woken by it.
    fn update_pose_map(&mut self) -> Vec<(LinkId, Pose)> {
        self.note_active_links();
        self.maybe_moved.sort_unstable();
        self.maybe_moved.dedup();
        let mut changed = Vec::new();
        for id in self.maybe_moved.drain(..) {
            let Some(link) = &self.links[id] else { continue };
            let pose = *self.engine.bodies[link.body].position();
            if self.previous_poses.insert(id, pose) != Some(pose) {
                changed.push((id, pose));
            }
        }
        changed
    }

    fn note_active_links(&mut self) {
        let active = self.engine.islands.active_bodies();
        self.maybe_moved.extend(active.map(|body| self.engine.bodies[body].user_data as LinkId));
    }

    /// Hands what the engine changed to the store.
    fn update_sim(&self, changed: &[(LinkId, Pose)], ecm: &mut EntityComponentManager) {
        for (id, pose) in changed {
            let Some(link) = &self.links[*id] else { continue };
            let body = &self.engine.bodies[link.body];
            ecm.update_components::<(&mut WorldPose, &mut WorldVelocity)>(link.entity, |(world_pose, velocity)| {
                world_pose.0 = *pose;
                *velocity = WorldVelocity { linear: body.linvel(), angular: body.angvel() };
            });
            ecm.set_pose_changed(link.entity);
        }
    }
}

fn collider(collision: &sdf::Collision, link: &sdf::Link) -> Collider {
    // SDF's cylinder stands along z, the engine's along y.
    let upright = Pose::rotation(Vector::X * std::f32::consts::FRAC_PI_2);
    let half = |length: f64| (length / 2.0) as f32;
    let (shape, offset) = match collision.geometry {
        Geometry::Box(size) => (SharedShape::cuboid(size.x / 2.0, size.y / 2.0, size.z / 2.0), Pose::IDENTITY),
        Geometry::Sphere { radius } => (SharedShape::ball(radius as f32), Pose::IDENTITY),
        Geometry::Cylinder { radius, length } => (SharedShape::cylinder(half(length), radius as f32), upright),
        Geometry::Capsule { radius, length } => (SharedShape::capsule_z(half(length), radius as f32), Pose::IDENTITY),
        Geometry::Plane { x, y } => (SharedShape::cuboid(half(x), half(y), 0.5), Pose::translation(0.0, 0.0, -0.5)),
    };
    ColliderBuilder::new(shape)
        .position(collision.pose * offset)
        .friction(collision.friction as f32)
        .restitution(collision.restitution as f32)
        .mass((link.mass / link.collisions.len() as f64) as f32)
        .build()
}
