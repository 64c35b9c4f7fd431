// Parquet to columns.

import { decompress } from "fzstd";
import { parquetMetadata, parquetRead } from "hyparquet";
import type { Column, Table } from "../profile/columns.ts";

const compressors = { ZSTD: (input: Uint8Array) => decompress(input) };

/** Decodes a table. Columns of integers become `Int32Array`, of doubles `Float64Array`, of text `string[]`. */
export async function decode(bytes: ArrayBuffer): Promise<Table> {
  const metadata = parquetMetadata(bytes);
  const rows = Number(metadata.num_rows);
  const columns: Record<string, Column> = {};
  for (const element of metadata.schema.slice(1)) columns[element.name] = empty(element.type, rows);
  await parquetRead({
    file: bytes,
    metadata,
    compressors,
    onChunk({ columnName, columnData, rowStart }) {
      const column = columns[columnName];
      if (!column) return;
      if (isWhole(columnData, column, bytes)) columns[columnName] = columnData as Column;
      else if (Array.isArray(column)) for (let row = 0; row < columnData.length; row++) column[rowStart + row] = String(columnData[row]);
      else column.set(columnData as ArrayLike<number>, rowStart);
    },
  });
  return { rows, columns };
}

function empty(type: string | undefined, rows: number): Column {
  if (type === "INT32") return new Int32Array(rows);
  return type === "DOUBLE" ? new Float64Array(rows) : new Array<string>(rows).fill("");
}

/** Whether a chunk is all of a column, with memory of its own: only such can be given to another thread. */
function isWhole(chunk: ArrayLike<unknown>, column: Column, bytes: ArrayBuffer): boolean {
  if (Array.isArray(column) || chunk.length !== column.length || chunk.constructor !== column.constructor) return false;
  const { buffer, byteLength } = chunk as Int32Array | Float64Array;
  return buffer !== bytes && buffer.byteLength === byteLength;
}
