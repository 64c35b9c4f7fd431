//! [`Element`]: a world file's XML as a tree that can be read, changed and written.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use super::error::SdfError;

/// One XML element with its typed value, attributes and children in file order.
///
/// Equality ignores lines, so a tree equals itself after writing and reading.
#[derive(Debug, Clone, Default)]
pub struct Element {
    /// Tag. Elements of a document share the copies.
    pub name: Arc<str>,
    /// Attributes in file order.
    pub attributes: Vec<(String, String)>,
    /// Text or numbers, if the element has some.
    pub value: Option<Param>,
    /// Child elements in file order.
    pub children: Vec<Element>,
    /// Line in its file, from 1; 0 if it was not read from a file.
    pub line: u32,
}

/// An element's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// Text, white space trimmed.
    Text(String),
    /// Numbers, for elements that hold numbers.
    Numbers(Vec<f64>),
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.attributes == other.attributes
            && self.value == other.value
            && self.children == other.children
    }
}

impl Element {
    /// Deepest nesting of elements. SDFormat's schema stays below 20.
    pub const MAX_DEPTH: usize = 64;

    /// Reads a document's root element. `origin` names it in errors.
    ///
    /// # Errors
    /// If the text is not well-formed, is nested too deeply, or has text instead of numbers.
    pub fn parse(text: &str, origin: &str) -> Result<Self, SdfError> {
        let document =
            roxmltree::Document::parse(text).map_err(|source| SdfError::Xml { origin: origin.to_owned(), source })?;
        let reader = Reader { lines: Lines::of(text), names: RefCell::default(), origin };
        reader.read_element(document.root_element(), 0)
    }

    /// The first child of this name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| &*child.name == name)
    }

    /// The element at the end of a path of first children.
    pub fn descend(&self, path: &[&str]) -> Option<&Element> {
        path.iter().try_fold(self, |element, name| element.child(name))
    }

    /// The children of this name.
    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| &*child.name == name)
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Its text, if it has text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Some(Param::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Its numbers; empty if it has none.
    pub fn numbers(&self) -> &[f64] {
        match &self.value {
            Some(Param::Numbers(numbers)) => numbers,
            _ => &[],
        }
    }

    /// Writes the element as XML to `out`, each line after `prefix`.
    #[inline(never)]
    pub fn to_string(&self, prefix: &str, out: &mut String) {
        out.push_str(prefix);
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("='");
            push_escaped(value, out);
            out.push('\'');
        }
        if self.value.is_none() && self.children.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push('>');
        self.print_value(out);
        if !self.children.is_empty() {
            out.push('\n');
            let deeper = format!("{prefix}  ");
            for child in &self.children {
                child.to_string(&deeper, out);
            }
            out.push_str(prefix);
        }
        out.push_str("</");
        out.push_str(&self.name);
        out.push_str(">\n");
    }

    fn print_value(&self, out: &mut String) {
        match &self.value {
            Some(Param::Text(text)) => push_escaped(text, out),
            Some(Param::Numbers(numbers)) => {
                for (index, number) in numbers.iter().enumerate() {
                    let space = if index == 0 { "" } else { " " };
                    write!(out, "{space}{number}").expect("a String takes all that is written");
                }
            }
            None => {}
        }
    }
}

fn push_escaped(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            // Parsers turn unescaped ones in attributes into spaces.
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            other => out.push(other),
        }
    }
}

/// Whether this element holds numbers in SDFormat's schema.
fn holds_numbers(name: &str) -> bool {
    matches!(
        name,
        "pose"
            | "size"
            | "radius"
            | "length"
            | "normal"
            | "gravity"
            | "mass"
            | "ixx"
            | "ixy"
            | "ixz"
            | "iyy"
            | "iyz"
            | "izz"
            | "mu"
            | "mu2"
            | "restitution_coefficient"
            | "ambient"
            | "diffuse"
            | "specular"
            | "emissive"
            | "horizontal_fov"
            | "max_step_size"
            | "real_time_factor"
            | "real_time_update_rate"
            | "update_rate"
            | "centre"
            | "period"
            | "turn_period"
    )
}

/// Converts XML nodes to elements.
struct Reader<'a> {
    lines: Lines,
    names: RefCell<HashSet<Arc<str>>>,
    origin: &'a str,
}

impl Reader<'_> {
    fn read_element(&self, node: roxmltree::Node<'_, '_>, depth: usize) -> Result<Element, SdfError> {
        let line = self.lines.line_at(node.range().start);
        if depth == Element::MAX_DEPTH {
            return Err(SdfError::TooDeep { origin: self.origin.to_owned(), line, max: Element::MAX_DEPTH });
        }
        let name = self.shared_name(node.tag_name().name());
        let attributes =
            node.attributes().map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())).collect();
        let value = self.read_value(node, &name, line)?;
        let children = node
            .children()
            .filter(roxmltree::Node::is_element)
            .map(|child| self.read_element(child, depth + 1))
            .collect::<Result<_, _>>()?;
        Ok(Element { name, attributes, value, children, line })
    }

    fn shared_name(&self, name: &str) -> Arc<str> {
        let mut names = self.names.borrow_mut();
        if let Some(shared) = names.get(name) {
            return shared.clone();
        }
        let shared = Arc::<str>::from(name);
        names.insert(shared.clone());
        shared
    }

    fn read_value(&self, node: roxmltree::Node<'_, '_>, name: &str, line: u32) -> Result<Option<Param>, SdfError> {
        let text = node.text().map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        if !holds_numbers(name) {
            return Ok(Some(Param::Text(text.to_owned())));
        }
        // The engine computes in single precision.
        let in_range = |number: &f64| (*number as f32).is_finite();
        let numbers = text.split_ascii_whitespace().map(|word| word.parse().ok().filter(in_range));
        match numbers.collect::<Option<Vec<f64>>>() {
            Some(numbers) => Ok(Some(Param::Numbers(numbers))),
            None => Err(SdfError::Value {
                origin: self.origin.to_owned(),
                line,
                element: name.to_owned(),
                value: text.to_owned(),
                what: "numbers separated by spaces",
            }),
        }
    }
}

/// The start of each line, so that looking up a line does not scan the text.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(starts).collect() }
    }

    fn line_at(&self, offset: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Element {
        Element::parse(text, "test").expect("the test's XML is well-formed")
    }

    fn written(element: &Element) -> String {
        let mut text = String::new();
        element.to_string("", &mut text);
        text
    }

    #[test]
    fn an_element_is_written_as_it_was_read() {
        let text = "\
<model name='a &amp; b'>
  <static>true</static>
  <pose>1 -2.5 0.1 0 0 3.141592653589793</pose>
  <link name='link'/>
</model>
";
        let element = parse(text);
        assert_eq!(element.attribute("name"), Some("a & b"));
        assert_eq!(element.child("pose").unwrap().numbers(), [1.0, -2.5, 0.1, 0.0, 0.0, std::f64::consts::PI]);
        assert_eq!(element.child("pose").unwrap().line, 3);
        assert_eq!(written(&element), text);
        assert_eq!(parse(&written(&element)), element);
    }

    #[test]
    fn markup_and_line_breaks_in_names_survive_a_round_trip() {
        let element = Element {
            name: "model".into(),
            attributes: vec![("name".into(), "<\"'&\n\t>".into())],
            value: Some(Param::Text("a < b && c".into())),
            ..Element::default()
        };
        assert_eq!(parse(&written(&element)), element);
    }

    #[test]
    fn text_instead_of_numbers_is_an_error_with_a_line() {
        let error = Element::parse("<model>\n  <pose>here</pose>\n</model>", "w.sdf").unwrap_err();
        assert_eq!(error.to_string(), "w.sdf, line 2: <pose> holds `here` where it needs numbers separated by spaces");
        assert!(Element::parse("<pose>1 1e39</pose>", "w.sdf").is_err(), "infinite in single precision");
    }

    #[test]
    fn nesting_beyond_the_limit_is_an_error() {
        let deep = |n| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
        assert!(Element::parse(&deep(Element::MAX_DEPTH), "w.sdf").is_ok());
        let error = Element::parse(&deep(Element::MAX_DEPTH + 1), "w.sdf").unwrap_err();
        assert_eq!(error.to_string(), "w.sdf, line 1: elements are nested deeper than 64");
    }

    #[test]
    fn text_that_is_not_xml_is_an_error_that_names_the_source() {
        let error = Element::parse("<sdf><world></sdf>", "w.sdf").unwrap_err().to_string();
        assert!(error.starts_with("w.sdf is not well-formed XML: "), "{error}");
    }
}
