//! placeholder
pub mod evidence;
pub mod renames;
