//! Bars behind shares.

use stepscope_model::{Column, Kind, Value};

use crate::embed::append;
use stepscope_model::quantity::number;

/// The largest share in a column of percentages, which has the longest bar. Absent if no share is above zero, and for other
/// columns.
pub(super) fn largest_share<'a>(column: &Column, values: impl Iterator<Item = &'a Value>) -> Option<f64> {
    if column.kind != Kind::Percent {
        return None;
    }
    values.filter_map(number).max_by(f64::total_cmp).filter(|&largest| largest > 0.0)
}

/// The class of a share's bar: its length in percent of the column's width. Empty for no bar.
pub(super) fn class_of(value: &Value, largest: Option<f64>) -> String {
    let length = number(value).zip(largest).map_or(0.0, |(share, largest)| (share / largest * 100.0).round());
    if length >= 1.0 { format!(" h{}", length.min(100.0)) } else { String::new() }
}

/// The rules for all lengths. (An inline style would need a weaker content security policy.)
pub(super) fn style_sheet() -> String {
    let mut css = String::new();
    for length in 1..=100 {
        // The style sheet of the page leaves 6 pixels to the left of the bars.
        append!(css, ".h{length}{{background-size:calc((100% - 6px)*{}) 19px}}", f64::from(length) / 100.0);
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_the_part_of_the_largest_share() {
        let column = Column::new("share", Kind::Percent, "percent", "");
        let values = [Value::from(20.0), Value::from(5_u32), Value::Missing, Value::from(0.01)];
        let largest = largest_share(&column, values.iter());
        assert_eq!(largest, Some(20.0));
        assert_eq!(values.each_ref().map(|value| class_of(value, largest)), [" h100", " h25", "", ""]);
    }

    #[test]
    fn columns_without_shares_have_no_bars() {
        let duration = Column::new("self", Kind::Duration, "ns", "");
        assert_eq!(largest_share(&duration, [Value::from(1.0)].iter()), None);
        let share = Column::new("share", Kind::Percent, "percent", "");
        assert_eq!(largest_share(&share, [Value::from(0.0), Value::from(-1.0)].iter()), None);
    }
}
