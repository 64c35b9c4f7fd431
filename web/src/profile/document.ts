// A report: sections of tables and pictures. crates/app/src/document.rs writes it.

export interface Document {
  title: string;
  subtitle: string;
  about: { name: string; value: string }[];
  /** What limits all of it. */
  warnings: DocumentNote[];
  sections: DocumentSection[];
}

/** A report without content. */
export const EMPTY: Document = { title: "", subtitle: "", about: [], warnings: [], sections: [] };

export interface DocumentNote {
  kind: "loss" | "limit" | "fact" | "hint" | "rows";
  /** A sentence; text in backticks is code. */
  text: string;
}

export interface DocumentSection {
  title: string;
  /** Its name in links, unique in the document. */
  anchor: string;
  /** The capture that it is about, if it is about one. */
  capture?: number;
  notes: DocumentNote[];
  blocks: DocumentBlock[];
  sections: DocumentSection[];
}

export type DocumentBlock =
  /** A table whose rows are shown as groups of named figures. */
  | { kind: "figures"; table: DocumentTable }
  | { kind: "table"; table: DocumentTable }
  | ChartBlock
  | ForestBlock
  /** A call tree of the section's capture: a link to its flame graph; `tree` if Explore cannot draw it. */
  | { kind: "flame"; title: string; subtitle: string; weight: string; unit: string; nodes: number; tree?: unknown }
  /** Two call trees as one; `decode` of tree.ts reads it. */
  | { kind: "difference"; tree: unknown };

/** Columns of a table as a picture. */
export interface ChartBlock {
  kind: "chart";
  table: DocumentTable;
  /** The column of the horizontal axis. */
  across: string;
  /** What is drawn, lowest first. */
  marks: ChartMark[];
  /** Description of the marks; may be empty. */
  caption: string;
  /** Start of the vertical axis; `ratios`: both axes are logarithmic. */
  floor: "zero" | "least" | "ratios";
}

/** Columns of a band and an interval: the lower and the upper one; of bars: where they end, how high they are. */
export interface ChartMark {
  kind: "line" | "band" | "points" | "steps" | "interval" | "bars" | "rules";
  columns: string[];
}

/** Ratios of a table and their intervals on a logarithmic axis. */
export interface ForestBlock {
  kind: "forest";
  table: DocumentTable;
  /** Names of columns: of rows' names, ratios, `new` or `vanished`, verdicts. */
  label: string;
  ratio: string;
  presence: string;
  verdict: string;
  /** Ratios from `1 / (1 + tolerance)` to `1 + tolerance` count as no change. */
  tolerance: number;
  /** Rows to draw. */
  most: number;
}

export interface DocumentTable {
  /** Stable name of the analysis' result. */
  name: string;
  /** Heading; empty if it is that of the section. */
  title: string;
  columns: DocumentColumn[];
  notes: DocumentNote[];
}

export interface DocumentColumn {
  name: string;
  header: string;
  /** Unit to write beside the header; may be empty. */
  beside: string;
  /** Unit of the values. */
  unit: string;
  doc: string;
  /** Values of kind `inrowunit` have the unit that the column `unit` of their row names. */
  kind: "text" | "prose" | "count" | "duration" | "bytes" | "percent" | "number" | "inrowunit" | "flag";
  importance: "detail" | "normal" | "essential";
  /** Rows of one value belong together. */
  groups?: true;
  /** Its text stands below the row. */
  below?: true;
  /** Its texts are sentences or words of ours, not names. */
  prose?: true;
  /** Its texts are verdicts. */
  verdict?: true;
  /** Indices of the columns with the interval's low and high bound, which stand in this column's cell. */
  bounds?: [number, number];
  /** The value of each row; null where it is unknown. */
  values: (number | string | boolean | null)[];
}
