// Ticks of the time axis.

export interface Ticks {
  /** Nanoseconds. */
  times: number[];
  /** The text of a tick: since the recording's start, in one unit for all. */
  text(time: number): string;
}

const UNITS = [
  { size: 1, name: "ns" },
  { size: 1e3, name: "µs" },
  { size: 1e6, name: "ms" },
  { size: 1e9, name: "s" },
  { size: 60e9, name: "min" },
];

/** Round times about `spacing` apart at the least. */
export function ticks(from: number, to: number, spacing: number): Ticks {
  const step = roundStep(Math.max(spacing, 1));
  const times: number[] = [];
  const first = Math.ceil(from / step);
  for (let index = first; index * step <= to && times.length < 500; index++) times.push(index * step);
  // The largest unit that the end reaches and in which the step has at most three digits after the point.
  const digitsIn = (size: number) => Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const fits = ({ size, name }: (typeof UNITS)[number]) => (name === "min" ? step >= size : to >= size && digitsIn(size) <= 3);
  const unit = UNITS.findLast(fits) ?? UNITS[0];
  const digits = digitsIn(unit.size);
  return { times, text: (time) => `${(time / unit.size).toFixed(digits)} ${unit.name}` };
}

/** The next larger one of 1, 2, 5 times a power of ten; of minutes, their usual parts. */
function roundStep(least: number): number {
  if (least > 60e9) return ([1, 2, 5, 10, 15, 30, 60].find((minutes) => minutes * 60e9 >= least) ?? Math.ceil(least / 3600e9) * 60) * 60e9;
  if (least > 10e9) return [15e9, 20e9, 30e9, 60e9].find((step) => step >= least)!;
  const power = 10 ** Math.floor(Math.log10(least) + 1e-9);
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least * (1 - 1e-9))!;
}

/** A moment to the microsecond, or to the nanosecond: `2,000.964 ms`. */
export function moment(time: number, digits: 3 | 6 = 3): string {
  const [whole, part] = (Math.max(0, time) / 1e6).toFixed(digits).split(".");
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ",")}.${part} ms`;
}
