import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { folderOf, leadsInto, mayImport, type Room, roomOf, rooms, tables } from "../rooms.ts";
import { thisCheckout } from "./checkout.ts";
import { drawHouse } from "./house-picture.ts";
import { houseFiles } from "./own-files.ts";

const house = houseFiles();
const architecture = "docs/architecture.md";
const [before, after] = ["<!-- rooms: npm run house -->", "<!-- end of rooms -->"];

/** Each page that is made from the table of rooms or from the imports: its path from the root, and its text. */
export function housePages(): Map<string, string> {
  const pages = rooms.map((room) => [`${folderOf(room)}/README.md`, signOf(room)] as const);
  const page = readFileSync(join(thisCheckout, architecture), "utf8");
  const [head, , tail] = page.split(new RegExp(`${before}|${after}`));
  return new Map([
    ["docs/architecture.svg", drawHouse()],
    [architecture, `${head}${before}\n${tableOfRooms()}${after}${tail}`],
    ...pages,
  ]);
}

/** The text that a newcomer reads first in a room. */
function signOf(room: Room): string {
  const inner = rooms.filter(({ path }) => path.startsWith(`${room.path}/`));
  const importers = importersOf(room);
  const leading = filesIn(room).filter((file) => leadsInto(file).size > 0);
  const own = tables.filter((file) => roomOf(file) === room).map((file) => basename(file));
  const lines = [
    `# ${room.path}`,
    `Decides ${room.decides}.`,
    `Its files may import each other, and ${importsOf(room)}. A room's name stands for all rooms in it too.`,
    `Each may also import packages, what is generated from proto (\`#proto\`), and types (\`import type\`) of all rooms in \`${folderOf(
      room,
    )
      .split("/")
      .slice(0, room.path.startsWith("gateway") ? 1 : 2)
      .join(
        "/",
      )}\`. No two files import each other, directly or through others; types do not count.`,
    own.length > 0
      ? `${namesOf(own)}: a table of all members of a kind, which may import all rooms of its area.`
      : undefined,
    leading.length > 0
      ? `Lead into rooms in it: ${namesOf(leading.map((file) => within(room, file)))}. A room in it may import these files only where it may import the same rooms itself.`
      : undefined,
    importers.length > 0 ? `May be imported by: ${namesOf(importers)}.` : undefined,
    inner.length > 0 ? `Rooms in it: ${namesOf(inner.map(({ path }) => path))}.` : undefined,
    "All rooms: [architecture.md](ROOT/docs/architecture.md#rooms).",
  ];
  const root = folderOf(room)
    .split("/")
    .map(() => "..")
    .join("/");
  return `${lines.filter(Boolean).join("\n\n").replace("ROOT", root)}\n`;
}

function tableOfRooms(): string {
  const rows = rooms.map(
    (room) => `| [${room.path}](../${folderOf(room)}) | ${room.decides} | ${importsOf(room)} |\n`,
  );
  return `| room | decides | may import |\n| --- | --- | --- |\n${rows.join("")}`;
}

/** The files of a room, without those of rooms in it. */
const filesIn = (room: Room) => house.filter((file) => roomOf(file) === room);

/** A path in a room, as good as that of any other file there. */
const anyFileIn = (path: string) => `${folderOf({ path } as Room)}/any.ts`;

function importsOf({ path, imports }: Room): string {
  const around = rooms
    .filter((room) => path.startsWith(`${room.path}/`))
    .map((room) => {
      const closed = filesIn(room).filter((file) => !mayImport(anyFileIn(path), file));
      const without =
        closed.length > 0 ? ` without ${namesOf(closed.map((file) => within(room, file)))}` : "";
      return `the files directly in ${room.path}${without}`;
    });
  const named = namesOf(imports.map((name) => (name === path ? "its inner rooms" : name)));
  return [named, ...around].filter(Boolean).join(", ") || "no other room";
}

/** The rooms that name a room in the table, and those that name a room around it. */
function importersOf({ path }: Room): string[] {
  const named = rooms.filter((one) => one.path !== path && one.imports.includes(path));
  const around = rooms
    .filter((one) => path.startsWith(`${one.path}/`) || one.path === path.split("/")[0])
    .map((one) => one.path);
  const areas = new Set([...around, path.split("/")[0] ?? ""].filter((one) => one !== path));
  const wide = [...areas].filter((area) => rooms.some(({ imports }) => imports.includes(area)));
  const hasInner = rooms.some((one) => one.path.startsWith(`${path}/`));
  return [
    ...named.map((one) => one.path),
    ...wide.map((area) => `all rooms that may import ${area}`),
    ...(hasInner ? ["the rooms in it"] : []),
  ];
}

/** The path of a file from the folder of its room. */
const within = (room: Room, file: string) => file.slice(folderOf(room).length + 1);

const namesOf = (names: readonly string[]) => names.join(", ");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of housePages()) {
    const file = join(thisCheckout, path);
    if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileSync(file, text);
  }
}
