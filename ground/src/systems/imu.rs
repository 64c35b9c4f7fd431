//! Inertial measurement units.

use std::collections::HashMap;
use std::sync::Arc;

use rapier3d::math::Vector;

use super::{PostUpdate, Readings, UpdateInfo};
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

/// Measures at each sensor's rate.
pub struct Imu {
    gravity: Vector,
    sensors: HashMap<Entity, SensorState>,
    readings: Arc<Readings>,
}

struct SensorState {
    next_s: f64,
    last_velocity: Vector,
    last_time_s: f64,
    last: Option<Measurement>,
}

impl Imu {
    /// Adds measurements to `readings`.
    pub fn new(gravity: Vector, readings: Arc<Readings>) -> Self {
        Self { gravity, sensors: HashMap::new(), readings }
    }

    /// The last reading of a sensor.
    pub fn last(&self, sensor: Entity) -> Option<Measurement> {
        self.sensors.get(&sensor)?.last
    }
}

impl PostUpdate for Imu {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("Imu::PostUpdate");
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
            // With half a step of tolerance, because times are sums of steps.
            if info.sim_time_s + info.step_s / 2.0 < state.next_s {
                return;
            }
            let elapsed_s = (info.sim_time_s - state.last_time_s) as f32;
            let acceleration = (velocity.linear - state.last_velocity) / elapsed_s - self.gravity;
            let to_sensor = pose.0.rotation.inverse();
            let (linear_acceleration, angular_velocity) = (to_sensor * acceleration, to_sensor * velocity.angular);
            self.readings.add([linear_acceleration.to_array(), angular_velocity.to_array()].as_flattened());
            state.last = Some(Measurement { linear_acceleration, angular_velocity });
            state.last_velocity = velocity.linear;
            state.last_time_s = info.sim_time_s;
            state.next_s += imu.interval_s;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapier3d::math::Pose;

    const GRAVITY: Vector = Vector::new(0.0, 0.0, -9.8);

    #[test]
    fn a_sensor_at_rest_measures_gravity_at_its_rate() {
        let mut ecm = EntityComponentManager::default();
        let velocity = WorldVelocity { linear: Vector::ZERO, angular: Vector::Z };
        let link = ecm.create_entity("link", None, (WorldPose(Pose::IDENTITY), velocity));
        let sensor = ecm.create_entity("imu", Some(link), (components::Imu { link, interval_s: 0.005 },));
        let readings = Arc::new(Readings::default());
        let mut imu = Imu::new(GRAVITY, readings.clone());
        for step in 0..=20 {
            let info = UpdateInfo { step, sim_time_s: (step + 1) as f64 * 0.001, step_s: 0.001 };
            imu.post_update(&info, &ecm);
        }
        assert_eq!(readings.count(), 4, "20 ms after the first look, at 200 Hz");
        let expected = Measurement { linear_acceleration: -GRAVITY, angular_velocity: Vector::Z };
        assert_eq!(imu.last(sensor), Some(expected));
    }
}
