//! Names of sections in links.

use rustc_hash::FxHashSet;

/// Longer anchors make unwieldy links.
const LONGEST: usize = 80;

/// Gives out anchors, each once.
#[derive(Default)]
pub struct Anchors {
    taken: FxHashSet<String>,
}

impl Anchors {
    /// The anchor of a section within the one named `within` (empty for none), from its own anchor or else its title.
    pub fn give(&mut self, within: &str, wish: &str, title: &str) -> String {
        let own = slug(if wish.is_empty() { title } else { wish });
        let anchor = if within.is_empty() { own } else { format!("{within}/{own}") };
        let numbered = (2_u32..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|anchor| !self.taken.contains(anchor));
        let free = free.expect("there are more numbers than sections");
        self.taken.insert(free.clone());
        free
    }
}

/// Letters and digits in lower case, dots and underscores; one hyphen for all characters between.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        if slug.len() >= LONGEST {
            break;
        }
        if character.is_alphanumeric() || matches!(character, '.' | '_') {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "section".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_readable_and_each_is_given_once() {
        let mut anchors = Anchors::default();
        assert_eq!(anchors.give("", "", "3k_shapes · Steady state"), "3k_shapes-steady-state");
        assert_eq!(anchors.give("", "", "3k_shapes – steady state"), "3k_shapes-steady-state-2");
        assert_eq!(anchors.give("", "rank", "Which functions?"), "rank");
        assert_eq!(anchors.give("rank", "", "\"><script>"), "rank/script");
        assert_eq!(anchors.give("", "", "↯"), "section");
    }
}
