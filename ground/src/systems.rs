//! The systems besides physics: one drives robots before a step, the others report after it.

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

/// A step and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpdateInfo {
    /// Number of the step, from 0.
    pub step: u64,
    /// Simulated time at its end, s.
    pub sim_time_s: f64,
    /// Simulated time of a step, s.
    pub step_s: f64,
}

/// A system that reads the world after each step, on its own thread.
pub trait PostUpdate: Send {
    /// Reads the world.
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager);
}

/// The measurements of all sensors: their number, and a digest that does not depend on their order.
#[derive(Debug, Default)]
pub struct Readings {
    count: AtomicU64,
    digest: AtomicU64,
}

impl Readings {
    /// Adds a reading with all bits of its numbers.
    pub fn add(&self, numbers: &[f32]) {
        // FNV-1a over whole numbers.
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

    /// The sum of the digests of all readings.
    pub fn digest(&self) -> u64 {
        self.digest.load(Ordering::Relaxed)
    }
}
