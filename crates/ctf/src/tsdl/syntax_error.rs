//! What is wrong with metadata.

/// What is wrong with the metadata, and on which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub what: String,
}
