//! [`Partners`]: the functions of one capture among those of others of its scenario.
//!
//! Functions are joined by exact name and module. But captures of one scenario may come from several tools, which name the same
//! function in ways of their own: heaptrack, valgrind and strace print parameters and return types, and cachegrind has no
//! modules. So a function without an exact partner has the one with the same [`instance_name`] in the same module, where a module
//! that is not known is the same as any. If several have it, it has none.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::query::functions::{Function, Identity};
use crate::query::qualified_name::instance_name;
use crate::query::select::Selection;

/// The functions of some captures, by the names that other tools give them.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    exact: FxHashSet<Identity>,
    by_instance: FxHashMap<String, Vec<Identity>>,
}

impl Partners {
    /// The functions of these captures.
    pub(crate) fn of<'s, 'a: 's>(selections: impl Iterator<Item = &'s Selection<'a>>) -> Self {
        let mut partners = Self::default();
        for (_, function) in selections.flat_map(|selection| selection.functions().all()) {
            partners.add(function.identity());
        }
        partners
    }

    fn add(&mut self, identity: Identity) {
        if self.exact.insert(identity.clone()) {
            self.by_instance.entry(instance_name(&identity.name)).or_default().push(identity);
        }
    }

    /// The same function in those captures; the function itself where it has no certain partner.
    pub(crate) fn identity(&self, function: &Function) -> Identity {
        let identity = function.identity();
        if self.exact.contains(&identity) {
            return identity;
        }
        let named = self.by_instance.get(&instance_name(&function.name)).map_or(&[][..], Vec::as_slice);
        let may_be_in = |other: &&Identity| {
            [&identity.module, &other.module].iter().any(|module| module.is_empty()) || identity.module == other.module
        };
        let mut partners = named.iter().filter(may_be_in);
        match (partners.next(), partners.next()) {
            (Some(partner), None) => partner.clone(),
            _ => identity,
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_model::FrameKind;

    use super::*;

    fn function(name: &str, module: &str) -> Function {
        Function { name: name.into(), module: module.into(), owned: true, kind: FrameKind::Native }
    }

    #[test]
    fn a_function_has_the_partner_that_another_tool_prints_with_parameters_or_without_a_module() {
        let mut partners = Partners::default();
        let known = [("sim::f", "p"), ("sim::Each<int>", "p"), ("sim::Each<long>", "p"), ("g", "a.so"), ("g", "b.so")];
        for (name, module) in known {
            partners.add(function(name, module).identity());
        }
        let found = |name: &str, module: &str| {
            let identity = partners.identity(&function(name, module));
            (identity.name.to_string(), identity.module.to_string())
        };
        let same = |name: &str, module: &str| (name.to_owned(), module.to_owned());
        assert_eq!(found("sim::f(int) const", "p"), same("sim::f", "p"));
        assert_eq!(found("sim::f(int)", ""), same("sim::f", "p"));
        assert_eq!(found("void sim::Each<long>(long)", ""), same("sim::Each<long>", "p"));
        assert_eq!(found("sim::Each<char>(char)", "p"), same("sim::Each<char>(char)", "p"), "another instance");
        assert_eq!(found("sim::f(int)", "q"), same("sim::f(int)", "q"), "another module");
        assert_eq!(found("g()", ""), same("g()", ""), "one of two");
        assert_eq!(found("g()", "b.so"), same("g", "b.so"));
    }
}
