import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  areaOf,
  folderOf,
  leadsInto,
  mayImport,
  type Room,
  roomOf,
  rooms,
  tables,
} from "../rooms.ts";
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
  const imported = importsOf(room);
  const leading = filesIn(room).filter((file) => leadsInto(file).size > 0);
  const own = tables.filter((file) => roomOf(file) === room).map((file) => basename(file));
  const area = folderOf(room)
    .split("/")
    .slice(0, room.path.startsWith("gateway") ? 1 : 2)
    .join("/");
  const lines = [
    `# ${room.path}`,
    `Decides ${room.decides}.`,
    [
      "A file of this room may import:",
      "",
      "* other files of this room, but never in a circle;",
      ...(imported === "" ? [] : [`* ${imported};`]),
      `* packages, and code generated from proto (\`#proto\`);`,
      `* types, by \`import type\`, from all rooms in \`${area}\`, also in a circle.`,
    ].join("\n"),
    own.length > 0
      ? `${namesOf(own)}: a table of all members of a kind, which may import all rooms of its area.`
      : undefined,
    `It may be imported by: ${importersOf(room)}. Its types may be imported by all rooms in \`${area}\`.`,
    inner.length > 0
      ? `Rooms in it: ${namesOf(inner.map(({ path }) => path))}.${leading.length > 0 ? ` Some of them may not import ${namesOf(leading.map((file) => within(room, file)))}: their signs say so.` : ""}`
      : undefined,
    "All rooms: [architecture.md](ROOT/docs/architecture.md#rooms).",
  ];
  const root = folderOf(room)
    .split("/")
    .map(() => "..")
    .join("/");
  return `${lines
    .filter((line) => line !== undefined)
    .join("\n\n")
    .replace("ROOT", root)}\n`;
}

function tableOfRooms(): string {
  const rows = rooms.map(
    (room) =>
      `| [${room.path}](../${folderOf(room)}) | ${room.decides} | ${importsOf(room) || "no other room"} |\n`,
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
  const named = imports.map((name) =>
    name === path ? "its inner rooms" : rooms.some(hasInner(name)) ? `all of ${name}` : name,
  );
  return [namesOf(named), ...around].filter(Boolean).join(", ");
}

const hasInner = (path: string) => (room: Room) => room.path.startsWith(`${path}/`);

/** All rooms that may import any file of a room. An area whose rooms all may is named once. */
function importersOf(room: Room): string {
  const may = rooms.filter(
    (one) =>
      one !== room &&
      !one.path.startsWith(`${room.path}/`) &&
      mayImport(anyFileIn(one.path), anyFileIn(room.path)),
  );
  const areas = [...new Set(rooms.map(areaOfRoom))];
  const named = areas.flatMap((area) => {
    const those = may.filter((one) => areaOfRoom(one) === area);
    const others = rooms.filter((one) => areaOfRoom(one) === area && one !== room);
    if (those.length > 1 && those.length === others.length) return [`all of ${area}`];
    const missing = others.filter((one) => !those.includes(one)).map(({ path }) => path);
    const isWide = missing.length > 0 && those.length > 2 * missing.length;
    return isWide
      ? [`all of ${area} (without ${missing.join(", ")})`]
      : those.map(({ path }) => path);
  });
  const byTables = tables.filter((file) => {
    const other = roomOf(file);
    return areaOf(file) === areaOfRoom(room) && other !== room && other && !may.includes(other);
  });
  return namesOf([
    ...named,
    ...byTables.map((file) => file.replace("services/", "")),
    ...(rooms.some(hasInner(room.path)) ? ["the rooms in it"] : []),
  ]);
}

const areaOfRoom = ({ path }: Room) => path.split("/")[0] ?? "";

/** The path of a file from the folder of its room. */
const within = (room: Room, file: string) => file.slice(folderOf(room).length + 1);

const namesOf = (names: readonly string[]) => names.join(", ");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of housePages()) {
    const file = join(thisCheckout, path);
    if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileSync(file, text);
  }
}
