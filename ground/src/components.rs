//! The components of entities.

use std::sync::Arc;

use rapier3d::math::{Pose, Vector};

use crate::sdf;

/// The entity is a model. Holds its description.
#[derive(Debug, Clone)]
pub struct Model(pub Arc<sdf::Model>);

/// Request to remove the model and create it again from its description before the next step.
#[derive(Debug, Clone, Copy)]
pub struct Recreate;

/// The entity never moves.
#[derive(Debug, Clone, Copy)]
pub struct Static;

/// The entity is a rigid body.
#[derive(Debug, Clone, Copy)]
pub struct Link;

/// The entity is a shape that collides.
#[derive(Debug, Clone, Copy)]
pub struct Collision(pub sdf::Geometry);

/// The entity is a visible shape.
#[derive(Debug, Clone, Copy)]
pub struct Visual(pub sdf::Geometry);

/// Pose relative to the parent entity.
#[derive(Debug, Clone, Copy)]
pub struct LocalPose(pub Pose);

/// Pose of a link in the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldPose(pub Pose);

/// Velocity of a link in the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldVelocity {
    /// m/s.
    pub linear: Vector,
    /// rad/s.
    pub angular: Vector,
}

/// Force on a link's centre of mass for the next step, N.
#[derive(Debug, Clone, Copy)]
pub struct ForceCommand(pub Vector);

/// The link drives in a circle.
#[derive(Debug, Clone, Copy)]
pub struct Patrol {
    /// Centre of the circle.
    pub centre: Vector,
    /// Its radius, m.
    pub radius: f64,
    /// Time of one round, s.
    pub period_s: f64,
}

/// The entity is a camera on its parent link that turns on the spot.
#[derive(Debug, Clone, Copy)]
pub struct Camera {
    /// The link it is on.
    pub link: hecs::Entity,
    /// Time of one turn, s.
    pub period_s: f64,
    /// Field of view, rad.
    pub field_of_view: f64,
}

/// The entity is a depth camera on its parent link that looks along the link's x axis.
#[derive(Debug, Clone, Copy)]
pub struct DepthCamera {
    /// The link it is on.
    pub link: hecs::Entity,
}

/// The entity is a lidar on its parent link.
#[derive(Debug, Clone, Copy)]
pub struct Lidar {
    /// The link it is on.
    pub link: hecs::Entity,
    /// Simulated time between scans, s.
    pub interval_s: f64,
}

/// The entity has a texture.
#[derive(Debug, Clone)]
pub struct Textured {
    /// The link it is on.
    pub link: hecs::Entity,
    /// Name of the texture file.
    pub texture: String,
}

/// The entity is an inertial measurement unit on its parent link.
#[derive(Debug, Clone, Copy)]
pub struct Imu {
    /// The link it is on.
    pub link: hecs::Entity,
    /// Simulated time between measurements, s.
    pub interval_s: f64,
}
