//! A camera that turns on the spot and sees textured objects.

use std::collections::HashMap;
use std::f64::consts::TAU;
use std::sync::Arc;

use rapier3d::math::Vector;

use super::{PostUpdate, Readings, UpdateInfo};
use crate::components::{self, Textured, WorldPose};
use crate::ecs::EntityComponentManager;
use crate::switches::{Switch, Switches};
use crate::textures::{Image, decode_texture, texture_file};

/// Pixels read from each texture in view, per step.
const SAMPLES: usize = 256;

/// Renders the textured objects in view of each camera, in each step.
pub struct Camera {
    switches: Switches,
    objects: Vec<Object>,
    /// Files by name.
    files: HashMap<String, Arc<[u8]>>,
    /// Images by the content of their files: decoded once, when the world is loaded.
    images: HashMap<Arc<[u8]>, Arc<Image>>,
    readings: Arc<Readings>,
}

/// A textured object at a fixed position.
struct Object {
    position: Vector,
    file: Arc<[u8]>,
    /// The image, once decoded.
    image: Option<Arc<Image>>,
}

impl Camera {
    /// Adds the mean brightness of each view to `readings`, 0 to 255.
    pub fn new(switches: Switches, readings: Arc<Readings>) -> Self {
        Self { switches, objects: Vec::new(), files: HashMap::new(), images: HashMap::new(), readings }
    }

    fn add_new_objects(&mut self, ecm: &EntityComponentManager) {
        for &entity in ecm.newly_created() {
            let Some(Textured { link, texture }) = ecm.component::<Textured>(entity) else { continue };
            let Some(WorldPose(pose)) = ecm.component::<WorldPose>(link) else { continue };
            let file = self.files.entry(texture).or_insert_with_key(|name| texture_file(name)).clone();
            let image = self.load_image(&file);
            self.objects.push(Object { position: pose.translation, file, image });
        }
    }

    /// The image of a file, decoded once for equal files. `None` if it is decoded when it comes into view.
    fn load_image(&mut self, file: &Arc<[u8]>) -> Option<Arc<Image>> {
        if self.switches.is_slow(Switch::LazyTexture) {
            return None;
        }
        let image = self.images.entry(file.clone()).or_insert_with_key(|file| Arc::new(decode_texture(file)));
        Some(image.clone())
    }

    #[inline(never)]
    fn look(&mut self, camera: &components::Camera, at: Vector, info: &UpdateInfo) {
        let heading = TAU * (info.sim_time_s / camera.period_s).fract();
        let in_view = |place: Vector| {
            let angle = f64::from((place.y - at.y).atan2(place.x - at.x)) - heading;
            ((angle + TAU / 2.0).rem_euclid(TAU) - TAU / 2.0).abs() < camera.field_of_view / 2.0
        };
        let (mut sum, mut visible) = (0.0, 0);
        for object in &mut self.objects {
            if in_view(object.position) {
                let image = object.image.get_or_insert_with(|| Arc::new(decode_texture(&object.file)));
                sum += image.brightness(SAMPLES);
                visible += 1;
            } else if self.switches.is_slow(Switch::LazyTexture) {
                object.image = None;
            }
        }
        self.readings.add(&[(sum / f64::from(visible.max(1))) as f32]);
    }
}

impl PostUpdate for Camera {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("Camera::PostUpdate");
        if !ecm.newly_created().is_empty() {
            self.add_new_objects(ecm);
        }
        let mut cameras = Vec::new();
        ecm.each::<&components::Camera>(|camera| cameras.push(*camera));
        for camera in cameras {
            let Some(at) = ecm.component::<WorldPose>(camera.link).map(|pose| pose.0.translation) else { continue };
            self.look(&camera, at, info);
        }
    }
}
