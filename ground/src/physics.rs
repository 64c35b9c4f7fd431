//! The physics system: models' links as rigid bodies of the engine, commands in, poses out.

use std::collections::HashMap;

use rapier3d::math::{Pose, Vector};
use rapier3d::prelude::{
    Collider, ColliderBuilder, PhysicsWorld, RigidBody, RigidBodyBuilder, RigidBodyHandle, SharedShape,
};

use crate::account;
use crate::components::{ForceCommand, Link, WorldPose, WorldVelocity};
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
        let mut body = match model.is_static {
            false => RigidBodyBuilder::dynamic().build(),
            true if self.sweeps_static(link) => kinematic_body(),
            true => RigidBodyBuilder::fixed().build(),
        };
        body.set_position(model.pose * link.pose, false);
        body.user_data = id as u128;
        let body = self.engine.insert_body(body);
        for collision in &link.collisions {
            self.engine.insert_collider(collider(collision, link), Some(body));
        }
        self.links.push(Some(LinkBody { entity, body }));
        self.link_of.insert(entity, id);
        self.maybe_moved.push(id);
    }

    /// Whether a static link is in the broad phase as if it moved. What has no collisions is in no broad phase. Floors never
    /// are, and what robots roll on is thereby the same body in both ways: a contact with a kinematic body differs from one
    /// with a fixed body in the last bits.
    fn sweeps_static(&self, link: &sdf::Link) -> bool {
        let is_floor = |collision: &sdf::Collision| matches!(collision.geometry, Geometry::Plane { .. });
        let has_place = !link.collisions.is_empty() && !link.collisions.iter().any(is_floor);
        self.switches.is_slow(Switch::StaticKinematic) && has_place
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
    #[inline(never)]
    pub fn update(&mut self, ecm: &mut EntityComponentManager) {
        let _timed = account::scope("ground::physics::Physics::update");
        self.update_physics(ecm);
        self.update_engine_data(ecm);
        self.world_forward_step();
        let changed = self.write_changed_world_poses();
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

    /// Hands the engine the poses that others gave to links: those of new ones.
    #[inline(never)]
    fn update_engine_data(&mut self, ecm: &EntityComponentManager) {
        let _timed = account::scope("ground::physics::Physics::update_engine_data");
        if self.switches.is_slow(Switch::DirtyFlag) {
            ecm.each::<(Entity, &Link, &WorldPose)>(|(entity, _, pose)| self.set_position(entity, pose));
            return;
        }
        for &entity in ecm.newly_created() {
            if let Some(pose) = ecm.component::<WorldPose>(entity) {
                self.set_position(entity, &pose);
            }
        }
    }

    fn set_position(&mut self, entity: Entity, pose: &WorldPose) {
        let Some(link) = self.link_of.get(&entity).and_then(|id| self.links[*id].as_ref()) else { return };
        self.engine.bodies[link.body].set_position(pose.0, true);
    }

    #[inline(never)]
    fn world_forward_step(&mut self) {
        let _timed = account::scope("ground::physics::Physics::world_forward_step");
        if !self.switches.is_slow(Switch::PoseMap) {
            self.note_active_links();
        }
        self.engine.step();
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

    /// Notes the links that the engine is about to move or just moved. Those of static models are not among them, whatever
    /// bodies they have.
    fn note_active_links(&mut self) {
        let active = self.engine.islands.active_bodies().map(|body| &self.engine.bodies[body]);
        self.maybe_moved.extend(active.filter(|body| body.is_dynamic()).map(|body| body.user_data as LinkId));
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

/// A body for something that never moves, of the kind for what is moved by others. The engine lets such bodies sleep when
/// they have stood still for half a second, which other engines do not know; this one never does.
fn kinematic_body() -> RigidBody {
    let mut body = RigidBodyBuilder::kinematic_position_based().build();
    // `can_sleep(false)` is for dynamic bodies: kinematic ones sleep whenever both velocities are exactly zero.
    body.activation_mut().time_until_sleep = f32::INFINITY;
    body
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdf::{Element, Root};
    use crate::worlds::{Mobility, WorldKind, WorldSpec, write_world};

    /// Number of bodies that the engine visits in its 700th step of 1 ms, beyond the half second after which it puts still
    /// ones to sleep: of 9 shapes that never move, and 2 robots that were not told to.
    fn visited_when_settled(switches: Switches) -> usize {
        let spec = WorldSpec { kind: WorldKind::Shapes, shapes: 9, robots: 2, mobility: Mobility::Static, cameras: 0 };
        let mut text = String::new();
        write_world(&spec, &mut text).unwrap();
        let world = Root::from_element(Element::parse(&text, "w").unwrap(), "w").unwrap().world;
        let mut ecm = EntityComponentManager::default();
        let mut physics = Physics::new(0.001, world.gravity, switches);
        for model in &world.models {
            let link = ecm.create_entity("link", None, ());
            physics.create_link(link, model, &model.links[0]);
        }
        (0..700).for_each(|_| physics.update(&mut ecm));
        physics.engine.islands.num_active_bodies()
    }

    #[test]
    fn bodies_that_never_move_are_visited_for_ever_as_kinematic_ones_and_never_as_fixed_ones() {
        assert_eq!(visited_when_settled(Switches::default()), 0);
        assert_eq!(visited_when_settled(Switches::only(Switch::StaticKinematic)), 9);
    }
}
