//! Physics: actors of prims, which the first step completes, and walking avatars.

use std::collections::{BTreeMap, HashSet};

use super::mesh::{Mesh, VertexSearch, volume};
use super::scene::{Appearance, Change, STEP_S, SceneObjectPart, ScenePresence};
use crate::account;
use crate::random::StateHash;
use crate::switches::{Switch, Switches};

/// Different meshes in a region.
pub const MESHES: u32 = 8;

/// Edge of the region, m.
pub const REGION_M: f32 = 256.0;

/// The actor of a prim.
#[derive(Debug, Clone, Default)]
struct Actor {
    position: [f32; 3],
    size: [f32; 3],
    rotation: f32,
    shape: u32,
    mass_kg: f32,
    /// Half the edges of its bounding box along the region's axes, m.
    extent: [f32; 2],
}

/// The set of actors that changed since the last step.
enum Taints {
    /// A list that is searched.
    List(Vec<u32>),
    /// A hash set.
    Set(HashSet<u32>),
}

impl Taints {
    #[inline(never)]
    fn contains(&self, local_id: u32) -> bool {
        match self {
            Taints::List(list) => list.contains(&local_id),
            Taints::Set(set) => set.contains(&local_id),
        }
    }

    fn add(&mut self, local_id: u32) {
        match self {
            Taints::List(list) => list.push(local_id),
            Taints::Set(set) => drop(set.insert(local_id)),
        }
    }

    fn take(&mut self) -> Vec<u32> {
        match self {
            Taints::List(list) => std::mem::take(list),
            Taints::Set(set) => set.drain().collect(),
        }
    }
}

/// A shape in the physics engine.
struct Shape {
    volume_m3: f32,
    /// Hash of its indices.
    indices: StateHash,
}

/// The physics of the region.
pub struct PhysicsScene {
    actors: BTreeMap<u32, Actor>,
    taints: Taints,
    vertices_a_mesh: u32,
    shapes: BTreeMap<u32, Shape>,
    vertex_search: VertexSearch,
}

impl PhysicsScene {
    /// Without actors. Meshes have this many vertices.
    pub fn new(vertices_a_mesh: u32, switches: &Switches) -> Self {
        let (list, set) = (Taints::List(Vec::new()), Taints::Set(HashSet::new()));
        let searches = switches.is_slow(Switch::IndexOf);
        Self {
            actors: BTreeMap::new(),
            taints: if switches.is_slow(Switch::TaintList) { list } else { set },
            vertices_a_mesh,
            shapes: BTreeMap::new(),
            vertex_search: if searches { VertexSearch::List } else { VertexSearch::Dictionary },
        }
    }

    /// Creates an actor for each prim. Setting a property taints the actor.
    #[inline(never)]
    pub fn add_prims<'a>(&mut self, prims: impl Iterator<Item = &'a SceneObjectPart>) {
        let _timed = account::scope("ground::region::physics::PhysicsScene::add_prims");
        for prim in prims {
            self.change(prim.local_id, |actor| actor.shape = prim.shape);
            self.change(prim.local_id, |actor| actor.position = prim.position);
            self.change(prim.local_id, |actor| actor.size = prim.size);
            self.change(prim.local_id, |actor| actor.rotation = prim.rotation);
        }
    }

    fn change(&mut self, local_id: u32, change: impl Fn(&mut Actor)) {
        change(self.actors.entry(local_id).or_default());
        self.add_physics_actor_taint(local_id);
    }

    #[inline(never)]
    fn add_physics_actor_taint(&mut self, local_id: u32) {
        if !self.taints.contains(local_id) {
            self.taints.add(local_id);
        }
    }

    /// Simulates a step: applies changes of scripts, then moves avatars.
    #[inline(never)]
    pub fn simulate<'a>(&mut self, changes: &[Change], presences: impl Iterator<Item = &'a mut ScenePresence>) {
        let _timed = account::scope("ground::region::physics::PhysicsScene::simulate");
        for change in changes {
            if let Appearance::Rotation(rotation) = change.to {
                self.change(change.local_id, |actor| actor.rotation = rotation);
            }
        }
        self.process_taints();
        presences.for_each(walk);
    }

    fn process_taints(&mut self) {
        for local_id in self.taints.take() {
            let shape = self.actors.get(&local_id).map_or(0, |actor| actor.shape);
            let volume_m3 = self.shape(shape).volume_m3;
            let Some(actor) = self.actors.get_mut(&local_id) else { continue };
            actor.mass_kg = volume_m3 * actor.size.iter().product::<f32>() * 1000.0;
            let (sin, cos) = actor.rotation.sin_cos();
            let half = actor.size.map(|edge| 0.5 * edge);
            actor.extent = [half[0] * cos.abs() + half[1] * sin.abs(), half[0] * sin.abs() + half[1] * cos.abs()];
        }
    }

    /// The shape of this kind, created on first use.
    fn shape(&mut self, kind: u32) -> &Shape {
        let (vertices, search) = (self.vertices_a_mesh, self.vertex_search);
        self.shapes.entry(kind).or_insert_with(|| {
            let mesh = Mesh::ring(vertices, kind);
            let indices = mesh.get_index_list(search);
            let mut hash = StateHash::default();
            indices.iter().for_each(|index| hash.add(u64::from(*index)));
            Shape { volume_m3: volume(mesh.vertices(), &indices).abs(), indices: hash }
        })
    }

    /// Adds all actors to a hash.
    pub fn hash(&self, hash: &mut StateHash) {
        self.shapes.values().for_each(|shape| hash.add(shape.indices.get()));
        for (local_id, actor) in &self.actors {
            hash.add(u64::from(*local_id));
            hash.add_all([actor.mass_kg, actor.rotation].into_iter().chain(actor.extent).chain(actor.position));
        }
    }
}

/// Height of the ground, m: two hills.
fn ground_m(x: f32, y: f32) -> f32 {
    20.0 + 5.0 * (x * 0.02).sin() * (y * 0.03).cos()
}

/// Moves an avatar by one step, within the region and on the ground.
fn walk(presence: &mut ScenePresence) {
    let (sin, cos) = presence.heading.sin_cos();
    let [x, y, _] = presence.position;
    let distance = presence.speed * STEP_S as f32;
    let (x, y) = ((x + distance * cos).rem_euclid(REGION_M), (y + distance * sin).rem_euclid(REGION_M));
    presence.position = [x, y, ground_m(x, y)];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prims(count: u32) -> Vec<SceneObjectPart> {
        let prim = |id| SceneObjectPart::new(id, String::new(), [1.0, 2.0, 3.0], [2.0, 1.0, 1.0], id % MESHES);
        (1..=count).map(prim).collect()
    }

    #[test]
    fn a_tainted_prim_is_in_the_set_once() {
        for switches in [Switches::default(), Switches::only(Switch::TaintList)] {
            let mut physics = PhysicsScene::new(96, &switches);
            physics.add_prims(prims(5).iter());
            let mut noted = physics.taints.take();
            noted.sort_unstable();
            assert_eq!(noted, [1, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn a_turned_prim_has_another_bounding_box() {
        let mut physics = PhysicsScene::new(96, &Switches::default());
        physics.add_prims(prims(1).iter());
        physics.simulate(&[], std::iter::empty());
        assert_eq!(physics.actors[&1].extent, [1.0, 0.5]);
        let turned = Appearance::Rotation(std::f32::consts::FRAC_PI_2);
        physics.simulate(&[Change { local_id: 1, to: turned }], std::iter::empty());
        let [x, y] = physics.actors[&1].extent;
        assert!((x - 0.5).abs() < 1e-6 && (y - 1.0).abs() < 1e-6, "{x} {y}");
    }

    #[test]
    fn an_avatar_that_leaves_on_one_side_enters_on_the_other() {
        let mut presence = ScenePresence { local_id: 1, position: [255.9, 8.0, 0.0], heading: 0.0, speed: 2.0 };
        walk(&mut presence);
        let [x, y, z] = presence.position;
        assert!((x - 0.1).abs() < 1e-4, "{x}");
        assert_eq!((y, z), (8.0, ground_m(x, 8.0)));
    }
}
