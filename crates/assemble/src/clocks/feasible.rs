//! All lines that pass between bounds: what exchanges allow a clock to be.

/// A line `start + slope * x`.
type Line = (f64, f64);

/// A bound on a line at one place: it passes at or below `y`, or at or above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    Below { x: f64, y: f64 },
    Above { x: f64, y: f64 },
}

impl Bound {
    /// How far the line is within the bound, widened by `slack`; negative if it is outside.
    fn within(self, (start, slope): Line, slack: f64) -> f64 {
        match self {
            Self::Below { x, y } => y + slack - (start + slope * x),
            Self::Above { x, y } => start + slope * x - y + slack,
        }
    }
}

/// The lines that keep all bounds: a convex polygon of starts and slopes.
#[derive(Debug, Clone)]
pub(super) struct Feasible {
    corners: Vec<Line>,
}

impl Feasible {
    /// The lines that keep these bounds, widened by `slack`, with slopes up to `steepest`. `None` if there are none.
    pub fn lines(bounds: &[Bound], slack: f64, steepest: f64) -> Option<Self> {
        let size = |bound: &Bound| match *bound {
            Bound::Below { x, y } | Bound::Above { x, y } => y.abs() + steepest * x.abs(),
        };
        let most = bounds.iter().map(size).fold(1.0, f64::max) * 2.0 + slack;
        let mut corners = vec![(-most, -steepest), (most, -steepest), (most, steepest), (-most, steepest)];
        for bound in bounds {
            corners = clipped(&corners, |line| bound.within(line, slack));
            if corners.is_empty() {
                return None;
            }
        }
        Some(Self { corners })
    }

    /// The lowest and the highest of the lines at this place.
    pub fn range_at(&self, x: f64) -> (f64, f64) {
        let heights = self.corners.iter().map(|(start, slope)| start + slope * x);
        heights.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)))
    }
}

/// The part of a convex polygon where `inside` is not negative.
fn clipped(corners: &[Line], inside: impl Fn(Line) -> f64) -> Vec<Line> {
    let mut kept = Vec::with_capacity(corners.len() + 1);
    for (index, &corner) in corners.iter().enumerate() {
        let next = corners[(index + 1) % corners.len()];
        let (here, there) = (inside(corner), inside(next));
        if here >= 0.0 {
            kept.push(corner);
        }
        if (here > 0.0 && there < 0.0) || (here < 0.0 && there > 0.0) {
            let part = here / (here - there);
            kept.push((corner.0 + (next.0 - corner.0) * part, corner.1 + (next.1 - corner.1) * part));
        }
    }
    kept
}
