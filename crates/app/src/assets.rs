//! The app's script and style, built from `web/` by `./dev web`. They are committed, so that this crate builds without Node.js.

/// The app: one script, which starts its worker from a text within it.
pub const APP_JS: &str = include_str!("../assets/app.js");
/// Its hash in the form that content security policies use: `sha256-...`.
pub const APP_JS_HASH: &str = include_str!("../assets/app.js.hash");
/// Its style.
pub const APP_CSS: &str = include_str!("../assets/app.css");
