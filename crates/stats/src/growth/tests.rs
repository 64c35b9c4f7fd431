use super::*;

fn table(sizes: &[f64], runs: usize, cost: impl Fn(f64) -> f64) -> Vec<Point> {
    // Factors that scatter by 2 % without a trend.
    let noise = [1.0, 1.021, 0.985, 1.012, 0.979, 1.008, 0.99];
    let point = |(index, &n): (usize, &f64)| {
        let values: Vec<f64> = (0..runs).map(|run| cost(n) * noise[(index * 3 + run) % noise.len()]).collect();
        Point::new(n, values)
    };
    sizes.iter().enumerate().map(point).collect()
}

const SIZES: [f64; 5] = [500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0];

type Cost = fn(f64) -> f64;

#[test]
fn each_law_is_named_from_five_sizes_with_two_percent_of_noise() {
    let laws: [(Law, Cost); 8] = [
        (Law::Constant, |_| 3.0),
        (Law::Log, |n| n.ln()),
        (Law::Root, |n| n.sqrt()),
        (Law::Linear, |n| 0.5 * n + 100.0),
        (Law::LinearLog, |n| n * n.ln()),
        (Law::ThreeHalves, |n| n.powf(1.5)),
        (Law::Quadratic, |n| n * n + 1e6),
        (Law::Cubic, |n| n.powi(3)),
    ];
    for (law, cost) in laws {
        let growth = Growth::of(&table(&SIZES, 5, cost)).unwrap();
        assert_eq!(growth.law(), Some(law), "{:?}", growth.laws);
        let predicted = growth.predict(32_000.0).unwrap();
        assert!((predicted.low..=predicted.high).contains(&cost(32_000.0)), "{law}: {predicted:?}");
    }
}

#[test]
fn another_power_is_named_free_and_its_interval_holds_it() {
    let sizes = [100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0];
    let growth = Growth::of(&table(&sizes, 5, |n| n.powf(1.27))).unwrap();
    assert_eq!(growth.law(), Some(Law::Free), "{:?}", growth.laws);
    assert!((growth.exponent.low..=growth.exponent.high).contains(&1.27), "{:?}", growth.exponent);
}

#[test]
fn two_sizes_are_inconclusive() {
    let growth = Growth::of(&table(&SIZES[..2], 10, |n| n)).unwrap();
    assert_eq!(growth.law(), None);
    assert!(growth.exponent.high - growth.exponent.low > 1.0, "{:?}", growth.exponent);
}

#[test]
fn a_table_without_two_sizes_of_positive_costs_has_no_law() {
    assert!(Growth::of(&[]).is_none());
    assert!(Growth::of(&table(&[10.0, 10.0], 5, |n| n)).is_none());
    let unusable = [Point::new(0.0, [1.0]), Point::new(5.0, [0.0]), Point::new(6.0, []), Point::new(7.0, [f64::NAN])];
    assert!(Growth::of(&[unusable.as_slice(), &[Point::new(8.0, [1.0])]].concat()).is_none());
}

#[test]
fn points_of_one_size_are_joined_in_any_order() {
    let (mut points, cost) = (table(&SIZES, 4, |n| n * n), |growth: &Growth| growth.predict(16_000.0).unwrap());
    let together = Growth::of(&points).unwrap();
    let half = Point::new(points[2].n, points[2].values.split_off(2));
    points.insert(0, half);
    let apart = Growth::of(&points).unwrap();
    assert_eq!(apart.points, 5);
    assert!((cost(&together).value / cost(&apart).value - 1.0).abs() < 1e-9);
}

#[test]
fn nothing_is_predicted_beyond_ten_times_the_largest_size() {
    let growth = Growth::of(&table(&SIZES, 5, |n| n)).unwrap();
    assert!(growth.predict(80_000.0).is_some());
    assert!(growth.predict(81_000.0).is_none() && growth.predict(100.0).is_none());
}

#[test]
fn a_budget_is_reached_where_the_law_says() {
    let growth = Growth::of(&table(&SIZES, 5, |n| 2.0 * n)).unwrap();
    let size = growth.reach(40_000.0);
    assert!(size.low < 20_000.0 && 20_000.0 < size.high && size.high < 22_500.0, "{size:?}");
    assert_eq!(growth.reach(1.0).value, 0.0);
    assert_eq!(growth.reach(1e9).low, f64::INFINITY);
}

#[test]
fn sizes_of_one_and_below_have_no_logarithm_but_powers() {
    let growth = Growth::of(&table(&[0.5, 1.0, 2.0, 4.0, 8.0], 5, |n| n * n)).unwrap();
    assert_eq!(growth.law(), Some(Law::Quadratic), "{:?}", growth.laws);
}

#[test]
fn a_cost_without_scatter_is_exact() {
    let points: Vec<Point> = SIZES.iter().map(|&n| Point::new(n, [3.0 * n; 3])).collect();
    let growth = Growth::of(&points).unwrap();
    assert_eq!(growth.law(), Some(Law::Linear), "{:?}", growth.laws);
    assert!((growth.exponent.value - 1.0).abs() < 0.02, "{:?}", growth.exponent);
}

/// Costs of 10 samples scatter by 32 %, so being 40 % too large says little about the law.
#[test]
fn sizes_of_few_samples_count_for_less() {
    let sampled = |index: usize, factor: f64| {
        let events = 10.0 * 16_f64.powi(index as i32);
        let scatter = [-1.2, 0.3, 1.1, -0.7, 0.5].map(|z: f64| 1.0 + z / f64::sqrt(events));
        let values: Vec<f64> = scatter.iter().map(|scatter| SIZES[index].powi(2) * factor * scatter).collect();
        Point { events: Some(events), ..Point::new(SIZES[index], values) }
    };
    let points: Vec<Point> = (0..5).map(|index| sampled(index, if index == 0 { 1.4 } else { 1.0 })).collect();
    let exact: Vec<Point> = points.iter().map(|point| Point { events: None, ..point.clone() }).collect();
    let (sampled, exact) = (Growth::of(&points).unwrap(), Growth::of(&exact).unwrap());
    assert_eq!(sampled.law(), Some(Law::Quadratic), "{:?}", sampled.laws);
    let width = |growth: &Growth| growth.exponent.high - growth.exponent.low;
    assert!(width(&sampled) < 0.5 * width(&exact), "{:?} {:?}", sampled.exponent, exact.exponent);
}
