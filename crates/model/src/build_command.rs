//! What a command line of a build does: compile, link, archive, configure, generate.
//!
//! The recorder chooses by it which commands get options that time a compiler, and analyses put processes together by it.

use std::path::{Component, Path, PathBuf};

/// What a job of a build does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One or more sources to objects.
    Compile,
    /// Sources to a program or library.
    CompileAndLink,
    /// Sources to text or lists of headers.
    Preprocess,
    /// Objects to a program or library.
    Link,
    /// Objects to an archive.
    Archive,
    /// A description to sources.
    Generate,
    /// The build's own files.
    Configure,
    /// A build script of Cargo, which may compile on its own: what it compiles is a job of its own.
    BuildScript,
    /// Make, shells and all else.
    Other,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Compile => "compile",
            Kind::CompileAndLink => "compile and link",
            Kind::Preprocess => "preprocess",
            Kind::Link => "link",
            Kind::Archive => "archive",
            Kind::Generate => "generate",
            Kind::Configure => "configure",
            Kind::BuildScript => "build script",
            Kind::Other => "other",
        }
    }
}

/// What a process of a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A compiler proper, such as `cc1plus`.
    Compiler,
    /// An assembler.
    Assembler,
    /// A linker, or the compiler of link-time optimisation.
    Linker,
    /// Something else.
    Other,
}

/// What a command does, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// What it does.
    pub kind: Kind,
    /// What tables call it: the source, or what it makes.
    pub name: String,
    /// Files that it reads.
    pub inputs: Vec<String>,
    /// Files that it makes.
    pub outputs: Vec<String>,
}

/// The job that a process belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOf {
    /// Its number: processes of a job have the same.
    pub job: usize,
    /// What it does, such as `compile`.
    pub kind: &'static str,
    /// Its source, or what it makes.
    pub name: String,
}

const DRIVERS: &[&str] =
    &["cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "flang", "nvcc", "hipcc", "icx", "icpx", "c89", "c99"];
const COMPILERS: &[&str] = &["cc1", "cc1plus", "cc1obj", "cc1objplus", "f951", "cicc", "cudafe++", "rustc"];
const ASSEMBLERS: &[&str] = &["as", "nasm", "yasm", "ptxas"];
const LINKERS: &[&str] = &[
    "collect2",
    "ld",
    "ld.bfd",
    "ld.gold",
    "gold",
    "ld.lld",
    "lld",
    "rust-lld",
    "mold",
    "ld.mold",
    "lto-wrapper",
    "lto1",
];
const ARCHIVERS: &[&str] = &["ar", "gcc-ar", "llvm-ar", "ranlib", "gcc-ranlib", "llvm-ranlib"];
const GENERATORS: &[&str] =
    &["moc", "uic", "rcc", "protoc", "flex", "bison", "swig", "idlc", "xacro", "glslc", "glslangValidator"];
const WRAPPERS: &[&str] = &["ccache", "sccache", "distcc", "icecc", "gomacc"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "ksh"];
const SOURCES: &[&str] =
    &["c", "cc", "cpp", "cxx", "c++", "C", "m", "mm", "f", "F", "f90", "F90", "s", "S", "cu", "ixx", "cppm", "i", "ii"];
/// Options of drivers whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-x",
    "-T",
    "-B",
    "-u",
    "-z",
    "-e",
    "-h",
    "-MF",
    "-MT",
    "-MQ",
    "-isystem",
    "-include",
    "-imacros",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-arch",
    "-target",
    "-Xclang",
    "-Xlinker",
    "-Xpreprocessor",
    "-Xassembler",
    "-framework",
    "--param",
    "--sysroot",
    "-soname",
    "-rpath",
    "-dumpdir",
    "-dumpbase",
];

/// The tool of a path, without target and version: `cc1plus`, `g++` for `/usr/bin/x86_64-linux-gnu-g++-12`.
pub fn tool(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_version = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let name = name.rsplit_once('-').filter(|(_, version)| is_version(version)).map_or(name, |(name, _)| name);
    let known = [DRIVERS, COMPILERS, ASSEMBLERS, LINKERS, ARCHIVERS];
    let is_known = |name: &str| known.iter().any(|tools| tools.contains(&name));
    // `gcc-ar` is a tool of its own; `x86_64-linux-gnu-ar` is `ar`.
    match name.rsplit_once('-') {
        Some((_, last)) if !is_known(name) && is_known(last) => last,
        _ => name,
    }
}

/// What a process does within its job, by its program.
pub fn part(program: &str) -> Part {
    let tool = tool(program);
    match tool {
        _ if COMPILERS.contains(&tool) => Part::Compiler,
        // Clang compiles in the driver's process, unless an option prevents it.
        "clang" | "clang++" => Part::Compiler,
        _ if ASSEMBLERS.contains(&tool) => Part::Assembler,
        _ if LINKERS.contains(&tool) => Part::Linker,
        _ => Part::Other,
    }
}

/// What a command does; `None` if it is no job: a build tool, a shell, a question to a compiler.
pub fn work(arguments: &[String], directory: &str) -> Option<Work> {
    let (program, rest) = arguments.split_first()?;
    let tool = tool(program);
    let at = |path: &str| absolute(directory, path);
    match tool {
        _ if WRAPPERS.contains(&tool) => work(rest, directory),
        _ if DRIVERS.contains(&tool) => driver(rest, directory),
        "rustc" => rustc(rest, directory),
        _ if ARCHIVERS.contains(&tool) => archive(rest, directory, tool.ends_with("ranlib")),
        _ if LINKERS.contains(&tool) && tool != "collect2" => {
            let given = Given::of(rest);
            let output = given.output.map_or_else(|| at("a.out"), at);
            let inputs = given.files.iter().map(|file| at(file)).collect();
            (!given.files.is_empty()).then(|| Work {
                kind: Kind::Link,
                name: output.clone(),
                inputs,
                outputs: vec![output],
            })
        }
        _ if GENERATORS.contains(&tool) => {
            let given = Given::of(rest);
            let name = given.files.first().map_or_else(|| tool.to_owned(), |file| at(file));
            let inputs = given.files.iter().map(|file| at(file)).collect();
            Some(Work { kind: Kind::Generate, name, inputs, outputs: given.output.map(at).into_iter().collect() })
        }
        "cmake" => {
            const OTHER: &[&str] = &["--build", "-E", "--install", "-P", "--version", "--help", "--open"];
            let is_other = rest.iter().any(|argument| OTHER.contains(&argument.as_str()));
            (!is_other).then(|| configure("cmake", directory))
        }
        "qmake" => Some(configure("qmake", directory)),
        "configure" | "config.status" => Some(configure(tool, directory)),
        "meson" if rest.first().is_some_and(|command| command == "setup") => Some(configure("meson", directory)),
        _ if SHELLS.contains(&tool) => {
            let script = rest.first()?.rsplit('/').next()?;
            ["configure", "config.status"].contains(&script).then(|| configure(script, directory))
        }
        _ if tool.starts_with("build-script-") => {
            let package = Path::new(program)
                .parent()
                .and_then(Path::file_name)
                .map_or(tool.into(), |name| name.to_string_lossy());
            Some(Work { kind: Kind::BuildScript, name: package.into_owned(), inputs: Vec::new(), outputs: Vec::new() })
        }
        _ => None,
    }
}

fn configure(tool: &str, directory: &str) -> Work {
    let name = format!("{tool} in {directory}");
    Work { kind: Kind::Configure, name, inputs: Vec::new(), outputs: Vec::new() }
}

/// Files and options of a command of the usual form.
#[derive(Default)]
struct Given<'a> {
    files: Vec<&'a str>,
    output: Option<&'a str>,
    compiles_only: bool,
    preprocesses: bool,
}

impl<'a> Given<'a> {
    fn of(arguments: &'a [String]) -> Self {
        let mut given = Self::default();
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            match argument {
                "-o" => given.output = arguments.next(),
                "-c" | "-S" | "-fsyntax-only" => given.compiles_only = true,
                "-E" | "-M" | "-MM" => given.preprocesses = true,
                _ if WITH_VALUE.contains(&argument) => _ = arguments.next(),
                _ => match argument.strip_prefix("-o").filter(|path| !path.is_empty()) {
                    Some(path) if path.contains(['/', '.']) => given.output = Some(path),
                    _ if argument.starts_with(['-', '@']) => {}
                    _ => given.files.push(argument),
                },
            }
        }
        given
    }
}

fn driver(arguments: &[String], directory: &str) -> Option<Work> {
    let given = Given::of(arguments);
    let at = |path: &str| absolute(directory, path);
    let sources: Vec<&str> = given.files.iter().copied().filter(|file| is_source(file)).collect();
    let links_response_file = arguments.iter().any(|argument| argument.starts_with('@'));
    if given.files.is_empty() && !links_response_file {
        return None;
    }
    let kind = match (given.preprocesses, given.compiles_only, sources.is_empty()) {
        (true, ..) => Kind::Preprocess,
        (_, true, _) => Kind::Compile,
        (.., false) => Kind::CompileAndLink,
        (.., true) => Kind::Link,
    };
    let output = match (given.output, kind) {
        (Some(path), _) => Some(at(path)),
        (None, Kind::Compile) => {
            sources.first().and_then(|source| Some(at(&format!("{}.o", Path::new(source).file_stem()?.to_str()?))))
        }
        (None, Kind::Link | Kind::CompileAndLink) => Some(at("a.out")),
        _ => None,
    };
    let name = match (&sources[..], kind, &output) {
        ([first], ..) => at(first),
        ([first, rest @ ..], ..) => format!("{} and {} more", at(first), rest.len()),
        (_, _, Some(output)) => output.clone(),
        _ => given.files.first().map_or_else(String::new, |file| at(file)),
    };
    let inputs = given.files.iter().map(|file| at(file)).collect();
    Some(Work { kind, name, inputs, outputs: output.into_iter().collect() })
}

fn is_source(file: &str) -> bool {
    Path::new(file).extension().and_then(|extension| extension.to_str()).is_some_and(|one| SOURCES.contains(&one))
}

fn archive(arguments: &[String], directory: &str, is_index: bool) -> Option<Work> {
    let at = |path: &String| absolute(directory, path);
    let operation = usize::from(!is_index);
    let files: Vec<String> =
        arguments.iter().skip(operation).filter(|argument| !argument.starts_with(['-', '@'])).map(at).collect();
    let (output, inputs) = files.split_first()?;
    // The index is written into the archive that it reads.
    let inputs = if is_index { vec![output.clone()] } else { inputs.to_vec() };
    Some(Work { kind: Kind::Archive, name: output.clone(), inputs, outputs: vec![output.clone()] })
}

fn rustc(arguments: &[String], directory: &str) -> Option<Work> {
    let value = |name: &str| {
        arguments.iter().enumerate().find_map(|(index, argument)| match argument.strip_prefix(name)? {
            "" => arguments.get(index + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
    };
    let source = arguments.iter().find(|argument| argument.ends_with(".rs") && !argument.starts_with('-'))?;
    let at = |path: &str| absolute(directory, path);
    let externs = arguments.iter().filter_map(|argument| argument.split_once('=')).map(|(_, path)| path);
    let is_library = |path: &&str| [".rlib", ".rmeta", ".so"].iter().any(|end| path.ends_with(end));
    let mut inputs: Vec<String> = externs.filter(is_library).map(at).collect();
    inputs.push(at(source));
    let name = value("--crate-name").map_or_else(|| at(source), str::to_owned);
    let extra = arguments.iter().find_map(|argument| argument.strip_prefix("extra-filename=")).unwrap_or("");
    let folder = value("--out-dir").unwrap_or(".");
    let output = |end: &str| at(&format!("{folder}/lib{name}{extra}.{end}"));
    let outputs = ["rlib", "rmeta", "so"].map(output).into();
    let is_program =
        value("--crate-type").is_none_or(|kind| kind == "bin") || arguments.iter().any(|one| one == "--test");
    let kind = if is_program { Kind::CompileAndLink } else { Kind::Compile };
    Some(Work { kind, name, inputs, outputs })
}

/// An absolute path without `.` and `..`, by its text alone.
pub fn absolute(directory: &str, path: &str) -> String {
    let mut whole = PathBuf::new();
    for component in Path::new(directory).join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if whole.file_name().is_some() => _ = whole.pop(),
            component => whole.push(component),
        }
    }
    whole.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(command: &str) -> String {
        let arguments: Vec<String> = command.split(' ').map(str::to_owned).collect();
        work(&arguments, "/b").map_or_else(
            || "-".to_owned(),
            |work| {
                format!("{}: {} [{}] -> {}", work.kind.name(), work.name, work.inputs.join(" "), work.outputs.join(" "))
            },
        )
    }

    #[test]
    fn commands_of_compilers_say_what_they_do() {
        for (command, expected) in [
            ("g++ -O2 -I inc -c ../s/a.cpp -o x/a.o", "compile: /s/a.cpp [/s/a.cpp] -> /b/x/a.o"),
            ("/usr/bin/x86_64-linux-gnu-gcc-12 -c a.c", "compile: /b/a.c [/b/a.c] -> /b/a.o"),
            ("ccache clang++ -c a.cc -o a.o", "compile: /b/a.cc [/b/a.cc] -> /b/a.o"),
            ("cc -o prog a.o l/libm.a -lz", "link: /b/prog [/b/a.o /b/l/libm.a] -> /b/prog"),
            ("c++ a.cpp b.cpp", "compile and link: /b/a.cpp and 1 more [/b/a.cpp /b/b.cpp] -> /b/a.out"),
            ("g++ -E a.cpp", "preprocess: /b/a.cpp [/b/a.cpp] -> "),
            ("g++ --version", "-"),
            ("ar qc lib.a a.o b.o", "archive: /b/lib.a [/b/a.o /b/b.o] -> /b/lib.a"),
            ("ranlib lib.a", "archive: /b/lib.a [/b/lib.a] -> /b/lib.a"),
            ("gcc-ar rcs lib.a a.o", "archive: /b/lib.a [/b/a.o] -> /b/lib.a"),
            ("/usr/lib/qt6/moc x.h -o moc_x.cpp", "generate: /b/x.h [/b/x.h] -> /b/moc_x.cpp"),
            ("cmake -S . -B out", "configure: cmake in /b [] -> "),
            ("cmake --build out", "-"),
            ("/bin/sh ./configure --prefix=/usr", "configure: configure in /b [] -> "),
            ("sh -c make", "-"),
            ("make -j8", "-"),
        ] {
            assert_eq!(described(command), expected, "{command}");
        }
    }

    #[test]
    fn crates_have_their_libraries_as_inputs_and_outputs() {
        assert_eq!(
            described(
                "rustc --crate-name a --edition=2021 s/lib.rs --crate-type lib -C extra-filename=-1 --out-dir /t --extern b=/t/libb-2.rmeta"
            ),
            "compile: a [/t/libb-2.rmeta /b/s/lib.rs] -> /t/liba-1.rlib /t/liba-1.rmeta /t/liba-1.so"
        );
        assert_eq!(described("rustc -vV"), "-");
        assert!(described("/t/build/zstd-sys-7f/build-script-build").starts_with("build script: zstd-sys-7f"));
    }

    #[test]
    fn processes_of_a_job_are_distinguished_by_their_program() {
        let parts =
            ["/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "/usr/bin/x86_64-linux-gnu-as", "/usr/bin/ld.bfd", "/bin/sh"]
                .map(part);
        assert_eq!(parts, [Part::Compiler, Part::Assembler, Part::Linker, Part::Other]);
        assert_eq!(part("x86_64-linux-gnu-ld.bfd"), Part::Linker);
    }
}
