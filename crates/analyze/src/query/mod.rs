//! The query layer: which part of a capture an analysis sees, and what its functions, steps and waits are.
//!
//! Analyses stand above it and import it; nothing here imports an analysis.

pub mod basis;
pub mod category;
pub mod coverage;
pub mod cpu_holders;
pub mod events;
pub mod family;
pub mod filter;
mod filter_matches;
pub mod function_names;
pub mod functions;
pub mod loops;
pub mod off_cpu;
pub mod ownership;
pub mod pattern;
pub mod process_label;
pub mod qualified_name;
pub mod scope_paths;
pub mod select;
pub mod select_error;
pub mod step_candidates;
pub mod step_paths;
pub mod step_stacks;
pub mod steps;
pub(crate) mod thinned_stacks;
pub mod wait_class;
pub mod waits;
pub mod wake_ups;
pub mod weights;
pub mod work;

#[cfg(test)]
mod tests {
    #[test]
    fn the_query_layer_imports_no_analysis() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/query");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for above in ["analyses", "analysis", "columns", "notes"] {
                let import = format!("crate::{above}");
                assert!(!text.contains(&import), "{} imports {import}", path.display());
            }
        }
    }
}
