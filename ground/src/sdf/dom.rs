//! Typed descriptions of a world, read from its element tree.

use std::sync::Arc;

use rapier3d::math::{Pose, Rotation, Vector};

use super::element::Element;
use super::error::SdfError;

/// A whole file.
#[derive(Debug, Clone)]
pub struct Root {
    /// Its world.
    pub world: World,
}

/// A world: physics settings and models.
#[derive(Debug, Clone)]
pub struct World {
    /// Its name.
    pub name: String,
    /// Simulated time that one step advances.
    pub max_step_size_s: f64,
    /// Real-time factor; 0 runs as fast as possible.
    pub real_time_factor: f64,
    /// Gravity, m/s².
    pub gravity: Vector,
    /// Its models.
    pub models: Vec<Model>,
}

/// A model of a world.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Whether it never moves.
    pub is_static: bool,
    /// Pose in the world.
    pub pose: Pose,
    /// Its rigid bodies.
    pub links: Vec<Link>,
    /// Systems that drive it.
    pub plugins: Vec<Plugin>,
    /// Its XML, which subscribers receive.
    pub element: Arc<Element>,
}

/// A rigid body.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Pose in the model.
    pub pose: Pose,
    /// Mass, kg.
    pub mass: f64,
    /// Its collision shapes.
    pub collisions: Vec<Collision>,
    /// Its visual shapes.
    pub visuals: Vec<Visual>,
    /// Its sensors.
    pub sensors: Vec<Sensor>,
}

/// A shape that collides.
#[derive(Debug, Clone)]
pub struct Collision {
    /// Its name.
    pub name: String,
    /// Pose in the link.
    pub pose: Pose,
    /// Its shape.
    pub geometry: Geometry,
    /// Coefficient of friction.
    pub friction: f64,
    /// Coefficient of restitution.
    pub restitution: f64,
}

/// A visible shape.
#[derive(Debug, Clone)]
pub struct Visual {
    /// Its name.
    pub name: String,
    /// Pose in the link.
    pub pose: Pose,
    /// Its shape.
    pub geometry: Geometry,
    /// Name of the texture on it.
    pub texture: Option<String>,
}

/// A sensor of a link.
#[derive(Debug, Clone)]
pub struct Sensor {
    /// Its name.
    pub name: String,
    /// Its type, e.g. `imu`.
    pub kind: String,
    /// Measurements per simulated second.
    pub update_rate_hz: f64,
    /// Field of view of a camera, rad.
    pub horizontal_fov: f64,
    /// Time of one turn of a camera, s.
    pub turn_period_s: f64,
}

/// A system that a model requests.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// Its name, e.g. `ground::systems::Patrol`.
    pub name: String,
    /// Its parameters.
    pub element: Element,
}

/// A shape, lengths in metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Geometry {
    /// A box with these edges.
    Box(Vector),
    /// A sphere.
    Sphere {
        /// Its radius.
        radius: f64,
    },
    /// A cylinder along z.
    Cylinder {
        /// Its radius.
        radius: f64,
        /// Its whole length.
        length: f64,
    },
    /// A cylinder along z with half spheres at its ends.
    Capsule {
        /// Its radius.
        radius: f64,
        /// The cylinder's length, without the ends.
        length: f64,
    },
    /// A floor: the top of a flat box with these edges in x and y.
    Plane {
        /// Edge in x.
        x: f64,
        /// Edge in y.
        y: f64,
    },
}

/// An element with the name of its source for errors.
#[derive(Clone, Copy)]
struct Node<'a> {
    element: &'a Element,
    origin: &'a str,
}

impl Root {
    /// Reads the world under an `<sdf>` element.
    ///
    /// # Errors
    /// If there is no world, or something in it lacks what it needs.
    pub fn from_element(mut element: Element, origin: &str) -> Result<Self, SdfError> {
        let Some(index) = element.children.iter().position(|child| &*child.name == "world") else {
            return Err(Node { element: &element, origin }.missing("a <world>"));
        };
        let mut world = element.children.swap_remove(index);
        let (models, settings) = world.children.into_iter().partition(|child| &*child.name == "model");
        world.children = settings;
        Ok(Self { world: World::read(Node { element: &world, origin }, models)? })
    }
}

impl World {
    /// Removes the models and keeps the settings.
    #[inline(never)]
    pub fn clear_models(&mut self) {
        self.models.clear();
    }

    fn read(node: Node<'_>, models: Vec<Element>) -> Result<Self, SdfError> {
        let physics = node.child("physics");
        let setting = |name, default| match physics {
            Some(physics) => physics.number(name, default),
            None => Ok(default),
        };
        let max_step_size_s = setting("max_step_size", 0.001)?;
        if max_step_size_s <= 0.0 {
            return Err(node.missing("a <max_step_size> above 0"));
        }
        Ok(Self {
            name: node.name()?,
            max_step_size_s,
            real_time_factor: setting("real_time_factor", 1.0)?.max(0.0),
            gravity: node.vector("gravity", Vector::new(0.0, 0.0, -9.8))?,
            models: models.into_iter().map(|model| Model::read(model, node.origin)).collect::<Result<_, _>>()?,
        })
    }
}

impl Model {
    fn read(element: Element, origin: &str) -> Result<Self, SdfError> {
        let element = Arc::new(element);
        let node = Node { element: &element, origin };
        Ok(Self {
            name: node.name()?,
            is_static: matches!(node.child("static").and_then(|node| node.element.text()), Some("true" | "1")),
            pose: node.pose()?,
            links: node.children("link").map(Link::read).collect::<Result<_, _>>()?,
            plugins: node.children("plugin").map(Plugin::read).collect::<Result<_, _>>()?,
            element: element.clone(),
        })
    }
}

impl Link {
    fn read(node: Node<'_>) -> Result<Self, SdfError> {
        let mass = node.child("inertial").map_or(Ok(1.0), |inertial| inertial.number("mass", 1.0))?;
        if mass <= 0.0 {
            return Err(node.missing("a <mass> above 0"));
        }
        Ok(Self {
            name: node.name()?,
            pose: node.pose()?,
            mass,
            collisions: node.children("collision").map(Collision::read).collect::<Result<_, _>>()?,
            visuals: node.children("visual").map(Visual::read).collect::<Result<_, _>>()?,
            sensors: node.children("sensor").map(Sensor::read).collect::<Result<_, _>>()?,
        })
    }
}

impl Collision {
    fn read(node: Node<'_>) -> Result<Self, SdfError> {
        let surface = |path: &[&str], name, default| match node.child("surface").and_then(|node| node.descend(path)) {
            Some(found) => found.number(name, default),
            None => Ok(default),
        };
        Ok(Self {
            name: node.name()?,
            pose: node.pose()?,
            geometry: Geometry::read(node)?,
            friction: surface(&["friction", "ode"], "mu", 1.0)?.max(0.0),
            restitution: surface(&["bounce"], "restitution_coefficient", 0.0)?.clamp(0.0, 1.0),
        })
    }
}

impl Visual {
    fn read(node: Node<'_>) -> Result<Self, SdfError> {
        let texture =
            node.child("material").and_then(|material| material.element.descend(&["pbr", "metal", "albedo_map"]));
        Ok(Self {
            name: node.name()?,
            pose: node.pose()?,
            geometry: Geometry::read(node)?,
            texture: texture.and_then(Element::text).map(str::to_owned),
        })
    }
}

impl Sensor {
    fn read(node: Node<'_>) -> Result<Self, SdfError> {
        Ok(Self {
            name: node.name()?,
            kind: node.attribute("type", "a type")?,
            update_rate_hz: node.number("update_rate", 100.0)?.max(0.0),
            horizontal_fov: node.child("camera").map_or(Ok(0.0), |camera| camera.number("horizontal_fov", 1.0))?,
            turn_period_s: node.child("camera").map_or(Ok(0.0), |camera| camera.number("turn_period", 10.0))?,
        })
    }
}

impl Plugin {
    fn read(node: Node<'_>) -> Result<Self, SdfError> {
        Ok(Self { name: node.name()?, element: node.element.clone() })
    }

    /// A number parameter, or the default if it is missing.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        self.element.child(name).and_then(|child| child.numbers().first().copied()).unwrap_or(default)
    }

    /// A vector parameter, or zero if it is missing.
    pub fn vector(&self, name: &str) -> Vector {
        match self.element.child(name).map(Element::numbers) {
            Some(&[x, y, z]) => vector(x, y, z),
            _ => Vector::ZERO,
        }
    }
}

impl Geometry {
    fn read(parent: Node<'_>) -> Result<Self, SdfError> {
        let geometry = parent.child("geometry").ok_or_else(|| parent.missing("a <geometry>"))?;
        let shape = geometry.element.children.first().ok_or_else(|| geometry.missing("a shape"))?;
        let shape = Node { element: shape, origin: geometry.origin };
        match &*shape.element.name {
            "box" => match shape.child("size").map(|size| size.element.numbers()) {
                Some(&[x, y, z]) if x > 0.0 && y > 0.0 && z > 0.0 => Ok(Self::Box(vector(x, y, z))),
                _ => Err(shape.missing("a <size> of three lengths above 0")),
            },
            "sphere" => Ok(Self::Sphere { radius: shape.length("radius")? }),
            "cylinder" => Ok(Self::Cylinder { radius: shape.length("radius")?, length: shape.length("length")? }),
            "capsule" => Ok(Self::Capsule { radius: shape.length("radius")?, length: shape.length("length")? }),
            "plane" => match shape.child("size").map(|size| size.element.numbers()) {
                Some(&[x, y]) if x > 0.0 && y > 0.0 => Ok(Self::Plane { x, y }),
                _ => Err(shape.missing("a <size> of two lengths above 0")),
            },
            _ => Err(geometry.missing("one of box, sphere, cylinder, capsule, plane")),
        }
    }
}

impl<'a> Node<'a> {
    fn child(self, name: &str) -> Option<Self> {
        Some(Self { element: self.element.child(name)?, ..self })
    }

    fn descend(self, path: &[&str]) -> Option<Self> {
        Some(Self { element: self.element.descend(path)?, ..self })
    }

    fn children(self, name: &'a str) -> impl Iterator<Item = Self> {
        self.element.children_named(name).map(move |element| Self { element, ..self })
    }

    fn name(self) -> Result<String, SdfError> {
        self.attribute("name", "a name")
    }

    fn attribute(self, name: &str, what: &'static str) -> Result<String, SdfError> {
        self.element.attribute(name).map(str::to_owned).ok_or_else(|| self.missing(what))
    }

    fn number(self, name: &str, default: f64) -> Result<f64, SdfError> {
        match self.child(name) {
            None => Ok(default),
            Some(child) => match child.element.numbers() {
                &[number] => Ok(number),
                _ => Err(child.missing("one number")),
            },
        }
    }

    fn length(self, name: &str) -> Result<f64, SdfError> {
        match self.child(name).map(|child| child.element.numbers()) {
            Some(&[number]) if number > 0.0 => Ok(number),
            _ => Err(self.missing("all its lengths, above 0")),
        }
    }

    fn vector(self, name: &str, default: Vector) -> Result<Vector, SdfError> {
        match self.child(name).map(|child| (child, child.element.numbers())) {
            None => Ok(default),
            Some((_, &[x, y, z])) => Ok(vector(x, y, z)),
            Some((child, _)) => Err(child.missing("three numbers")),
        }
    }

    /// The `<pose>`: translation, then roll, pitch and yaw about fixed axes.
    fn pose(self) -> Result<Pose, SdfError> {
        match self.child("pose").map(|child| (child, child.element.numbers())) {
            None => Ok(Pose::IDENTITY),
            Some((_, &[x, y, z])) => Ok(Pose::from_translation(vector(x, y, z))),
            Some((_, &[x, y, z, roll, pitch, yaw])) => {
                let rotation = Rotation::from_rotation_z(yaw as f32)
                    * Rotation::from_rotation_y(pitch as f32)
                    * Rotation::from_rotation_x(roll as f32);
                Ok(Pose::from_parts(vector(x, y, z), rotation))
            }
            Some((child, _)) => Err(child.missing("three or six numbers")),
        }
    }

    fn missing(self, what: &'static str) -> SdfError {
        SdfError::Missing {
            origin: self.origin.to_owned(),
            line: self.element.line,
            element: self.element.name.to_string(),
            what,
        }
    }
}

/// The engine computes in single precision.
fn vector(x: f64, y: f64, z: f64) -> Vector {
    Vector::new(x as f32, y as f32, z as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(models: &str) -> Result<Root, SdfError> {
        let text = format!("<sdf>\n<world name='w'>\n{models}\n</world>\n</sdf>");
        Root::from_element(Element::parse(&text, "w.sdf")?, "w.sdf")
    }

    #[test]
    fn a_model_is_read_with_its_defaults() {
        let root = read(
            "<model name='m'><static>1</static><pose>1 2 3 0 0 1.5707963</pose><link name='l'>
             <collision name='c'><geometry><sphere><radius>0.5</radius></sphere></geometry></collision>
             </link></model>",
        )
        .unwrap();
        let model = &root.world.models[0];
        assert_eq!((model.name.as_str(), model.is_static), ("m", true));
        assert_eq!(model.pose.translation, Vector::new(1.0, 2.0, 3.0));
        let ahead = model.pose.rotation * Vector::X;
        assert!((ahead - Vector::Y).length() < 1e-6, "yaw of 90 degrees turns x to y, not to {ahead}");
        assert_eq!(model.links[0].mass, 1.0);
        let collision = &model.links[0].collisions[0];
        assert_eq!(collision.geometry, Geometry::Sphere { radius: 0.5 });
        assert_eq!((collision.friction, collision.restitution), (1.0, 0.0));
        assert_eq!((root.world.max_step_size_s, root.world.real_time_factor), (0.001, 1.0));
    }

    #[test]
    fn missing_parts_are_errors_with_a_line() {
        let message = |models: &str| read(models).unwrap_err().to_string();
        assert_eq!(message("<model/>"), "w.sdf, line 3: <model> needs a name");
        assert_eq!(
            message("<model name='m'>\n<pose>1 2</pose></model>"),
            "w.sdf, line 4: <pose> needs three or six numbers"
        );
        let geometry = |shape: &str| {
            format!(
                "<model name='m'><link name='l'><visual name='v'><geometry>{shape}</geometry></visual></link></model>"
            )
        };
        assert_eq!(
            message(&geometry("<mesh/>")),
            "w.sdf, line 3: <geometry> needs one of box, sphere, cylinder, capsule, plane"
        );
        assert_eq!(
            message(&geometry("<box><size>1 0 1</size></box>")),
            "w.sdf, line 3: <box> needs a <size> of three lengths above 0"
        );
        let no_world = Root::from_element(Element::parse("<sdf/>", "w.sdf").unwrap(), "w.sdf").unwrap_err();
        assert_eq!(no_world.to_string(), "w.sdf, line 1: <sdf> needs a <world>");
    }
}
