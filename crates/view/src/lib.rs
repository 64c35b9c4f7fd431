//! placeholder

mod assets;
pub mod delimited;
mod embed;
pub mod flamegraph;
pub mod format;
pub mod json;
pub mod markdown;
pub mod quantity;
pub mod select;
pub mod shorten;
pub mod style;
pub mod terminal;
pub mod visible;

pub use format::{Format, render};
pub use select::{Filter, Selection, Sort};
pub use style::{Colour, Style};
