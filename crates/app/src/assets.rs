//! The app's script and style, built from `web/` by `./dev web`. They are committed, so that this crate builds without Node.js,
//! and compressed by the build script.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;

/// The app: one script, which starts its worker from a text within it.
pub fn app_js() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| text(include_bytes!(concat!(env!("OUT_DIR"), "/app.js"))));
    &TEXT
}

/// Its hash in the form that content security policies use: `sha256-...`.
pub const APP_JS_HASH: &str = include_str!("../assets/app.js.hash");

/// Its style.
pub fn app_css() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| text(include_bytes!(concat!(env!("OUT_DIR"), "/app.css"))));
    &TEXT
}

fn text(compressed: &[u8]) -> String {
    let mut text = String::new();
    ZlibDecoder::new(compressed).read_to_string(&mut text).expect("the build script compressed a text");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_and_style_are_those_that_were_built() {
        assert_eq!(app_js(), include_str!("../assets/app.js"));
        assert_eq!(app_css(), include_str!("../assets/app.css"));
    }
}
