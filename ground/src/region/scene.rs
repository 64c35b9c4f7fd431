//! The scene graph: groups of parts, called prims, and the presences of avatars. All are entities that are updated.

use std::collections::{BTreeSet, HashMap};

use crate::account;
use crate::random::StateHash;
use crate::switches::{Switch, Switches};

/// Simulated time of a step, s.
pub const STEP_S: f64 = 0.1;

/// An item in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryItem {
    /// Unique in the store.
    pub item_id: u32,
    /// Its name.
    pub name: String,
    /// The script, if it is one.
    pub script: Option<u32>,
}

/// A prim.
#[derive(Debug, Clone)]
pub struct SceneObjectPart {
    /// Unique in the region.
    pub local_id: u32,
    /// Its name.
    pub name: String,
    /// Centre, m.
    pub position: [f32; 3],
    /// Edges, m.
    pub size: [f32; 3],
    /// About the vertical axis, radians.
    pub rotation: f32,
    /// Red, green, blue, from 0 to 1.
    pub colour: [f32; 3],
    /// Its mesh.
    pub shape: u32,
    /// Its items.
    pub inventory: Vec<InventoryItem>,
    has_changed: bool,
    updates: u32,
}

/// An update of an entity for the clients.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ObjectUpdate {
    /// The part or the presence.
    pub local_id: u32,
    /// Centre, m.
    pub position: [f32; 3],
    /// About the vertical axis, radians.
    pub rotation: f32,
    /// Red, green, blue, from 0 to 1.
    pub colour: [f32; 3],
}

impl SceneObjectPart {
    /// A grey part without rotation or items.
    pub fn new(local_id: u32, name: String, position: [f32; 3], size: [f32; 3], shape: u32) -> Self {
        Self {
            local_id,
            name,
            position,
            size,
            rotation: 0.0,
            colour: [0.5; 3],
            shape,
            inventory: Vec::new(),
            has_changed: false,
            updates: 0,
        }
    }

    /// Adds an update if the part changed.
    #[inline(never)]
    pub fn send_scheduled_updates(&mut self, news: &mut Vec<ObjectUpdate>) {
        if !self.has_changed {
            return;
        }
        self.has_changed = false;
        self.updates += 1;
        let Self { local_id, position, rotation, colour, .. } = *self;
        news.push(ObjectUpdate { local_id, position, rotation, colour });
    }

    fn turn(&mut self, rotation: f32) {
        self.has_changed |= rotation != self.rotation;
        self.rotation = rotation;
    }

    fn paint(&mut self, colour: [f32; 3]) {
        self.has_changed |= colour != self.colour;
        self.colour = colour;
    }
}

/// An entity of the scene.
pub trait SceneEntity: Send {
    /// Adds updates of everything that changed since the last call.
    fn update(&mut self, news: &mut Vec<ObjectUpdate>);

    /// The group, if it is one.
    fn as_group(&self) -> Option<&SceneObjectGroup> {
        None
    }

    /// The same, mutable.
    fn as_group_mut(&mut self) -> Option<&mut SceneObjectGroup> {
        None
    }

    /// The presence, if it is one.
    fn as_presence_mut(&mut self) -> Option<&mut ScenePresence> {
        None
    }

    /// Adds its state to a hash.
    fn hash(&self, hash: &mut StateHash);
}

/// A group of parts.
#[derive(Debug, Clone, Default)]
pub struct SceneObjectGroup {
    /// Never empty; the first is the root.
    pub parts: Vec<SceneObjectPart>,
}

impl SceneObjectGroup {
    /// Whether the group contains a part.
    #[inline(never)]
    pub fn has_child_prim(&self, local_id: u32) -> bool {
        self.parts.iter().any(|part| part.local_id == local_id)
    }

    fn part_mut(&mut self, local_id: u32) -> Option<&mut SceneObjectPart> {
        self.parts.iter_mut().find(|part| part.local_id == local_id)
    }
}

impl SceneEntity for SceneObjectGroup {
    fn update(&mut self, news: &mut Vec<ObjectUpdate>) {
        self.parts.iter_mut().for_each(|part| part.send_scheduled_updates(news));
    }

    fn as_group(&self) -> Option<&SceneObjectGroup> {
        Some(self)
    }

    fn as_group_mut(&mut self) -> Option<&mut SceneObjectGroup> {
        Some(self)
    }

    fn hash(&self, hash: &mut StateHash) {
        for part in &self.parts {
            hash.add(u64::from(part.local_id) << 32 | u64::from(part.updates));
            hash.add(part.name.len() as u64);
            part.inventory.iter().for_each(|item| hash.add(u64::from(item.item_id) << 8 | item.name.len() as u64));
            hash.add_all(part.position.into_iter().chain(part.colour).chain([part.rotation]));
        }
    }
}

/// An avatar in the region.
#[derive(Debug, Clone)]
pub struct ScenePresence {
    /// Unique in the region.
    pub local_id: u32,
    /// Feet, m.
    pub position: [f32; 3],
    /// Direction of view and motion, radians.
    pub heading: f32,
    /// m/s.
    pub speed: f32,
}

impl SceneEntity for ScenePresence {
    fn update(&mut self, news: &mut Vec<ObjectUpdate>) {
        let Self { local_id, position, heading, .. } = *self;
        news.push(ObjectUpdate { local_id, position, rotation: heading, colour: [1.0; 3] });
    }

    fn as_presence_mut(&mut self) -> Option<&mut ScenePresence> {
        Some(self)
    }

    fn hash(&self, hash: &mut StateHash) {
        hash.add(u64::from(self.local_id));
        hash.add_all(self.position.into_iter().chain([self.heading, self.speed]));
    }
}

/// A change that a script requested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The part that holds the script.
    pub local_id: u32,
    /// The new appearance.
    pub to: Appearance,
}

/// The properties of a part that scripts can change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Appearance {
    /// Rotation about the vertical axis, radians.
    Rotation(f32),
    /// Red, green, blue, from 0 to 1.
    Colour([f32; 3]),
}

/// All entities of the region: groups, then presences.
pub struct SceneGraph {
    entities: Vec<Box<dyn SceneEntity>>,
    groups: usize,
    group_of_prim: HashMap<u32, usize>,
    /// Entities that may have updates. Empty if every step asks all.
    updated: BTreeSet<usize>,
    asks_every_group: bool,
    updates_all: bool,
}

impl SceneGraph {
    /// A scene without presences.
    pub fn new(groups: Vec<SceneObjectGroup>, switches: &Switches) -> Self {
        let numbered = groups.iter().enumerate();
        let group_of_prim =
            numbered.flat_map(|(index, group)| group.parts.iter().map(move |part| (part.local_id, index))).collect();
        Self {
            groups: groups.len(),
            entities: groups.into_iter().map(|group| Box::new(group) as Box<dyn SceneEntity>).collect(),
            group_of_prim,
            updated: BTreeSet::new(),
            asks_every_group: switches.is_slow(Switch::LinearLookup),
            updates_all: switches.is_slow(Switch::UpdateAll),
        }
    }

    /// Adds an avatar.
    pub fn add_presence(&mut self, presence: ScenePresence) {
        self.entities.push(Box::new(presence));
    }

    /// All presences, in order.
    pub fn presences_mut(&mut self) -> impl Iterator<Item = &mut ScenePresence> {
        self.entities[self.groups..].iter_mut().filter_map(|entity| entity.as_presence_mut())
    }

    /// The presence of this number.
    pub fn presence_mut(&mut self, number: u32) -> Option<&mut ScenePresence> {
        self.entities.get_mut(self.groups + number as usize)?.as_presence_mut()
    }

    /// Applies the changes that scripts requested.
    #[inline(never)]
    pub fn apply_changes(&mut self, changes: &[Change]) {
        let _timed = account::scope("ground::region::scene::SceneGraph::apply_changes");
        for change in changes {
            let Some(group) = self.get_group_by_prim(change.local_id) else { continue };
            let part = self.entities[group].as_group_mut().and_then(|group| group.part_mut(change.local_id));
            let Some(part) = part else { continue };
            match change.to {
                Appearance::Rotation(rotation) => part.turn(rotation),
                Appearance::Colour(colour) => part.paint(colour),
            }
            if !self.updates_all {
                self.updated.insert(group);
            }
        }
    }

    /// The index of the group that a part belongs to.
    #[inline(never)]
    pub fn get_group_by_prim(&self, local_id: u32) -> Option<usize> {
        if !self.asks_every_group {
            return self.group_of_prim.get(&local_id).copied();
        }
        self.entities.iter().position(|entity| entity.as_group().is_some_and(|group| group.has_child_prim(local_id)))
    }

    /// Collects the updates of all entities, in their order.
    #[inline(never)]
    pub fn update(&mut self, news: &mut Vec<ObjectUpdate>) {
        let _timed = account::scope("ground::region::scene::SceneGraph::update");
        if self.updates_all {
            self.entities.iter_mut().for_each(|entity| entity.update(news));
        } else {
            self.updated.iter().for_each(|index| self.entities[*index].update(news));
            self.entities[self.groups..].iter_mut().for_each(|presence| presence.update(news));
        }
        self.updated.clear();
    }

    /// Adds the whole scene to a hash.
    pub fn hash(&self, hash: &mut StateHash) {
        self.entities.iter().for_each(|entity| entity.hash(hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(switches: &Switches) -> SceneGraph {
        let part = |id| SceneObjectPart::new(id, format!("part {id}"), [0.0; 3], [1.0; 3], 0);
        let group = |ids: &[u32]| SceneObjectGroup { parts: ids.iter().map(|id| part(*id)).collect() };
        SceneGraph::new(vec![group(&[1, 2]), group(&[5]), group(&[7, 3])], switches)
    }

    #[test]
    fn both_searches_find_the_group_of_a_part() {
        for switches in [Switches::default(), Switches::only(Switch::LinearLookup)] {
            let scene = scene(&switches);
            let found = [1, 2, 3, 4, 5, 7].map(|id| scene.get_group_by_prim(id));
            assert_eq!(found, [Some(0), Some(0), Some(2), None, Some(1), Some(2)]);
        }
    }

    #[test]
    fn each_change_gives_one_update_in_the_order_of_the_scene() {
        for switches in [Switches::default(), Switches::only(Switch::UpdateAll)] {
            let mut scene = scene(&switches);
            scene.add_presence(ScenePresence { local_id: 100, position: [0.0; 3], heading: 2.0, speed: 0.0 });
            let turned = |local_id| Change { local_id, to: Appearance::Rotation(0.5) };
            let grey = Change { local_id: 5, to: Appearance::Colour([0.5; 3]) };
            scene.apply_changes(&[turned(3), turned(2), turned(4), grey]);
            let mut updated = |_| {
                let mut news = Vec::new();
                scene.update(&mut news);
                news.iter().map(|news| (news.local_id, news.rotation)).collect::<Vec<_>>()
            };
            assert_eq!(updated(1), [(2, 0.5), (3, 0.5), (100, 2.0)]);
            assert_eq!(updated(2), [(100, 2.0)]);
        }
    }
}
