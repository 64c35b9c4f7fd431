//! The scripts and styles that `web/` is built into.
//!
//! They are committed, so that this crate builds without Node.js. `npm run build` in `web/` makes them. The first line of
//! each has the FNV-1a hash of its sources, and a test compares it.

/// Draws flame graphs: takes the place of the first picture in a standalone SVG document.
pub(crate) const FLAMEGRAPH_JS: &str = include_str!("../assets/flamegraph.js");
/// Its style.
pub(crate) const FLAMEGRAPH_CSS: &str = include_str!("../assets/flamegraph.css");

/// The style of charts, complete by itself.
pub(crate) const CHART_CSS: &str = include_str!("../assets/chart.css");

/// Brings a report to life: tables, flame graphs, contents.
pub(crate) const REPORT_JS: &str = include_str!("../assets/report.js");
/// Its hash in the form that content security policies use: `sha256-...`.
pub(crate) const REPORT_JS_HASH: &str = include_str!("../assets/report.js.hash");
/// The style of a report.
pub(crate) const REPORT_CSS: &str = include_str!("../assets/report.css");

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line of assets built from these sources, as `web/build.mjs` writes it.
    fn banner_of(sources: &std::path::Path) -> std::io::Result<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(sources)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>()?;
        names.sort();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for name in names {
            let text = std::fs::read(sources.join(&name))?;
            let head = format!("{} {}\n", name.to_string_lossy(), text.len());
            for byte in head.bytes().chain(text) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        Ok(format!("/* Built from web/src by `npm run build`; sources {hash:016x} */"))
    }

    #[test]
    fn the_committed_assets_were_built_from_the_sources() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src");
        let banner = banner_of(&sources).expect("web/src is beside crates/");
        for (name, text) in [
            ("flamegraph.js", FLAMEGRAPH_JS),
            ("flamegraph.css", FLAMEGRAPH_CSS),
            ("chart.css", CHART_CSS),
            ("report.js", REPORT_JS),
            ("report.css", REPORT_CSS),
        ] {
            assert_eq!(text.lines().next(), Some(&*banner), "{name} is stale: run `./dev web` and commit");
        }
    }

    #[test]
    fn nothing_in_an_asset_ends_what_it_is_embedded_in() {
        for text in [FLAMEGRAPH_JS, FLAMEGRAPH_CSS, CHART_CSS, REPORT_JS, REPORT_CSS] {
            let lower = text.to_lowercase();
            for end in ["</script", "</style", "<!--", "]]>"] {
                assert!(!lower.contains(end), "{end}");
            }
        }
    }
}
