// What pointers, wheels and keys do to a timeline.

import { HEAD, OVERVIEW_HEIGHT } from "../../draw/timeline.ts";
import type { Span } from "../../profile/address.ts";

/** What a gesture needs to know of the timeline, and what it changes. */
export interface Target {
  width(): number;
  height(): number;
  gutter(): number;
  duration(): number;
  span(): Span;
  show(span: Span): void;
  top(): number;
  /** Height of all rows. */
  rowsHeight(): number;
  scroll(top: number): void;
  hover(at: { x: number; y: number } | undefined): void;
  /** A range of time while it is dragged over, and when that is done. */
  brush(from: number, to: number, isDone: boolean): void;
  click(x: number, y: number): void;
  open(x: number, y: number): void;
  /** Whether a drag measures. */
  measures(): boolean;
  measure(from: number, to: number): void;
}

/** Shortest time that fills the picture. */
const SHORTEST = 100;
/** A pointer that moves less is a click. */
const STILL = 4;

/** A range within the recording, of a length that can be shown. */
export function bounded(from: number, to: number, duration: number): Span {
  const length = Math.min(Math.max(to - from, Math.min(SHORTEST, duration)), duration);
  const middle = (from + to) / 2;
  const start = Math.min(Math.max(0, middle - length / 2), duration - length);
  return { from: start, to: start + length };
}

/** The range after zooming by a factor about a moment, which stays where it is. */
export function zoomed({ from, to }: Span, about: number, factor: number, duration: number): Span {
  const length = Math.min(Math.max((to - from) * factor, Math.min(SHORTEST, duration)), duration);
  const share = (about - from) / (to - from);
  const start = Math.min(Math.max(0, about - share * length), duration - length);
  return { from: start, to: start + length };
}

export function moved({ from, to }: Span, by: number, duration: number): Span {
  const start = Math.min(Math.max(0, from + by), Math.max(0, duration - (to - from)));
  return { from: start, to: start + (to - from) };
}

/** Listens on an element; the answer ends that. */
export function listen(element: HTMLElement, target: Target): () => void {
  const pointers = new Map<number, { x: number; y: number }>();
  let drag: { kind: "pan" | "brush" | "overview" | "scrollbar" | "measure"; x: number; y: number; moved: boolean; time: number } | undefined;
  let pinch: { distance: number; span: Span; time: number } | undefined;

  const place = (event: MouseEvent) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const room = () => Math.max(1, target.width() - target.gutter());
  const timeAt = (x: number) => {
    const { from, to } = target.span();
    return from + ((x - target.gutter()) / room()) * (to - from);
  };
  const scrollTo = (top: number) => target.scroll(Math.min(Math.max(0, top), Math.max(0, target.rowsHeight() - (target.height() - HEAD))));

  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const { x } = place(event);
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? target.height() : 1;
    const [across, down] = [event.deltaX * unit, event.deltaY * unit];
    const { from, to } = target.span();
    if (x < target.gutter() || (event.shiftKey && !event.ctrlKey)) return scrollTo(target.top() + (down || across));
    if (Math.abs(across) > Math.abs(down)) return target.show(moved({ from, to }, (across / room()) * (to - from), target.duration()));
    target.show(zoomed({ from, to }, timeAt(x), Math.exp(Math.min(Math.max(down, -120), 120) * 0.0032), target.duration()));
  };

  const onDown = (event: PointerEvent) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    const { x, y } = place(event);
    pointers.set(event.pointerId, { x, y });
    element.setPointerCapture(event.pointerId);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      drag = undefined;
      pinch = { distance: Math.max(10, Math.abs(a.x - b.x)), span: target.span(), time: timeAt((a.x + b.x) / 2) };
      return;
    }
    const isBar = x > target.width() - 10 && y > HEAD && target.rowsHeight() > target.height() - HEAD;
    const kind = isBar ? "scrollbar" : y < OVERVIEW_HEIGHT && x > target.gutter() ? "overview" : target.measures() ? "measure" : event.shiftKey || (y < HEAD && x > target.gutter()) ? "brush" : "pan";
    drag = { kind, x, y, moved: false, time: timeAt(x) };
    if (kind === "overview") centre(x);
  };

  /** Shows the part of the recording around a point of the overview. */
  const centre = (x: number) => {
    const { from, to } = target.span();
    const time = ((x - target.gutter()) / room()) * target.duration();
    target.show(bounded(time - (to - from) / 2, time + (to - from) / 2, target.duration()));
  };

  const onMove = (event: PointerEvent) => {
    const { x, y } = place(event);
    if (!pointers.has(event.pointerId)) return target.hover({ x, y });
    const last = pointers.get(event.pointerId)!;
    pointers.set(event.pointerId, { x, y });
    if (pinch && pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const factor = pinch.distance / Math.max(10, Math.abs(a.x - b.x));
      const length = (pinch.span.to - pinch.span.from) * factor;
      const share = ((a.x + b.x) / 2 - target.gutter()) / room();
      return target.show(bounded(pinch.time - share * length, pinch.time + (1 - share) * length, target.duration()));
    }
    if (!drag) return;
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < STILL) return;
    drag.moved = true;
    if (drag.kind === "overview") return centre(x);
    if (drag.kind === "scrollbar") return scrollTo(target.top() + ((y - last.y) / (target.height() - HEAD)) * target.rowsHeight());
    if (drag.kind === "brush") return target.brush(...ordered(drag.time, timeAt(x)), false);
    if (drag.kind === "measure") return target.measure(drag.time, timeAt(x));
    const { from, to } = target.span();
    target.show(moved({ from, to }, ((last.x - x) / room()) * (to - from), target.duration()));
    scrollTo(target.top() + last.y - y);
  };

  const onUp = (event: PointerEvent) => {
    if (!pointers.delete(event.pointerId)) return;
    pinch = undefined;
    const done = drag;
    drag = undefined;
    if (!done || event.type === "pointercancel") return;
    const { x, y } = place(event);
    if (!done.moved) return done.kind === "pan" || done.kind === "measure" || done.kind === "brush" ? target.click(x, y) : undefined;
    if (done.kind === "brush") target.brush(...ordered(done.time, timeAt(x)), true);
  };

  const onDouble = (event: MouseEvent) => {
    const { x, y } = place(event);
    target.open(x, y);
  };
  const onLeave = () => target.hover(undefined);

  element.addEventListener("wheel", onWheel, { passive: false });
  element.addEventListener("pointerdown", onDown);
  element.addEventListener("pointermove", onMove);
  element.addEventListener("pointerup", onUp);
  element.addEventListener("pointercancel", onUp);
  element.addEventListener("dblclick", onDouble);
  element.addEventListener("pointerleave", onLeave);
  return () => {
    element.removeEventListener("wheel", onWheel);
    element.removeEventListener("pointerdown", onDown);
    element.removeEventListener("pointermove", onMove);
    element.removeEventListener("pointerup", onUp);
    element.removeEventListener("pointercancel", onUp);
    element.removeEventListener("dblclick", onDouble);
    element.removeEventListener("pointerleave", onLeave);
  };
}

function ordered(a: number, b: number): [number, number] {
  return [Math.min(a, b), Math.max(a, b)];
}

/** What a key does; `undefined` if it has no meaning here. */
export function keyed(event: KeyboardEvent, target: Target): (() => void) | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const { from, to } = target.span();
  const duration = target.duration();
  const middle = (from + to) / 2;
  const pan = (share: number) => () => target.show(moved({ from, to }, share * (to - from), duration));
  const zoom = (factor: number) => () => target.show(zoomed({ from, to }, middle, factor, duration));
  const scroll = (by: number) => () => target.scroll(Math.min(Math.max(0, target.top() + by), Math.max(0, target.rowsHeight() - (target.height() - HEAD))));
  const keys: Record<string, () => void> = {
    w: zoom(0.7),
    s: zoom(1 / 0.7),
    a: pan(-0.15),
    d: pan(0.15),
    "+": zoom(0.7),
    "-": zoom(1 / 0.7),
    ArrowLeft: pan(-0.15),
    ArrowRight: pan(0.15),
    ArrowUp: scroll(-40),
    ArrowDown: scroll(40),
    PageUp: scroll(-(target.height() - HEAD) * 0.9),
    PageDown: scroll((target.height() - HEAD) * 0.9),
    Home: () => target.show({ from: 0, to: duration }),
  };
  return keys[event.key];
}
