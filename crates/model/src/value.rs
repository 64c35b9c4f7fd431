//! [`Value`]: one cell of a table.

use serde::{Serialize, Serializer};

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not known or not applicable. Not zero.
    Missing,
    /// An exact integer.
    Int(i128),
    /// A real number; never NaN or infinite in a table (use [`Value::Missing`]).
    Float(f64),
    /// Text, whole.
    Text(String),
    /// Yes or no.
    Bool(bool),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Missing => serializer.serialize_none(),
            Value::Int(value) => match i64::try_from(*value) {
                Ok(value) => serializer.serialize_i64(value),
                Err(_) => match u64::try_from(*value) {
                    Ok(value) => serializer.serialize_u64(value),
                    Err(_) => serializer.serialize_i128(*value),
                },
            },
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::Bool(value) => serializer.serialize_bool(*value),
        }
    }
}

macro_rules! into_value {
    ($($from:ty => $variant:ident as $into:ty),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Value::$variant(value as $into)
            }
        }
    )*};
}

into_value!(u32 => Int as i128, i32 => Int as i128, u64 => Int as i128, i64 => Int as i128, u128 => Int as i128, usize => Int as i128, bool => Bool as bool);

impl From<f64> for Value {
    /// Numbers that are not finite become [`Value::Missing`]; zero has no sign, which the sum of nothing has.
    fn from(value: f64) -> Self {
        if value.is_finite() { Value::Float(value + 0.0) } else { Value::Missing }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Missing, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_without_a_denominator_is_missing_and_not_a_number() {
        assert_eq!(Value::from(f64::NAN), Value::Missing);
    }

    #[test]
    fn the_sum_of_nothing_is_zero_without_a_sign() {
        let nothing: f64 = [0.0; 0].iter().sum();
        assert!(matches!(Value::from(nothing), Value::Float(zero) if zero.is_sign_positive()));
    }
}
