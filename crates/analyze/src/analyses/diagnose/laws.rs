//! [`Laws`]: how the costs of a scenario grow, from the sweep that a capture is the largest size of.

use stepscope_stats::growth::{Growth, MIN_SIZES, Point};

use crate::analyses::growth::{FunctionCosts, Measure, Measured, Series};
use crate::parallel;

/// The laws of a series, as evidence about the captures at its largest size.
pub(super) struct Laws {
    /// Name of the axis of sizes.
    pub axis: String,
    sizes: Vec<f64>,
    /// Size of each run.
    of_run: Vec<f64>,
    whole: Measure,
    /// Functions by name.
    pub functions: Vec<FunctionLaw>,
    /// That of resident memory.
    pub memory: Option<Growth>,
}

/// How the cost of a function grows.
pub(super) struct FunctionLaw {
    pub name: String,
    /// Attributed cost.
    pub own: Option<Growth>,
    /// With all it calls.
    pub inclusive: Growth,
    costs: (Option<Measure>, Measure),
}

impl Laws {
    /// `None` with fewer than three sizes.
    pub fn of(series: &Series<'_, '_>) -> Option<Self> {
        let sizes = series.sizes();
        if sizes.len() < MIN_SIZES {
            return None;
        }
        let of_run: Vec<f64> = series.runs.iter().map(|run| run.n).collect();
        let FunctionCosts { whole, functions, memory } = FunctionCosts::of(series);
        let growth = |measure: &Measure| measure.growth(of_run.iter().copied());
        let fits = parallel::map(&functions, growth);
        let mut own: Vec<(Measure, Option<Growth>)> = Vec::new();
        let mut all: Vec<(Measure, Option<Growth>)> = Vec::new();
        for (measure, fit) in functions.into_iter().zip(fits) {
            if measure.kind == Measured::Function { own.push((measure, fit)) } else { all.push((measure, fit)) }
        }
        let law = |(measure, fit): (Measure, Option<Growth>)| {
            let place = own.iter().position(|(own, _)| own.name == measure.name);
            let (cost, own) = place.map(|place| own.swap_remove(place)).unzip();
            Some(FunctionLaw {
                name: measure.name.clone(),
                own: own.flatten(),
                inclusive: fit?,
                costs: (cost, measure),
            })
        };
        let mut law = law;
        let functions = all.into_iter().filter_map(&mut law).collect();
        let memory = growth(&memory);
        Some(Self { axis: series.axis.clone(), sizes, of_run, whole, functions, memory })
    }

    /// The law of a function.
    pub fn of_function(&self, name: &str) -> Option<&FunctionLaw> {
        self.functions.iter().find(|one| one.name == name)
    }

    /// The smallest and the largest size.
    pub fn extent(&self) -> (f64, f64) {
        (self.sizes[0], self.sizes[self.sizes.len() - 1])
    }

    /// How everything grows but a function and all it calls; `None` if too little is left at some size.
    pub fn without(&self, function: &FunctionLaw) -> Option<Growth> {
        self.rest(&[&function.costs.1])
    }

    /// How the owned functions that a function calls grow together; `None` if there is nothing of them at some size.
    pub fn callees(&self, function: &FunctionLaw) -> Option<Growth> {
        let own: Vec<&Measure> = function.costs.0.iter().collect();
        self.fit(function.costs.1.points_less(&own, self.of_run.iter().copied()))
    }

    /// How everything grows but the attributed costs of these functions.
    pub fn without_own(&self, functions: &[&FunctionLaw]) -> Option<Growth> {
        let own: Vec<&Measure> = functions.iter().filter_map(|one| one.costs.0.as_ref()).collect();
        self.rest(&own)
    }

    fn rest(&self, others: &[&Measure]) -> Option<Growth> {
        self.fit(self.whole.points_less(others, self.of_run.iter().copied()))
    }

    fn fit(&self, points: Vec<Point>) -> Option<Growth> {
        (points.len() == self.sizes.len()).then(|| Growth::of(&points)).flatten()
    }

    /// The cost of each unit of the size at the largest one, beyond that of the smallest.
    pub fn per_unit(&self, growth: &Growth) -> Option<f64> {
        let (smallest, largest) = self.extent();
        let (first, last) = (growth.expect(smallest)?, growth.expect(largest)?);
        Some((last.value - first.value) / (largest - smallest))
    }

    /// The part of a cost at size `n` that is left if each unit of the size costs as little as at the smallest one.
    pub fn linear_part(&self, growth: &Growth, n: f64) -> Option<f64> {
        let first = growth.expect(self.extent().0)?.value;
        let at = growth.predict(n)?.value;
        (at > 0.0).then(|| (first * n / self.extent().0 / at).clamp(0.0, 1.0))
    }
}
