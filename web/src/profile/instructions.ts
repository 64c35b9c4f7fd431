// The machine code of a function, and what its instructions cost.

import { integers, numbers, texts, type Table } from "./columns.ts";
import { eachSample, type Chosen } from "./weigh.ts";

/** Instructions in the order of their addresses. */
export interface Instructions {
  /** Why there are none. */
  problem: string;
  addresses: Float64Array;
  texts: string[];
  /** The innermost function of each. */
  functions: string[];
  /** Where it comes from; empty, or -1, if that is unknown. */
  files: string[];
  lines: Int32Array;
  /** Weight of samples in the instruction. */
  self: Float64Array;
  /** The same, and that of samples in what it calls. */
  total: Float64Array;
}

function none(problem: string): Instructions {
  return { problem, addresses: new Float64Array(0), texts: [], functions: [], files: [], lines: new Int32Array(0), self: new Float64Array(0), total: new Float64Array(0) };
}

/** `code` and `samples` are the tables `instructions/FRAME` and `instruction_samples/FRAME`. Without an `event`, nothing is weighed. */
export function instructionsOf(code: Table, samples: Table, chosen: Chosen, event: number | undefined): Instructions {
  if (code.rows === 0) return none("This function has no instructions in a file.");
  if (code.columns["problem"]) return none(texts(code, "problem")[0]);
  const addresses = numbers(code, "address");
  const [self, total] = [new Float64Array(code.rows), new Float64Array(code.rows)];
  if (event !== undefined && samples.rows > 0) {
    const at = numbers(samples, "address");
    eachSample(chosen, event, samples, (row, isBelow, weight) => {
      const instruction = instructionAt(addresses, at[row]);
      if (instruction < 0) return;
      total[instruction] += weight;
      if (isBelow === 0) self[instruction] += weight;
    });
  }
  // Copies: an answer's arrays move to the page.
  return { problem: "", addresses: addresses.slice(), texts: texts(code, "text"), functions: texts(code, "function"), files: texts(code, "file"), lines: integers(code, "line").slice(), self, total };
}

/** The instruction that holds an address: callers have one within the call. */
function instructionAt(addresses: Float64Array, address: number): number {
  let [low, high] = [0, addresses.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (addresses[middle] <= address) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
