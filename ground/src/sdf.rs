//! World files: SDFormat's XML, read into an element tree and from there into typed descriptions.
//!
//! The part of the format that this simulator uses: worlds of models of links, with their collision and visual
//! geometry, inertia, surface, sensors and plugins. Units are SDFormat's: metres, kilograms, seconds, radians.

mod dom;
mod element;
mod error;

pub use dom::{Collision, Geometry, Link, Model, Plugin, Root, Sensor, Visual, World};
pub use element::{Element, Param};
pub use error::SdfError;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::account;

/// Where a world's XML comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Text that this program wrote, with a name for messages.
    Text {
        /// The name.
        name: String,
        /// The XML.
        text: Arc<str>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(out, "{}", path.display()),
            Source::Text { name, .. } => write!(out, "{name}"),
        }
    }
}

/// Reads a world: XML text, element tree, typed descriptions.
///
/// # Errors
/// If the source cannot be read, is not XML, or lacks what a world needs.
#[inline(never)]
pub fn load_sdf_root(source: &Source) -> Result<Root, SdfError> {
    let _timed = account::scope("ground::sdf::load_sdf_root");
    let origin = source.to_string();
    let text = read_file(source)?;
    let element = Element::parse(&text, &origin)?;
    Root::from_element(element, &origin)
}

fn read_file(source: &Source) -> Result<Arc<str>, SdfError> {
    match source {
        Source::File(path) => {
            std::fs::read_to_string(path).map(Arc::from).map_err(|source| SdfError::Read { path: path.clone(), source })
        }
        Source::Text { text, .. } => Ok(text.clone()),
    }
}
