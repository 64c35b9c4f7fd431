//! How often [diagnosis](crate::analyses::diagnose) is right: recall over switches, precision over fast settings.

use super::profile::Claim;
use super::{CLAIM_PERCENT, Case, Profile, Proof};

/// What diagnosis says of a switch that is slow alone, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The first finding has a right kind and names a guilty function.
    RightFirst,
    /// Such a finding comes later.
    Right,
    /// A guilty function is named, with another kind.
    OtherKind,
    /// No finding names a guilty function.
    Silent,
}

impl Answer {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::RightFirst => "right, first",
            Self::Right => "right, not first",
            Self::OtherKind => "other kind",
            Self::Silent => "not found",
        }
    }
}

/// The answers to a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosed {
    /// The switch.
    pub switch: String,
    /// The build.
    pub build: String,
    /// The median of all recordings of the switch alone; of two the worse one.
    pub answer: Answer,
    /// What came first in the first recording.
    pub first: Option<Claim>,
}

/// A finding where all is fast.
#[derive(Debug, Clone, PartialEq)]
pub struct FalseFinding {
    /// The setting or control.
    pub of: String,
    /// The build; controls are run as built.
    pub build: String,
    /// The finding.
    pub claim: Claim,
}

/// The answer to each switch that was recorded alone.
pub fn diagnosed(proof: &Proof) -> Vec<Diagnosed> {
    let of_case = |case: &Case| {
        let mut answers: Vec<Answer> = case.alone.profiles.iter().map(|one| answer(case, &one.claims)).collect();
        answers.sort_unstable();
        let answer = *answers.get(answers.len() / 2)?;
        let first = case.alone.profiles.first().and_then(|one| one.claims.first().cloned());
        Some(Diagnosed { switch: case.known.name.clone(), build: case.build.name.clone(), answer, first })
    };
    proof.cases.iter().filter_map(of_case).collect()
}

fn answer(case: &Case, claims: &[Claim]) -> Answer {
    let guilty: Vec<&str> = case.known.guilty.iter().flat_map(|name| case.build.names(name)).collect();
    let names_guilty = |claim: &Claim| guilty.contains(&claim.function.as_str());
    let kinds = &case.known.kinds;
    let is_right = |claim: &Claim| names_guilty(claim) && (kinds.is_empty() || kinds.contains(&claim.kind));
    match claims.iter().position(is_right) {
        Some(0) => Answer::RightFirst,
        Some(_) => Answer::Right,
        None if claims.iter().any(names_guilty) => Answer::OtherKind,
        None => Answer::Silent,
    }
}

/// A setting in which nothing should be found.
struct Fast<'p> {
    of: String,
    build: &'p str,
    profiles: &'p [Profile],
}

/// Fast settings and controls that were recorded.
fn fast(proof: &Proof) -> Vec<Fast<'_>> {
    // Controls are run in the build that has names.
    let plain = proof.cases.iter().find(|case| case.build.shown.is_none()).map_or("", |case| &case.build.name);
    let cases = proof.cases.iter().map(|case| Fast {
        of: format!("{} fast", case.known.name),
        build: &case.build.name,
        profiles: &case.fast.profiles,
    });
    let controls = proof.controls.iter().map(|control| Fast {
        of: control.name.clone(),
        build: plain,
        profiles: &control.profiles,
    });
    cases.chain(controls).filter(|one| !one.profiles.is_empty()).collect()
}

/// The findings of more than [`CLAIM_PERCENT`] in fast settings and in controls.
pub fn false_findings(proof: &Proof) -> Vec<FalseFinding> {
    let mut found: Vec<FalseFinding> = Vec::new();
    for Fast { of, build, profiles } in fast(proof) {
        for claim in profiles.iter().flat_map(|one| &one.claims).filter(|claim| claim.gain_share > CLAIM_PERCENT) {
            let same = |one: &FalseFinding| {
                (&*one.of, &*one.build, &one.claim.kind, &one.claim.function)
                    == (&*of, build, &claim.kind, &claim.function)
            };
            if !found.iter().any(same) {
                found.push(FalseFinding { of: of.clone(), build: build.to_owned(), claim: claim.clone() });
            }
        }
    }
    found
}

/// Each fast setting and control: its build, and whether nothing is found in any of its recordings.
pub fn quiet(proof: &Proof) -> Vec<(String, bool)> {
    let is_quiet = |one: &Profile| one.claims.iter().all(|claim| claim.gain_share <= CLAIM_PERCENT);
    fast(proof).into_iter().map(|one| (one.build.to_owned(), one.profiles.iter().all(is_quiet))).collect()
}

#[cfg(test)]
mod tests {
    use stepscope_model::Phase;

    use super::super::{Build, ControlCase, Known, Profile, Runs, Saves};
    use super::*;

    fn profile(claims: &[(&str, &str, f64)]) -> Profile {
        let claim = |(kind, function, gain_share): &(&str, &str, f64)| Claim {
            kind: (*kind).to_owned(),
            function: (*function).to_owned(),
            gain_share: *gain_share,
        };
        Profile { claims: claims.iter().map(claim).collect(), ..Profile::default() }
    }

    fn case(name: &str, alone: &[&[(&str, &str, f64)]], fast: &[&[(&str, &str, f64)]]) -> Case {
        let runs = |all: &[&[(&str, &str, f64)]]| Runs {
            profiles: all.iter().map(|claims| profile(claims)).collect(),
            ..Runs::default()
        };
        let known = Known {
            name: name.to_owned(),
            phase: Phase::Steady,
            function: "scan".to_owned(),
            guilty: vec!["scan".to_owned(), "visit".to_owned()],
            kinds: vec!["full-scan-each-step".to_owned()],
            seam: Vec::new(),
            saves: Saves::Cpu,
            downstream: None,
        };
        let (all, all_but) = (Runs::default(), Runs::default());
        Case { known, build: Build::default(), alone: runs(alone), fast: runs(fast), all, all_but }
    }

    fn proof(cases: Vec<Case>, controls: Vec<ControlCase>) -> Proof {
        Proof { cases, controls, ..Proof::default() }
    }

    #[test]
    fn the_median_recording_decides_and_kind_function_and_place_count() {
        let right: &[_] = &[("full-scan-each-step", "visit", 40.0), ("polling", "serve", 5.0)];
        let second: &[_] = &[("polling", "serve", 50.0), ("full-scan-each-step", "scan", 40.0)];
        let other: &[_] = &[("allocations-each-step", "scan", 40.0)];
        let elsewhere: &[_] = &[("full-scan-each-step", "serve", 40.0)];
        let answers = |alone: &[&[(&str, &str, f64)]]| diagnosed(&proof(vec![case("one", alone, &[])], vec![]));
        let answer = |alone: &[&[(&str, &str, f64)]]| answers(alone)[0].answer;
        assert_eq!(answer(&[right, second, right]), Answer::RightFirst);
        assert_eq!(answer(&[right, second]), Answer::Right, "of two the worse one");
        assert_eq!(answer(&[other]), Answer::OtherKind);
        assert_eq!(answer(&[elsewhere]), Answer::Silent);
        assert_eq!(answer(&[&[]]), Answer::Silent);
        assert!(answers(&[]).is_empty(), "a switch that was not recorded has no answer");
    }

    #[test]
    fn a_program_without_kinds_in_its_catalogue_counts_the_function_alone() {
        let mut case = case("one", &[&[("polling", "scan", 9.0)]], &[]);
        case.known.kinds.clear();
        assert_eq!(diagnosed(&proof(vec![case], vec![]))[0].answer, Answer::RightFirst);
    }

    #[test]
    fn findings_where_all_is_fast_count_once_from_three_percent_on() {
        let loud: &[_] = &[("polling", "serve", 3.1)];
        let few: &[_] = &[("polling", "serve", 2.9)];
        let cases =
            vec![case("one", &[&[("full-scan-each-step", "scan", 40.0)]], &[loud, loud]), case("two", &[&[]], &[few])];
        let profiles = vec![profile(few)];
        let control = ControlCase { name: "idle".to_owned(), why: String::new(), silent: Vec::new(), profiles };
        let proof = proof(cases, vec![control]);
        let found = false_findings(&proof);
        assert_eq!(found.iter().map(|one| one.of.as_str()).collect::<Vec<_>>(), ["one fast"]);
        assert_eq!(quiet(&proof).into_iter().map(|(_, quiet)| quiet).collect::<Vec<_>>(), [false, true, true]);
    }
}
