//! The scene as cameras see it: a tree of nodes, each placed relative to the one it is part of.

use std::collections::HashMap;

use rapier3d::math::{Pose, Vector};

use crate::account;
use crate::components::{Link, LocalPose, Model, Visual, WorldPose};
use crate::ecs::{Entity, EntityComponentManager};
use crate::sdf::Geometry;

type NodeId = usize;

/// Models, their links, and on these the visuals.
#[derive(Default)]
pub struct SceneGraph {
    nodes: Vec<Node>,
    node_of: HashMap<Entity, NodeId>,
    visuals: Vec<VisualNode>,
    /// Of each visual, as they were last derived.
    spheres: Vec<Sphere>,
    visuals_of: HashMap<Entity, Vec<usize>>,
}

struct Node {
    parent: Option<NodeId>,
    /// Pose relative to the parent.
    pose: Pose,
}

/// Something that is seen.
struct VisualNode {
    entity: Entity,
    node: NodeId,
    radius: f32,
}

/// The sphere around something that is seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sphere {
    /// Its centre in the world.
    pub centre: Vector,
    /// Its radius, m.
    pub radius: f32,
}

impl SceneGraph {
    /// Puts new models, links and visuals into the graph, and forgets visuals that are no more.
    pub fn learn_new_things(&mut self, ecm: &EntityComponentManager) {
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

    /// Places the models of links that moved, so that their links are where they are now.
    pub fn follow_what_moved(&mut self, ecm: &EntityComponentManager) {
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

    /// Derives the positions of the visuals of links that moved.
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

    /// The sphere around each visual, where it was last derived to be.
    pub fn spheres(&self) -> &[Sphere] {
        &self.spheres
    }
}

/// Where a node is in the world, by climbing the chain of its parents.
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

/// The radius of the sphere around a shape; a floor has none.
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
    fn a_visual_is_where_its_model_and_link_put_it_and_goes_where_they_go() {
        let (mut ecm, link) = model();
        let mut scene = SceneGraph::default();
        scene.learn_new_things(&ecm);
        let is_at = |scene: &SceneGraph, x: f32, y: f32| {
            let centre = scene.spheres()[0].centre;
            assert!((centre - Vector::new(x, y, 0.0)).length() < 1e-5, "{centre}");
        };
        is_at(&scene, 10.0, 3.0);
        ecm.set_component(link, WorldPose(Pose::from_translation(Vector::new(4.0, 5.0, 0.0))));
        ecm.set_pose_changed(link);
        scene.follow_what_moved(&ecm);
        is_at(&scene, 10.0, 3.0);
        scene.propagate(&ecm);
        is_at(&scene, 6.0, 5.0);
        let propagated = scene.spheres().to_vec();
        scene.derived_positions();
        assert_eq!(scene.spheres(), propagated, "to the last bit");
    }

    #[test]
    fn what_is_removed_is_no_longer_seen() {
        let (mut ecm, link) = model();
        let mut scene = SceneGraph::default();
        scene.learn_new_things(&ecm);
        ecm.remove_entity(link);
        ecm.reset_changes();
        scene.learn_new_things(&ecm);
        assert_eq!(scene.spheres(), []);
    }
}
