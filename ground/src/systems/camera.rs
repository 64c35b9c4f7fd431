//! A camera that turns on its spot and looks at textured things.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::TAU;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rapier3d::math::Vector;

use super::{PostUpdate, UpdateInfo};
use crate::components::{self, Textured, WorldPose};
use crate::ecs::EntityComponentManager;
use crate::switches::{Switch, Switches};
use crate::textures::{Image, decode_texture, texture_file};

/// Pixels looked at of each texture in view, each step.
const SAMPLES: usize = 256;

/// What decoding textures took while stepping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoding {
    /// Textures decoded.
    pub decodes: u64,
    /// CPU time of that.
    pub cpu: Duration,
}

/// Sees the world's textured things from a camera's place, each step.
pub struct Camera {
    switches: Switches,
    files: BTreeMap<String, Arc<[u8]>>,
    things: Vec<Thing>,
    /// By the texture's name: decoded once, when the world is loaded.
    cached: HashMap<String, Image>,
    /// By thing: decoded when it came into view, dropped when it left it.
    seen: BTreeMap<usize, Image>,
    decoding: Arc<Mutex<Decoding>>,
    brightness: f64,
}

/// Something with a texture, at a place that does not change.
struct Thing {
    place: Vector,
    texture: String,
}

impl Camera {
    /// Tells in `decoding` what it decodes.
    pub fn new(switches: Switches, decoding: Arc<Mutex<Decoding>>) -> Self {
        Self {
            switches,
            files: BTreeMap::new(),
            things: Vec::new(),
            cached: HashMap::new(),
            seen: BTreeMap::new(),
            decoding,
            brightness: 0.0,
        }
    }

    /// Mean brightness of what was in view at the last step, 0 to 255.
    pub fn brightness(&self) -> f64 {
        self.brightness
    }

    fn learn_new_things(&mut self, ecm: &EntityComponentManager) {
        for &entity in ecm.newly_created() {
            let Some(Textured { link, texture }) = ecm.component::<Textured>(entity) else { continue };
            let Some(WorldPose(pose)) = ecm.component::<WorldPose>(link) else { continue };
            self.files.entry(texture.clone()).or_insert_with(|| texture_file(&texture));
            self.things.push(Thing { place: pose.translation, texture });
        }
        if !self.switches.is_slow(Switch::LazyTexture) {
            for (name, file) in &self.files {
                self.cached.entry(name.clone()).or_insert_with(|| decode_texture(file));
            }
        }
    }

    fn look(&mut self, camera: &components::Camera, at: Vector, info: &UpdateInfo) {
        let heading = TAU * (info.sim_time_s / camera.period_s).fract();
        let in_view = |place: Vector| {
            let angle = f64::from((place.y - at.y).atan2(place.x - at.x)) - heading;
            (angle + TAU / 2.0).rem_euclid(TAU) - TAU / 2.0
        };
        let half = camera.field_of_view / 2.0;
        let visible: Vec<usize> =
            (0..self.things.len()).filter(|&thing| in_view(self.things[thing].place).abs() < half).collect();
        let sum: f64 = if self.switches.is_slow(Switch::LazyTexture) {
            self.seen.retain(|thing, _| visible.binary_search(thing).is_ok());
            visible.iter().map(|&thing| self.first_sight(thing).brightness(SAMPLES)).sum()
        } else {
            visible.iter().map(|&thing| self.cached[&self.things[thing].texture].brightness(SAMPLES)).sum()
        };
        self.brightness = sum / visible.len().max(1) as f64;
    }

    /// The texture of a thing in view, decoded if it just came into it.
    fn first_sight(&mut self, thing: usize) -> &Image {
        let (files, decoding, texture) = (&self.files, &self.decoding, &self.things[thing].texture);
        self.seen.entry(thing).or_insert_with(|| {
            let before = thread_cpu_time();
            let image = decode_texture(&files[texture]);
            let mut decoding = decoding.lock().expect("threads that panic end the program");
            decoding.decodes += 1;
            decoding.cpu += thread_cpu_time().saturating_sub(before);
            image
        })
    }
}

impl PostUpdate for Camera {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("Camera::PostUpdate");
        if !ecm.newly_created().is_empty() {
            self.learn_new_things(ecm);
        }
        let mut cameras = Vec::new();
        ecm.each::<&components::Camera>(|camera| cameras.push(*camera));
        for camera in cameras {
            let Some(at) = ecm.component::<WorldPose>(camera.link).map(|pose| pose.0.translation) else { continue };
            self.look(&camera, at, info);
        }
    }
}

/// CPU time of this thread so far.
fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives through the call.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(done, 0, "Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
