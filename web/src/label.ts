// The best form of a function's name for a given width: the same rules as `label` in
// crates/view/src/shorten/mod.rs, checked by the same cases (test/labels.json).

interface Brackets {
  open: number;
  close: number;
}

const CLOSES: Record<string, string> = { ">": "<", ")": "(", "]": "[", "}": "{" };
const OPERATOR_WITH_BRACKETS = /^operator(?:<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|\(\)|<|>)/;
const OPERATOR = /^operator(?![A-Za-z0-9_])/;

/** All forms of a name, from the whole to its last part, each no longer than the one before. */
export interface Forms {
  /** The forms with their widths in columns. */
  forms: { text: string; columns: number }[];
}

/** The forms that `fit` chooses from. Parsing a name is slower than choosing; keep the result. */
export function formsOf(name: string): Forms {
  const bare = withoutArguments(name);
  const { qualified, lastTwo, last } = parts(bare);
  const texts = [name, bare, bare.slice(qualified), bare.slice(lastTwo), bare.slice(last)];
  return { forms: texts.map((text) => ({ text, columns: columnsOf(text) })) };
}

/** The longest form in at most `columns` columns, or the start of the last; undefined if not even that fits. */
export function fit({ forms }: Forms, columns: number): string | undefined {
  if (forms[0].columns <= columns) return forms[0].text;
  if (columns < 3) return undefined;
  const form = forms.find((form) => form.columns <= columns);
  return form ? form.text : cut(forms[forms.length - 1].text, columns);
}

/** The start of a text, with an ellipsis, in `columns` columns. */
export function cut(text: string, columns: number): string {
  let kept = "";
  let room = columns - 1;
  for (const character of text) {
    room -= columnsOf(character);
    if (room < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Columns that a text takes in a monospaced font: two for wide characters, none for combining ones. */
export function columnsOf(text: string): number {
  if (/^[\x20-\x7e…]*$/.test(text)) return text.length;
  let columns = 0;
  for (const character of text) {
    if (/^\p{M}$/u.test(character)) continue;
    columns += isWide(character.codePointAt(0)!) ? 2 : 1;
  }
  return columns;
}

function isWide(code: number): boolean {
  return (
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf && code !== 0x303f) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff01 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd)
  );
}

function startsWord(name: string, at: number): boolean {
  return at === 0 || !/[A-Za-z0-9_]/.test(name[at - 1]);
}

/** The outermost brackets that hold template arguments or parameters. */
function argumentsOf(name: string): { template: Brackets[]; parameters: Brackets[] } {
  const template: Brackets[] = [];
  const parameters: Brackets[] = [];
  const open: number[] = [];
  for (let at = 0; at < name.length; at++) {
    const character = name[at];
    if (character === "o" && startsWord(name, at)) {
      const operator = OPERATOR_WITH_BRACKETS.exec(name.slice(at, at + 12));
      if (operator) at += operator[0].length - 1;
    } else if (character === "-" && name[at + 1] === ">") {
      at++;
    } else if ("<([{".includes(character)) {
      open.push(at);
    } else if (character in CLOSES) {
      const partner = open.findLastIndex((start) => name[start] === CLOSES[character]);
      if (partner < 0) continue;
      const pair = { open: open[partner], close: at };
      open.length = partner;
      if (partner > 0) continue;
      if (character === ">") template.push(pair);
      if (character === ")" && !name.startsWith("::", at + 1)) parameters.push(pair);
    }
  }
  return { template, parameters };
}

function withoutArguments(name: string): string {
  const { template, parameters } = argumentsOf(name);
  const cuts = [
    ...template.map((pair) => ({ ...pair, replacement: "<…>" })),
    ...parameters.filter((pair) => pair.open > 0).map((pair) => ({ ...pair, replacement: "" })),
  ].sort((a, b) => a.open - b.open);
  let bare = "";
  let done = 0;
  for (const { open, close, replacement } of cuts) {
    bare += name.slice(done, open) + replacement;
    done = close + 1;
  }
  const rest = name.slice(done);
  return bare + (rest.startsWith(" const") ? rest.slice(" const".length) : rest);
}

/** Where the qualified name, its last two parts and its last part start. */
function parts(bare: string): { qualified: number; lastTwo: number; last: number } {
  let starts = [0];
  let depth = 0;
  for (let at = 0; at < bare.length; at++) {
    const character = bare[at];
    if (character === "o" && depth === 0 && startsWord(bare, at) && OPERATOR.test(bare.slice(at, at + 9))) break;
    if ("({[".includes(character)) depth++;
    else if (")}]".includes(character)) depth = Math.max(0, depth - 1);
    else if (character === " " && depth === 0 && bare[at + 1] !== "[") starts = [at + 1];
    else if (character === ":" && depth === 0 && bare[at + 1] === ":") {
      // Rust writes `sort::<T>`: arguments are no part of their own.
      if (bare[at + 2] !== "<") starts.push(at + 2);
      at++;
    }
  }
  starts = starts.filter((start) => start < bare.length);
  const fromEnd = (back: number) => starts[Math.max(0, starts.length - back)] ?? 0;
  return { qualified: fromEnd(starts.length), lastTwo: fromEnd(2), last: fromEnd(1) };
}
