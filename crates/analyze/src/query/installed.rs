//! Which code is installed on the machine, and which is the user's own.
//!
//! A program that somebody builds stands in their folders, and so do its sources. The libraries that it uses mostly come from packages, whose modules
//! and headers stand in folders of the system. Where a program is installed itself, all of its code is alike.

use stepscope_model::{Capture, Frame};

use crate::query::qualified_name::python_function;

/// Beginnings of the folders of installed modules, programs and headers.
const FOLDERS: [&str; 9] =
    ["/usr/lib", "/usr/bin/", "/usr/sbin/", "/usr/games/", "/usr/include/", "/lib", "/bin/", "/nix/store/", "/snap/"];

/// Beginning of the folder of Python's standard library, whose name ends with the version. Packages stand in a folder of it.
const PYTHON_FOLDER: &str = "/lib/python3";

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

/// Whether a file is of an installed Python package.
pub(crate) fn is_in_package(path: &str) -> bool {
    in_packages(path).is_some()
}

/// The path of a file within the folder of Python packages that it is in.
fn in_packages(path: &str) -> Option<&str> {
    ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| Some(path.split_once(folder)?.1))
}

/// Whether a file is of Python's standard library.
pub(crate) fn is_standard_python(file: &str) -> bool {
    file.starts_with("<frozen ") || (file.contains(PYTHON_FOLDER) && !is_in_package(file))
}

/// The Python package that a native module is of, or the module's name without version. None for what is no file.
pub(crate) fn library_of_module(path: &str) -> Option<&str> {
    if let Some(inside) = in_packages(path) {
        return package(inside);
    }
    let name = path.rsplit('/').next().filter(|name| !name.is_empty() && !name.starts_with(['[', '<']))?;
    let end = [".so", ".cpython-"].iter().filter_map(|part| name.find(part)).min();
    Some(&name[..end.unwrap_or(name.len())])
}

/// The package or module of Python's library that a Python file is of. None for a file of the user.
pub(crate) fn library_of_script(file: &str) -> Option<&str> {
    if let Some(inside) = in_packages(file) {
        return package(inside);
    }
    if let Some(module) = file.strip_prefix("<frozen ") {
        return module.split(['.', '>']).next();
    }
    let (_, inside) = file.split_once(PYTHON_FOLDER)?;
    package(inside.split_once('/')?.1)
}

/// The package or module of a path within a folder of packages.
fn package(inside: &str) -> Option<&str> {
    let first = inside.split('/').next()?;
    // Wheels put the libraries that they bring into a folder of their own.
    let name = first.strip_suffix(".libs").or_else(|| first.strip_suffix(".py")).unwrap_or(first);
    name.split(".cpython-").next().filter(|name| !name.is_empty())
}

/// Whether a file stands in a folder of installed software.
fn is_installed(path: &str) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder)) || is_in_package(path)
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
        let is_own = file.starts_with('/') && !is_installed(file) && !is_standard_python(file);
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
    use super::{library_of_module, library_of_script};
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
    fn libraries_have_the_name_of_their_package_or_file() {
        for (path, name) in [
            ("/usr/lib/x86_64-linux-gnu/libode.so.8", Some("libode")),
            ("/venv/lib/python3.11/site-packages/mujoco/libmujoco.so.3.3.2", Some("mujoco")),
            ("/venv/lib/python3.11/site-packages/numpy.libs/libscipy_openblas64_-32a4.so", Some("numpy")),
            ("/venv/lib/python3.11/site-packages/pybullet.cpython-311-x86_64-linux-gnu.so", Some("pybullet")),
            ("/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", Some("_json")),
            ("[vdso]", None),
        ] {
            assert_eq!(library_of_module(path), name, "{path}");
        }
        for (file, name) in [
            ("/venv/lib/python3.11/site-packages/networkx/algorithms/shortest_paths/weighted.py", Some("networkx")),
            ("/usr/lib/python3.11/copy.py", Some("copy")),
            ("/usr/lib/python3.11/json/decoder.py", Some("json")),
            ("<frozen importlib._bootstrap>", Some("importlib")),
            ("/srv/sim/main.py", None),
        ] {
            assert_eq!(library_of_script(file), name, "{file}");
        }
    }

    #[test]
    fn native_code_of_a_python_package_belongs_to_the_script() {
        let found = owners(
            "
            main
            py::<module>:/srv/fall.py
            mj_step [lib:/srv/venv/lib/python3.11/site-packages/mujoco/libmujoco.so.3.3.2]
            1
            ",
        );
        assert_eq!(found, ["py::<module>:/srv/fall.py"]);
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
