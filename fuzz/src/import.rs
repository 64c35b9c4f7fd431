//! Importers on bytes.

use stepscope_convert::export::{self, Evidence, ExportOptions, Format};
use stepscope_convert::import::InputFormat;
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::{Capture, EventId};

use crate::symbols;

/// Imports bytes as `format` and by their content, then exports the captures in every format.
///
/// # Panics
/// If an imported capture is inconsistent.
pub fn import_and_export(format: &'static dyn InputFormat, bytes: &[u8]) {
    for format in [None, Some(format)] {
        match import(Source::stream("fuzz", bytes), &options(format)) {
            Ok(capture) => export_all(&capture),
            Err(error) => {
                let message = error.to_string();
                assert!(!message.contains("defect of stepscope"), "{message}");
            }
        }
    }
}

fn export_all(capture: &Capture) {
    for format in Format::ALL {
        for evidence in [None, Some(Evidence::OffCpu), Some(Evidence::Event(EventId(0)))] {
            let options = ExportOptions { evidence, ..ExportOptions::default() };
            // Some captures cannot be written in some formats (several events, no times): an error is no failure.
            let _ = export::write(capture, format, &mut std::io::sink(), &options);
        }
    }
}

/// Options that read no other file of this machine.
pub fn options(format: Option<&'static dyn InputFormat>) -> ImportOptions {
    ImportOptions { format, symbols: symbols::no_files(), ..ImportOptions::default() }
}
