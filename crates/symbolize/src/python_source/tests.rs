//! Sources, and the shapes and lines of their loops.

use stepscope_model::LoopShape::{self, Chain, Scan, Search};

use super::python_loops;

fn shapes(source: &str) -> Vec<(LoopShape, Vec<u32>)> {
    python_loops("/srv/sim.py", source).loops.into_iter().map(|one| (one.shape, one.inside)).collect()
}

#[test]
fn a_search_ends_at_an_element_that_fits() {
    let find = "def find(self, code):\n    for one in self.all:  # all of them\n        if one.code == code:\n            return one\n    return None\n";
    assert_eq!(shapes(find), [(Search, vec![2, 3])]);
    let loops = python_loops("", find).loops;
    assert_eq!((&loops[0].edges[..], &loops[0].uses[..]), (&[1, 4][..], &[][..]));
    let inline = "for i in range(len(names)):\n    name = names[i]\n    if name == wanted: found = i; break\n";
    assert_eq!(shapes(inline), [(Search, vec![1, 2, 3])]);
    assert_eq!(shapes("for i in range(len(names)):\n    if names[i] == wanted: return i\n"), [(Search, vec![1, 2])]);
    let counted = "while i < len(keys):\n    if keys[i] == key:\n        return i\n    i += 1\n";
    assert_eq!(shapes(counted), [(Search, vec![1, 2, 4])]);
    let linked = "while node is not None:\n    if node.key == key:\n        return node\n    node = node.next\n";
    assert_eq!(shapes(linked), [(Search, vec![1, 2, 4])]);
}

#[test]
fn a_generator_that_ends_at_an_element_is_a_search_of_one_statement() {
    for one in [
        "one = next((one for one in self.all if one.code == code), None)",
        "if any(one.code == code for one in self.all):",
        "found = next(\n    (one\n     for one in self.all\n     if one.code == code), None)",
    ] {
        let lines = (1..=one.lines().count() as u32).collect();
        assert_eq!(shapes(one), [(Search, lines)], "{one}");
    }
    assert_eq!(shapes("awake = [one for one in self.all if one.awake]"), [(Scan, vec![1])]);
}

#[test]
fn a_scan_passes_over_elements_that_do_not_fit() {
    let tick = "for lamp in lamps:\n    if lamp.lit:\n        lamp.burn()\n";
    assert_eq!(shapes(tick), [(Scan, vec![1, 2])]);
    let skips =
        "for lamp in lamps:\n    if not lamp.lit:\n        continue\n    lamp.burn()\n    total += lamp.light\n";
    assert_eq!(shapes(skips), [(Scan, vec![1, 2, 3])]);
    let either =
        "for _, a, b in self.met:\n    if a == one:\n        found.add(b)\n    elif b == one:\n        found.add(a)\n";
    assert_eq!(shapes(either), [(Scan, vec![1, 2, 4])]);
    let first = "for one in all:\n    if one.done:\n        continue\n    elif one.key == key:\n        return one\n";
    assert_eq!(shapes(first).len(), 1);
}

#[test]
fn a_chain_is_climbed_to_its_end() {
    let climb = "def height(self):\n    total, node = 0.0, self\n    while node is not None:\n        total += node.length\n        node = node.above\n    return total\n";
    assert_eq!(shapes(climb), [(Chain, vec![3, 4, 5])]);
    let index = "while at >= 0:\n    total += lengths[at]\n    at = above[at]\n";
    assert_eq!(shapes(index), [(Chain, vec![1, 2, 3])]);
}

#[test]
fn loops_that_need_all_elements_have_no_shape() {
    for one in [
        "for one in all:\n    if one.cost < best:\n        best = one.cost\n",
        "for one in all:\n    total += one.mass\n",
        "for one in all:\n    if math.hypot(one.x, one.y) < reach:\n        near.append(one)\n",
        "for one in all:\n    if one.x - x < reach:\n        near.append(one)\n",
        "for other in graph[at]:\n    if other not in seen:\n        seen.add(other)\n",
        "for other in graph[at]:\n    if cost[other] > new:\n        queue.append(other)\n",
        "for one in all:\n    one.move()\n    if one.done:\n        break\n",
        "for one in all:\n    if one.lit:\n        one.burn()\n    else:\n        one.wait()\n",
        "while node in came_from:\n    path.append(node)\n    node = came_from[node]\n",
        "while node is not None:\n    node.dirty = True\n    node = node.parent\n",
        "near = [one for one in all if abs(one.x) < 3]",
        "places = [one.x for one in all]",
        "text = \"\"\"\nfor one in all:\n    if one.lit: return one\n\"\"\"\n",
        "for",
        "while :",
        "for x in\n  if x:\n    break",
        "'''",
        "(((",
    ] {
        assert_eq!(shapes(one), [], "{one}");
    }
}

#[test]
fn functions_without_loops_are_straight() {
    let source = "def up(self):\n    if self.above:\n        return self.above.up()\n    return 0\n\ndef down(self):\n    for one in self.below:\n        one.down()\n";
    assert_eq!(python_loops("", source).straight, [1, 2, 3, 4]);
}

#[test]
fn lines_that_raise_and_catch_are_known() {
    let source = "def find(self, key):\n    try:\n        return self.all[key]\n    except KeyError:\n        raise Missing(\n            key)\n    finally:\n        raised = exceptional(key)\n";
    assert_eq!(python_loops("", source).raises, [4, 5, 6]);
}
