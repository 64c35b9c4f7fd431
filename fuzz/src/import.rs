//! Importers on bytes.

use stepscope_convert::export::{self, ExportOptions, Format};
use stepscope_convert::import::format_named;
use stepscope_convert::{ImportError, ImportOptions, Source, import};

use crate::symbols;

/// Imports bytes as the format `format`, then exports the capture in every format.
///
/// # Panics
/// If the imported capture is inconsistent.
pub fn import_and_export(format: &str, bytes: &[u8]) {
    let capture = match import(Source::stream("fuzz", bytes), &options(format)) {
        Ok(capture) => capture,
        Err(ImportError::Inconsistent { rule, .. }) => panic!("the capture is inconsistent: {rule}"),
        Err(_) => return,
    };
    for format in Format::ALL {
        // Some captures cannot be written in some formats (several events, no times): an error is no failure.
        let _ = export::write(&capture, format, &mut std::io::sink(), &ExportOptions::default());
    }
}

/// Options that read no other file of this machine.
pub(crate) fn options(format: &str) -> ImportOptions {
    ImportOptions { format: format_named(format), symbols: symbols::no_files(), ..ImportOptions::default() }
}
