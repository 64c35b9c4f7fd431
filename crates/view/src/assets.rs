//! The scripts and styles that `web/` is built into.
//!
//! They are committed, so that this crate builds where there is no Node.js. `npm run build` in `web/` makes them; the
//! first line of each names the sources it was made from, by their FNV-1a hash, and a test compares it.

/// Draws flame graphs: takes the place of the first picture in a standalone SVG document.
pub(crate) const FLAMEGRAPH_JS: &str = include_str!("../assets/flamegraph.js");
/// Its style.
pub(crate) const FLAMEGRAPH_CSS: &str = include_str!("../assets/flamegraph.css");
