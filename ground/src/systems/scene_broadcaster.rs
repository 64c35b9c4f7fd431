//! Publishes the scene and changed poses to subscribers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PostUpdate, UpdateInfo};
use crate::account;
use crate::components::{Model, WorldPose};
use crate::ecs::{Entity, EntityComponentManager};
use crate::sdf::Element;
use crate::switches::{Switch, Switches};
use crate::transport::Publisher;

/// Sends each subscriber the scene when it comes, and the poses that change at [`SceneBroadcaster::RATE_HZ`].
pub struct SceneBroadcaster {
    switches: Switches,
    publisher: Option<Publisher>,
    scene: BTreeMap<Entity, SceneModel>,
    message: String,
    next_s: f64,
}

/// The SDF text of a model for subscribers.
#[derive(Debug, Clone, PartialEq)]
enum SceneModel {
    /// The text, written when the model was created.
    Written(String),
    /// The element to write when a subscriber connects.
    OnDemand(Arc<Element>),
}

impl SceneModel {
    fn text(&self) -> Cow<'_, str> {
        match self {
            SceneModel::Written(text) => Cow::Borrowed(text),
            SceneModel::OnDemand(element) => Cow::Owned(sdf_model_serializer(element)),
        }
    }
}

/// A model's description as text.
#[inline(never)]
fn sdf_model_serializer(element: &Element) -> String {
    let mut text = String::new();
    element.to_string("", &mut text);
    text
}

impl SceneBroadcaster {
    /// Pose messages per simulated second.
    pub const RATE_HZ: f64 = 60.0;

    /// Publishes to `publisher`, if there is one.
    pub fn new(switches: Switches, publisher: Option<Publisher>) -> Self {
        Self { switches, publisher, scene: BTreeMap::new(), message: String::new(), next_s: 0.0 }
    }

    /// The whole scene as SDF models.
    pub fn scene_text(&self) -> String {
        self.scene.values().map(SceneModel::text).collect()
    }

    #[inline(never)]
    fn add_new_entities(&mut self, ecm: &EntityComponentManager) {
        let _timed = account::scope("ground::systems::scene_broadcaster::SceneBroadcaster::add_new_entities");
        for &entity in ecm.newly_created() {
            if let Some(Model(model)) = ecm.component::<Model>(entity) {
                self.add_entity_to_message(entity, &model.element);
            }
        }
        self.scene.retain(|entity, _| ecm.entities().vertex(*entity).is_some());
    }

    fn add_entity_to_message(&mut self, entity: Entity, element: &Arc<Element>) {
        let model = if self.switches.is_slow(Switch::SerializeFirst) {
            SceneModel::Written(sdf_model_serializer(element))
        } else {
            SceneModel::OnDemand(element.clone())
        };
        self.scene.insert(entity, model);
    }

    #[inline(never)]
    fn publish(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        let Some(publisher) = &self.publisher else { return };
        if publisher.has_newcomers() {
            publisher.welcome(&self.scene_text());
        }
        if info.sim_time_s < self.next_s || !publisher.has_subscribers() {
            return;
        }
        self.next_s = info.sim_time_s + 1.0 / Self::RATE_HZ;
        write_pose_message(info, ecm, &mut self.message);
        publisher.publish(&self.message);
    }
}

fn write_pose_message(info: &UpdateInfo, ecm: &EntityComponentManager, message: &mut String) {
    use std::fmt::Write;
    message.clear();
    let changed = ecm.changed_poses();
    let mut line = |text: std::fmt::Arguments<'_>| message.write_fmt(text).expect("a String takes all");
    line(format_args!("poses step={} sim_time_s={:.3} count={}\n", info.step, info.sim_time_s, changed.len()));
    for &entity in changed {
        let Some(WorldPose(pose)) = ecm.component::<WorldPose>(entity) else { continue };
        let (at, turn) = (pose.translation, pose.rotation);
        let id = entity.id();
        line(format_args!("{id} {} {} {} {} {} {} {}\n", at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w));
    }
}

impl PostUpdate for SceneBroadcaster {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("SceneBroadcaster::PostUpdate");
        if !ecm.newly_created().is_empty() {
            self.add_new_entities(ecm);
        }
        self.publish(info, ecm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdf::Root;
    use crate::worlds::{Mobility, WorldKind, WorldSpec, write_world};

    fn scene_of(switches: Switches) -> String {
        let spec = WorldSpec { kind: WorldKind::Shapes, shapes: 7, robots: 3, mobility: Mobility::Static, cameras: 0 };
        let mut text = String::new();
        write_world(&spec, &mut text).unwrap();
        let world = Root::from_element(Element::parse(&text, "w").unwrap(), "w").unwrap().world;
        let mut ecm = EntityComponentManager::default();
        for model in world.models {
            ecm.create_entity(&model.name.clone(), None, (Model(Arc::new(model)),));
        }
        let mut broadcaster = SceneBroadcaster::new(switches, None);
        broadcaster.post_update(&UpdateInfo { step: 0, sim_time_s: 0.001, step_s: 0.001 }, &ecm);
        broadcaster.scene_text()
    }

    #[test]
    fn the_scene_written_on_demand_is_the_one_written_at_first() {
        let on_demand = scene_of(Switches::default());
        assert_eq!(on_demand.matches("<model name=").count(), 11);
        assert_eq!(scene_of(Switches::only(Switch::SerializeFirst)), on_demand);
    }
}
