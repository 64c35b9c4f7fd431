// The strip as a table, for screen readers.

import { useMemo } from "preact/hooks";
import { barsOf, countMarked, countOf, MARK, type Loop } from "../../profile/steps.ts";
import { counted, grouped, weight } from "../../units.ts";
import { stepText } from "./bars.tsx";

const GROUPS = 24;
const LONGEST = 20;

export function StepsTable({ loop }: { loop: Loop }) {
  const bars = useMemo(() => barsOf(loop, 0, loop.rows.length, GROUPS), [loop]);
  const longest = useMemo(() => longestOf(loop), [loop]);
  return (
    <div class="unseen">
      <table>
        <caption>
          {counted(countOf(loop), "step")} in groups; {counted(countMarked(loop, MARK.stall), "stall")}
        </caption>
        <thead>
          <tr>
            <th>Steps</th>
            <th>Median</th>
            <th>Longest</th>
          </tr>
        </thead>
        <tbody>
          {Array.from(bars.longest, (time, bar) => (
            <tr key={bar}>
              <th>
                {grouped(loop.index[bars.first[bar]])} to {grouped(loop.index[bars.first[bar + 1] - 1])}
              </th>
              <td>{weight(bars.median[bar], "ns")}</td>
              <td>{weight(time, "ns")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <ul aria-label="The longest steps">
        {longest.map((position) => (
          <li key={position}>{stepText(loop, position)}</li>
        ))}
      </ul>
    </div>
  );
}

function longestOf(loop: Loop): number[] {
  const least = Float64Array.from(loop.work).sort()[Math.max(0, loop.work.length - LONGEST)] ?? 0;
  const found = Array.from(loop.rows.keys()).filter((position) => loop.work[position] >= least);
  return found.sort((a, b) => loop.work[b] - loop.work[a]).slice(0, LONGEST);
}
