//! The entity component store: entities in a graph, their components by type.

use std::collections::{BTreeMap, HashMap};

use hecs::{Component, DynamicBundle, Query};

pub use hecs::Entity;

use crate::account;

/// An entity in the hierarchy.
#[derive(Debug, Clone)]
pub struct Vertex {
    /// Its name, unique among its siblings.
    pub name: String,
    /// The parent.
    pub parent: Option<Entity>,
    /// The children.
    pub children: Vec<Entity>,
}

/// The hierarchy of entities: models of links of collisions, visuals and sensors.
#[derive(Debug, Clone, Default)]
pub struct EntityGraph {
    vertices: HashMap<Entity, Vertex>,
}

impl EntityGraph {
    /// All vertices by entity, collected in each call.
    #[inline(never)]
    pub fn vertices(&self) -> BTreeMap<Entity, &Vertex> {
        self.vertices.iter().map(|(entity, vertex)| (*entity, vertex)).collect()
    }

    /// The vertex of an entity.
    pub fn vertex(&self, entity: Entity) -> Option<&Vertex> {
        self.vertices.get(&entity)
    }

    /// Number of entities.
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Whether there is no entity.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    fn add(&mut self, entity: Entity, name: &str, parent: Option<Entity>) {
        if let Some(parent) = parent.and_then(|parent| self.vertices.get_mut(&parent)) {
            parent.children.push(entity);
        }
        self.vertices.insert(entity, Vertex { name: name.to_owned(), parent, children: Vec::new() });
    }

    /// Removes an entity with its descendants and returns them.
    fn remove(&mut self, entity: Entity) -> Vec<Entity> {
        let mut removed = Vec::new();
        if let Some(parent) = self.vertex(entity).and_then(|vertex| vertex.parent)
            && let Some(parent) = self.vertices.get_mut(&parent)
        {
            parent.children.retain(|child| *child != entity);
        }
        let mut pending = vec![entity];
        while let Some(entity) = pending.pop() {
            if let Some(vertex) = self.vertices.remove(&entity) {
                pending.extend(vertex.children);
                removed.push(entity);
            }
        }
        removed
    }
}

/// Entities, their components, and the changes since the last step.
#[derive(Default)]
pub struct EntityComponentManager {
    components: hecs::World,
    entities: EntityGraph,
    newly_created: Vec<Entity>,
    changed_poses: Vec<Entity>,
}

impl EntityComponentManager {
    /// Adds an entity with these components as a child of `parent`.
    pub fn create_entity(&mut self, name: &str, parent: Option<Entity>, components: impl DynamicBundle) -> Entity {
        let entity = self.components.spawn(components);
        self.entities.add(entity, name, parent);
        self.newly_created.push(entity);
        entity
    }

    /// Removes an entity with its descendants and returns them.
    pub fn remove_entity(&mut self, entity: Entity) -> Vec<Entity> {
        let removed = self.entities.remove(entity);
        for entity in &removed {
            // The graph held it, so it is alive.
            let _ = self.components.despawn(*entity);
        }
        removed
    }

    /// The hierarchy.
    pub fn entities(&self) -> &EntityGraph {
        &self.entities
    }

    /// Adds or replaces a component. Does nothing if the entity does not exist.
    pub fn set_component(&mut self, entity: Entity, component: impl Component) {
        let _ = self.components.insert_one(entity, component);
    }

    /// A copy of an entity's component.
    pub fn component<T: Component + Clone>(&self, entity: Entity) -> Option<T> {
        self.components.get::<&T>(entity).ok().map(|component| (*component).clone())
    }

    /// Whether an entity has a component.
    pub fn has<T: Component>(&self, entity: Entity) -> bool {
        self.components.entity(entity).is_ok_and(|components| components.has::<T>())
    }

    /// Updates components. Does nothing if the entity lacks one of them.
    pub fn update_components<Q: Query>(&mut self, entity: Entity, update: impl FnOnce(Q::Item<'_>)) {
        if let Ok(item) = self.components.query_one::<Q>(entity).get() {
            update(item);
        }
    }

    /// Visits the entities with the components of `Q` through the index of component types. The cost grows with the
    /// entities visited.
    pub fn each<Q: Query>(&self, mut visit: impl FnMut(Q::Item<'_>)) {
        for item in self.components.query::<Q>().iter() {
            visit(item);
        }
    }

    /// Visits the entities with the components of `Q` by testing every entity of the graph. The cost grows with the
    /// whole world. Prefer [`each`](Self::each).
    #[inline(never)]
    pub fn each_no_cache<Q: Query>(&self, mut visit: impl FnMut(Q::Item<'_>)) {
        let _timed = account::scope("ground::ecs::EntityComponentManager::each_no_cache");
        for entity in self.entities.vertices().into_keys() {
            if !self.entity_matches::<Q>(entity) {
                continue;
            }
            if let Ok(item) = self.components.query_one::<Q>(entity).get() {
                visit(item);
            }
        }
    }

    /// Whether the entity has the components of `Q`.
    #[inline(never)]
    pub fn entity_matches<Q: Query>(&self, entity: Entity) -> bool {
        self.components.entity(entity).is_ok_and(|components| components.satisfies::<Q>())
    }

    /// Entities created since the last step, in order of creation.
    pub fn newly_created(&self) -> &[Entity] {
        &self.newly_created
    }

    /// Marks the pose of a link as changed in this step.
    pub fn set_pose_changed(&mut self, entity: Entity) {
        self.changed_poses.push(entity);
    }

    /// Links whose pose changed in this step.
    pub fn changed_poses(&self) -> &[Entity] {
        &self.changed_poses
    }

    /// Clears the lists of new and changed entities at the end of a step.
    pub fn reset_changes(&mut self) {
        self.newly_created.clear();
        self.changed_poses.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Wheel(u32);
    struct Broken;

    /// A cart with four wheels, the third of them broken; and a stone.
    fn cart_and_stone() -> (EntityComponentManager, Entity, Vec<Entity>) {
        let mut ecm = EntityComponentManager::default();
        let cart = ecm.create_entity("cart", None, ());
        let wheels = (0..4).map(|number| ecm.create_entity(&format!("wheel{number}"), Some(cart), (Wheel(number),)));
        let wheels: Vec<_> = wheels.collect();
        ecm.set_component(wheels[2], Broken);
        ecm.create_entity("stone", None, ());
        (ecm, cart, wheels)
    }

    #[test]
    fn the_index_and_the_scan_find_the_same_entities() {
        let (ecm, _, wheels) = cart_and_stone();
        let found = |scan: bool| {
            let mut found = Vec::new();
            let visit = |(entity, wheel): (Entity, &Wheel)| found.push((entity, wheel.0));
            match scan {
                true => ecm.each_no_cache::<(Entity, &Wheel)>(visit),
                false => ecm.each::<(Entity, &Wheel)>(visit),
            }
            found.sort_unstable();
            found
        };
        assert_eq!(found(false), wheels.iter().copied().zip(0..4).collect::<Vec<_>>());
        assert_eq!(found(true), found(false));
        let mut broken = Vec::new();
        ecm.each_no_cache::<(&Wheel, &Broken)>(|(wheel, _)| broken.push(wheel.0));
        assert_eq!(broken, [2]);
    }

    #[test]
    fn removing_an_entity_removes_its_descendants_and_nothing_else() {
        let (mut ecm, cart, wheels) = cart_and_stone();
        let mut removed = ecm.remove_entity(cart);
        removed.sort_unstable();
        assert_eq!(removed, [&[cart], wheels.as_slice()].concat());
        assert_eq!(ecm.entities().len(), 1);
        assert_eq!(ecm.component::<Wheel>(wheels[0]), None);
        assert_eq!(ecm.remove_entity(cart), []);
    }

    #[test]
    fn a_removed_child_leaves_its_parent() {
        let (mut ecm, cart, wheels) = cart_and_stone();
        ecm.remove_entity(wheels[1]);
        assert_eq!(ecm.entities().vertex(cart).unwrap().children, [wheels[0], wheels[2], wheels[3]]);
    }

    #[test]
    fn changes_are_kept_until_the_step_ends() {
        let (mut ecm, _, wheels) = cart_and_stone();
        ecm.set_pose_changed(wheels[0]);
        assert_eq!((ecm.newly_created().len(), ecm.changed_poses()), (6, &wheels[..1]));
        ecm.reset_changes();
        assert_eq!((ecm.newly_created().len(), ecm.changed_poses().len()), (0, 0));
    }
}
