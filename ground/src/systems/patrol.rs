//! Drives robots in circles.

use std::f64::consts::TAU;

use rapier3d::math::Vector;

use super::UpdateInfo;
use crate::components::{ForceCommand, Patrol, WorldPose, WorldVelocity};
use crate::ecs::EntityComponentManager;

/// Stiffness towards the target point, N/m.
const STIFFNESS: f32 = 40.0;
/// Damping, N s/m.
const DAMPING: f32 = 12.0;

/// Sets each robot's force towards its target point on the circle.
pub fn pre_update(info: &UpdateInfo, ecm: &EntityComponentManager) {
    ecm.each::<(&Patrol, &WorldPose, &WorldVelocity, &mut ForceCommand)>(|(patrol, pose, velocity, command)| {
        let target = target(patrol, info.sim_time_s);
        let mut force = STIFFNESS * (target - pose.0.translation) - DAMPING * velocity.linear;
        force.z = 0.0;
        command.0 = force;
    });
}

fn target(patrol: &Patrol, sim_time_s: f64) -> Vector {
    let angle = TAU * (sim_time_s / patrol.period_s).fract();
    let (sin, cos) = angle.sin_cos();
    patrol.centre + Vector::new((patrol.radius * cos) as f32, (patrol.radius * sin) as f32, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_robot_stays_on_its_circle() {
        let patrol = Patrol { centre: Vector::new(1.0, 0.0, 0.0), radius: 2.0, period_s: 8.0 };
        let near = |time, x, y| (target(&patrol, time) - Vector::new(x, y, 0.0)).length() < 1e-5;
        assert!(near(0.0, 3.0, 0.0));
        assert!(near(2.0, 1.0, 2.0));
        assert!(near(8004.0, -1.0, 0.0));
    }
}
