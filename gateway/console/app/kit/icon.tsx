// The icons of the console, as lines of code, so that the page loads no images for them.

/** Line icons on a grid of 16, each with one stroke. */
const paths: Record<string, string> = {
  overview: "M2 2h5v6H2zM9 2h5v3H9zM9 8h5v6H9zM2 11h5v3H2z",
  playground: "M4 2.5v11l9-5.5z",
  models: "M8 1.5l6 3v7l-6 3-6-3v-7zM2 4.5l6 3 6-3M8 7.5v7",
  usage: "M2 14h12M4 14V8M8 14V3M12 14V6",
  requests: "M2 4h12M2 8h12M2 12h8",
  jobs: "M8 1.5a6.5 6.5 0 1 0 6.5 6.5M8 4v4l3 2",
  files: "M2 2h12v12H2zM2 11l3.5-4 3 3 2-2L14 11M10.5 5.5h.01",
  keys: "M9.5 6.5a3.5 3.5 0 1 0-2 3.1L9 11h2v2h3v-2.5L9.4 7.5z",
  billing: "M1.5 4h13v8h-13zM1.5 7h13M4 10h3",
  webhooks: "M5 8h6M8 5l3 3-3 3M2 2v12M14 2v12",
  accounts:
    "M8 7.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5zM2.5 14c.5-3 2.5-4.5 5.5-4.5s5 1.5 5.5 4.5",
  health: "M1.5 8h3l2-5 3 10 2-5h3",
  notices: "M8 1.5l6.5 12.5h-13zM8 6.5v3.5M8 12h.01",
  menu: "M2 4h12M2 8h12M2 12h12",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name] ?? ""} />
    </svg>
  );
}
