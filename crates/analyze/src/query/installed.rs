//! Which code is installed on the machine, and which is the user's own.
//!
//! A program that somebody builds stands in their folders, and so do its sources. The libraries that it uses mostly come from packages, whose modules
//! and headers stand in folders of the system. Where a program is installed itself, all of its code is alike.

use stepscope_model::{Capture, Frame};

use crate::query::qualified_name::python_function;

/// Beginnings of the folders of installed modules, programs and headers.
const FOLDERS: [&str; 9] =
    ["/usr/lib", "/usr/bin/", "/usr/sbin/", "/usr/games/", "/usr/include/", "/lib", "/bin/", "/nix/store/", "/snap/"];

/// Where a function's code stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Outside of the folders of installed software, or at an unknown place.
    Own,
    /// In an installed module.
    Library,
    /// In an installed header, compiled into the user's module.
    Header,
}

/// Whether a file stands in a folder of installed software.
fn is_installed(path: &str) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder))
        || ["/site-packages/", "/dist-packages/"].iter().any(|part| path.contains(part))
}

/// Where each function's code stands; `of_frame` has the row of each frame's function. Empty if the program has no code of known source outside of these folders.
pub(crate) fn standings(capture: &Capture, of_frame: &[usize], of_program: &[bool]) -> Vec<Standing> {
    let mut found: Vec<Option<Standing>> = vec![None; of_program.len()];
    let mut has_own = false;
    for (frame, function) in capture.frames.iter().zip(of_frame) {
        let (standing, is_own) = standing(capture, frame);
        has_own |= is_own && of_program[*function];
        let known = &mut found[*function];
        // One place of its own is enough: debug information may name a header for some of the lines.
        *known = Some(match *known {
            Some(Standing::Own) => Standing::Own,
            Some(other) if standing != Standing::Own => other,
            _ => standing,
        });
    }
    if !has_own {
        return Vec::new();
    }
    found.into_iter().map(|standing| standing.unwrap_or(Standing::Own)).collect()
}

/// Where a frame's code stands, and whether it is known to be of the user: in a module and a source file that are not installed.
fn standing(capture: &Capture, frame: &Frame) -> (Standing, bool) {
    if let Some((_, file)) = python_function(&frame.function) {
        let is_own = file.starts_with('/') && !is_installed(file) && !file.contains("/lib/python3");
        return (if is_own || !file.starts_with('/') { Standing::Own } else { Standing::Library }, is_own);
    }
    let module = frame.module.map(|module| capture.modules[module.index()].path.as_str());
    let source = frame.file.as_deref();
    match (module, source) {
        (Some(module), _) if is_installed(module) => (Standing::Library, false),
        (_, Some(source)) if is_installed(source) => (Standing::Header, false),
        (Some(_), Some(source)) => (Standing::Own, source.starts_with('/')),
        _ => (Standing::Own, false),
    }
}

#[cfg(test)]
mod tests {
    use crate::drawn;
    use crate::query::functions::Functions;
    use crate::query::ownership::Owned;

    fn owners(columns: &str) -> Vec<String> {
        let capture = drawn::columns(columns);
        let functions = Functions::of(&capture, &Owned::nothing());
        let nearest = capture.samples.iter().map(|sample| functions.attributed(sample.stack.unwrap()));
        nearest.map(|id| id.map_or(String::new(), |id| functions.get(id).name.to_string())).collect()
    }

    #[test]
    fn templates_of_installed_headers_belong_to_the_function_that_uses_them() {
        let found = owners(
            "
            main [lib:/srv/sim] [file:/srv/sim.cpp:3]
            track [lib:/srv/sim] [file:/srv/sim.cpp:9]
            Eigen::multiply [lib:/srv/sim] [file:/usr/include/eigen3/Eigen/Core:7]
            1
            ",
        );
        assert_eq!(found, ["track"]);
    }

    #[test]
    fn where_all_code_is_installed_headers_are_of_the_program() {
        let found = owners(
            "
            main [lib:/usr/bin/sim]
            Eigen::multiply [lib:/usr/bin/sim] [file:/usr/include/eigen3/Eigen/Core:7]
            1
            ",
        );
        assert_eq!(found, ["Eigen::multiply"]);
    }

    #[test]
    fn python_code_that_a_package_makes_at_run_time_belongs_to_the_script() {
        let found = owners(
            "
            py::<module>:/srv/errands.py
            py::Agent.route:/srv/errands.py
            py::argmap_dijkstra_25:<class 'networkx.argmap'> compilation 21
            1
            ",
        );
        assert_eq!(found, ["py::Agent.route:/srv/errands.py"]);
    }
}
