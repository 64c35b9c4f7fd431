// Quantities as people read them. The rules are those of crates/model/src/quantity.rs, which writes the test cases.

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

/** Prints a quantity in its unit: `1.23 s`, `1.23 ms/step`, `1.20 MiB`, `19.86 %`, `157 G cycles`. */
export function weight(value: number, unit: string): string {
  const slash = unit.indexOf("/");
  const [base, per] = slash < 0 ? [unit, ""] : [unit.slice(0, slash), unit.slice(slash)];
  switch (base) {
    case "ns":
      return inUnit(value, DURATIONS) + per;
    case "bytes":
      return inUnit(value, SIZES) + per;
    case "percent":
      return `${percent(value)} %${per}`;
    default:
      return `${plain(value)} ${base}`.trimEnd() + per;
  }
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

/** A number of any other unit: exact integers up to ten million, otherwise three digits. */
function plain(value: number): string {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 10_000_000) return grouped(value);
  if (size < 0.001) return exponential(value, 1);
  return size >= 9_999_999.5 ? inUnit(value, MULTIPLES) : threeDigits(value);
}

function inUnit(value: number, scale: Scale): string {
  const fits = ([size, unit]: Scale[number]) => Math.abs(value) / size < limit(unit);
  const [size, unit] = scale.find(fits) ?? scale[scale.length - 1];
  const scaled = value / size;
  const number = size === 1 && Number.isInteger(scaled) ? grouped(scaled) : threeDigits(scaled);
  return `${number} ${unit}`.trimEnd();
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
