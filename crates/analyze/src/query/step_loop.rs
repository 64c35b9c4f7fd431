//! Steps that are the rounds of a loop: names of loops that have no function of their own.
//!
//! The name says where the loop is, and ends with its address, by which it is found again:
//! `[loop at world.cpp:212 in main, sim+0x2a40]`. Names in brackets are no functions.

use std::path::Path;

const BEGIN: &str = "[loop ";

/// The name of a loop in this function whose rounds begin at an address of a module. `place` is its file and line.
pub fn name(function: &str, place: Option<(&str, u32)>, module: &Path, address: u64) -> String {
    let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let at = place.map_or_else(String::new, |(file, line)| format!("at {}:{line} ", file_name(Path::new(file))));
    format!("{BEGIN}{at}in {function}, {}+{address:#x}]", file_name(module))
}

/// The address in the name of a loop, as `MODULE+0xADDRESS`; `None` if it is not the name of a loop.
pub fn address_in(name: &str) -> Option<&str> {
    parts(name).map(|(_, address)| address)
}

/// The place and the address in the name of a loop.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(BEGIN)?.strip_suffix(']')?.rsplit_once(", ")
}

/// What steps are, by the function or loop that they are found by: `calls of World::Step`.
pub fn what_steps_are(name: &str) -> String {
    match parts(name) {
        Some((place, address)) => format!("rounds of the loop {place} ({address})"),
        None => format!("calls of `{}`", super::qualified_name::own_name(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::qualified_name::own_name;

    #[test]
    fn a_loop_is_found_again_by_its_name() {
        let full = name("main", Some(("/src/sim/world.cpp", 212)), Path::new("/opt/bin/sim"), 0x2a40);
        assert_eq!(full, "[loop at world.cpp:212 in main, sim+0x2a40]");
        assert_eq!(own_name(&full), full, "no part of it is taken for a type");
        assert_eq!(address_in(&full), Some("sim+0x2a40"));
        assert_eq!(what_steps_are(&full), "rounds of the loop at world.cpp:212 in main (sim+0x2a40)");
        let stripped = name("sim+0x2a10", None, Path::new("sim"), 0x2a40);
        assert_eq!(stripped, "[loop in sim+0x2a10, sim+0x2a40]");
        assert_eq!(address_in("World::Step"), None);
        assert_eq!(what_steps_are("sim::World::Step(double)"), "calls of `sim::World::Step`");
    }
}
