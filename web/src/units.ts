// Quantities as people read them: the same rules as crates/view/src/quantity.rs, checked by the same cases.

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

/**
 * A weight in the unit of its tree: `1.23 s` for ns, `1.20 MiB` for bytes, `157 G cycles` for the rest, and `1.23 ms/step`
 * for ns/step.
 */
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
      return `${value < 10_000_000 ? grouped(value) : inUnit(value, MULTIPLES)} ${base}`.trim() + per;
  }
}

/** A percentage with two decimals; one too small for them says so. */
export function percent(value: number): string {
  return value > 0 && value < 0.005 ? "<0.01" : value.toFixed(2);
}

/** An integer with its digits in groups of three. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

function inUnit(value: number, scale: Scale): string {
  const [size, unit] = scale.find(([size, unit]) => value / size < limit(unit)) ?? scale[scale.length - 1];
  const scaled = value / size;
  const number = size === 1 && Number.isInteger(scaled) ? grouped(scaled) : threeDigits(scaled);
  return `${number} ${unit}`;
}

/** Minutes, hours and days begin at two of them; other units at four digits of the one before. */
function limit(unit: string): number {
  if (unit === "s" || unit === "min") return 119.5;
  return unit === "h" ? 47.95 : 999.5;
}

function threeDigits(value: number): string {
  if (value >= 999.5) return grouped(value);
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(value >= 0.0995 ? 2 : 3);
}
