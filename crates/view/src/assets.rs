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

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;
    use std::path::{Path, PathBuf};

    /// The files in a folder and in those within it.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    /// The first line of assets built from these sources, as `web/build.mjs` writes it.
    fn banner_of(sources: &Path) -> String {
        let relative = |path: &PathBuf| path.strip_prefix(sources).expect("in it").to_str().expect("UTF-8").to_owned();
        let mut names: Vec<String> = files(sources).iter().map(relative).collect();
        names.sort();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for name in names {
            let text = fs::read(sources.join(&name)).expect("a source");
            let head = format!("{name} {}\n", text.len());
            for byte in head.bytes().chain(text) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        format!("/* Built from web/src by `npm run build`; sources {hash:016x} */")
    }

    #[test]
    fn the_committed_assets_were_built_from_the_sources() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let banner = banner_of(&crates.join("../web/src"));
        for asset in ["view/assets", "app/assets"].iter().flat_map(|folder| files(&crates.join(folder))) {
            if asset.extension().is_some_and(|extension| extension == "hash") {
                continue;
            }
            let text = fs::read_to_string(&asset).expect("an asset");
            assert_eq!(text.lines().next(), Some(&*banner), "{asset:?} is stale: run `./dev web` and commit");
        }
    }

    #[test]
    fn nothing_in_an_asset_ends_what_it_is_embedded_in() {
        for text in [FLAMEGRAPH_JS, FLAMEGRAPH_CSS, CHART_CSS] {
            let lower = text.to_lowercase();
            for end in ["</script", "</style", "<!--", "]]>"] {
                assert!(!lower.contains(end), "{end}");
            }
        }
    }
}
