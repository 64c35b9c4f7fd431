// The surface of browsers with a GPU: all shapes of a frame are instances of one rectangle, drawn in one call for each clip.

import { Widths } from "./canvas.ts";
import { characters, GLYPH_MARGIN, Glyphs } from "./glyphs.ts";
import { Picks } from "./picks.ts";
import { FONTS, NOTHING, type FontName, type Ink, type Surface } from "./surface.ts";

/** Of an instance: four floats of geometry, the colour, two texels and the thickness of lines. */
const BYTES = 32;
const WORDS = BYTES / 4;
const NO_TEXEL = -1;

const VERTEX = `#version 300 es
layout(location=0) in vec4 box;
layout(location=1) in vec4 ink;
layout(location=2) in vec3 style;
uniform vec2 size;
out vec4 tint;
out vec2 texel;
out vec2 across;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  vec2 at = box.xy + corner * box.zw;
  across = vec2(0.0, 1.0);
  if (style.z > 0.0) {
    vec2 along = box.zw - box.xy;
    float reach = style.z * 0.5 + 0.5;
    float side = corner.y * 2.0 - 1.0;
    at = mix(box.xy, box.zw, corner.x) + vec2(-along.y, along.x) / max(length(along), 0.001) * reach * side;
    across = vec2(reach * side, reach);
  }
  gl_Position = vec4((at / size * 2.0 - 1.0) * vec2(1.0, -1.0), 0.0, 1.0);
  tint = ink;
  texel = style.x < 0.0 ? vec2(-1.0) : style.xy + corner * box.zw;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 tint;
in vec2 texel;
in vec2 across;
uniform sampler2D glyphs;
out vec4 colour;
void main() {
  float cover = texel.x < 0.0 ? 1.0 : texelFetch(glyphs, ivec2(texel), 0).a;
  cover *= clamp(across.y - abs(across.x), 0.0, 1.0);
  colour = vec4(tint.rgb, 1.0) * tint.a * cover;
}`;

interface Clip {
  /** The first instance inside it. */
  first: number;
  /** Device pixels: x, y, width, height; all if missing. */
  area?: [number, number, number, number];
}

export class WebGlSurface implements Surface {
  readonly canvas: HTMLCanvasElement;
  readonly kind = "webgl";
  width = 0;
  height = 0;
  ratio = 1;
  private readonly gl: WebGL2RenderingContext;
  private readonly picks = new Picks();
  private readonly pen = document.createElement("canvas").getContext("2d")!;
  private readonly widths = new Widths((font, text) => {
    this.pen.font = FONTS[font].css;
    return this.pen.measureText(text).width;
  });
  private readonly onLost: () => void;
  private glyphs!: Glyphs;
  private sizeAt: WebGLUniformLocation | null = null;
  private bytes = new ArrayBuffer(BYTES * 4096);
  private floats = new Float32Array(this.bytes);
  private words = new Uint32Array(this.bytes);
  private count = 0;
  private clips: Clip[] = [{ first: 0 }];
  private background: Ink = 0;
  private areGlyphsFull = false;
  /** Whether the frame started with an empty texture: if even that is too small, another frame would not help. */
  private areGlyphsNew = false;

  /** Undefined if there is no WebGL2, or only an emulated one and that is not `wanted`. */
  static create(onLost: () => void, wanted: boolean): WebGlSurface | undefined {
    const canvas = document.createElement("canvas");
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false, stencil: false, failIfMajorPerformanceCaveat: !wanted });
    if (!gl || (!wanted && isEmulated(gl))) return undefined;
    return new WebGlSurface(canvas, gl, onLost);
  }

  private constructor(canvas: HTMLCanvasElement, gl: WebGL2RenderingContext, onLost: () => void) {
    this.canvas = canvas;
    this.gl = gl;
    this.onLost = onLost;
    this.prepare();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.prepare();
      this.onLost();
    });
  }

  private prepare(): void {
    const { gl } = this;
    const program = gl.createProgram()!;
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.sizeAt = gl.getUniformLocation(program, "size");
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    for (const index of [0, 1, 2]) {
      gl.enableVertexAttribArray(index);
      gl.vertexAttribDivisor(index, 1);
    }
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.glyphs = new Glyphs(gl, this.ratio);
  }

  resize(width: number, height: number): void {
    const ratio = globalThis.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    if (ratio !== this.ratio) {
      this.ratio = ratio;
      this.renewGlyphs();
    }
  }

  begin(background: Ink): void {
    this.picks.clear();
    this.count = 0;
    this.clips = [{ first: 0 }];
    this.background = background;
    this.areGlyphsNew = this.areGlyphsFull;
    if (this.areGlyphsFull) this.renewGlyphs();
  }

  rectangle(x: number, y: number, width: number, height: number, ink: Ink, id = NOTHING): void {
    if (id !== NOTHING) this.picks.addBox(x, y, width, height, id);
    // 32-bit floats are exact to a pixel only near the picture.
    const { ratio } = this;
    const left = Math.round(Math.max(x, -1) * ratio);
    const top = Math.round(Math.max(y, -1) * ratio);
    const right = Math.round(Math.min(x + width, this.width + 1) * ratio);
    const bottom = Math.round(Math.min(y + height, this.height + 1) * ratio);
    this.instance(left, top, Math.max(1, right - left), Math.max(1, bottom - top), ink, NO_TEXEL, 0, 0);
  }

  line(fromX: number, fromY: number, toX: number, toY: number, thickness: number, ink: Ink, id = NOTHING): void {
    if (id !== NOTHING) this.picks.addLine(fromX, fromY, toX, toY, id);
    const { ratio } = this;
    this.instance(fromX * ratio, fromY * ratio, toX * ratio, toY * ratio, ink, NO_TEXEL, 0, thickness * ratio);
  }

  text(text: string, x: number, middle: number, ink: Ink, font: FontName = "text"): void {
    let at = x * this.ratio;
    const centre = Math.round(middle * this.ratio);
    const end = this.width * this.ratio;
    for (const character of characters(text)) {
      if (at > end) break;
      const glyph = this.glyphs.of(character, font);
      if (!glyph) {
        this.areGlyphsFull = true;
        return;
      }
      if (character !== " " && at + glyph.width >= 0) {
        this.instance(Math.round(at) - GLYPH_MARGIN, centre - Math.round(glyph.height / 2), glyph.width, glyph.height, ink, glyph.u, glyph.v, 0);
      }
      at += glyph.advance;
    }
  }

  measure(text: string, font: FontName = "text"): number {
    return this.widths.of(font, text);
  }

  clip(x: number, y: number, width: number, height: number): void {
    const { ratio } = this;
    const [left, top] = [Math.round(x * ratio), Math.round(y * ratio)];
    const area: [number, number, number, number] = [left, top, Math.max(0, Math.round((x + width) * ratio) - left), Math.max(0, Math.round((y + height) * ratio) - top)];
    this.clips.push({ first: this.count, area });
    this.picks.clip([x, y, x + width, y + height]);
  }

  unclip(): void {
    this.clips.push({ first: this.count });
    this.picks.clip(undefined);
  }

  end(): void {
    const { gl, canvas, background } = this;
    if (gl.isContextLost()) return;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor((background >>> 24) / 255, ((background >>> 16) & 255) / 255, ((background >>> 8) & 255) / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(this.sizeAt, canvas.width, canvas.height);
    gl.bufferData(gl.ARRAY_BUFFER, this.floats.subarray(0, this.count * WORDS), gl.STREAM_DRAW);
    this.clips.forEach(({ first, area }, index) => {
      const past = this.clips[index + 1]?.first ?? this.count;
      if (past === first) return;
      if (area) {
        gl.enable(gl.SCISSOR_TEST);
        gl.scissor(area[0], canvas.height - area[1] - area[3], area[2], area[3]);
      } else {
        gl.disable(gl.SCISSOR_TEST);
      }
      const offset = first * BYTES;
      gl.vertexAttribPointer(0, 4, gl.FLOAT, false, BYTES, offset);
      gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, BYTES, offset + 16);
      gl.vertexAttribPointer(2, 3, gl.FLOAT, false, BYTES, offset + 20);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, past - first);
    });
    // Text that found no room is drawn with new glyphs.
    if (this.areGlyphsFull && !this.areGlyphsNew) requestAnimationFrame(this.onLost);
  }

  pick(x: number, y: number): number {
    return this.picks.at(x, y);
  }

  dispose(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
    this.canvas.remove();
  }

  private renewGlyphs(): void {
    this.glyphs.dispose();
    this.glyphs = new Glyphs(this.gl, this.ratio);
    this.areGlyphsFull = false;
  }

  private instance(a: number, b: number, c: number, d: number, ink: Ink, u: number, v: number, thickness: number): void {
    let at = this.count * WORDS;
    if (at === this.floats.length) this.grow();
    const { floats } = this;
    floats[at++] = a;
    floats[at++] = b;
    floats[at++] = c;
    floats[at++] = d;
    // Bytes in the order red, green, blue, alpha on little-endian machines, which all are.
    this.words[at++] = ((ink >>> 24) | ((ink >>> 8) & 0xff00) | ((ink << 8) & 0xff0000) | (ink << 24)) >>> 0;
    floats[at++] = u;
    floats[at++] = v;
    floats[at] = thickness;
    this.count++;
  }

  private grow(): void {
    const bytes = new ArrayBuffer(this.bytes.byteLength * 2);
    // By words, as a colour may look like a float that is not a number.
    this.words = new Uint32Array(bytes);
    this.words.set(new Uint32Array(this.bytes));
    this.floats = new Float32Array(bytes);
    this.bytes = bytes;
  }
}

/** Whether the CPU does the work of the GPU. */
function isEmulated(gl: WebGL2RenderingContext): boolean {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}
