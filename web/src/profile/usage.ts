// CPU use over the recording, for captures without steps.

import { integers, numbers, type Table } from "./columns.ts";

/** The weight of an event's samples in buckets of equal length. */
export function usageOf(samples: Table, event: number, duration: number, buckets: number): Float64Array {
  const sums = new Float64Array(buckets);
  if (samples.rows === 0 || !(duration > 0)) return sums;
  const [times, events, weights] = [numbers(samples, "time"), integers(samples, "event"), numbers(samples, "weight")];
  for (let row = 0; row < samples.rows; row++) {
    if (events[row] !== event) continue;
    const bucket = Math.floor((times[row] / duration) * buckets);
    if (bucket >= 0) sums[Math.min(buckets - 1, bucket)] += weights[row];
  }
  return sums;
}
