import { importsOf } from "./support/imports.ts";

/** A room of the product: a folder with all files in it, except for those of inner rooms. */
export interface Room {
  /** From the root, without `services/`. */
  path: string;
  /** The question that it answers, in one sentence. */
  decides: string;
  /**
   * Rooms that it may import, with everything in them. A room may also import its own files, and those files directly in a room around
   * it that lead into no inner room which it may not import itself.
   */
  imports: readonly string[];
}

/**
 * All rooms, from the lowest up: a room, its question, and the rooms that it may import. A file may import only those of its room, and
 * generated code of proto. Within one area (the first folder) the law is about imports at run time. Types are free there.
 */
const table = `
kit/base | small things without a subject of their own: errors, ids, JSON, logs, turns of the event loop |
kit/time | what the time is, how to wait, and how long a lease lasts |
kit/threads | how work leaves the event loop: threads and pools of them | kit/base
kit/share | who may have how much at once of what is scarce | kit/base, kit/time
kit/stream | how bytes and events are pushed from their source to their reader, and who is paused |
kit/edge | how many connections, pipelined requests, query parameters and small chunks a listener takes |
kit/telemetry | what spans and metrics are called, and what may stand in them | kit/base, kit/stream
kit/store | how SQLite, MongoDB, S3 and folders are opened, written and migrated | kit/base, kit/time, kit/telemetry
kit/documents | how a kind of documents is kept, once for SQLite and MongoDB: found by indexes, changed by steps | kit/base, kit/store
kit/queue | how a wake-up reaches one of many workers: in memory or by NATS JetStream | kit/base, kit/time
kit/rpc | what a service is, how services call each other, and who may call what | kit/base, kit/time, kit/stream, kit/edge, kit/telemetry
kit/outside | which addresses outside may be fetched or called, how, and for how long | kit/base
kit/upstream | how bytes go to an upstream and come back: sockets, bodies, places | kit/base, kit/time, kit/share, kit/stream
kit/images | what an image is, and how a hostile one is decoded safely | kit/base, kit/time, kit/share
kit/provenance | what a file says of its origin, and how that is written and signed | kit/base
kit/sound | what formats of sound are called, and how long a sound is |
kit/json-reader | how a large JSON body is read off the event loop | kit/base, kit/share, kit/threads
kit/template | how a request is made from a template of the catalog, and its answer read | kit/base

common/words | words and bounds of the public API that several parts go by | kit
common/agreements | how one service asks another, so that both sides mean the same | kit
common/documents | how a job, an entry, a hold, a key, an account, an operator's act and the installation's state are shown, wherever they are | kit, common/words
common/paid-work | how work that a hold pays for is found again after a crash, and ended | kit

upstreams | which protocols there are, what each can do, and how an upstream is called | kit
upstreams/media | what a driver of images, video, music and speech must do, and what all of them share | kit, common, upstreams/pools
upstreams/pools | which upstream and key a request tries first, which next, and which rest | kit
upstreams/text | which upstream is asked for a text, what its driver must do, and how answers are translated | kit, common, upstreams/text/judging, upstreams/anthropic, upstreams/pools
upstreams/text/judging | how much output an answer has, seen and unseen, and where it is cut at its bound | kit
upstreams/health | what of an upstream's calls is counted, and shown to operators | kit
upstreams/by-template | how models are called whose input the catalog describes | kit, upstreams/media
upstreams/online | what \`genmesh catalog check --online\` asks an upstream | kit, upstreams/by-template
upstreams/builtin | how built-in models are driven like an upstream | kit, common, upstreams/media, upstreams/text
upstreams/anthropic | how Anthropic's API is asked | kit, upstreams/online
upstreams/chat-completions | what an upstream that speaks Chat Completions can do |
upstreams/comfyui | how ComfyUI is asked, and its answers read | kit, upstreams/by-template, upstreams/media, upstreams/online
upstreams/elevenlabs | how ElevenLabs is asked | upstreams/media, upstreams/online
upstreams/fal | how fal is asked | kit, upstreams/by-template, upstreams/media, upstreams/online
upstreams/genmesh | how another genmesh is asked | kit, upstreams/media, upstreams/openai, upstreams/text
upstreams/jobs | how a vendor is asked whose HTTP the catalog declares | kit, upstreams/by-template, upstreams/media, upstreams/online
upstreams/openai | how OpenAI's API is asked for images, video and speech | kit, upstreams/media, upstreams/online
upstreams/replicate | how Replicate is asked | kit, upstreams/by-template, upstreams/media, upstreams/online

builtin | what the models make that need no upstream | kit, common, builtin
builtin/audio | how samples become a file |
builtin/caption | how words are drawn onto an image | builtin/paint
builtin/music | what a prompt sounds like | common, builtin/audio, builtin/speech
builtin/paint | what a prompt looks like |
builtin/speech | how a text is spoken | kit, common, builtin/audio
builtin/text | what is answered to a text | kit
builtin/video | how an image moves | common, builtin/audio, builtin/caption, builtin/music, builtin/paint

auth | who a caller is and what a key may do: accounts, keys, sessions, the audit log | kit, common

billing | how billing starts, and what it answers: its methods, its sweeper | kit, common, billing
billing/base | bounds, events and periods that all of billing goes by | kit, common
billing/ledger | whether money moves: wallets, holds, the journal | kit, common, billing/base
billing/grants | what an account gets each month, and that it gets it once | kit, common, billing/base, billing/ledger
billing/usage | what an account used, by key, model and day, counted from the journal | kit, billing/base, billing/ledger
billing/alerts | when an account is told that money or a limit is nearly gone | kit, common, billing/base, billing/ledger

catalog | which models there are, from a file or from versions in the store | kit, common, upstreams, catalog/draft
catalog/draft | whether a draft of the catalog is sound, off the event loop | kit

text | how the text service starts, and what its methods are | kit, common, upstreams, text
text/base | bounds, events and frames that all of text goes by | kit, upstreams/text
text/tokens | how many tokens a text, an image or a file has | kit, upstreams/text, text/base
text/files | what a file beside a prompt is, and how long a sound in it | kit, text/base
text/metering | what a request cost: prices, counts, and the charge of each kind of end | kit, common, upstreams/text, text/base, text/tokens
text/request | whether a request is valid, and the most that it can cost | kit, common, upstreams, text/base, text/files, text/metering, text/tokens
text/store | what is written down of a request, in SQLite and MongoDB | kit, common, upstreams/text, text/base
text/paid | that every request has one hold, and each hold one end | kit, common, upstreams/text, text/base, text/metering, text/request, text/tokens
text/answers | how a request becomes an answer: sent, read, joined, replayed | kit, common, upstreams/text, text/base, text/metering, text/request, text/tokens
text/large | how large answers are worked on off the event loop | kit, upstreams/text, text/answers, text/base, text/metering

media | how media starts, and what its methods are | kit, common, upstreams, media
media/files | which files an account has, and how much space | kit, common
media/references | what a job may refer to |
media/requests | whether a job is valid, and its price | kit, common, upstreams
media/jobs | what may happen to a job, and when: its states, its store, its wake-ups | kit, common, upstreams, media/requests
media/worker | how a worker claims a job, generates and hands it over | kit, common, upstreams, media/jobs, media/requests
media/speech | how a text is spoken while its caller waits, paid for as text is | kit, common, upstreams, media/requests
media/webhooks | who is told of an event, and how often it is tried | kit, common, media/jobs

notices | what an operator must act on, and how that is sent by webhook and mail | kit, common, upstreams/health

gateway | how REST and server-sent events become calls: bodies, errors, documents, the OpenAPI description | kit, common, upstreams, gateway
gateway/websocket | how responses are asked for over a WebSocket: messages, chains, frames, closes | kit, common
gateway/admission | whether a request is let in: its key, its rate | kit, common
gateway/plugins | what happens to every request: authentication, errors, tracing | kit
gateway/routes | which operations the public API has, one file each | kit, common, gateway/plugins
gateway/console | how people sign in, and what the console may ask | kit, common, gateway/admission, gateway/plugins, gateway/routes, gateway/console/admin
gateway/console/admin | what an operator sees and does in the console | kit, common, gateway/plugins
gateway/console/app | what the console looks like in a browser |

host | what runs in a process: settings, listeners, services, their stores | kit, common, upstreams, builtin, auth, billing, catalog, text, media, notices, gateway
host/cli | what the command \`genmesh\` does | kit, common, upstreams, auth, catalog
host/run-mesh | how a mesh runs on one machine | kit, host/cli
`;

/** All rooms. */
export const rooms: readonly Room[] = table
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => {
    const [path = "", decides = "", imports = ""] = line.split("|").map((cell) => cell.trim());
    return { path, decides, imports: imports.split(", ").filter(Boolean) };
  });

/**
 * Tables with all members of a kind. The shared code of that kind imports them, so their imports within the area do not count as ways
 * between rooms.
 */
export const tables: readonly string[] = [
  "services/upstreams/protocols.ts",
  "services/upstreams/catalog-rules.ts",
  "services/upstreams/media/drivers.ts",
  "services/upstreams/text/drivers.ts",
  "services/upstreams/online/index.ts",
];

/** The folder of a room, from the root. */
export const folderOf = ({ path }: Room): string =>
  path.startsWith("gateway") ? path : `services/${path}`;

const byLength = [...rooms].sort((a, b) => b.path.length - a.path.length);

/** The room of a file of the product. Undefined: none. */
export function roomOf(file: string): Room | undefined {
  return byLength.find((one) => file.startsWith(`${folderOf(one)}/`));
}

/** The area of a file: the first folder of its room. */
export function areaOf(file: string): string | undefined {
  return roomOf(file)?.path.split("/")[0];
}

/** May a file import another one? Both are files of the product, by their paths from the root. */
export function mayImport(file: string, to: string): boolean {
  const [from, other] = [roomOf(file), roomOf(to)];
  if (!from || !other) return false;
  if (from === other || (tables.includes(file) && areaOf(file) === areaOf(to))) return true;
  if (from.path.startsWith(`${other.path}/`)) {
    return [...leadsInto(to)].every((inner) => mayImportRoom(from, inner));
  }
  return mayImportRoom(from, other);
}

const mayImportRoom = (from: Room, other: Room) =>
  from.imports.some((path) => isWithin(other, path));

const led = new Map<string, ReadonlySet<Room>>();

/**
 * The rooms within its own that a file's imports lead into, directly or through other files of its room. Imports of types do not count.
 * Empty for tables, and for files on which rooms within its room may build.
 */
export function leadsInto(file: string): ReadonlySet<Room> {
  const known = led.get(file);
  if (known) return known;
  const found = new Set<Room>();
  led.set(file, found);
  const room = roomOf(file);
  const imported = tables.includes(file) ? [] : importsOf(file, { values: true });
  for (const to of imported) {
    const other = roomOf(to);
    if (!room || !other || !/\.tsx?$/.test(to)) continue;
    if (other === room) for (const inner of leadsInto(to)) found.add(inner);
    else if (isWithin(other, room.path)) found.add(other);
  }
  return found;
}

/** Is this the room of a path, or a room within that? */
export function isWithin(one: Room | undefined, path: string | undefined): boolean {
  return one !== undefined && path !== undefined && `${one.path}/`.startsWith(`${path}/`);
}
