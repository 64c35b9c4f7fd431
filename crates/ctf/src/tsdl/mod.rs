//! The language of CTF's metadata, TSDL (CTF 1.8.3, section 7 and appendix C).

pub(crate) mod declared;
mod lexer;
mod parser;
mod syntax_error;

pub(crate) use parser::parse;
pub use syntax_error::SyntaxError;
