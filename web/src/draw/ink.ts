// Colours of pictures, packed into a number: 0xRRGGBBAA.

import type { Ink } from "./surface.ts";

/** The ink of `#rgb`, `#rrggbb` or `#rrggbbaa`. */
export function ink(css: string): Ink {
  const hex = css.trim().replace(/^#/, "");
  const digits = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
  return Number.parseInt(digits.padEnd(8, "f"), 16) >>> 0;
}

/** An ink as CSS. */
export function css(ink: Ink): string {
  return `#${(ink >>> 0).toString(16).padStart(8, "0")}`;
}

/** The ink with another opacity, 0 to 1. */
export function faded(ink: Ink, opacity: number): Ink {
  return ((ink & 0xffffff00) | Math.round(opacity * 255)) >>> 0;
}

/** `share` of `top` (0 to 1) mixed into `bottom`, opaque. */
export function mixed(bottom: Ink, top: Ink, share: number): Ink {
  const channel = (shift: number) => Math.round(((bottom >>> shift) & 255) * (1 - share) + ((top >>> shift) & 255) * share) << shift;
  return (channel(24) | channel(16) | channel(8) | 255) >>> 0;
}

/** Relative luminance as WCAG 2 defines it, 0 to 1. */
export function luminance(ink: Ink): number {
  const channel = (shift: number) => {
    const value = ((ink >>> shift) & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(24) + 0.7152 * channel(16) + 0.0722 * channel(8);
}
