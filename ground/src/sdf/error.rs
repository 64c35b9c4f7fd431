//! Errors of world files.

use std::io;
use std::path::PathBuf;

/// Why a world cannot be loaded. Each message names the source and the line, if there is one.
#[derive(Debug, thiserror::Error)]
pub enum SdfError {
    /// The file cannot be read.
    #[error("cannot read the world {path}: {source}; write one with `ground world --n 100 > FILE`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Not well-formed XML.
    #[error("{origin} is not well-formed XML: {source}")]
    Xml {
        /// The source's name.
        origin: String,
        /// The error of the parser, with line and column.
        source: roxmltree::Error,
    },
    /// Elements are nested deeper than [`Element::MAX_DEPTH`](super::Element::MAX_DEPTH).
    #[error("{origin}, line {line}: elements are nested deeper than {max}")]
    TooDeep {
        /// The source's name.
        origin: String,
        /// Line of the element, from 1.
        line: u32,
        /// The limit.
        max: usize,
    },
    /// A required element or attribute is missing.
    #[error("{origin}, line {line}: <{element}> needs {what}")]
    Missing {
        /// The source's name.
        origin: String,
        /// Line of the element, from 1.
        line: u32,
        /// Name of the element.
        element: String,
        /// What is required.
        what: &'static str,
    },
    /// A value has another type than its element requires.
    #[error("{origin}, line {line}: <{element}> holds `{value}` where it needs {what}")]
    Value {
        /// The source's name.
        origin: String,
        /// Line of the element, from 1.
        line: u32,
        /// Name of the element.
        element: String,
        /// The value.
        value: String,
        /// What is required.
        what: &'static str,
    },
}
