//! The systems beside physics: what drives robots before a step, and what reports after it.

pub mod camera;
pub mod imu;
pub mod lidar;
pub mod patrol;
pub mod scene_broadcaster;
pub mod state_log;

use crate::ecs::EntityComponentManager;

/// Which step it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpdateInfo {
    /// Number of the step, from 0.
    pub step: u64,
    /// Simulated time at its end, s.
    pub sim_time_s: f64,
    /// Simulated time it takes, s.
    pub step_s: f64,
}

/// A system that looks at the world after each step, on a thread of its own.
pub trait PostUpdate: Send {
    /// Looks at the world.
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager);
}
