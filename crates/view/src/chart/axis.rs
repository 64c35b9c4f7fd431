//! Axes: from values to places, and ticks at round values.

use stepscope_model::{Column, Value};

use stepscope_model::quantity::{header_unit, quantity};

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Equal differences are equally far apart. Begins at zero where no value is below it.
    Linear,
    /// Equal ratios are equally far apart: for values above zero that differ by orders of magnitude.
    Logarithmic,
}

impl Scale {
    /// The scale at which both the usual values and the largest can be read: beyond this ratio between them, a linear
    /// one shows a flat line and a few spikes.
    pub fn suiting(mut values: Vec<f64>) -> Self {
        const FLAT: f64 = 25.0;
        values.sort_by(f64::total_cmp);
        match (values.first(), values.get(values.len() / 2), values.last()) {
            (Some(&least), Some(&median), Some(&most)) if least > 0.0 && most / median > FLAT => Scale::Logarithmic,
            _ => Scale::Linear,
        }
    }
}

/// A range of values drawn over a range of places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Where `low` is drawn.
    from: f64,
    /// Where `high` is drawn.
    to: f64,
}

impl Axis {
    /// An axis on which the values from `least` to `most` have room.
    pub fn holding(scale: Scale, (least, most): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (low, high) = match scale {
            // A little air above: what touches the frame looks cut off.
            Scale::Logarithmic => (least / 1.1, most * 1.1),
            Scale::Linear if most > least => (least, most),
            Scale::Linear => (least, least + least.abs().max(1.0)),
        };
        Self { scale, low, high, from, to }
    }

    /// The place of a value; values beyond the axis are put at its end.
    pub fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values on the axis, about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        let ticks = match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, wanted),
            // Within a few multiples of one value, round steps are clearer than round factors.
            Scale::Logarithmic if self.high / self.low < 6.0 => linear_ticks(self.low, self.high, wanted),
            Scale::Logarithmic => logarithmic_ticks(self.low, self.high, wanted),
        };
        ticks.into_iter().filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let magnitude = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * magnitude).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(magnitude * 10.0);
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first + 1.0).clamp(0.0, 100.0) as usize;
    (0..count).map(|index| (first + index as f64) * step).collect()
}

/// Powers of ten, with what lies at 2 and 5 times them where these are few.
fn logarithmic_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let digits: &[f64] = if ((last - first) as usize) * 2 > wanted { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = (first..=last).map(|power| 10_f64.powi(power));
    powers.flat_map(|power| digits.iter().map(move |digit| digit * power)).collect()
}

/// A value of a column with its unit, as on an axis.
pub(super) fn labelled(value: f64, column: &Column) -> String {
    let quantity = quantity(&exact(value), column.kind);
    let unit = match header_unit(column) {
        "%" => " %",
        _ if quantity.unit.is_empty() => "",
        _ => return format!("{} {}", quantity.number, quantity.unit),
    };
    format!("{}{unit}", quantity.number)
}

/// Whole numbers are written as such.
fn exact(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e18 { Value::Int(value as i128) } else { Value::from(value) }
}

#[cfg(test)]
mod tests {
    use stepscope_model::Kind;

    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let axis = Axis::holding(Scale::Linear, (0.0, 17.3), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [0.0, 5.0, 10.0, 15.0]);
        let axis = Axis::holding(Scale::Linear, (-1.5e6, 1.5e6), (0.0, 100.0));
        assert_eq!(axis.ticks(3), [-1e6, 0.0, 1e6]);
        let axis = Axis::holding(Scale::Logarithmic, (90.0, 120_000.0), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [100.0, 1000.0, 10_000.0, 100_000.0]);
        let axis = Axis::holding(Scale::Logarithmic, (0.5, 1.0), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [3.0, 4.0, 5.0].map(|fifths| fifths * 0.2));
    }

    #[test]
    fn one_value_has_an_axis_too() {
        let axis = Axis::holding(Scale::Linear, (7.0, 7.0), (0.0, 100.0));
        assert_eq!(axis.place(7.0), 0.0);
        assert!(!axis.ticks(3).is_empty());
    }

    #[test]
    fn a_few_outliers_of_another_magnitude_make_the_scale_logarithmic() {
        let usual = |count: usize| std::iter::repeat_n(10.0, count);
        assert_eq!(Scale::suiting(usual(99).chain([1_000.0]).collect()), Scale::Logarithmic);
        assert_eq!(Scale::suiting(usual(99).chain([100.0]).collect()), Scale::Linear);
        assert_eq!(Scale::suiting(usual(99).chain([1_000.0, 0.0]).collect()), Scale::Linear);
        assert_eq!(Scale::suiting(vec![]), Scale::Linear);
    }

    #[test]
    fn values_beyond_the_axis_stay_at_its_end() {
        let axis = Axis::holding(Scale::Logarithmic, (1.0, 100.0), (200.0, 0.0));
        assert_eq!(axis.place(1e9), 0.0);
        assert_eq!(axis.place(0.0), 200.0);
    }

    #[test]
    fn labels_carry_the_unit() {
        let column = |kind, unit: &str| Column::new("c", kind, unit, "");
        assert_eq!(labelled(2_000_000.0, &column(Kind::Duration, "ns")), "2.00 ms");
        assert_eq!(labelled(40.0, &column(Kind::Percent, "percent")), "40.00 %");
        assert_eq!(labelled(1_500.0, &column(Kind::Count, "steps")), "1,500");
    }
}
