//! The pathologies and controls of all worlds: where each comes from, where a profile shows it, how large it is.
//!
//! The figures show where to look; they are no promises. They were measured on a virtual machine with two cores;
//! `stepscope prove` measures them on yours.

mod entities;
pub mod list;
mod monitor;
pub mod pathology;
mod region;
mod stats;
mod topology;

use pathology::{Control, Pathology};

/// All pathologies, in the order they are listed.
pub fn pathologies() -> impl Iterator<Item = &'static Pathology> {
    let worlds = [entities::PATHOLOGIES, region::PATHOLOGIES, stats::PATHOLOGIES, monitor::PATHOLOGIES];
    worlds.into_iter().chain([topology::PATHOLOGIES]).flatten()
}

/// All controls, in the order they are listed.
pub fn controls() -> impl Iterator<Item = &'static Control> {
    [entities::CONTROLS, region::CONTROLS, monitor::CONTROLS, topology::CONTROLS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switches::Switch;

    #[test]
    fn every_switch_has_one_entry() {
        let listed: Vec<_> = pathologies().map(|pathology| pathology.switch).collect();
        assert_eq!(listed, Switch::all());
    }

    #[test]
    fn every_entry_names_sizes_and_guilty_functions() {
        for pathology in pathologies() {
            let sizes = [pathology.axis.smaller, &[pathology.axis.size]].concat();
            assert!(sizes.is_sorted() && sizes.len() > 1, "{}: {sizes:?}", pathology.name());
            assert!(!pathology.guilty.is_empty(), "{}", pathology.name());
        }
    }

    #[test]
    fn kinds_of_findings_have_a_heading_on_their_page() {
        let page = include_str!("../../docs/analyses/diagnose.md");
        for kind in pathologies().flat_map(|pathology| pathology.kinds) {
            assert!(page.contains(&format!("### {kind}\n")), "{kind}");
        }
    }

    #[test]
    fn arguments_are_those_of_the_program() {
        let full_scan = pathologies().find(|pathology| pathology.switch == Switch::FullScan).unwrap();
        assert_eq!(full_scan.arguments(1000), ["run", "--world", "shapes", "--n", "1000"]);
    }
}
