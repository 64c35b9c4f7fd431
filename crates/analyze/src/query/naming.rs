//! [`Naming`]: what a lab file calls the parts of a program.

use crate::query::categories::CategoryRules;
use crate::query::process_label::ProcessNameRule;

/// Names of processes and categories of code. They select nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// `[process_names]`: labels of processes. The first rule that matches decides.
    pub processes: Vec<ProcessNameRule>,
    /// `[categories]`: what part of a system each sample belongs to.
    pub categories: CategoryRules,
}
