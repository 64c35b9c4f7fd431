//! [`CompilerWork`]: what compilers and configure steps say that they did, and how a capture names it.
//!
//! In stacks, the frame's function is the header, template or command, and its module is the kind of work, such as `[headers]`. Scopes have
//! only a name: the kind and the detail, such as `header /usr/include/math.h`.

/// A kind of work of a compiler, or of a configure step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompilerWork {
    /// From text to the compiler's inner form.
    FrontEnd,
    /// Optimisation and generation of code.
    BackEnd,
    /// Reading and parsing of an included file, with what it includes.
    Header,
    /// Parsing of a class, function or template of a file.
    Parsing,
    /// Instantiation of a template.
    Template,
    /// Optimisation and code of one function.
    Code,
    /// A command of a configure step.
    Configure,
}

/// Each kind with its module in frames and its word in names of scopes.
const NAMES: [(CompilerWork, &str, &str); 7] = [
    (CompilerWork::FrontEnd, "[front end]", "front end"),
    (CompilerWork::BackEnd, "[back end]", "back end"),
    (CompilerWork::Header, "[headers]", "header"),
    (CompilerWork::Parsing, "[parsing]", "parse"),
    (CompilerWork::Template, "[templates]", "instantiate"),
    (CompilerWork::Code, "[code generation]", "generate"),
    (CompilerWork::Configure, "[configure]", "configure"),
];

/// The module of frames that are a job of a build, and its parts.
pub const JOBS_MODULE: &str = "[build]";

/// The event of samples that divide the CPU time of a build: rows are sums, in ns.
pub const BUILD_EVENT: &str = "cpu";

/// The executable of a process that stands for an output of a build, of which the command is unknown.
pub const OUTPUT: &str = "[output of a build]";

/// The executable of a process that stands for a crate.
pub const CRATE: &str = "[crate]";

impl CompilerWork {
    fn names(self) -> (&'static str, &'static str) {
        let (_, module, word) = NAMES.into_iter().find(|(work, ..)| *work == self).expect("the table has every kind");
        (module, word)
    }

    /// The path of the module of its frames.
    pub fn module(self) -> &'static str {
        self.names().0
    }

    /// The kind of frames of this module.
    pub fn of_module(path: &str) -> Option<Self> {
        NAMES.into_iter().find(|(_, module, _)| *module == path).map(|(work, ..)| work)
    }

    /// The name of its scopes.
    pub fn scope(self, detail: &str) -> String {
        format!("{} {detail}", self.names().1).trim_end().to_owned()
    }

    /// The kind and the detail of a scope.
    pub fn of_scope(name: &str) -> Option<(Self, &str)> {
        NAMES.into_iter().find_map(|(work, _, word)| {
            let rest = name.strip_prefix(word)?;
            if rest.is_empty() { Some((work, "")) } else { Some((work, rest.strip_prefix(' ')?)) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_scopes_and_modules_lead_back_to_the_kind_of_work() {
        for (work, module, _) in NAMES {
            assert_eq!(CompilerWork::of_module(module), Some(work));
            assert_eq!(CompilerWork::of_scope(&work.scope("a b")), Some((work, "a b")));
            assert_eq!(CompilerWork::of_scope(&work.scope("")), Some((work, "")));
        }
        assert_eq!(CompilerWork::of_scope("headers"), None);
        assert_eq!(CompilerWork::of_module("/usr/bin/x"), None);
    }
}
