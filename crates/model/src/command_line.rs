//! What a command line runs: a program, or the script of an interpreter.

/// Programs that run code which is no part of them.
const INTERPRETERS: [&str; 19] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "python", "pypy", "ruby", "perl", "node", "lua", "java",
    "php", "tclsh", "R", "octave", "julia",
];

/// Programs that start another one and do nothing else.
const LAUNCHERS: [&str; 18] = [
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "numactl",
    "setarch",
    "setsid",
    "nohup",
    "stdbuf",
    "time",
    "timeout",
    "sudo",
    "unshare",
    "prlimit",
    "catchsegv",
    "xvfb-run",
    "dbus-run-session",
];

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a program runs other code: an interpreter such as `python3.11`, or a program such as `env`. By its file name.
pub fn runs_others(name: &str) -> bool {
    is_interpreter(name) || LAUNCHERS.contains(&name)
}

fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&without_version(name))
}

/// The file name of what a command line runs: of the script, if it is one, behind programs such as `env` or `nice`.
pub fn program_name(arguments: &[String]) -> Option<&str> {
    let arguments = launched(arguments);
    script(arguments).or_else(|| arguments.first().map(|program| file_name(program)))
}

/// The script, module, class or archive that an interpreter runs. `None` if the program is no interpreter, or runs no file.
pub fn script(arguments: &[String]) -> Option<&str> {
    let program = without_version(file_name(arguments.first()?));
    // Options whose value is the next argument, and options whose value is the script.
    let (with_value, of_script): (&[&str], &[&str]) = match program {
        "python" | "pypy" => (&["-W", "-X"], &["-m"]),
        "java" => (&["-cp", "-classpath", "--class-path", "-p", "--module-path"], &["-jar", "-m", "--module"]),
        "sh" | "bash" | "dash" | "zsh" => (&["-o", "-O"], &[]),
        "ruby" | "perl" | "node" | "lua" => (&["-r", "-I", "--require"], &[]),
        _ if is_interpreter(program) => (&[], &[]),
        _ => return None,
    };
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        if of_script.contains(&argument.as_str()) {
            return rest.next().map(|script| file_name(script));
        }
        if with_value.contains(&argument.as_str()) {
            rest.next();
        } else if argument == "-c" || argument == "-e" {
            return None;
        } else if !argument.starts_with('-') {
            return Some(file_name(argument));
        }
    }
    None
}

/// The command line behind programs that only start another one. Their options, settings and numbers are skipped.
fn launched(arguments: &[String]) -> &[String] {
    let is_setting = |word: &String| {
        let is_number = word.starts_with(|first: char| first.is_ascii_digit());
        word.starts_with('-') || word.contains('=') || is_number
    };
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        if !LAUNCHERS.contains(&file_name(first)) {
            break;
        }
        let program = after.iter().position(|word| !is_setting(word));
        let Some(program) = program else { return arguments };
        rest = &after[program..];
    }
    rest
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.' || last == '-')
}

/// Arguments joined as a shell would quote them.
pub fn quoted(arguments: &[String]) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_-+=./:,@%^".contains(character);
    let quote = |argument: &String| match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.clone(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_program_behind_launchers_and_interpreters_is_named() {
        let name = |line: &str| program_name(&words(line)).map(str::to_owned);
        for (line, program) in [
            ("/usr/bin/lmp -in melt.in", "lmp"),
            ("env OMP_NUM_THREADS=1 lmp -in melt.in", "lmp"),
            ("nice -n 5 taskset -c 0,1 ./sim world.sdf", "sim"),
            ("timeout 10s /opt/gz/gz sim", "gz"),
            ("/usr/bin/python3.11 -X perf arm.py --fast", "arm.py"),
            ("python3 -W ignore -m gym.run", "gym.run"),
            ("python3", "python3"),
            ("bash -c true", "bash"),
            ("env A=1", "env"),
            ("/opt/ros/lib/tf/static_tf a/b", "static_tf"),
        ] {
            assert_eq!(name(line).as_deref(), Some(program), "{line}");
        }
        assert_eq!(program_name(&[]), None);
    }
}
