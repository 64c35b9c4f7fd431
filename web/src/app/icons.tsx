// Icons, drawn as lines of the text's colour.

const PATHS = {
  search: "M7 2a5 5 0 1 0 0 10A5 5 0 1 0 7 2M11 11l3.5 3.5",
  close: "M4 4l8 8M12 4l-8 8",
  dark: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  light: "M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  help: "M6 6a2 2 0 1 1 2.6 1.9C8 8.2 8 8.6 8 9.5M8 12v.5M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13",
  columns: "M2 3h12v10H2zM6.5 3v10M10.5 3v10",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3.2 3.2 0 0 1 4.5 4.5L11.500 9M9 11.500L7.500 13A3.200 3.200 0 0 1 3 8.500L4.500 7",
  arrow: "M3 8h10M9 4l4 4l-4 4",
  down: "M4 6l4 4l4-4",
  warning: "M8 2l6.500 11.500h-13zM8 6.500v3.500M8 11.500v.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
