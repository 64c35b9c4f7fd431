// The best form of a function's name for a given width: the same rules as `label` in
// crates/view/src/shorten/mod.rs, checked by the same cases (test/labels.json).

interface Brackets {
  open: number;
  close: number;
}

const CLOSES: Record<string, string> = { ">": "<", ")": "(", "]": "[", "}": "{" };
const OPERATOR_WITH_BRACKETS = /^operator(?:<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|\(\)|<|>)/;
const OPERATOR = /^operator(?![A-Za-z0-9_])/;

/** The forms of a name that `fit` chooses from, each no longer than the one before. */
export interface Forms {
  whole: Form;
  /** Without parameters and with `<…>` for template arguments, and shorter ones. */
  bare: Form[];
  /** The name that `bare` is of, and its template arguments. */
  name: string;
  template: Brackets[];
}

interface Form {
  text: string;
  columns: number;
}

/** Fewest columns in which template arguments tell something. */
const FEWEST_ARGUMENTS = 10;

/** Wrappers whose template argument names what runs, and which one it is: the first, or the last (-1). */
const WRAPPERS: [start: string, argument: number][] = [
  ["std::_Function_handler<", -1],
  ["std::_Function_base::_Base_manager<", 0],
  ["std::__1::__function::__func<", 0],
];

/** The forms of a name. Parsing a name is slower than choosing; keep the result. */
export function formsOf(name: string): Forms {
  const form = (text: string): Form => ({ text, columns: columnsOf(text) });
  const readable = wrapped(name) ?? name;
  const { template, parameters } = argumentsOf(readable);
  const bare = withoutArguments(readable, { template, parameters });
  const { qualified, lastTwo, last } = parts(bare);
  return { whole: form(name), bare: [bare, bare.slice(qualified), bare.slice(lastTwo), bare.slice(last)].map(form), name: readable, template };
}

/** The longest form in at most `columns` columns, or the start of the last; undefined if not even that fits. */
export function fit(forms: Forms, columns: number): string | undefined {
  if (forms.whole.columns <= columns) return forms.whole.text;
  if (columns < 3) return undefined;
  const [bare] = forms.bare;
  if (bare.columns <= columns) return withSomeArguments(forms, columns);
  const form = forms.bare.find((form) => form.columns <= columns);
  return form ? form.text : cut(forms.bare[3].text, columns);
}

/** The name with as much of its template arguments as there is room for: short ones whole, of the next one both ends. */
function withSomeArguments({ bare: [bare], name, template }: Forms, columns: number): string {
  let room = columns - bare.columns;
  if (template.length === 0 || room + 1 < FEWEST_ARGUMENTS) return bare.text;
  const inner = (pair: Brackets) => name.slice(pair.open + 1, pair.close);
  const kept = new Map<number, string>();
  for (const pair of [...template].sort((a, b) => columnsOf(inner(a)) - columnsOf(inner(b)) || a.open - b.open)) {
    const text = inner(pair);
    const shown = columnsOf(text) <= room + 1 ? text : room + 1 < FEWEST_ARGUMENTS ? "…" : cutMiddle(text, room + 1);
    kept.set(pair.open, `<${shown}>`);
    room -= Math.max(0, columnsOf(shown) - 1);
  }
  return withoutArguments(name, argumentsOf(name), kept);
}

/** What a wrapper of the standard library wraps, if the name is one: the wrapper's own name is the same for all. */
function wrapped(name: string): string | undefined {
  const rule = WRAPPERS.find(([start]) => name.startsWith(start));
  const pair = rule && argumentsOf(name).template.find(({ open }) => open === rule[0].length - 1);
  if (!pair) return undefined;
  const inner = name.slice(pair.open + 1, pair.close);
  const argument = split(inner).at(rule[1])!;
  // The type of a pointer names no function.
  return argument.includes("::") && !argument.includes("*)(") ? argument : undefined;
}

/** Template arguments, parted at commas outside of brackets. */
function split(inner: string): string[] {
  const found: string[] = [];
  let [depth, start] = [0, 0];
  for (let at = 0; at < inner.length; at++) {
    const character = inner[at];
    if ("<([{".includes(character)) depth++;
    else if (character === ">" && inner[at - 1] === "-") continue;
    else if (">)]}".includes(character)) depth--;
    else if (character === "," && depth === 0) {
      found.push(inner.slice(start, at).trim());
      start = at + 1;
    }
  }
  return [...found, inner.slice(start).trim()];
}

/** Two fifths of the room for the start, the rest for the end: as much of both as leaves brackets in pairs. */
function cutMiddle(text: string, columns: number): string {
  const room = columns - 1;
  const start = [...take(text, Math.floor((room * 2) / 5))];
  const end = [...take([...text].reverse().join(""), room - columnsOf(start.join("")))].reverse();
  // What the start opens, the end has to close.
  let [opened, closed] = [unpaired(start).open, unpaired(end).close];
  if (opened === closed) return `${start.join("")}…${end.join("")}`;
  while (opened !== closed) {
    (opened > closed ? start : end).splice(opened > closed ? -1 : 0, 1);
    [opened, closed] = [unpaired(start).open, unpaired(end).close];
  }
  // The end may have left room for more of the start.
  const longer = [...take(text, room - columnsOf(end.join("")))];
  while (longer.length > start.length && unpaired(longer).open !== closed) longer.pop();
  return `${longer.join("")}…${end.join("")}`;
}

/** How many brackets these characters open and do not close, and the other way round. */
function unpaired(text: readonly string[]): { open: number; close: number } {
  let [open, close] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    if ("<([{".includes(text[at])) open++;
    else if (text[at] in CLOSES && !(text[at] === ">" && text[at - 1] === "-")) open > 0 ? open-- : close++;
  }
  return { open, close };
}

/** As many characters from the start as fit. */
function take(text: string, columns: number): string {
  let taken = "";
  let room = columns;
  for (const character of text) {
    room -= columnsOf(character);
    if (room < 0) break;
    taken += character;
  }
  return taken;
}

/** The start of a text, with an ellipsis, in `columns` columns. */
export function cut(text: string, columns: number): string {
  return `${take(text, columns - 1)}…`;
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

/** The name without parameters. `kept` has what is shown of template arguments, by the place of their bracket. */
function withoutArguments(name: string, { template, parameters }: ReturnType<typeof argumentsOf>, kept?: Map<number, string>): string {
  const cuts = [
    ...template.map((pair) => ({ ...pair, replacement: kept?.get(pair.open) ?? "<…>" })),
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
