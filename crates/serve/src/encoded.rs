//! Content as it goes to the browser: compressed with gzip where that helps.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, HeaderMap};

/// Content of one address.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    /// As it goes to the browser.
    pub bytes: Bytes,
    /// Whether `bytes` are compressed with gzip.
    pub is_gzip: bool,
}

impl Encoded {
    /// As it is: for formats that are compressed in themselves.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), is_gzip: false }
    }

    /// Compressed.
    pub fn compressed(text: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(text).and_then(|()| encoder.finish());
        Self { bytes: written.expect("memory can be written to").into(), is_gzip: true }
    }

    /// In a form that the client of this request takes.
    pub fn for_client(&self, request: &HeaderMap) -> Self {
        if !self.is_gzip || takes_gzip(request) {
            return self.clone();
        }
        let mut text = Vec::new();
        io::copy(&mut GzDecoder::new(&*self.bytes), &mut text).expect("these bytes were compressed here");
        Self::of(text)
    }
}

/// Whether the browser takes gzip.
fn takes_gzip(request: &HeaderMap) -> bool {
    let mut accepted = request
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    accepted.any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_taken_unless_it_is_refused() {
        let takes = |value: &'static str| {
            takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert!(takes("gzip, deflate, br"));
        assert!(takes("br;q=1.0, GZIP;q=0.8"));
        assert!(!takes("br, gzip;q=0"));
        assert!(!takes("identity"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn compression_can_be_undone() {
        let text = "steps ".repeat(1000);
        let compressed = Encoded::compressed(text.as_bytes());
        assert!(compressed.bytes.len() < 200);
        assert_eq!(compressed.for_client(&HeaderMap::new()).bytes, text.as_bytes());
    }
}
