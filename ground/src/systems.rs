//! The systems beside physics: what drives robots before a step, and what reports after it.

pub mod camera;
pub mod depth_camera;
pub mod imu;
pub mod lidar;
pub mod patrol;
pub mod scene_broadcaster;
pub mod scene_graph;
pub mod state_log;

use std::sync::atomic::{AtomicU64, Ordering};

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

/// What the sensors of a world measured: how often, and a digest of it that does not depend on the order.
#[derive(Debug, Default)]
pub struct Readings {
    count: AtomicU64,
    digest: AtomicU64,
}

impl Readings {
    /// Adds a reading: its numbers, to the last bit.
    pub fn add(&self, numbers: &[f32]) {
        // FNV-1a, a number at a time.
        let digest = numbers.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, number| {
            (digest ^ u64::from(number.to_bits())).wrapping_mul(0x0100_0000_01b3)
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        self.digest.fetch_add(digest, Ordering::Relaxed);
    }

    /// Number of readings.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The sum of the readings' digests.
    pub fn digest(&self) -> u64 {
        self.digest.load(Ordering::Relaxed)
    }
}
