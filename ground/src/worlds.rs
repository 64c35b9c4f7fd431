//! The simulator's worlds as SDF text.

use std::fmt::{self, Write};

use clap::ValueEnum;

use crate::switches::name_of;

/// A world with a variable size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorldKind {
    /// Boxes, cylinders, spheres and capsules in a field around patrolling robots.
    Shapes,
    /// The same with a lidar on every robot, and depth cameras that look at the shapes.
    Sensors,
    /// Textured buoys on a circle around a turning camera; every 50th step another buoy comes into view.
    Marina,
}

/// Whether the N shapes can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mobility {
    /// They never move, so most of a step is framework overhead.
    Static,
    /// They stand on the ground and cost physics time until they sleep.
    Dynamic,
}

/// The parameters of [`write_world`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldSpec {
    /// The world.
    pub kind: WorldKind,
    /// Number of shapes.
    pub shapes: u32,
    /// Number of robots, which patrol in circles, collide and never stop.
    pub robots: u32,
    /// Whether the shapes can move.
    pub mobility: Mobility,
    /// Number of depth cameras, in a world of sensors.
    pub cameras: u32,
}

impl WorldSpec {
    /// The name of the world.
    pub fn name(&self) -> String {
        let kind = name_of(&self.kind);
        let mobility = match self.mobility {
            Mobility::Static => "static",
            Mobility::Dynamic => "dynamic",
        };
        format!("{kind}_{mobility}_{}", self.shapes)
    }
}

/// Simulated time of a step, s.
const STEP_S: f64 = 0.001;
/// Distance between shapes, m.
const SHAPE_SPACING: f64 = 1.5;
/// Distance between the centres of two robots' circles, m. Neighbours collide now and then.
const PATROL_SPACING: f64 = 4.5;
/// Radius of a robot's circle, m.
const PATROL_RADIUS: f64 = 2.0;

/// Writes a world as SDF.
///
/// # Errors
/// If `out` does.
pub fn write_world(spec: &WorldSpec, out: &mut impl Write) -> fmt::Result {
    let robots = Robots { count: spec.robots };
    let field = Field { count: spec.shapes, inner: robots.half_extent() };
    let floor = 2.0 * (field.half_extent() + 10.0);
    write!(
        out,
        "\
<?xml version='1.0'?>
<sdf version='1.9'>
  <world name='{name}'>
    <physics name='fast' type='ignored'>
      <max_step_size>{STEP_S}</max_step_size>
      <real_time_factor>0</real_time_factor>
    </physics>
    <gravity>0 0 -9.8</gravity>
    <model name='ground_plane'>
      <static>true</static>
      <link name='link'>
        <collision name='collision'>
          <geometry>
            <plane>
              <normal>0 0 1</normal>
              <size>{floor} {floor}</size>
            </plane>
          </geometry>
        </collision>
      </link>
    </model>
",
        name = spec.name()
    )?;
    if spec.kind == WorldKind::Marina {
        write_camera(spec.shapes, out)?;
        for index in 0..spec.shapes {
            write_buoy(index, spec.shapes, field.inner, out)?;
        }
    } else {
        for (index, (x, y)) in field.places().enumerate() {
            write_shape(index, x, y, spec.mobility, out)?;
        }
    }
    if spec.kind == WorldKind::Sensors {
        for index in 0..spec.cameras {
            write_depth_camera(index, spec.cameras, out)?;
        }
    }
    let sensors = if spec.kind == WorldKind::Sensors { LIDAR } else { "" };
    for index in 0..spec.robots {
        write_robot(index, robots.centre(index), sensors, out)?;
    }
    out.write_str("  </world>\n</sdf>\n")
}

/// Positions around a free square, ring by ring.
struct Field {
    count: u32,
    inner: f64,
}

impl Field {
    fn inner_ring(&self) -> i32 {
        (self.inner / SHAPE_SPACING).ceil() as i32
    }

    fn places(&self) -> impl Iterator<Item = (f64, f64)> {
        let first = self.inner_ring();
        (first..)
            .flat_map(ring)
            .take(self.count as usize)
            .map(|(x, y)| (f64::from(x) * SHAPE_SPACING, f64::from(y) * SHAPE_SPACING))
    }

    fn half_extent(&self) -> f64 {
        let last = self.places().last().map_or(0.0, |(x, y)| x.abs().max(y.abs()));
        last.max(self.inner)
    }
}

/// The cells whose larger coordinate has this distance from the middle.
fn ring(distance: i32) -> impl Iterator<Item = (i32, i32)> {
    (-distance..=distance).flat_map(move |x| {
        let step = if x.abs() == distance { 1 } else { (2 * distance).max(1) };
        (-distance..=distance).step_by(step as usize).map(move |y| (x, y))
    })
}

/// Robots in a square block around the middle.
struct Robots {
    count: u32,
}

impl Robots {
    fn edge(&self) -> u32 {
        f64::from(self.count).sqrt().ceil() as u32
    }

    fn half_extent(&self) -> f64 {
        f64::from(self.edge()) * PATROL_SPACING / 2.0 + PATROL_RADIUS
    }

    fn centre(&self, index: u32) -> (f64, f64) {
        let edge = self.edge().max(1);
        let place = |cell: u32| (f64::from(cell) - f64::from(edge - 1) / 2.0) * PATROL_SPACING;
        (place(index % edge), place(index / edge))
    }
}

fn write_shape(index: usize, x: f64, y: f64, mobility: Mobility, out: &mut impl Write) -> fmt::Result {
    let (kind, height, geometry) = match index % 4 {
        0 => ("box", 0.5, "<box><size>1 1 1</size></box>"),
        1 => ("cylinder", 0.5, "<cylinder><radius>0.5</radius><length>1</length></cylinder>"),
        2 => ("sphere", 0.5, "<sphere><radius>0.5</radius></sphere>"),
        _ => ("capsule", 0.6, "<capsule><radius>0.3</radius><length>0.6</length></capsule>"),
    };
    let is_static = mobility == Mobility::Static;
    let hue = index % 10;
    write!(
        out,
        "\
    <model name='{kind}_{index}'>
      <static>{is_static}</static>
      <pose>{x} {y} {height} 0 0 0</pose>
      <link name='link'>
        <inertial>
          <mass>1</mass>
          <inertia>
            <ixx>0.167</ixx>
            <ixy>0</ixy>
            <ixz>0</ixz>
            <iyy>0.167</iyy>
            <iyz>0</iyz>
            <izz>0.167</izz>
          </inertia>
        </inertial>
        <collision name='collision'>
          <geometry>{geometry}</geometry>
          <surface>
            <friction><ode><mu>0.8</mu><mu2>0.8</mu2></ode></friction>
            <bounce><restitution_coefficient>0.1</restitution_coefficient></bounce>
          </surface>
        </collision>
        <visual name='visual'>
          <geometry>{geometry}</geometry>
          <material>
            <ambient>0.{hue} 0.3 0.3 1</ambient>
            <diffuse>0.{hue} 0.5 0.7 1</diffuse>
            <specular>0.{hue} 0.1 0.1 1</specular>
          </material>
        </visual>
      </link>
    </model>
"
    )
}

/// The additional sensor of robots in world `sensors`.
const LIDAR: &str = "
        <sensor name='lidar' type='gpu_lidar'>
          <update_rate>50</update_rate>
        </sensor>";

/// Writes a camera in the middle. All cameras together look in all directions.
fn write_depth_camera(index: u32, count: u32, out: &mut impl Write) -> fmt::Result {
    let angle = std::f64::consts::TAU * f64::from(index) / f64::from(count);
    write!(
        out,
        "\
    <model name='depth_camera_{index}'>
      <static>true</static>
      <pose>0 0 1 0 0 {angle:.6}</pose>
      <link name='link'>
        <sensor name='depth' type='depth_camera'>
          <update_rate>1000</update_rate>
        </sensor>
      </link>
    </model>
"
    )
}

/// Steps until another buoy comes into view.
const STEPS_PER_BUOY: f64 = 50.0;
/// Number of buoys in view.
const BUOYS_IN_VIEW: f64 = 6.5;
/// Number of different textures.
const TEXTURES: u32 = 8;

fn write_camera(buoys: u32, out: &mut impl Write) -> fmt::Result {
    let buoys = f64::from(buoys.max(1));
    let (period, view) = (buoys * STEPS_PER_BUOY * STEP_S, std::f64::consts::TAU * (BUOYS_IN_VIEW / buoys).min(1.0));
    write!(
        out,
        "\
    <model name='lighthouse'>
      <static>true</static>
      <link name='link'>
        <collision name='collision'>
          <geometry><cylinder><radius>0.2</radius><length>6</length></cylinder></geometry>
        </collision>
        <sensor name='camera' type='camera'>
          <update_rate>1000</update_rate>
          <camera>
            <horizontal_fov>{view:.9}</horizontal_fov>
            <turn_period>{period}</turn_period>
          </camera>
        </sensor>
      </link>
    </model>
"
    )
}

fn write_buoy(index: u32, count: u32, inner: f64, out: &mut impl Write) -> fmt::Result {
    let (angle, radius) = (std::f64::consts::TAU * f64::from(index) / f64::from(count), inner * 2.0 + 10.0);
    let (x, y, texture) = (radius * angle.cos(), radius * angle.sin(), index % TEXTURES);
    write!(
        out,
        "\
    <model name='buoy_{index}'>
      <static>true</static>
      <pose>{x:.6} {y:.6} 0.5 0 0 0</pose>
      <link name='link'>
        <visual name='visual'>
          <geometry><sphere><radius>0.5</radius></sphere></geometry>
          <material>
            <pbr><metal><albedo_map>buoy_{texture}.jpg</albedo_map></metal></pbr>
          </material>
        </visual>
      </link>
    </model>
"
    )
}

fn write_robot(index: u32, (x, y): (f64, f64), sensors: &str, out: &mut impl Write) -> fmt::Result {
    // Starting angles differ by the golden angle, so that neighbours do not move in phase.
    let phase = f64::from(index) * 2.399_963;
    let (start_x, start_y) = (x + PATROL_RADIUS * phase.cos(), y + PATROL_RADIUS * phase.sin());
    let period = 4.0 + f64::from(index % 7) * 0.5;
    write!(
        out,
        "\
    <model name='patrol_{index}'>
      <pose>{start_x:.3} {start_y:.3} 0.3 0 0 0</pose>
      <link name='link'>
        <inertial><mass>2</mass></inertial>
        <collision name='collision'>
          <geometry><sphere><radius>0.3</radius></sphere></geometry>
          <surface>
            <friction><ode><mu>0.6</mu></ode></friction>
            <bounce><restitution_coefficient>0.3</restitution_coefficient></bounce>
          </surface>
        </collision>
        <visual name='visual'>
          <geometry><sphere><radius>0.3</radius></sphere></geometry>
        </visual>
        <sensor name='imu' type='imu'>
          <update_rate>200</update_rate>
        </sensor>{sensors}
      </link>
      <plugin filename='ground' name='ground::systems::Patrol'>
        <centre>{x} {y} 0</centre>
        <radius>{PATROL_RADIUS}</radius>
        <period>{period}</period>
      </plugin>
    </model>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdf::{Element, Root};

    const SPEC: WorldSpec =
        WorldSpec { kind: WorldKind::Shapes, shapes: 50, robots: 10, mobility: Mobility::Static, cameras: 0 };

    fn text(spec: &WorldSpec) -> String {
        let mut text = String::new();
        write_world(spec, &mut text).expect("a String takes all that is written");
        text
    }

    fn world(spec: &WorldSpec) -> crate::sdf::World {
        Root::from_element(Element::parse(&text(spec), "w").unwrap(), "w").unwrap().world
    }

    #[test]
    fn a_written_world_is_read_back_and_written_again_without_a_difference() {
        let first = Element::parse(&text(&SPEC), "first").unwrap();
        let mut written = String::new();
        first.to_string("", &mut written);
        let second = Element::parse(&written, "second").unwrap();
        assert_eq!(first, second);
        let mut again = String::new();
        second.to_string("", &mut again);
        assert_eq!(written, again);
    }

    #[test]
    fn a_world_has_the_ground_and_as_many_shapes_and_robots_as_asked_for() {
        let world = world(&SPEC);
        assert_eq!(world.name, "shapes_static_50");
        let count = |wanted: fn(&crate::sdf::Model) -> bool| world.models.iter().filter(|model| wanted(model)).count();
        assert_eq!(count(|model| model.name == "ground_plane"), 1);
        assert_eq!(count(|model| model.is_static && model.name != "ground_plane"), 50);
        assert_eq!(count(|model| model.plugins.iter().any(|plugin| plugin.name.ends_with("Patrol"))), 10);
        assert_eq!(world.real_time_factor, 0.0);
    }

    #[test]
    fn dynamic_shapes_differ_only_in_that_they_can_move() {
        let moving = WorldSpec { mobility: Mobility::Dynamic, ..SPEC };
        assert_eq!(world(&moving).models.iter().filter(|model| model.is_static).count(), 1, "the ground");
        let unified = text(&moving).replace("<static>false", "<static>true").replace("dynamic", "static");
        assert_eq!(unified, text(&SPEC));
    }

    #[test]
    fn shapes_have_different_positions_outside_of_the_robots_square() {
        let field = Field { count: 500, inner: 7.0 };
        let mut places: Vec<_> = field.places().collect();
        assert!(places.iter().all(|(x, y)| x.abs().max(y.abs()) >= 7.0));
        places.sort_by(|a, b| a.partial_cmp(b).unwrap());
        places.dedup();
        assert_eq!(places.len(), 500);
        assert_eq!(ring(0).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(ring(2).count(), 16);
    }

    #[test]
    fn an_empty_world_is_a_world() {
        let empty = WorldSpec { shapes: 0, robots: 0, ..SPEC };
        assert_eq!(world(&empty).models.len(), 1);
    }
}
