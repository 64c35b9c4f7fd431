// Quantities as people read them. The rules are those of crates/model/src/quantity.rs, which writes the test cases.

/** Shown where a value is unknown or does not apply. */
export const MISSING = "–";

type Scale = readonly (readonly [size: number, unit: string])[];

const DURATIONS: Scale = [
  [1, "ns"],
  [1e3, "µs"],
  [1e6, "ms"],
  [1e9, "s"],
  [60e9, "min"],
  [3600e9, "h"],
  [86_400e9, "d"],
];
const SIZES: Scale = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].map((unit, power) => [1024 ** power, unit] as const);
const MULTIPLES: Scale = ["", "k", "M", "G", "T", "P", "E"].map((unit, power) => [1000 ** power, unit] as const);

/** A value as shown: a number, and its unit where the column header does not say it. */
export interface Quantity {
  number: string;
  unit: string;
}

export type QuantityKind = "count" | "duration" | "bytes" | "percent" | "number";

/** Prints a quantity in its unit: `1.23 s`, `1.23 ms/step`, `1.20 MiB`, `19.86 %`, `157 G cycles`. */
export function weight(value: number, unit: string): string {
  const slash = unit.indexOf("/");
  const [base, per] = slash < 0 ? [unit, ""] : [unit.slice(0, slash), unit.slice(slash)];
  switch (base) {
    case "ns":
      return joined(inUnit(value, DURATIONS)) + per;
    case "bytes":
      return joined(inUnit(value, SIZES)) + per;
    case "percent":
      return `${percent(value)} %${per}`;
    default:
      return `${joined(plain(value))} ${base}`.trimEnd() + per;
  }
}

/** A value of a column of this kind. `real`: the column has fractions, so that whole numbers get decimals too. */
export function quantity(value: number, kind: QuantityKind, real = !Number.isInteger(value)): Quantity {
  switch (kind) {
    case "duration":
      return inUnit(value, DURATIONS);
    case "bytes":
      return inUnit(value, SIZES);
    case "percent":
      return { number: percent(value), unit: "" };
    case "count":
      return { number: real ? threeDigits(value) : grouped(value), unit: "" };
    case "number":
      return real && value !== 0 ? realNumber(value) : plain(value);
  }
}

/** The kind of a number in this unit: `ns` and `ns/step` are durations, `bytes` sizes, `percent` shares. */
export function kindOfUnit(unit: string): QuantityKind {
  const kinds: Record<string, QuantityKind> = { ns: "duration", bytes: "bytes", percent: "percent" };
  return kinds[unit.split("/")[0]] ?? "number";
}

/** The part of a unit that a number of its kind does not show: `/step` of `ns/step`, nothing of `bytes`. */
export function unitBesideNumber(unit: string): string {
  const slash = unit.indexOf("/");
  const per = slash < 0 ? "" : unit.slice(slash);
  const kind = kindOfUnit(unit);
  return kind === "percent" ? `%${per}` : kind === "number" ? unit : per;
}

/** Above this, a number has too many digits to read at a glance. */
const MOST_IN_UNIT = 9_999.5;

/**
 * An estimate and its interval, as `estimate` of quantity.rs: the bounds are in the estimate's unit, with as many decimals
 * as they need to differ, or else carry units of their own.
 */
export function estimate(point: number | null, low: number | null, high: number | null, kind: QuantityKind): Quantity & { bounds: string } {
  const byItself = (value: number | null) => (value === null ? MISSING : joined(quantity(value, kind)));
  const shown = point === null ? { number: MISSING, unit: "" } : quantity(point, kind);
  const apart = { ...shown, bounds: `[${byItself(low)}, ${byItself(high)}]` };
  if (point === null || low === null || high === null) return apart;
  const size = sizeOf(shown.unit, kind);
  const ends = [low / size, high / size];
  if (!/^[-0-9.,]+$/.test(shown.number) || Math.abs(point) / size >= MOST_IN_UNIT) return apart;
  const decimalsOf = (text: string) => text.split(".")[1]?.length ?? 0;
  const ofPoint = decimalsOf(shown.number);
  const larger = Math.max(Math.abs(ends[0]), Math.abs(ends[1]));
  const ofEnds = larger === 0 ? ofPoint : Math.min(decimalsOf(threeDigits(larger)), Math.max(ofPoint, 2));
  const toDiffer = Math.ceil(-Math.log10(Math.abs(ends[1] - ends[0])));
  const needed = Number.isFinite(toDiffer) ? Math.max(0, toDiffer) : 0;
  const decimals = Math.min(Math.max(needed, ofEnds), Math.max(ofEnds, ofPoint) + 3);
  const written = (value: number) => fixed(value, decimals).replace(/^-(?=[0.]*$)/, "");
  const showsZero = (end: number) => end !== 0 && /^[-0.]*$/.test(written(end));
  if (ends.some((end) => Math.abs(end) >= MOST_IN_UNIT || showsZero(end))) return apart;
  const number = decimals > ofPoint ? written(point / size) : shown.number;
  return { number, unit: shown.unit, bounds: `[${written(ends[0])}, ${written(ends[1])}]` };
}

function sizeOf(unit: string, kind: QuantityKind): number {
  const scale = kind === "duration" ? DURATIONS : kind === "bytes" ? SIZES : MULTIPLES;
  return scale.find(([, name]) => name === unit)?.[0] ?? 1;
}

function joined({ number, unit }: Quantity): string {
  return `${number} ${unit}`.trimEnd();
}

/** A percentage with two decimals and no sign. Below 0.005 it shows `<0.01`. */
export function percent(value: number): string {
  if (value > 0 && value < 0.005) return "<0.01";
  return value < 0 && value > -0.005 ? ">-0.01" : fixed(value, 2);
}

/** An integer with its digits in groups of three. */
export function grouped(value: number): string {
  const digits = Math.round(Math.abs(value)).toString();
  return (value < 0 ? "-" : "") + digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number of things: `1 frame`, `1,200 frames`. */
export function counted(count: number, noun: string, plural = /(s|sh|ch|x)$/.test(noun) ? `${noun}es` : `${noun}s`): string {
  return `${grouped(count)} ${count === 1 ? noun : plural}`;
}

/** A number of any other unit: exact integers up to ten million, otherwise three digits. */
function plain(value: number): Quantity {
  if (Number.isInteger(value) && Math.abs(value) < 10_000_000) return { number: grouped(value), unit: "" };
  return realNumber(value);
}

function realNumber(value: number): Quantity {
  const size = Math.abs(value);
  if (size < 0.001) return { number: exponential(value, 1), unit: "" };
  return size >= 9_999_999.5 ? inUnit(value, MULTIPLES) : { number: threeDigits(value), unit: "" };
}

function inUnit(value: number, scale: Scale): Quantity {
  const fits = ([size, unit]: Scale[number]) => Math.abs(value) / size < limit(unit);
  const [size, unit] = scale.find(fits) ?? scale[scale.length - 1];
  const scaled = value / size;
  const number = size === 1 && Number.isInteger(scaled) ? grouped(scaled) : threeDigits(scaled);
  return { number, unit };
}

/** Minutes, hours and days begin at two of them; other units at four digits of the one before. */
function limit(unit: string): number {
  if (unit === "s" || unit === "min") return 119.5;
  return unit === "h" ? 47.95 : 999.5;
}

function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15) return exponential(value, 2);
  if (size >= 999.5) return grouped(value);
  if (size >= 99.95) return fixed(value, 0);
  if (size >= 9.995) return fixed(value, 1);
  return fixed(value, size >= 0.0995 ? 2 : 3);
}

function exponential(value: number, digits: number): string {
  return value.toExponential(digits).replace("e+", "e");
}

/** Like `toFixed`, but rounds a number halfway between two to the even one, as Rust does. */
function fixed(value: number, digits: number): string {
  const isHalfway = Math.abs(value * 2 ** (digits + 1)) % 2 === 1;
  if (!isHalfway) return value.toFixed(digits);
  const below = Math.floor(value * 10 ** digits);
  return ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits);
}

/** A p-value or an adjusted one. */
export function probability(value: number): string {
  return value < 0.001 ? "< 0.001" : quantity(value, "number", true).number;
}
