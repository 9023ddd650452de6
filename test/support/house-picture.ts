import { needsOf, type PeerName, peerNames } from "../../services/host/roles.ts";
import { folderOf, roomOf } from "../rooms.ts";
import { importsOf } from "./imports.ts";
import { houseFiles } from "./own-files.ts";

/** The parts from left to right. Those that call each other most are neighbours. */
const services = ["auth", "catalog", "text", "billing", "media", "builtin"] as const;
const users = ["gateway", ...services, "upstreams", "host"] as const;

/** A colour for each part that uses the kit, readable on white and on black. */
const colours: Record<(typeof users)[number], string> = {
  gateway: "#6366f1",
  auth: "#0891b2",
  catalog: "#ca8a04",
  text: "#16a34a",
  billing: "#dc2626",
  media: "#c026d3",
  builtin: "#ea580c",
  upstreams: "#0d9488",
  host: "#64748b",
};

const width = 960;
const margin = 30;
const inner = width - 2 * margin;
const columnGap = 12;
const column = (inner - columnGap * (services.length - 1)) / services.length;
const rowHeight = 20;
const laneHeight = 16;

/** The folders directly in a part, by name, and "" for its own files. */
type Rooms = ReadonlyMap<string, readonly string[]>;

/**
 * The image in docs/architecture.md as SVG. Folders and dots come from the files and their imports, calls and stores from the needs of
 * roles. It has no counts, so that it changes only with the structure. test/house-pages.test.ts compares it with the committed image.
 */
export function drawHouse(): string {
  const files = productFiles();
  const gateway = roomsOf(files, "gateway");
  const shelves = ["services/upstreams", "services/common", "services/kit"].map((folder) => ({
    folder,
    rooms: [...roomsOf(files, folder)],
  }));
  const gatewayTop = 62;
  const gatewayHeight = 66;
  const servicesTop = gatewayTop + gatewayHeight + 40;
  const parts = services.map((name) => ({ name, rooms: roomsOf(files, `services/${name}`) }));
  const rows = Math.max(...parts.map(({ rooms }) => rooms.size));
  const servicesHeight = 36 + rows * rowHeight;
  const lanesTop = servicesTop + servicesHeight + 18;
  const calls = callsBetweenServices();
  const shelvesTop = lanesTop + calls.length * laneHeight + 30;
  const heightOf = (rooms: readonly unknown[]) => 40 + Math.ceil(rooms.length / 3) * rowHeight;
  const storesTop = shelves.reduce((y, { rooms }) => y + heightOf(rooms) + 14, shelvesTop + 10);
  const height = storesTop + 92;

  const middleOf = (name: string) =>
    margin +
    services.indexOf(name as (typeof services)[number]) * (column + columnGap) +
    column / 2;
  const out: string[] = [
    rect(10, 36, width - 20, height - 46, "process"),
    text(
      22,
      26,
      "services/host: starts these parts, all in one process or each in its own",
      "small",
    ),
    box(margin, gatewayTop, inner, gatewayHeight, "gateway", "gateway"),
    text(margin + 12, gatewayTop + 48, [...gateway.keys()].filter(Boolean).join(", "), "small"),
  ];
  for (const [index, { name, rooms }] of parts.entries()) {
    const x = margin + index * (column + columnGap);
    out.push(box(x, servicesTop, column, servicesHeight, name, "service"));
    for (const [row, room] of [...rooms.keys()].filter(Boolean).entries()) {
      out.push(text(x + 12, servicesTop + 46 + row * rowHeight, room, "small"));
    }
    if ((peerNames as readonly string[]).includes(name)) {
      out.push(arrow(`M${middleOf(name)} ${gatewayTop + gatewayHeight}V${servicesTop - 3}`));
    }
  }
  for (const [lane, { from, to, isBoth }] of calls.entries()) {
    const y = lanesTop + lane * laneHeight;
    const spread = (end: string) => middleOf(end) + (lane - (calls.length - 1) / 2) * 18;
    const bottom = servicesTop + servicesHeight + 3;
    out.push(arrow(`M${spread(from)} ${bottom}V${y}H${spread(to)}V${bottom}`, isBoth));
  }
  out.push(
    text(margin, shelvesTop - 10, "arrow: calls over Connect; dot: imports some of it", "small"),
    ...users.map((user, index) => {
      const x = margin + 306 + index * 67;
      return circle(x, shelvesTop - 14, user) + text(x + 9, shelvesTop - 10, user, "small");
    }),
  );
  let top = shelvesTop + 4;
  for (const { folder, rooms } of shelves) {
    const perColumn = Math.ceil(rooms.length / 3);
    out.push(box(margin, top, inner, heightOf(rooms), folder, "kit"));
    for (const [index, [room, inside]] of rooms.entries()) {
      const x = margin + 12 + Math.floor(index / perColumn) * (inner / 3);
      const y = top + 46 + (index % perColumn) * rowHeight;
      out.push(text(x, y, room || "its own files", "small"));
      const dots = users.filter((user) => !folder.endsWith(user) && uses(files, user, inside));
      out.push(...dots.map((user, dot) => circle(x + 118 + dot * 16, y - 4, user)));
    }
    top += heightOf(rooms) + 14;
  }
  const stores = [
    ["database", "SQLite or MongoDB"],
    ["queue", "memory or NATS JetStream"],
    ["blobs", "a folder or S3"],
  ] as const;
  const third = (inner - 2 * columnGap) / 3;
  for (const [index, [need, what]] of stores.entries()) {
    const x = margin + index * (third + columnGap);
    const roles = Object.entries(needsOf).filter(([role, needs]) => role !== "all" && needs[need]);
    out.push(
      rect(x, storesTop, third, 56, "store"),
      text(x + 12, storesTop + 23, `${need}: ${what}`, "name"),
      text(x + 12, storesTop + 43, roles.map(([role]) => role).join(", "), "small"),
    );
  }
  return svg(height, out);
}

function productFiles(): string[] {
  return houseFiles().filter((file) => file.endsWith(".ts"));
}

function roomsOf(all: readonly string[], folder: string): Rooms {
  const rooms = new Map<string, string[]>();
  for (const file of all.filter((name) => name.startsWith(`${folder}/`))) {
    const [name = ""] = insideOf(folder, file).split("/");
    rooms.set(name, [...(rooms.get(name) ?? []), file]);
  }
  return new Map([...rooms].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The room of a file, by its path below the part; "" for the part's own files. */
function insideOf(part: string, file: string): string {
  const room = roomOf(file);
  return room ? folderOf(room).slice(part.length + 1) : "";
}

/** Does a part import one of these files? */
function uses(all: readonly string[], user: string, files: readonly string[]): boolean {
  const folder = user === "gateway" ? "gateway/" : `services/${user}/`;
  const wanted = new Set(files);
  return all.some(
    (file) => file.startsWith(folder) && importsOf(file).some((to) => wanted.has(to)),
  );
}

interface Call {
  from: PeerName;
  to: PeerName;
  isBoth: boolean;
}

/** The calls between services, each pair once. */
function callsBetweenServices(): Call[] {
  const calls: Call[] = [];
  for (const from of peerNames) {
    for (const to of needsOf[from].peers) {
      const back = calls.find((call) => call.from === to && call.to === from);
      if (back) back.isBoth = true;
      else calls.push({ from, to, isBoth: false });
    }
  }
  return calls;
}

function box(x: number, y: number, w: number, h: number, name: string, kind: string): string {
  return rect(x, y, w, h, kind) + text(x + 12, y + 24, name, "name");
}

function rect(x: number, y: number, w: number, h: number, kind: string): string {
  return `<rect class="${kind}" x="${x}" y="${y}" width="${w}" height="${h}" rx="8"/>`;
}

function text(x: number, y: number, words: string, kind: string): string {
  return `<text class="${kind}" x="${x}" y="${y}">${words}</text>`;
}

function circle(x: number, y: number, user: (typeof users)[number]): string {
  return `<circle cx="${x}" cy="${y}" r="4.5" fill="${colours[user]}"><title>${user}</title></circle>`;
}

function arrow(path: string, isBoth = false): string {
  return `<path class="line" d="${path}" marker-end="url(#head)"${isBoth ? ' marker-start="url(#head)"' : ""}/>`;
}

function svg(height: number, inside: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title desc">
<title id="title">The parts of genmesh, who calls whom, and who uses what of what they share</title>
<desc id="desc">The gateway calls auth, catalog, text, billing and media; text and media call billing and catalog. What they share stands in upstreams, common and the kit; none of them imports another.</desc>
<style>
text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2937; }
.name { font-weight: 600; }
.small { font-size: 12px; fill: #4b5563; }
.process { fill: #f8fafc; stroke: #cbd5e1; stroke-dasharray: 6 5; }
.gateway { fill: #e0e7ff; stroke: #6366f1; }
.service { fill: #ecfdf5; stroke: #10b981; }
.kit { fill: #ffffff; stroke: #94a3b8; }
.store { fill: #fef3c7; stroke: #d97706; }
.line { fill: none; stroke: #64748b; stroke-width: 1.5; }
.head { fill: #64748b; }
@media (prefers-color-scheme: dark) {
text { fill: #e5e7eb; } .small { fill: #cbd5e1; }
.process { fill: #0f172a; stroke: #475569; } .gateway { fill: #312e81; } .service { fill: #064e3b; } .kit { fill: #1f2937; } .store { fill: #78350f; }
.line { stroke: #94a3b8; } .head { fill: #94a3b8; }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>
${inside.join("\n")}
</svg>
`;
}
