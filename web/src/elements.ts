// Elements, made with their namespaces: in an SVG document `document.createElement` makes neither HTML nor SVG.

const HTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number | boolean | undefined>;
type Child = Node | string | undefined;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  // Strings become text nodes: whatever is in a name stays text.
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** An HTML element. */
export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElementNS(HTML, tag) as HTMLElementTagNameMap[K];
  return fill(element, attributes, children);
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag) as SVGElementTagNameMap[K];
  return fill(element, attributes, children);
}
