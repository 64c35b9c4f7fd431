//! The data of the script: the whole tree, compact, inside the page.
//!
//! One JSON object:
//!
//! | key | holds |
//! |---|---|
//! | `version` | 1; raised with every change of this form |
//! | `title`, `subtitle`, `unit` | as in the tree |
//! | `inverted` | whether leaves are at the root |
//! | `colours`, `growth` | how the first picture is drawn: `kind` or `module`, `up` or `down` |
//! | `strings` | all distinct names, modules and sources; the first is empty |
//! | `modules` | the modules with colours of their own, as indices of `strings`, heaviest first |
//! | `frames` | four numbers for each frame: name, module, source (indices of `strings`), and `((kind * 3 + shade) * 2 + owned) * 2 + inlined` |
//! | `nodes` | three numbers for each node in drawing order: how many levels up from the last node's child, its frame, its own weight |
//! | `compared` | of a difference: the names of both trees, and `own`: the own weight of each node in the other; where they are known, `verdicts`: 0 for changed, 1 for equivalent, 2 for inconclusive |
//! | `gaps` | two numbers for each node that is wider than its own weight and its children: nodes since the last such, the rest |
//!
//! Lists of numbers are strings in the alphabet of source maps ([`push_number`](crate::embed)). A node takes about
//! six bytes. Totals and positions are sums that the script does again.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{CallNode, CallTree, FrameKind, Verdict};

use super::layout::Layout;
use super::palette::{COLOURED_MODULES, KINDS, shade};
use super::{Growth, Options, Subject};
use crate::embed::{push_json_string, push_number};

/// Distinct strings, numbered in order of appearance.
#[derive(Default)]
struct Strings {
    texts: Vec<Arc<str>>,
    by_text: FxHashMap<Arc<str>, u32>,
    /// Trees share their strings, so most look-ups need not read the text.
    by_address: FxHashMap<(usize, usize), u32>,
}

impl Strings {
    fn number(&mut self, text: &Arc<str>) -> u32 {
        let address = (text.as_ptr() as usize, text.len());
        if let Some(&number) = self.by_address.get(&address) {
            return number;
        }
        let number = *self.by_text.entry(text.clone()).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() as u32 - 1
        });
        self.by_address.insert(address, number);
        number
    }
}

/// Distinct frames, numbered in order of appearance and encoded as they appear.
struct Frames {
    strings: Strings,
    numbers: FxHashMap<[u32; 4], u32>,
    /// By the addresses of the texts: nodes share them.
    by_address: FxHashMap<([usize; 3], FrameKind, [bool; 2]), u32>,
    encoded: String,
}

impl Frames {
    fn new() -> Self {
        let mut strings = Strings::default();
        strings.number(&Arc::from(""));
        Self { strings, numbers: FxHashMap::default(), by_address: FxHashMap::default(), encoded: String::new() }
    }

    fn number(&mut self, node: &CallNode) -> u32 {
        let texts = [&node.name, &node.module, &node.source].map(|text| text.as_ptr() as usize);
        let key = (texts, node.kind, [node.owned, node.inlined]);
        if let Some(&number) = self.by_address.get(&key) {
            return number;
        }
        let number = self.number_of_texts(node);
        self.by_address.insert(key, number);
        number
    }

    fn number_of_texts(&mut self, node: &CallNode) -> u32 {
        let [name, module, source] = [&node.name, &node.module, &node.source].map(|text| self.strings.number(text));
        let kind = KINDS.iter().position(|&kind| kind == node.kind).unwrap_or(KINDS.len() - 1) as u32;
        let bits = u32::from(node.owned) * 2 + u32::from(node.inlined);
        let next = self.numbers.len() as u32;
        // The shade depends on the name only, so equal frames have equal shades.
        *self.numbers.entry([name, module, source, kind * 4 + bits]).or_insert_with(|| {
            let flags = (kind * 3 + u32::from(shade(&node.name))) * 4 + bits;
            for number in [name, module, source, flags] {
                push_number(u64::from(number), &mut self.encoded);
            }
            next
        })
    }
}

/// Weight of the samples that end in the node: its own, or in inverted trees the total of a node at the root or on a group.
fn leaf_weight(tree: &CallTree, node: &CallNode) -> u64 {
    if !tree.inverted {
        return node.own;
    }
    let parent = node.parent.and_then(|parent| tree.nodes.get(parent as usize));
    let on_group = node.kind != FrameKind::Group && parent.is_some_and(|parent| parent.kind == FrameKind::Group);
    if on_group { node.total } else { 0 }
}

/// The modules with the largest self weight, heaviest first, equal ones by name.
pub(crate) fn heaviest_modules(tree: &CallTree) -> Vec<Arc<str>> {
    let mut weights: FxHashMap<&Arc<str>, u128> = FxHashMap::default();
    for node in tree.nodes.iter().filter(|node| !node.module.is_empty()) {
        *weights.entry(&node.module).or_default() += u128::from(leaf_weight(tree, node));
    }
    let mut modules: Vec<(&Arc<str>, u128)> = weights.into_iter().collect();
    modules.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    modules.into_iter().take(COLOURED_MODULES).map(|(module, _)| module.clone()).collect()
}

/// The tree as the script reads it, safe inside a `<script>` of HTML or a CDATA section of XML.
pub(crate) fn encode(subject: &Subject<'_>, layout: &Layout, modules: &[Arc<str>], options: &Options) -> String {
    let tree = subject.tree;
    let mut frames = Frames::new();
    let nodes = encode_nodes(tree, layout, &mut frames);
    let gaps = encode_gaps(tree, layout);
    let module_numbers: Vec<String> = modules.iter().map(|name| frames.strings.number(name).to_string()).collect();
    let growth = match options.growth_of(tree) {
        Growth::Up => "up",
        Growth::Down => "down",
    };
    let mut json = String::with_capacity(nodes.len() + frames.encoded.len() + 64 * frames.strings.texts.len() + 256);
    json.push_str("{\"version\":1,\"title\":");
    push_json_string(&tree.title, &mut json);
    json.push_str(",\"subtitle\":");
    push_json_string(&tree.subtitle, &mut json);
    json.push_str(",\"unit\":");
    push_json_string(&tree.unit, &mut json);
    json.push_str(&format!(",\"inverted\":{},\"growth\":\"{growth}\"", tree.inverted));
    json.push_str(&format!(",\"colours\":\"{}\"", options.colours.of(subject).name()));
    push_compared(subject, layout, &mut json);
    json.push_str(",\"strings\":[");
    for (index, text) in frames.strings.texts.iter().enumerate() {
        json.push_str(if index == 0 { "" } else { "," });
        push_json_string(text, &mut json);
    }
    json.push_str(&format!("],\"modules\":[{}]", module_numbers.join(",")));
    for (key, value) in [("frames", &frames.encoded), ("nodes", &nodes), ("gaps", &gaps)] {
        json.push_str(&format!(",\"{key}\":\"{value}\""));
    }
    json.push('}');
    json
}

fn push_compared(subject: &Subject<'_>, layout: &Layout, json: &mut String) {
    let Some(difference) = subject.difference else { return };
    json.push_str(",\"compared\":{\"name\":");
    push_json_string(&difference.name, json);
    json.push_str(",\"baseName\":");
    push_json_string(&difference.base_name, json);
    json.push_str(",\"own\":\"");
    for &node in &layout.node {
        push_number(subject.base(node as usize).unwrap_or_default().own, json);
    }
    if difference.verdicts.is_some() {
        json.push_str("\",\"verdicts\":\"");
        for &node in &layout.node {
            let code = match subject.verdict(node as usize).unwrap_or(Verdict::Inconclusive) {
                Verdict::Changed => 0,
                Verdict::Equivalent => 1,
                Verdict::Inconclusive => 2,
            };
            push_number(code, json);
        }
    }
    json.push_str("\"}");
}

fn encode_nodes(tree: &CallTree, layout: &Layout, frames: &mut Frames) -> String {
    let mut encoded = String::with_capacity(layout.node.len() * 8);
    let mut next_depth = 0;
    for (&node, &depth) in layout.node.iter().zip(&layout.depth) {
        let node = &tree.nodes[node as usize];
        push_number(u64::from(next_depth - depth), &mut encoded);
        push_number(u64::from(frames.number(node)), &mut encoded);
        push_number(node.own, &mut encoded);
        next_depth = depth + 1;
    }
    encoded
}

fn encode_gaps(tree: &CallTree, layout: &Layout) -> String {
    let mut encoded = String::new();
    let mut inner: Vec<u128> = layout.node.iter().map(|&node| u128::from(tree.nodes[node as usize].own)).collect();
    let mut path: Vec<usize> = Vec::new();
    for (position, &depth) in layout.depth.iter().enumerate() {
        path.truncate(depth as usize);
        if let Some(&parent) = path.last() {
            inner[parent] += layout.extent[position];
        }
        path.push(position);
    }
    let mut last = 0;
    for (position, (inner, extent)) in inner.iter().zip(&layout.extent).enumerate() {
        let gap = u64::try_from(extent - inner).unwrap_or(u64::MAX);
        if gap > 0 {
            push_number((position - last) as u64, &mut encoded);
            push_number(gap, &mut encoded);
            last = position;
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use stepscope_model::TreeDifference;

    use super::*;
    use crate::flamegraph::fixture::tree;

    fn json_of(tree: &CallTree) -> serde_json::Value {
        let subject = Subject { tree, difference: None };
        let json = encode(&subject, &Layout::of(tree), &heaviest_modules(tree), &Options::default());
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_tree_is_encoded_by_levels_frames_and_own_weights() {
        // all ─┬─ a 2 ─── c 4
        //      └─ a 3
        let tree = tree(&[("all", None, 0), ("a", Some(0), 2), ("a", Some(0), 3), ("c", Some(1), 4)]);
        let json = json_of(&tree);
        assert_eq!(json["strings"], serde_json::json!(["", "all", "a", "c"]));
        // Levels up, frame, own: all (0 0 0), a (0 1 2), c (0 2 4), a (2 - 1 = 1 up from below c's depth, 1, 3).
        assert_eq!(json["nodes"], "AAAABCACECBD");
        assert_eq!(json["gaps"], "");
        assert_eq!(json["growth"], "up");
    }

    #[test]
    fn equal_strings_at_different_addresses_are_one_string() {
        let mut tree = tree(&[("all", None, 0), ("a", Some(0), 2), ("a", Some(0), 3)]);
        tree.nodes[2].name = Arc::from(String::from("a"));
        assert_eq!(json_of(&tree)["strings"], serde_json::json!(["", "all", "a"]));
    }

    #[test]
    fn a_difference_has_the_other_trees_own_weights_in_drawing_order() {
        let slow = tree(&[("all", None, 0), ("b", Some(0), 2), ("c", Some(1), 40)]);
        let typical = tree(&[("all", None, 0), ("a", Some(0), 5), ("b", Some(0), 3)]);
        let difference = TreeDifference::of(("slow", &slow), ("typical", &typical));
        let compared = |difference: &TreeDifference| {
            let subject = Subject::of(difference);
            let json = encode(&subject, &Layout::of(subject.tree), &[], &Options::of_difference());
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["colours"], "difference");
            json["compared"].clone()
        };
        // all, a, b, c.
        let plain = serde_json::json!({"name": "slow", "baseName": "typical", "own": "AFDA"});
        assert_eq!(compared(&difference), plain);
        // A list that is too short says nothing about the rest.
        let verdicts = Some(vec![Verdict::Changed, Verdict::Equivalent, Verdict::Inconclusive]);
        let expected = serde_json::json!({"name": "slow", "baseName": "typical", "own": "AFDA", "verdicts": "ABCC"});
        assert_eq!(compared(&TreeDifference { verdicts, ..difference }), expected);
    }

    #[test]
    fn weight_that_no_child_has_is_a_gap() {
        let mut tree = tree(&[("all", None, 0), ("a", Some(0), 5), ("b", Some(1), 5)]);
        tree.nodes[1].total = 12;
        // all is 12 wide as well then, because it is never narrower than its children; `a` has 12 - 5 - 5.
        assert_eq!(json_of(&tree)["gaps"], "BC");
    }

    #[test]
    fn modules_are_ranked_by_self_weight_then_name() {
        let mut tree = tree(&[("all", None, 0), ("a", Some(0), 2), ("b", Some(0), 3), ("c", Some(0), 3)]);
        for (node, module) in [(1, "libz.so"), (2, "liby.so"), (3, "libx.so")] {
            tree.nodes[node].module = module.into();
        }
        let ranked: Vec<String> = heaviest_modules(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(ranked, ["libx.so", "liby.so", "libz.so"]);
    }

    #[test]
    fn in_an_inverted_tree_the_functions_at_the_root_have_the_self_weight() {
        // all ─┬─ a 0 ─── b 5
        //      └─ b 3
        let mut tree = tree(&[("all", None, 0), ("a", Some(0), 0), ("b", Some(0), 3), ("b", Some(1), 5)]);
        tree.inverted = true;
        for (node, module) in [(1, "liba.so"), (2, "libb.so"), (3, "libb.so")] {
            tree.nodes[node].module = module.into();
        }
        let ranked: Vec<String> = heaviest_modules(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(ranked, ["liba.so", "libb.so"], "5 end in a, 3 in b");
    }
}
