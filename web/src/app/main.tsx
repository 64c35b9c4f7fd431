// The app: reads the manifest and shows the page.

import { render } from "preact";
import { Client } from "../data/client.ts";
import { Embedded, Served } from "../data/source.ts";
import { App, prepare } from "./app.tsx";
import { follow } from "./live.tsx";
import { adjust, screen } from "./state.ts";
import { failReport, showLoading, showReport } from "./loading.tsx";

async function main(): Promise<void> {
  const root = document.getElementById("app")!;
  try {
    const source = document.getElementById("manifest") ? new Embedded() : await Served.here(showLoading);
    const manifest = await source.manifest();
    if (manifest.live && source instanceof Served) source.followLive();
    const client = new Client(source);
    prepare(manifest, client);
    if (manifest.live && source instanceof Served) {
      // The verdict comes with the finished capture.
      if (screen.value === "verdict") adjust({ screen: "explore" });
      follow(source.token, client);
    }
    root.replaceChildren();
    render(<App />, root);
    if (!manifest.live && source instanceof Served) source.document(showReport).catch(failReport);
  } catch (error) {
    root.replaceChildren();
    render(<p class="failure" role="alert">{error instanceof Error ? error.message : String(error)}</p>, root);
  }
}

void main();
