// A flame graph in the page: the picture with its pointer, keys, hover box and menu, and a table of its frames for screen
// readers.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FlamePicture } from "../../draw/flame_picture.ts";
import { changeInks, functionInks, heaviestModules, type FrameColours } from "../../draw/flame_colours.ts";
import { ink } from "../../draw/ink.ts";
import { NONE } from "../../profile/call_tree.ts";
import { levelOf, pathTo, type Flame } from "../../profile/flame.ts";
import type { Colours, Verdict } from "../../tree.ts";
import { percent, weight as quantity } from "../../units.ts";
import type { FunctionNames } from "../../worker/flame.ts";
import { isDark } from "../theme.ts";
import { useEscape } from "../tooltip.tsx";
import { Menu, type MenuItem } from "./menu.tsx";

export interface PictureProps {
  flame: Flame;
  functions: FunctionNames;
  unit: string;
  /** What the picture shows, for screen readers. */
  label: string;
  colours: Colours;
  /** For each function, 1 if it matches the search. */
  hits?: Uint8Array | undefined;
  /** Verdicts of differences, by function. */
  verdicts?: readonly (Verdict | undefined)[] | undefined;
  /** Names of both sides of a difference, and the unit of their weights. */
  sides?: [after: string, before: string] | undefined;
  /** The hash of the zoomed node; 0 for the whole. */
  zoom: number;
  onZoom(hash: number): void;
  /** The chosen function. If it was chosen elsewhere, as by a link, its heaviest frame comes into view. */
  chosen?: string | undefined;
  onChoose?: ((index: number) => void) | undefined;
  items(node: number): MenuItem[];
}

/** Names longer than this are cut in boxes and tables; copying gives all of it. */
const LONGEST = 600;
/** Rows of the table for screen readers. */
const LISTED = 60;

export function nameOf(functions: FrameColours, flame: Flame, node: number): string {
  const of = flame.functions[node];
  return of < 0 ? "all" : (functions.names[of] ?? "");
}

export function clipped(name: string): string {
  return name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name;
}

export function Picture(props: PictureProps) {
  const { flame, functions, label, colours, hits, verdicts, zoom } = props;
  const host = useRef<HTMLDivElement>(null);
  const picture = useRef<FlamePicture>();
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const [hover, setHover] = useState<{ node: number; x: number; y: number }>();
  const [menu, setMenu] = useState<{ node: number; x: number; y: number }>();
  const [said, setSaid] = useState("");
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const made = new FlamePicture();
    picture.current = made;
    const element = host.current!;
    element.prepend(made.surface.canvas);
    made.surface.canvas.setAttribute("aria-hidden", "true");
    const observer = new ResizeObserver(() => made.resize(element.clientWidth, element.clientHeight));
    observer.observe(element);
    // Wheels must be able to hold the page still.
    const wheel = (event: WheelEvent) => onWheel(event, made);
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
      made.dispose();
    };
  }, []);

  const modules = useMemo(() => (colours === "module" ? heaviestModules(flame, functions) : []), [flame, functions, colours]);
  useEffect(() => picture.current?.show(flame, functions.names), [flame, functions.names]);
  useEffect(() => {
    const isByNode = colours === "difference" && flame.sides !== undefined;
    const inks = isByNode ? changeInks(flame, isDark.value, verdicts) : functionInks(functions, colours, modules, isDark.value);
    picture.current?.paint({ ...groundColours(host.current!), inks, inksAreByNode: isByNode });
  }, [flame, functions, colours, modules, verdicts, isDark.value]);
  useEffect(() => picture.current?.highlight(hits), [hits]);

  // The zoom of the address, once the tree that has it is there.
  const isFirst = useRef(true);
  useEffect(() => {
    const node = zoom === 0 ? 0 : Math.max(0, flame.hashes.indexOf(zoom));
    picture.current?.zoomTo(node, !isFirst.current);
    isFirst.current = false;
  }, [flame, zoom]);

  const hideHover = useCallback(() => {
    if (picture.current) picture.current.hover = -1;
    setHover(undefined);
  }, []);
  useEscape(hideHover);
  // Another frame is at the pointer then.
  useEffect(hideHover, [flame, zoom]);

  const lastChosen = useRef<string>();
  useEffect(() => {
    const { chosen } = props;
    if (chosen === lastChosen.current) return;
    const made = picture.current!;
    const node = chosen && !(made.focus > 0 && nameOf(functions, flame, made.focus) === chosen) ? heaviestOf(flame, functions.names.indexOf(chosen)) : NONE;
    lastChosen.current = chosen;
    if (node < 0) return;
    // Before the first resize there is no height to scroll in.
    made.resize(host.current!.clientWidth, host.current!.clientHeight);
    made.reveal(node);
  }, [flame, functions, props.chosen]);

  const at = (event: MouseEvent) => {
    const box = host.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const choose = (node: number) => {
    const made = picture.current!;
    made.focus = node;
    if (node < 0) return setSaid("");
    setSaid(inWords(latest.current, node));
    const of = flame.functions[node];
    if (of >= 0) props.onChoose?.(of);
  };
  const zoomTo = (node: number) => props.onZoom(node <= 0 ? 0 : flame.hashes[node]);

  const onPointerMove = (event: PointerEvent) => {
    const made = picture.current!;
    const { x, y } = at(event);
    const start = drag.current;
    if (start) {
      const [byX, byY] = [start.x - event.clientX, start.y - event.clientY];
      if (!start.moved && Math.hypot(byX, byY) < 4) return;
      drag.current = { x: event.clientX, y: event.clientY, moved: true };
      made.pan(byX, byY);
      setHover(undefined);
      return;
    }
    const node = made.nodeAt(x, y);
    made.hover = node;
    setHover(node < 0 ? undefined : { node, x: event.clientX, y: event.clientY });
  };
  const onPointerUp = (event: PointerEvent) => {
    const wasClick = drag.current && !drag.current.moved && event.button === 0;
    drag.current = undefined;
    if (wasClick) {
      const { x, y } = at(event);
      choose(picture.current!.nodeAt(x, y));
    }
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey) return;
    const made = picture.current!;
    const focus = Math.max(made.focus, 0);
    const next = neighbour(flame, focus, event.key);
    if (next !== undefined) {
      choose(next);
      made.reveal(next);
    } else if (event.key === "Enter") zoomTo(focus);
    else if (event.key === "Escape" || event.key === "Backspace") {
      if (zoom === 0) return;
      const node = flame.hashes.indexOf(zoom);
      zoomTo(event.key === "Escape" || node < 0 ? 0 : flame.parents[node]);
    } else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) openAtFocus();
    else if (event.key === "+" || event.key === "=") made.zoom(1 / 1.4, made.surface.width / 2);
    else if (event.key === "-") made.zoom(1.4, made.surface.width / 2);
    else if (event.key === "PageDown" || event.key === "PageUp") made.pan(0, (event.key === "PageDown" ? 0.8 : -0.8) * made.surface.height);
    else return;
    hideHover();
    event.preventDefault();
  };
  const openAtFocus = () => {
    const made = picture.current!;
    const box = made.boxOf(made.focus);
    const origin = host.current!.getBoundingClientRect();
    if (box && made.focus > 0) setMenu({ node: made.focus, x: origin.left + Math.max(0, box.x), y: origin.top + box.y + box.height });
  };
  const onContextMenu = (event: MouseEvent) => {
    event.preventDefault();
    drag.current = undefined;
    const { x, y } = at(event);
    const node = picture.current!.nodeAt(x, y);
    setHover(undefined);
    if (node <= 0) return;
    choose(node);
    setMenu({ node, x: event.clientX, y: event.clientY });
  };

  return (
    <>
      <div
        class="flame-picture"
        ref={host}
        tabIndex={0}
        role="application"
        aria-label={`${label}. Arrow keys walk the tree, Enter zooms, Escape zooms out, the menu key opens the transforms.`}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          drag.current = { x: event.clientX, y: event.clientY, moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={() => (drag.current = undefined)}
        onPointerLeave={hideHover}
        onDblClick={(event) => {
          const { x, y } = at(event);
          const node = picture.current!.nodeAt(x, y);
          if (node >= 0) zoomTo(node);
        }}
        onContextMenu={onContextMenu}
        onKeyDown={onKey}
      >
        <p class="unseen" aria-live="polite">
          {said}
        </p>
        <Rows {...props} />
      </div>
      {hover && !menu && hover.node < flame.size && <HoverBox {...props} {...hover} />}
      {menu && menu.node < flame.size && (
        <Menu x={menu.x} y={menu.y} label={clipped(nameOf(functions, flame, menu.node))} items={props.items(menu.node)} close={() => setMenu(undefined)} />
      )}
    </>
  );
}

/** Wheel: rows; with Ctrl or Alt, or by a pinch: zoom. Sideways: pan. */
function onWheel(event: WheelEvent, picture: FlamePicture): void {
  const x = event.clientX - picture.surface.canvas.getBoundingClientRect().left;
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (event.ctrlKey || event.altKey || event.metaKey) picture.zoom(Math.exp(event.deltaY * lines * 0.004), x);
  else if (event.shiftKey && event.deltaX === 0) picture.pan(event.deltaY * lines, 0);
  else picture.pan(event.deltaX * lines, event.deltaY * lines);
  event.preventDefault();
}

/** The node that an arrow key leads to. */
function neighbour(flame: Flame, node: number, key: string): number | undefined {
  const level = levelOf(flame, node);
  if (key === "ArrowUp") return node > 0 ? flame.parents[node] : 0;
  if (key === "ArrowDown") {
    let heaviest: number | undefined;
    for (let child = flame.children[node]; child < flame.children[node + 1]; child++) {
      if (heaviest === undefined || flame.total[child] > flame.total[heaviest]) heaviest = child;
    }
    return heaviest ?? node;
  }
  if (key === "ArrowRight") return Math.min(node + 1, flame.levels[level + 1] - 1);
  if (key === "ArrowLeft") return Math.max(node - 1, flame.levels[level]);
  return undefined;
}

/** The heaviest frame of a function; `NONE` if it has none. */
function heaviestOf(flame: Flame, index: number): number {
  let heaviest = NONE;
  for (let node = 1; node < flame.size; node++) {
    if (flame.functions[node] === index && (heaviest < 0 || flame.total[node] > flame.total[heaviest])) heaviest = node;
  }
  return heaviest;
}

/** A node's figures in one sentence. */
function inWords({ flame, functions, unit }: PictureProps, node: number): string {
  const share = (weight: number) => `${quantity(weight, unit)}, ${percent((weight * 100) / (flame.total[0] || 1))} %`;
  return `${clipped(nameOf(functions, flame, node))}: ${share(flame.total[node])}; self ${share(flame.own[node])}; level ${levelOf(flame, node)}`;
}

function HoverBox({ flame, functions, unit, sides, node, x, y }: PictureProps & { node: number; x: number; y: number }) {
  const of = flame.functions[node];
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { offsetWidth, offsetHeight, style } = box.current!;
    style.left = `${Math.max(4, Math.min(x + 14, innerWidth - offsetWidth - 8))}px`;
    style.top = `${y + 18 + offsetHeight > innerHeight ? Math.max(4, y - offsetHeight - 10) : y + 18}px`;
  });
  const share = (weight: number, whole: number) => `${quantity(weight, unit)} (${percent((weight * 100) / (whole || 1))} %)`;
  return (
    <div class="hover-box" ref={box} aria-hidden="true">
      <b>{clipped(nameOf(functions, flame, node))}</b>
      {of >= 0 && functions.modules[of] && <span class="soft">{clipped(functions.modules[of])}{functions.owned[of] ? " · owned" : ""}</span>}
      {flame.sides && sides ? (
        <dl>
          {sides.map((side, index) => {
            const weights = index === 0 ? flame.sides!.after : flame.sides!.before;
            return [<dt key={`${side}-name`}>{side}</dt>, <dd key={side}>{share(weights[node], weights[0])}</dd>];
          })}
          <dt>difference</dt>
          <dd>{quantity(flame.sides.after[node] - flame.sides.before[node], unit)}</dd>
        </dl>
      ) : (
        <dl>
          <dt>total</dt>
          <dd>{share(flame.total[node], flame.total[0])}</dd>
          <dt>self</dt>
          <dd>{share(flame.own[node], flame.total[0])}</dd>
        </dl>
      )}
    </div>
  );
}

/** The heaviest frames as a table. */
function Rows({ flame, functions, unit, label }: PictureProps) {
  const nodes = useMemo(() => {
    const heavy = (node: number) => flame.total[node] >= flame.total[0] / 200;
    const found: number[] = [];
    for (let node = 0; node < flame.size && found.length < LISTED; node++) if (heavy(node)) found.push(node);
    return found;
  }, [flame]);
  return (
    <div class="unseen">
      <table>
        <caption>{label}: frames with 0.5 % and more</caption>
        <thead>
          <tr>
            <th>level</th>
            <th>function</th>
            <th>called by</th>
            <th>total</th>
            <th>self</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node}>
              <td>{levelOf(flame, node)}</td>
              <td>{clipped(nameOf(functions, flame, node))}</td>
              <td>{node > 0 ? clipped(nameOf(functions, flame, flame.parents[node])) : ""}</td>
              <td>{quantity(flame.total[node], unit)}</td>
              <td>{quantity(flame.own[node], unit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Colours of the theme that pictures need. */
function groundColours(element: HTMLElement) {
  const style = getComputedStyle(element);
  const of = (name: string, otherwise: string) => ink(style.getPropertyValue(name).trim() || otherwise);
  const [dark, light] = [ink("#15181c"), ink("#f2f4f7")];
  return { ground: of("--ground", "#ffffff"), dark: isDark.value ? ink("#0d0f12") : dark, light, hit: of("--hit", "#d6006c"), focus: of("--text", "#1a1e24") };
}

/** The callers of a node, from the whole to it, as buttons that zoom. */
export function Trail({ flame, functions, zoom, onZoom }: Pick<PictureProps, "flame" | "functions" | "zoom" | "onZoom">) {
  const node = zoom === 0 ? 0 : flame.hashes.indexOf(zoom);
  if (node <= 0) return null;
  const path = pathTo(flame, node);
  return (
    <nav class="trail" aria-label="Zoomed to">
      <button onClick={() => onZoom(0)}>Zoom out</button>
      <ol>
        {path.slice(1).map((step) => (
          <li key={step}>
            <button title={clipped(nameOf(functions, flame, step))} aria-current={step === node ? "true" : undefined} onClick={() => onZoom(flame.hashes[step])}>
              {clipped(nameOf(functions, flame, step))}
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}
