//! The scripts and styles that `web/` is built into.
//!
//! They are committed, so that this crate builds where there is no Node.js. `npm run build` in `web/` makes them; the
//! first line of each names the sources it was made from, by their FNV-1a hash, and a test compares it.

/// Draws flame graphs: takes the place of the first picture in a standalone SVG document.
pub(crate) const FLAMEGRAPH_JS: &str = include_str!("../assets/flamegraph.js");
/// Its style.
pub(crate) const FLAMEGRAPH_CSS: &str = include_str!("../assets/flamegraph.css");

/// Brings a report to life: tables, flame graphs, contents.
pub(crate) const REPORT_JS: &str = include_str!("../assets/report.js");
/// Its hash in the form that content security policies use: `sha256-...`.
pub(crate) const REPORT_JS_HASH: &str = include_str!("../assets/report.js.hash");
/// The style of a report.
pub(crate) const REPORT_CSS: &str = include_str!("../assets/report.css");
