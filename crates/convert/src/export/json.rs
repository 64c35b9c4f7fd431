//! [`Json`]: a streaming JSON writer that never holds a document in memory.

use std::io::{self, Write};

use serde::Serialize;

/// Writes one JSON document. It places commas; serde_json writes values and escapes names.
pub struct Json<'w> {
    out: &'w mut dyn Write,
    /// The next item is the first of its object or array, or the value of a key.
    needs_no_comma: bool,
}

impl<'w> Json<'w> {
    /// A document written to `out`.
    pub fn new(out: &'w mut dyn Write) -> Self {
        Self { out, needs_no_comma: true }
    }

    fn begin_item(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.needs_no_comma) {
            self.out.write_all(b",")?;
        }
        Ok(())
    }

    fn nest(&mut self, ends: [&[u8]; 2], body: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.begin_item()?;
        self.out.write_all(ends[0])?;
        self.needs_no_comma = true;
        body(self)?;
        self.needs_no_comma = false;
        self.out.write_all(ends[1])
    }

    fn key(&mut self, key: &str) -> io::Result<()> {
        self.value(key)?;
        self.out.write_all(b":")?;
        self.needs_no_comma = true;
        Ok(())
    }

    /// Writes a value: the document, or the next element of an array.
    pub fn value(&mut self, value: impl Serialize) -> io::Result<()> {
        self.begin_item()?;
        Ok(serde_json::to_writer(&mut *self.out, &value)?)
    }

    /// Writes an object whose entries `body` writes.
    pub fn object(&mut self, body: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.nest([b"{", b"}"], body)
    }

    /// Starts a line. Long arrays have one line per element, to be readable.
    pub fn line(&mut self) -> io::Result<()> {
        self.begin_item()?;
        self.needs_no_comma = true;
        self.out.write_all(b"\n")
    }

    /// Writes an entry of an object.
    pub fn entry(&mut self, key: &str, value: impl Serialize) -> io::Result<()> {
        self.key(key)?;
        self.value(value)
    }

    /// Writes an entry of an object if there is a value.
    pub fn some_entry(&mut self, key: &str, value: Option<impl Serialize>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.entry(key, value))
    }

    /// Writes an entry whose value is an object.
    pub fn object_entry(&mut self, key: &str, body: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.key(key)?;
        self.object(body)
    }

    /// Writes an entry whose value is an array.
    pub fn array_entry(&mut self, key: &str, body: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.key(key)?;
        self.nest([b"[", b"]"], body)
    }

    /// Writes an entry whose value is an array of `values`.
    pub fn column<T: Serialize>(&mut self, key: &str, values: impl IntoIterator<Item = T>) -> io::Result<()> {
        self.array_entry(key, |json| values.into_iter().try_for_each(|value| json.value(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_placed_and_names_escaped() {
        let mut out = Vec::new();
        Json::new(&mut out)
            .object(|json| {
                json.entry("operator\"\\\n", 1)?;
                json.some_entry("absent", None::<u32>)?;
                json.array_entry("empty", |_| Ok(()))?;
                json.column("column", [Some(1.5), None])?;
                json.array_entry("rows", |json| {
                    for row in 0..2 {
                        json.line()?;
                        json.object(|json| json.object_entry("row", |json| json.entry("é\u{1}", row)))?;
                    }
                    Ok(())
                })?;
                json.entry("last", true)
            })
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "{\"operator\\\"\\\\\\n\":1,\"empty\":[],\"column\":[1.5,null],\
             \"rows\":[\n{\"row\":{\"é\\u0001\":0}},\n{\"row\":{\"é\\u0001\":1}}],\"last\":true}"
        );
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
}
