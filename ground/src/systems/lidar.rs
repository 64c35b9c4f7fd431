//! Lidars: measure the distance to the nearest object in all directions.

use std::collections::HashMap;
use std::f32::consts::TAU;
use std::sync::Arc;

use rapier3d::math::Vector;

use super::scene_graph::radius;
use super::{PostUpdate, Readings, UpdateInfo};
use crate::account;
use crate::components::{self, Visual, WorldPose};
use crate::ecs::{Entity, EntityComponentManager};
use crate::switches::{Switch, Switches};

/// Rays per scan.
const RAYS: usize = 90;
/// Longest distance, m.
const RANGE: f32 = 12.0;

/// One of the workers that share the world's lidars.
pub struct Lidars {
    worker: usize,
    workers: usize,
    switches: Switches,
    sensors: Vec<Sensor>,
    /// Number of sensors of all workers.
    known: usize,
    targets: Vec<Target>,
    targets_of: HashMap<Entity, Vec<usize>>,
    ranges: Vec<f32>,
    readings: Arc<Readings>,
}

struct Sensor {
    link: Entity,
    interval_s: f64,
    next_s: f64,
}

/// The bounding sphere of an object.
#[derive(Debug, Clone, Copy)]
struct Target {
    link: Entity,
    centre: Vector,
    radius: f32,
}

impl Lidars {
    /// Worker number `worker` of `workers`, which adds its scans to `readings`.
    pub fn new(worker: usize, workers: usize, switches: Switches, readings: Arc<Readings>) -> Self {
        Self {
            worker,
            workers,
            switches,
            sensors: Vec::new(),
            known: 0,
            targets: Vec::new(),
            targets_of: HashMap::new(),
            ranges: Vec::new(),
            readings,
        }
    }

    fn learn_new_things(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        for &entity in ecm.newly_created() {
            if let Some(lidar) = ecm.component::<components::Lidar>(entity) {
                let (link, interval_s) = (lidar.link, lidar.interval_s);
                self.add_sensor(link, interval_s, info);
            }
            if let Some(Visual(geometry)) = ecm.component::<Visual>(entity) {
                let link = ecm.entities().vertex(entity).and_then(|vertex| vertex.parent);
                let pose = link.and_then(|link| Some((link, ecm.component::<WorldPose>(link)?.0)));
                let (Some((link, pose)), Some(radius)) = (pose, radius(geometry)) else { continue };
                self.targets_of.entry(link).or_default().push(self.targets.len());
                self.targets.push(Target { link, centre: pose.translation, radius });
            }
        }
    }

    /// Distributes sensors round-robin, each with a slightly later first scan.
    fn add_sensor(&mut self, link: Entity, interval_s: f64, info: &UpdateInfo) {
        let number = self.known;
        self.known += 1;
        let worker = if self.switches.is_slow(Switch::Imbalance) { 0 } else { number % self.workers };
        if worker == self.worker {
            let steps = (interval_s / info.step_s).round().max(1.0);
            let next_s = info.sim_time_s + (number as f64 % steps) * info.step_s;
            self.sensors.push(Sensor { link, interval_s, next_s });
        }
    }

    fn follow_what_moved(&mut self, ecm: &EntityComponentManager) {
        for link in ecm.changed_poses() {
            let Some(WorldPose(pose)) = ecm.component::<WorldPose>(*link) else { continue };
            for &target in self.targets_of.get(link).into_iter().flatten() {
                self.targets[target].centre = pose.translation;
            }
        }
    }

    /// Distance to the nearest object in each direction from `at`, except the lidar's own body.
    #[inline(never)]
    fn scan(&mut self, own: Entity, at: Vector) {
        let _timed = account::scope("ground::systems::lidar::Lidars::scan");
        self.ranges.clear();
        for ray in 0..RAYS {
            let (sin, cos) = (TAU * ray as f32 / RAYS as f32).sin_cos();
            let direction = Vector::new(cos, sin, 0.0);
            let mut nearest = RANGE;
            for target in self.targets.iter().filter(|target| target.link != own) {
                nearest = nearest.min(distance(at, direction, target).unwrap_or(RANGE));
            }
            self.ranges.push(nearest);
        }
    }
}

/// The distance along a ray to a sphere.
fn distance(from: Vector, direction: Vector, target: &Target) -> Option<f32> {
    let to_centre = target.centre - from;
    let along = to_centre.dot(direction);
    let aside = to_centre.length_squared() - along * along;
    let inside = target.radius * target.radius - aside;
    if inside < 0.0 || along < 0.0 {
        return None;
    }
    Some((along - inside.sqrt()).max(0.0))
}

impl PostUpdate for Lidars {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("Lidars::PostUpdate");
        if !ecm.newly_created().is_empty() {
            self.learn_new_things(info, ecm);
        }
        self.follow_what_moved(ecm);
        let mut due = Vec::new();
        for sensor in &mut self.sensors {
            // Half a step of tolerance: times are sums of steps.
            if info.sim_time_s + info.step_s / 2.0 >= sensor.next_s {
                sensor.next_s += sensor.interval_s;
                due.push(sensor.link);
            }
        }
        for link in due {
            let Some(at) = ecm.component::<WorldPose>(link).map(|pose| pose.0.translation) else { continue };
            self.scan(link, at);
            self.readings.add(&self.ranges);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ray_is_as_long_as_the_way_to_the_surface_in_front() {
        let mut ecm = EntityComponentManager::default();
        let link = ecm.create_entity("link", None, ());
        let target = |x: f32, radius: f32| Target { link, centre: Vector::new(x, 0.0, 0.0), radius };
        let ray = |target| distance(Vector::ZERO, Vector::X, &target);
        assert_eq!(ray(target(5.0, 1.0)), Some(4.0));
        assert_eq!(ray(target(-5.0, 1.0)), None, "behind");
        assert_eq!(distance(Vector::new(0.0, 3.0, 0.0), Vector::X, &target(5.0, 1.0)), None, "beside");
    }

    #[test]
    fn sensors_are_distributed_round_robin_or_all_to_the_first() {
        let shares = |switches: &Switches| {
            let mut ecm = EntityComponentManager::default();
            let link = ecm.create_entity("link", None, ());
            let info = UpdateInfo { step: 0, sim_time_s: 0.001, step_s: 0.001 };
            [0, 1, 2].map(|worker| {
                let mut lidars = Lidars::new(worker, 3, switches.clone(), Arc::default());
                (0..10).for_each(|_| lidars.add_sensor(link, 0.02, &info));
                lidars.sensors.len()
            })
        };
        assert_eq!(shares(&Switches::default()), [4, 3, 3]);
        assert_eq!(shares(&Switches::only(Switch::Imbalance)), [10, 0, 0]);
    }
}
