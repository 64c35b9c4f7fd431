//! The query layer: which part of a capture an analysis sees, and what its functions, steps and waits are.
//!
//! Analyses stand above it and import it; nothing here imports an analysis.

pub(crate) mod attributed_place;
pub mod basis;
pub mod callbacks;
pub mod categories;
pub mod coverage;
pub mod cpu_holders;
pub mod events;
pub mod family;
pub mod filter;
mod filter_matches;
pub mod flows;
pub mod frame_kind;
pub mod function_names;
pub mod functions;
pub mod heap;
mod installed;
pub mod loops;
pub(crate) mod machine_speed;
pub mod naming;
pub mod off_cpu;
pub mod ownership;
pub(crate) mod partners;
pub mod pattern;
pub mod process_label;
pub mod qualified_name;
pub mod scope_paths;
pub mod select;
pub mod select_error;
pub mod step_candidates;
pub mod step_loop;
pub mod step_paths;
pub mod step_stacks;
pub mod steps;
pub mod system_calls;
pub(crate) mod thinned_stacks;
pub mod wait_class;
pub mod waits;
pub mod wake_ups;
pub mod weights;
pub mod work;

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn check(folder: &Path) {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                check(&path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for above in ["analyses", "analysis", "columns", "notes"] {
                let import = format!("crate::{above}");
                assert!(!text.contains(&import), "{} imports {import}", path.display());
            }
        }
    }

    #[test]
    fn the_query_layer_imports_no_analysis() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/query"));
    }
}
