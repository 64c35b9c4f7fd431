//! The scene graph of cameras: a tree of nodes with poses relative to their parents.

use std::collections::HashMap;

use rapier3d::math::{Pose, Vector};

use crate::account;
use crate::components::{Link, LocalPose, Model, Visual, WorldPose};
use crate::ecs::{Entity, EntityComponentManager};
use crate::sdf::Geometry;

type NodeId = usize;

/// Models, links and visuals.
#[derive(Default)]
pub struct SceneGraph {
    nodes: Vec<Node>,
    node_of: HashMap<Entity, NodeId>,
    visuals: Vec<VisualNode>,
    /// The last derived sphere of each visual.
    spheres: Vec<Sphere>,
    visuals_of: HashMap<Entity, Vec<usize>>,
}

struct Node {
    parent: Option<NodeId>,
    /// Pose relative to the parent.
    pose: Pose,
}

/// A visual.
struct VisualNode {
    entity: Entity,
    node: NodeId,
    radius: f32,
}

/// The bounding sphere of a visual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sphere {
    /// Its centre in the world.
    pub centre: Vector,
    /// Its radius, m.
    pub radius: f32,
}

impl SceneGraph {
    /// Adds new models, links and visuals, and removes deleted visuals.
    pub fn add_new_nodes(&mut self, ecm: &EntityComponentManager) {
        for &entity in ecm.newly_created() {
            let Some(LocalPose(pose)) = ecm.component::<LocalPose>(entity) else { continue };
            let visual = ecm.component::<Visual>(entity);
            let is_node = visual.is_some() || ecm.has::<Model>(entity) || ecm.has::<Link>(entity);
            if is_node {
                let parent = ecm.entities().vertex(entity).and_then(|vertex| vertex.parent);
                let node = self.add_node(entity, parent, pose);
                if let (Some(link), Some(radius)) = (parent, visual.and_then(|visual| radius(visual.0))) {
                    self.visuals.push(VisualNode { entity, node, radius });
                    self.visuals_of.entry(link).or_default();
                }
            }
        }
        self.visuals.retain(|visual| ecm.entities().vertex(visual.entity).is_some());
        self.visuals_of.values_mut().for_each(Vec::clear);
        self.derived_positions();
        for (index, visual) in self.visuals.iter().enumerate() {
            let link = ecm.entities().vertex(visual.entity).and_then(|vertex| vertex.parent);
            link.and_then(|link| self.visuals_of.get_mut(&link)).into_iter().for_each(|of_link| of_link.push(index));
        }
    }

    fn add_node(&mut self, entity: Entity, parent: Option<Entity>, pose: Pose) -> NodeId {
        let parent = parent.and_then(|parent| self.node_of.get(&parent).copied());
        let id = self.nodes.len();
        self.nodes.push(Node { parent, pose });
        self.node_of.insert(entity, id);
        id
    }

    /// Updates the poses of models whose links moved.
    pub fn follow_moved_links(&mut self, ecm: &EntityComponentManager) {
        for link in ecm.changed_poses() {
            let (Some(WorldPose(pose)), Some(&node)) = (ecm.component::<WorldPose>(*link), self.node_of.get(link))
            else {
                continue;
            };
            if let Some(model) = self.nodes[node].parent {
                self.nodes[model].pose = pose * self.nodes[node].pose.inverse();
            }
        }
    }

    /// Derives the positions of visuals whose links moved.
    pub fn propagate(&mut self, ecm: &EntityComponentManager) {
        let moved = ecm.changed_poses().iter().filter_map(|link| self.visuals_of.get(link));
        for &index in moved.flatten() {
            self.spheres[index].centre = derived_position(&self.nodes, self.visuals[index].node);
        }
    }

    /// Derives the positions of all visuals.
    #[inline(never)]
    pub fn derived_positions(&mut self) {
        let _timed = account::scope("ground::systems::scene_graph::SceneGraph::derived_positions");
        self.spheres.clear();
        for visual in &self.visuals {
            let centre = derived_position(&self.nodes, visual.node);
            self.spheres.push(Sphere { centre, radius: visual.radius });
        }
    }

    /// The last derived bounding sphere of each visual.
    pub fn spheres(&self) -> &[Sphere] {
        &self.spheres
    }
}

/// The position of a node in the world, by climbing the chain of its parents.
#[inline(never)]
fn derived_position(nodes: &[Node], node: NodeId) -> Vector {
    let mut position = nodes[node].pose.translation;
    let mut parent = nodes[node].parent;
    while let Some(node) = parent {
        let node = &nodes[node];
        position = node.pose * position;
        parent = node.parent;
    }
    position
}

/// The radius of the bounding sphere of a shape. `None` for a floor.
pub fn radius(geometry: Geometry) -> Option<f32> {
    match geometry {
        Geometry::Box(size) => Some(size.length() / 2.0),
        Geometry::Sphere { radius } => Some(radius as f32),
        Geometry::Cylinder { radius, length } => Some(radius.hypot(length / 2.0) as f32),
        Geometry::Capsule { radius, length } => Some((radius + length / 2.0) as f32),
        Geometry::Plane { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A model at x = 10, turned to the left, with a link 1 ahead of it and on that a ball 2 ahead.
    fn model() -> (EntityComponentManager, Entity) {
        let mut ecm = EntityComponentManager::default();
        let at = |x: f32| Pose::from_translation(Vector::new(x, 0.0, 0.0));
        let element = crate::sdf::Element::parse("<sdf><world name='w'><model name='m'/></world></sdf>", "w").unwrap();
        let model = crate::sdf::Root::from_element(element, "w").unwrap().world.models.remove(0);
        let left = at(10.0) * Pose::rotation(Vector::Z * std::f32::consts::FRAC_PI_2);
        let model = ecm.create_entity("m", None, (Model(Arc::new(model)), LocalPose(left)));
        let link = ecm.create_entity("l", Some(model), (Link, LocalPose(at(1.0)), WorldPose(left * at(1.0))));
        ecm.create_entity("v", Some(link), (Visual(Geometry::Sphere { radius: 0.5 }), LocalPose(at(2.0))));
        (ecm, link)
    }

    #[test]
    fn a_visual_moves_with_its_model_and_link() {
        let (mut ecm, link) = model();
        let mut scene = SceneGraph::default();
        scene.add_new_nodes(&ecm);
        let is_at = |scene: &SceneGraph, x: f32, y: f32| {
            let centre = scene.spheres()[0].centre;
            assert!((centre - Vector::new(x, y, 0.0)).length() < 1e-5, "{centre}");
        };
        is_at(&scene, 10.0, 3.0);
        ecm.set_component(link, WorldPose(Pose::from_translation(Vector::new(4.0, 5.0, 0.0))));
        ecm.set_pose_changed(link);
        scene.follow_moved_links(&ecm);
        is_at(&scene, 10.0, 3.0);
        scene.propagate(&ecm);
        is_at(&scene, 6.0, 5.0);
        let propagated = scene.spheres().to_vec();
        scene.derived_positions();
        assert_eq!(scene.spheres(), propagated, "to the last bit");
    }

    #[test]
    fn a_removed_visual_is_not_in_the_scene() {
        let (mut ecm, link) = model();
        let mut scene = SceneGraph::default();
        scene.add_new_nodes(&ecm);
        ecm.remove_entity(link);
        ecm.reset_changes();
        scene.add_new_nodes(&ecm);
        assert_eq!(scene.spheres(), []);
    }
}
