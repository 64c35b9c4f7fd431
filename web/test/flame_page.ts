// Writes the page of test/pages/flame.tsx.

import { buildSync } from "esbuild";
import { saved } from "./browser.ts";

/** The page's address. Scripts call `show(size)` on it. */
export function flamePage(): string {
  const options = { bundle: true, write: false, format: "iife", define: { WORKER_SCRIPT: '""' } } as const;
  const script = buildSync({ ...options, entryPoints: ["test/pages/flame.tsx"], jsx: "automatic", jsxImportSource: "preact" }).outputFiles[0].text;
  const style = buildSync({ ...options, entryPoints: ["src/app/app.css"] }).outputFiles[0].text;
  return saved("flame-app.html", `<!doctype html><html lang="en"><meta charset="utf-8"><title>flame</title><style>${style}</style><div id="app"></div><script>${script.replaceAll("</script", "<\\/script")}</script></html>`);
}
