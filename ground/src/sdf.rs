//! World files: SDFormat's XML, read into an element tree and from there into typed descriptions.
//!
//! The part of the format that this simulator uses: worlds of models of links, with their collision and visual
//! geometry, inertia, surface, sensors and plugins. Units are SDFormat's: metres, kilograms, seconds, radians.

mod dom;
mod element;

pub use dom::{Collision, Geometry, Link, Model, Plugin, Root, Sensor, Visual, World};
pub use element::{Element, Param};

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::account;

/// Where a world's XML comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Text made by this program, with a name for messages.
    Text {
        /// What messages call it.
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

/// Why a world cannot be loaded. Each message names the source and, where there is one, the line.
#[derive(Debug, thiserror::Error)]
pub enum SdfError {
    /// The file cannot be read.
    #[error("cannot read the world {path}: {source}; write one with `ground world --n 100 > FILE`")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not well-formed XML.
    #[error("{origin} is not well-formed XML: {source}")]
    Xml {
        /// The source's name.
        origin: String,
        /// What the parser said, with line and column.
        source: roxmltree::Error,
    },
    /// Elements inside elements beyond [`Element::MAX_DEPTH`].
    #[error("{origin}, line {line}: elements are nested deeper than {max}")]
    TooDeep {
        /// The source's name.
        origin: String,
        /// Line of the element, from 1.
        line: u32,
        /// The limit.
        max: usize,
    },
    /// An element or attribute that must be there is not.
    #[error("{origin}, line {line}: <{element}> needs {what}")]
    Missing {
        /// The source's name.
        origin: String,
        /// Line of the element, from 1.
        line: u32,
        /// Name of the element.
        element: String,
        /// What it needs.
        what: &'static str,
    },
    /// A value that is not of the kind its element has.
    #[error("{origin}, line {line}: <{element}> holds `{value}` where it needs {what}")]
    Value {
        /// The source's name.
        origin: String,
        /// Line of the element, from 1.
        line: u32,
        /// Name of the element.
        element: String,
        /// What stands there.
        value: String,
        /// What it needs.
        what: &'static str,
    },
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
