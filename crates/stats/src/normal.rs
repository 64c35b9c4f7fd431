//! The standard normal distribution.

/// P(Z <= `z`).
///
/// West, *Better Approximations to Cumulative Normal Functions*, 2005 (after Hart, 1968): double precision.
pub fn cumulative(z: f64) -> f64 {
    const ABOVE: [f64; 7] = [
        3.526_249_659_989_11e-2,
        0.700_383_064_443_688,
        6.373_962_203_531_65,
        33.912_866_078_383,
        112.079_291_497_871,
        221.213_596_169_931,
        220.206_867_912_376,
    ];
    const BELOW: [f64; 8] = [
        8.838_834_764_831_84e-2,
        1.755_667_163_182_64,
        16.064_177_579_207,
        86.780_732_202_946_1,
        296.564_248_779_674,
        637.333_633_378_831,
        793.826_512_519_948,
        440.413_735_824_752,
    ];
    let far = z.abs();
    let density = (-far * far / 2.0).exp();
    let tail = if far > 37.0 {
        0.0
    } else if far < 7.071_067_811_865_47 {
        let polynomial = |terms: &[f64]| terms.iter().fold(0.0, |sum, term| sum * far + term);
        density * polynomial(&ABOVE) / polynomial(&BELOW)
    } else {
        let fraction = [4.0, 3.0, 2.0, 1.0].iter().fold(far + 0.65, |below, above| far + above / below);
        density / fraction / 2.506_628_274_631
    };
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// The z with P(Z <= z) = `probability`; infinite at 0 and 1.
///
/// Acklam's rational approximation (relative error 1.15e-9), refined by one step of Halley's method.
///
/// # Panics
/// If `probability` is not within 0 to 1.
pub fn quantile(probability: f64) -> f64 {
    assert!((0.0..=1.0).contains(&probability), "a probability is within 0 to 1, not {probability}");
    if probability == 0.0 {
        return f64::NEG_INFINITY;
    }
    if probability == 1.0 {
        return f64::INFINITY;
    }
    let rough = rough_quantile(probability);
    let error = cumulative(rough) - probability;
    let step = error * (2.0 * std::f64::consts::PI).sqrt() * (rough * rough / 2.0).exp();
    rough - step / (1.0 + rough * step / 2.0)
}

fn rough_quantile(probability: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    const TAIL: f64 = 0.024_25;
    let polynomial = |terms: &[f64], at: f64| terms.iter().fold(0.0, |sum, term| sum * at + term);
    let in_tail = |probability: f64| {
        let far = (-2.0 * probability.ln()).sqrt();
        polynomial(&C, far) / polynomial(&D, far)
    };
    if probability < TAIL {
        return in_tail(probability);
    }
    if probability > 1.0 - TAIL {
        return -in_tail(1.0 - probability);
    }
    let off = probability - 0.5;
    let square = off * off;
    polynomial(&A, square) * off / polynomial(&B, square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_met() {
        for (z, probability) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (1.959_963_984_540_054, 0.975),
            (-3.0, 1.349_898_031_630_094_6e-3),
            (8.0, 1.0 - 6.220_960_574_271_785e-16),
        ] {
            assert!((cumulative(z) - probability).abs() < 1e-13, "{z}: {}", cumulative(z));
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((quantile(0.001) + 3.090_232_306_167_813).abs() < 1e-12);
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn the_quantile_undoes_the_cumulative() {
        for step in 1..200 {
            let z = f64::from(step) / 20.0 - 5.0;
            assert!((quantile(cumulative(z)) - z).abs() < 1e-8, "{z}");
        }
    }
}
