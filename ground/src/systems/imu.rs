//! Inertial measurement units.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rapier3d::math::Vector;

use super::{PostUpdate, UpdateInfo};
use crate::components::{self, WorldPose, WorldVelocity};
use crate::ecs::{Entity, EntityComponentManager};

/// One reading, in the sensor's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Proper acceleration, m/s².
    pub linear_acceleration: Vector,
    /// rad/s.
    pub angular_velocity: Vector,
}

/// Measures at each unit's rate.
pub struct Imu {
    gravity: Vector,
    sensors: HashMap<Entity, SensorState>,
    measured: Arc<AtomicU64>,
}

struct SensorState {
    next_s: f64,
    last_velocity: Vector,
    last_time_s: f64,
    last: Option<Measurement>,
}

impl Imu {
    /// Counts its readings in `measured`.
    pub fn new(gravity: Vector, measured: Arc<AtomicU64>) -> Self {
        Self { gravity, sensors: HashMap::new(), measured }
    }

    /// The last reading of a sensor.
    pub fn last(&self, sensor: Entity) -> Option<Measurement> {
        self.sensors.get(&sensor)?.last
    }
}

impl PostUpdate for Imu {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("Imu::PostUpdate");
        let mut readings = 0;
        ecm.each::<(Entity, &components::Imu)>(|(entity, imu)| {
            let (Some(pose), Some(velocity)) =
                (ecm.component::<WorldPose>(imu.link), ecm.component::<WorldVelocity>(imu.link))
            else {
                return;
            };
            let state = self.sensors.entry(entity).or_insert(SensorState {
                next_s: info.sim_time_s + imu.interval_s,
                last_velocity: velocity.linear,
                last_time_s: info.sim_time_s,
                last: None,
            });
            // Half a step of tolerance: times are sums of steps.
            if info.sim_time_s + info.step_s / 2.0 < state.next_s {
                return;
            }
            let elapsed_s = (info.sim_time_s - state.last_time_s) as f32;
            let acceleration = (velocity.linear - state.last_velocity) / elapsed_s - self.gravity;
            let to_sensor = pose.0.rotation.inverse();
            state.last = Some(Measurement {
                linear_acceleration: to_sensor * acceleration,
                angular_velocity: to_sensor * velocity.angular,
            });
            state.last_velocity = velocity.linear;
            state.last_time_s = info.sim_time_s;
            state.next_s += imu.interval_s;
            readings += 1;
        });
        self.measured.fetch_add(readings, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapier3d::math::Pose;

    const GRAVITY: Vector = Vector::new(0.0, 0.0, -9.8);

    #[test]
    fn a_unit_at_rest_measures_the_ground_pushing_up_at_its_rate() {
        let mut ecm = EntityComponentManager::default();
        let velocity = WorldVelocity { linear: Vector::ZERO, angular: Vector::Z };
        let link = ecm.create_entity("link", None, (WorldPose(Pose::IDENTITY), velocity));
        let sensor = ecm.create_entity("imu", Some(link), (components::Imu { link, interval_s: 0.005 },));
        let measured = Arc::new(AtomicU64::new(0));
        let mut imu = Imu::new(GRAVITY, measured.clone());
        for step in 0..=20 {
            let info = UpdateInfo { step, sim_time_s: (step + 1) as f64 * 0.001, step_s: 0.001 };
            imu.post_update(&info, &ecm);
        }
        assert_eq!(measured.load(Ordering::Relaxed), 4, "20 ms after the first look, at 200 Hz");
        let expected = Measurement { linear_acceleration: -GRAVITY, angular_velocity: Vector::Z };
        assert_eq!(imu.last(sensor), Some(expected));
    }
}
