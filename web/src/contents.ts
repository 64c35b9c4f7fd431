// The list of contents: says where the reader is.

/** Below this width the contents stand above the report and are folded. The style sheet has the same. */
const BESIDE = "(min-width: 1100px)";

/** Marks the section in view in the list of contents. */
export function followContents(): void {
  const contents = document.querySelector<HTMLElement>("nav.contents");
  const details = contents?.querySelector("details");
  if (!contents || !details) return;
  const wide = matchMedia(BESIDE);
  const fit = () => (details.open = wide.matches);
  fit();
  wide.addEventListener("change", fit);
  details.addEventListener("click", (event) => {
    if ((event.target as Element).closest("a") && !wide.matches) details.open = false;
  });
  markCurrent(contents);
}

function markCurrent(contents: HTMLElement): void {
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const sections = [...document.querySelectorAll<HTMLElement>("main section[id]")];
  let current: HTMLAnchorElement | undefined;
  const mark = () => {
    // The last section whose heading is above the upper third of the view.
    const line = innerHeight / 3;
    const section = sections.findLast((section) => section.getBoundingClientRect().top < line) ?? sections[0];
    const link = section && links.get(section.id);
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    if (link) show(link, contents);
    current = link;
  };
  let asked = false;
  const ask = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      mark();
    });
  };
  addEventListener("scroll", ask, { passive: true });
  addEventListener("resize", ask);
  mark();
}

/** Scrolls the list, and not the page as `scrollIntoView` might, so that an entry is seen. */
function show(entry: HTMLElement, list: HTMLElement): void {
  const [inner, outer] = [entry.getBoundingClientRect(), list.getBoundingClientRect()];
  if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top + 40;
  else if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom + 40;
}
