// A surface in an element of the page, as wide as the element.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";
import { createSurface, type Surface } from "../draw/surface.ts";

export interface HostedSurface {
  /** The element that gets the canvas as its first child. */
  host: RefObject<HTMLDivElement>;
  surface: RefObject<Surface>;
  /** Width of the element in CSS pixels; 0 before it is known. */
  width: number;
  /** Changes when the picture has to be drawn again. */
  drawn: number;
}

export function useSurface(): HostedSurface {
  const host = useRef<HTMLDivElement>(null);
  const surface = useRef<Surface>(null);
  const [width, setWidth] = useState(0);
  const [drawn, redraw] = useState(0);
  useEffect(() => {
    const made = createSurface(() => redraw((count) => count + 1));
    surface.current = made;
    host.current!.prepend(made.canvas);
    made.canvas.setAttribute("aria-hidden", "true");
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(Math.floor(contentRect.width)));
    observer.observe(host.current!);
    return () => {
      observer.disconnect();
      made.dispose();
    };
  }, []);
  return { host, surface, width, drawn };
}
