//! The physics system: links are rigid bodies of the engine; commands go in, poses come out.

use std::collections::HashMap;

use rapier3d::math::{Pose, Vector};
use rapier3d::prelude::{
    Collider, ColliderBuilder, PhysicsWorld, RigidBody, RigidBodyBuilder, RigidBodyHandle, SharedShape,
};

use crate::account::{self, Counter};
use crate::components::{ForceCommand, Link, WorldPose, WorldVelocity};
use crate::ecs::{Entity, EntityComponentManager};
use crate::sdf::{self, Geometry};
use crate::switches::{Switch, Switches};

/// Number of a link, never reused; also the `user_data` of its body.
type LinkId = usize;

/// A link and its body.
struct LinkBody {
    entity: Entity,
    body: RigidBodyHandle,
}

/// The engine, and the link of each body.
pub struct Physics {
    engine: PhysicsWorld,
    switches: Switches,
    /// By number; `None` if the link was removed.
    links: Vec<Option<LinkBody>>,
    link_of: HashMap<Entity, LinkId>,
    previous_poses: HashMap<LinkId, Pose>,
    /// Links whose pose may have changed; the fast code looks only at these.
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

    /// Creates the body of a link.
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

    /// Whether a static link gets a kinematic body, which the broad phase sweeps. Links without collisions do not take part
    /// in it. Floors stay fixed: a contact with a kinematic body differs from one with a fixed body in the last bits, and
    /// robots roll on the floor.
    fn sweeps_static(&self, link: &sdf::Link) -> bool {
        let is_floor = |collision: &sdf::Collision| matches!(collision.geometry, Geometry::Plane { .. });
        let has_collision = !link.collisions.is_empty() && !link.collisions.iter().any(is_floor);
        self.switches.is_slow(Switch::StaticKinematic) && has_collision
    }

    /// Removes the body of a link. Ignores other entities.
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

    /// Passes the commands of this step to the engine.
    fn update_physics(&mut self, ecm: &EntityComponentManager) {
        ecm.each::<(Entity, &ForceCommand)>(|(entity, command)| {
            let Some(link) = self.link_of.get(&entity).and_then(|id| self.links[*id].as_ref()) else { return };
            let body = &mut self.engine.bodies[link.body];
            body.reset_forces(false);
            body.add_force(command.0, true);
        });
    }

    /// Passes poses that the engine did not compute: those of new links.
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
            self.record_active_links();
        }
        self.engine.step();
    }

    /// The links whose pose changed, ordered by number.
    #[inline(never)]
    fn write_changed_world_poses(&mut self) -> Vec<(LinkId, Pose)> {
        let _timed = account::scope("ground::physics::Physics::write_changed_world_poses");
        let _allocations = account::allocations_for(Counter::AllocationsForPoses);
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

    /// A body that moves in a step is awake before it (it may fall asleep in the step) or after it (it may be hit).
    fn update_pose_map(&mut self) -> Vec<(LinkId, Pose)> {
        self.record_active_links();
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

    /// Records the links that the engine is about to move or just moved. Links of static models are not among them.
    fn record_active_links(&mut self) {
        let active = self.engine.islands.active_bodies().map(|body| &self.engine.bodies[body]);
        self.maybe_moved.extend(active.filter(|body| body.is_dynamic()).map(|body| body.user_data as LinkId));
    }

    /// Writes changed poses to the store.
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

/// A kinematic body for something that never moves. The engine would put it to sleep after half a second, which other
/// engines do not; this body never sleeps.
fn kinematic_body() -> RigidBody {
    let mut body = RigidBodyBuilder::kinematic_position_based().build();
    // `can_sleep(false)` is for dynamic bodies: kinematic ones sleep whenever both velocities are exactly zero.
    body.activation_mut().time_until_sleep = f32::INFINITY;
    body
}

fn collider(collision: &sdf::Collision, link: &sdf::Link) -> Collider {
    // SDF's cylinders are along z, the engine's along y.
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

    /// Number of bodies that the engine visits in its 700th step of 1 ms, when idle bodies are asleep. The world has 9 static
    /// shapes and 2 robots without commands.
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
    fn static_shapes_are_visited_in_every_step_as_kinematic_bodies_and_never_as_fixed_ones() {
        assert_eq!(visited_when_settled(Switches::default()), 0);
        assert_eq!(visited_when_settled(Switches::only(Switch::StaticKinematic)), 9);
    }
}
