//! Cameras that measure distances.

use std::sync::Arc;

use rapier3d::math::{Pose, Vector};

use super::scene_graph::{SceneGraph, Sphere};
use super::{PostUpdate, Readings, UpdateInfo};
use crate::account::{self, Counter};
use crate::components::{self, WorldPose};
use crate::ecs::EntityComponentManager;
use crate::switches::{Switch, Switches};

/// Pixels per row.
const WIDTH: usize = 160;
/// Rows per image.
const HEIGHT: usize = 120;
/// Distance in pixels from the middle of an image to a point 1 m ahead and 1 m to the side. The view is 60 degrees wide.
const FOCAL_LENGTH: f32 = 138.6;
/// Farthest visible distance, m.
const RANGE: f32 = 5.0;

/// All depth cameras of the world. Each renders an image per step.
pub struct DepthCameras {
    switches: Switches,
    scene: SceneGraph,
    /// Images of the last step, one per camera.
    frames: Vec<Frame>,
    /// Objects in view of the last camera.
    visible: Vec<Sight>,
    readings: Arc<Readings>,
}

/// An image whose rows have separate buffers, like a message with repeated fields.
struct Frame {
    rows: Vec<Row>,
}

struct Row {
    /// Distance ahead of the camera, m; infinite if the pixel is empty.
    depths: Vec<f32>,
    /// Number of the object; [`NOTHING`] if the pixel is empty.
    labels: Vec<u32>,
}

const NOTHING: u32 = u32::MAX;

/// An object in the frame of a camera.
struct Sight {
    label: u32,
    /// Position: x ahead, y to the left, z up.
    at: Vector,
    radius: f32,
}

impl DepthCameras {
    /// Adds the middle row of each image to `readings`.
    pub fn new(switches: Switches, readings: Arc<Readings>) -> Self {
        Self { switches, scene: SceneGraph::default(), frames: Vec::new(), visible: Vec::new(), readings }
    }

    #[inline(never)]
    fn render(&mut self, cameras: &[Pose], ecm: &EntityComponentManager) {
        let _timed = account::scope("ground::systems::depth_camera::DepthCameras::render");
        self.scene.follow_moved_links(ecm);
        if !self.switches.is_slow(Switch::Derived) {
            self.scene.propagate(ecm);
        }
        self.prepare_frames(cameras.len());
        for (number, camera) in cameras.iter().enumerate() {
            if self.switches.is_slow(Switch::Derived) {
                self.scene.derived_positions();
            }
            find_visible(&self.scene, camera, &mut self.visible);
            let frame = &mut self.frames[number];
            self.visible.iter().for_each(|sight| frame.draw(sight));
            self.readings.add(frame.middle_row());
        }
    }

    /// An empty image for each camera.
    #[inline(never)]
    fn prepare_frames(&mut self, count: usize) {
        let _timed = account::scope("ground::systems::depth_camera::DepthCameras::prepare_frames");
        let _allocations = account::allocations_for(Counter::AllocationsForFrames);
        if self.switches.is_slow(Switch::AllocChurn) {
            self.frames.clear();
        }
        self.frames.truncate(count);
        self.frames.iter_mut().for_each(Frame::clear);
        self.frames.resize_with(count, Frame::new);
    }
}

/// Finds the objects in range and in view of a camera.
#[inline(never)]
fn find_visible(scene: &SceneGraph, camera: &Pose, visible: &mut Vec<Sight>) {
    let to_camera = camera.inverse();
    let aside = WIDTH as f32 / 2.0 / FOCAL_LENGTH;
    visible.clear();
    for (label, &Sphere { centre, radius }) in scene.spheres().iter().enumerate() {
        if (centre - camera.translation).length_squared() > RANGE * RANGE {
            continue;
        }
        let at = to_camera * centre;
        if at.x > radius && at.y.abs() - radius < at.x * aside {
            visible.push(Sight { label: label as u32, at, radius });
        }
    }
}

impl Row {
    fn new() -> Self {
        Self { depths: vec![f32::INFINITY; WIDTH], labels: vec![NOTHING; WIDTH] }
    }
}

impl Frame {
    fn new() -> Self {
        Self { rows: std::iter::repeat_with(Row::new).take(HEIGHT).collect() }
    }

    fn clear(&mut self) {
        for row in &mut self.rows {
            row.depths.fill(f32::INFINITY);
            row.labels.fill(NOTHING);
        }
    }

    /// Draws an object as its bounding square, unless a nearer one covers it.
    fn draw(&mut self, sight: &Sight) {
        let pixels = |aside: f32| aside / sight.at.x * FOCAL_LENGTH;
        let span = |middle: f32, size: usize| {
            let (middle, half) = (size as f32 / 2.0 - pixels(middle), pixels(sight.radius));
            // Casts from floating point saturate.
            ((middle - half) as usize).min(size)..((middle + half) as usize).min(size)
        };
        for row in &mut self.rows[span(sight.at.z, HEIGHT)] {
            for column in span(sight.at.y, WIDTH) {
                if sight.at.x < row.depths[column] {
                    row.depths[column] = sight.at.x;
                    row.labels[column] = sight.label;
                }
            }
        }
    }

    fn middle_row(&self) -> &[f32] {
        &self.rows[HEIGHT / 2].depths
    }
}

impl PostUpdate for DepthCameras {
    fn post_update(&mut self, _info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("DepthCameras::PostUpdate");
        if !ecm.newly_created().is_empty() {
            self.scene.add_new_nodes(ecm);
        }
        let mut cameras = Vec::new();
        ecm.each::<&components::DepthCamera>(|camera| cameras.extend(ecm.component::<WorldPose>(camera.link)));
        let cameras: Vec<Pose> = cameras.into_iter().map(|WorldPose(pose)| pose).collect();
        self.render(&cameras, ecm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_of_two_objects_covers_the_other() {
        let mut frame = Frame::new();
        frame.draw(&Sight { label: 1, at: Vector::new(4.0, 0.0, 0.0), radius: 0.5 });
        frame.draw(&Sight { label: 2, at: Vector::new(8.0, 0.0, 0.0), radius: 2.0 });
        let middle = frame.middle_row();
        // At 4 m, 0.5 m are 17.3 pixels to either side; at 8 m, 2 m are 34.6.
        let seen = |depth: f32| middle.iter().filter(|pixel| **pixel == depth).count();
        assert_eq!((seen(4.0), seen(8.0), seen(f32::INFINITY)), (35, 69 - 35, 160 - 69));
        frame.clear();
        assert!(frame.rows.iter().flat_map(|row| &row.labels).all(|label| *label == NOTHING));
        assert_eq!(frame.middle_row(), [f32::INFINITY; WIDTH]);
    }
}
