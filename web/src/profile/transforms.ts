// What a reader does to call trees: each transform is undone by leaving it out. Their order matters. Functions are named,
// as indices change between captures.

import type { Transform } from "./address.ts";
import { NONE, outermost, rewritten, type CallTree } from "./call_tree.ts";
import { pathHashes, type Catalogue, type Functions } from "./functions.ts";

/** What `path` is followed by in the page's address: the hash of a call path, and the function at its end for the reader. */
export function pathName(hash: number, name: string): string {
  return `${hash.toString(16)}.${name}`;
}

/** The tree after one transform. */
export function transformed(tree: CallTree, transform: Transform, catalogue: Catalogue): CallTree {
  const { functions } = catalogue;
  switch (transform.kind) {
    case "focus":
      return focused(tree, named(functions, transform.name));
    case "path":
      return below(tree, pathHashes(tree, functions).indexOf(Number.parseInt(transform.name, 16)));
    case "drop":
      return dropped(tree, named(functions, transform.name));
    case "merge":
      return merged(tree, named(functions, transform.name));
    case "recursion":
      return withoutRecursion(tree, named(functions, transform.name), functions);
    case "collapse":
      return collapsed(tree, transform.name, catalogue);
    case "owned":
      return merged(tree, Uint8Array.from(functions.names, (_, index) => (functions.owners[index] || isGroup(functions, index) ? 0 : 1)));
  }
}

function isGroup(functions: Functions, index: number): boolean {
  return index === functions.noStack || functions.ofState.includes(index);
}

/** For each function, 1 if it has the name. */
function named(functions: Functions, name: string): Uint8Array {
  return Uint8Array.from(functions.names, (one) => (one === name ? 1 : 0));
}

function focused(tree: CallTree, wanted: Uint8Array): CallTree {
  return rewritten(tree, (nodes, node, moved) => {
    const parent = tree.parents[node];
    const above = parent < 0 ? NONE : moved[parent];
    if (above === NONE && !wanted[tree.functions[node]]) return NONE;
    return nodes.child(above, tree.functions[node]);
  });
}

function below(tree: CallTree, root: number): CallTree {
  return rewritten(tree, (nodes, node, moved) => {
    const parent = tree.parents[node];
    const above = parent < 0 ? NONE : moved[parent];
    return above !== NONE || node === root ? nodes.child(above, tree.functions[node]) : NONE;
  });
}

function dropped(tree: CallTree, unwanted: Uint8Array): CallTree {
  return rewritten(tree, (nodes, node, moved) => {
    const parent = tree.parents[node];
    if (unwanted[tree.functions[node]] || (parent >= 0 && moved[parent] === NONE)) return NONE;
    return nodes.child(parent < 0 ? NONE : moved[parent], tree.functions[node]);
  });
}

/** Cost that is left without a caller stays a root of its own function. */
function merged(tree: CallTree, unwanted: Uint8Array): CallTree {
  const hasCaller = new Uint8Array(tree.size);
  for (let node = 0; node < tree.size; node++) {
    const parent = tree.parents[node];
    hasCaller[node] = !unwanted[tree.functions[node]] || (parent >= 0 && hasCaller[parent]) ? 1 : 0;
  }
  // The node of the nearest kept caller, or the first unwanted root: what it calls is not below it.
  return rewritten(tree, (nodes, node, moved) => {
    const parent = tree.parents[node];
    const above = parent < 0 ? NONE : moved[parent];
    const isKeptAbove = parent >= 0 && hasCaller[parent];
    if (!unwanted[tree.functions[node]]) return nodes.child(isKeptAbove ? above : NONE, tree.functions[node]);
    return isKeptAbove || above !== NONE ? above : nodes.child(NONE, tree.functions[node]);
  });
}

function withoutRecursion(tree: CallTree, wanted: Uint8Array, functions: Functions): CallTree {
  const isOutermost = outermost(tree, functions.names.length);
  // The outermost node of the function above each node, or that node itself.
  const first = new Int32Array(tree.size).fill(NONE);
  for (let node = 0; node < tree.size; node++) {
    const parent = tree.parents[node];
    if (wanted[tree.functions[node]] && isOutermost[node]) first[node] = node;
    else if (parent >= 0) first[node] = first[parent];
  }
  // Nodes between two calls go as well: those with a later call below them.
  const isBetween = new Uint8Array(tree.size);
  for (let node = tree.size - 1; node >= 0; node--) {
    const parent = tree.parents[node];
    const isLaterCall = wanted[tree.functions[node]] && !isOutermost[node];
    if ((isLaterCall || isBetween[node]) && parent >= 0 && first[parent] >= 0) isBetween[parent] = 1;
  }
  return rewritten(tree, (nodes, node, moved) => {
    const parent = tree.parents[node];
    const outer = first[node];
    const goes = outer >= 0 && outer !== node && (isBetween[node] || wanted[tree.functions[node]]);
    if (goes) return moved[outer];
    return nodes.child(parent < 0 ? NONE : moved[parent], tree.functions[node]);
  });
}

function collapsed(tree: CallTree, module: string, catalogue: Catalogue): CallTree {
  const stands = catalogue.ofModule(module);
  const { modules } = catalogue.functions;
  return rewritten(tree, (nodes, node, moved) => {
    const parent = tree.parents[node];
    const above = parent < 0 ? NONE : moved[parent];
    const index = tree.functions[node];
    if (modules[index] !== module) return nodes.child(above, index);
    return above !== NONE && nodes.function(above) === stands ? above : nodes.child(above, stands);
  });
}
