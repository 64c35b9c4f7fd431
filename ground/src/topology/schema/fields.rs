//! The members of a JSON object, read by name, with errors that say where they are.

use serde_json::{Map, Value};

/// An invalid value, and its position.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) place: String,
    pub(super) what: String,
}

pub(super) type Parsed<T> = Result<T, Mistake>;

/// An object of the file, and its position.
pub(super) struct Fields<'a> {
    pub(super) place: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(json: &'a Value, place: String) -> Parsed<Self> {
        match json {
            Value::Object(map) => Ok(Self { place, map }),
            other => Err(Mistake { place, what: format!("this is {}, not an object", kind(other)) }),
        }
    }

    pub(super) fn mistake(&self, name: &str, what: impl ToString) -> Mistake {
        Mistake { place: format!("{}.{name}", self.place), what: what.to_string() }
    }

    pub(super) fn expect_only(&self, known: &[&str]) -> Parsed<()> {
        match self.map.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.mistake(name, format!("unknown key; use {}", known.join(", ")))),
        }
    }

    pub(super) fn optional<T>(
        &self,
        name: &str,
        read: impl Fn(&'a Value) -> Result<T, &'static str>,
    ) -> Parsed<Option<T>> {
        let Some(value) = self.map.get(name) else { return Ok(None) };
        let what = |wanted| self.mistake(name, format!("this is {}, not {wanted}", kind(value)));
        read(value).map(Some).map_err(what)
    }

    pub(super) fn text(&self, name: &str) -> Parsed<String> {
        let text = self.optional(name, string)?.ok_or_else(|| self.mistake(name, "it is missing; give it a name"))?;
        match &text {
            text if text.is_empty() => Err(self.mistake(name, "it is empty; give it a name")),
            text if text.contains(char::is_control) => Err(self.mistake(name, "there is a control character in it")),
            _ => Ok(text),
        }
    }

    pub(super) fn array(&self, name: &str) -> Parsed<&'a [Value]> {
        self.optional(name, array)?.ok_or_else(|| self.mistake(name, "it is missing"))
    }
}

pub(super) fn string(value: &Value) -> Result<String, &'static str> {
    value.as_str().map(str::to_owned).ok_or("a string")
}

pub(super) fn integer(value: &Value) -> Result<i64, &'static str> {
    value.as_i64().ok_or("a whole number")
}

pub(super) fn number(value: &Value) -> Result<f64, &'static str> {
    value.as_f64().ok_or("a number")
}

pub(super) fn array(value: &Value) -> Result<&[Value], &'static str> {
    value.as_array().map(Vec::as_slice).ok_or("an array")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "another number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
