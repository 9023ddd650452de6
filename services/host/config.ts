// Turns the environment into the settings of a process, or into one line that says which variable is wrong. Variables of one
// subject are read by a `config-….ts` each.

import { isIP } from "node:net";
import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type LogLevel, logLevels } from "#kit/base/logger.ts";
import { readKeyFile } from "#kit/upstream/key-file.ts";
import { defaultWorkers, maxWorkers } from "../media/limits.ts";
import type { AlertWays } from "../notices/index.ts";
import { alertsConfig } from "./config-alerts.ts";
import { type ConsoleConfig, consoleConfig } from "./config-console.ts";
import { type SealSecrets, sealSecrets } from "./config-secrets.ts";
import { type SecurityConfig, securityConfig } from "./config-security.ts";
import { type StoresConfig, storesConfig } from "./config-stores.ts";
import { type TelemetryConfig, telemetryConfig } from "./config-telemetry.ts";
import {
  type PeerUrls,
  type PortsConfig,
  peersConfig,
  peerUrls,
  portsConfig,
  type TlsConfig,
  tlsConfig,
} from "./config-wire.ts";
import { badVariable, type Env, type EnvReader, envReader } from "./env.ts";
import { peerNames, type Role, roles } from "./roles.ts";

/** All settings that a process gets from outside. They are made once, at the start, by the only code that reads the environment. */
export interface Config extends StoresConfig {
  role: Role;
  ports: PortsConfig;
  /** Base of every URL in an answer. Undefined: the base is made of `Host`. */
  publicUrl: string | undefined;
  /** Addresses whose X-Forwarded-* headers are used. Empty: no address. */
  trustProxy: string[];
  /** Origins whose pages may call the API, or `*` alone. Empty: none. */
  corsOrigins: string[];
  /** Undefined: the console is off. */
  console: ConsoleConfig | undefined;
  /** Undefined: there is no `/.well-known/security.txt`. */
  security: SecurityConfig | undefined;
  /** How responses are offered over WebSockets. False: they are not. */
  webSockets: { most: number; inFlight: number } | false;
  /** Undefined: plain text on every port. */
  tls: TlsConfig | undefined;
  /** Do short calls between processes share connections? */
  frames: boolean;
  /** The peers that the role calls over the wire. None in role `all`. */
  peers: PeerUrls;
  /** For role `all`: the folder of its embedded state. */
  dataDir: string;
  /** Folder for files that may be lost. Undefined: a new folder among the system's temporary ones. */
  scratchDir: string | undefined;
  catalog: CatalogConfig;
  bootstrap: { apiKey: string | undefined; usdMicros: bigint; credits: bigint };
  tokens: { mesh: string[]; admin: string | undefined };
  /** Seal and open stored keys of upstreams. Undefined: the environment has none. */
  sealSecrets: SealSecrets | "off" | undefined;
  references: { allowPrivate: boolean };
  retentionDays: number;
  /** The ways by which this process sends notices to the operator. The roles `all` and `media` have some. */
  alerts: AlertWays;
  /** Most jobs of each kind that this process renders itself at once. 0: it takes none of the kind. */
  workers: Record<"image" | "video" | "music", number>;
  drainMs: number;
  logLevel: LogLevel;
  /** May the log have colours, where a terminal shows it? */
  logColours: boolean;
  /** Undefined: this process sends no telemetry. */
  telemetry: TelemetryConfig | undefined;
  /** The key in a variable that the catalog names, or in a file that it names by its absolute path. Undefined: there is none. */
  secret: (name: string) => string | undefined | Promise<string | undefined>;
}

/** The catalog of models, upstreams and prices. */
interface CatalogConfig {
  /** Path of its file. */
  file: string;
  /** Are versions in the database the master, which operators make? The file is in force until the first one. */
  isStored: boolean;
}

/** The settings that the operator command gets from outside. */
export interface OperatorConfig {
  adminToken: string | undefined;
  dataDir: string;
  /** The addresses of the services, in a mesh. */
  peers: PeerUrls;
  /** Certificates for services that speak TLS. */
  tls: TlsConfig | undefined;
  /** The stores that the service on this machine has. Throws ConfigError. */
  stores: () => StoresConfig;
  /** Base URL and key for `genmesh generate`. */
  baseUrl: string | undefined;
  apiKey: string | undefined;
  /** Like that of {@link Config}, for `genmesh catalog check --online`. */
  secret: Config["secret"];
}

const noAlerts: AlertWays = { webhook: undefined, mail: undefined };
/** Milliseconds after SIGTERM for open requests to end. */
const defaultDrainMs = 25_000;
const shippedCatalog = fileURLToPath(new URL("../../deploy/catalog.yaml", import.meta.url));

/** The environment of this process. */
export function readEnv(): Env {
  return process.env;
}

/** Checks the environment and fills in defaults. Throws ConfigError, which names the variable. */
export function envToConfig(env: Env, args: { role?: string } = {}): Config {
  const read = envReader(args.role === undefined ? env : { ...env, GENMESH_ROLE: args.role });
  const role = read.choice("GENMESH_ROLE", roles, "all");
  const ownDir = read.text("GENMESH_DATA_DIR");
  const dataDir = resolve(ownDir ?? ".genmesh");
  const tls = tlsConfig(read);
  const catalog = catalogConfig(read, role);
  return {
    role,
    ports: portsConfig(read, role),
    publicUrl: publicUrl(read),
    trustProxy: trustProxy(read),
    corsOrigins: corsOrigins(read),
    console: needsConsole(role) ? consoleConfig(read) : undefined,
    security: securityConfig(read),
    webSockets: webSockets(read),
    tls,
    frames: read.choice("GENMESH_PEER_FRAMES", ["on", "off"], "on") === "on",
    peers: peersConfig(read, role),
    dataDir,
    scratchDir: role === "all" || ownDir !== undefined ? dataDir : undefined,
    ...storesConfig(read, role, dataDir, catalog.isStored),
    catalog,
    bootstrap: bootstrapConfig(read),
    tokens: tokensConfig(read, role),
    sealSecrets: sealSecrets(read, role),
    references: { allowPrivate: read.flag("GENMESH_ALLOW_PRIVATE_REFERENCES") },
    workers: {
      image: read.integer("GENMESH_IMAGE_WORKERS", defaultWorkers, 0, maxWorkers),
      video: read.integer("GENMESH_VIDEO_WORKERS", defaultWorkers, 0, maxWorkers),
      music: read.integer("GENMESH_MUSIC_WORKERS", defaultWorkers, 0, maxWorkers),
    },
    retentionDays: read.integer("GENMESH_RETENTION_DAYS", 30, 0, 36_500),
    alerts: role === "all" || role === "media" ? alertsConfig(read) : noAlerts,
    drainMs: read.integer("GENMESH_DRAIN_MS", defaultDrainMs, 0, 3_600_000),
    logLevel: read.choice("GENMESH_LOG_LEVEL", logLevels, "info"),
    logColours: hasColours(read),
    telemetry: telemetryConfig(read, role),
    secret: secretsOf(env),
  };
}

/** Reads the settings of the operator command. */
export function envToOperatorConfig(env: Env): OperatorConfig {
  const read = envReader(env);
  const dataDir = resolve(read.text("GENMESH_DATA_DIR") ?? ".genmesh");
  return {
    adminToken: token(read, "GENMESH_ADMIN_TOKEN"),
    dataDir,
    peers: Object.fromEntries(
      peerNames.map((name) => [name, peerUrls(read, name)]).filter(([, urls]) => urls?.length),
    ),
    tls: tlsConfig(read),
    stores: () => storesConfig(read, "all", dataDir, true),
    baseUrl: read.text("GENMESH_BASE_URL"),
    apiKey: read.text("GENMESH_API_KEY"),
    secret: secretsOf(env),
  };
}

/** Begins a catalog whose versions are in the database. The file behind it is in force until the first one. */
const storedPrefix = "store:";

/** A file that is named is the master. A single process without one lets its operator change the shipped catalog. */
function catalogConfig(read: EnvReader, role: Role): CatalogConfig {
  const named = read.text("GENMESH_CATALOG");
  if (named === undefined) return { file: shippedCatalog, isStored: role === "all" };
  const isStored = named.startsWith(storedPrefix);
  const path = isStored ? named.slice(storedPrefix.length) : named;
  return { file: path === "" ? shippedCatalog : resolve(path), isStored };
}

/** Variables with this installation's own secrets. No catalog can send them to an upstream. */
const ownSecrets: ReadonlySet<string> = new Set([
  ...["GENMESH_ADMIN_TOKEN", "GENMESH_MESH_TOKEN", "GENMESH_BOOTSTRAP_API_KEY"],
  "GENMESH_SECRETS_KEY",
  ...["GENMESH_DATABASE_URL", "GENMESH_QUEUE_URL", "GENMESH_BLOBS_URL"],
  ...["GENMESH_ALERT_WEBHOOK_URL", "GENMESH_ALERT_WEBHOOK_SECRET", "GENMESH_ALERT_SMTP_URL"],
  "OTEL_EXPORTER_OTLP_HEADERS",
]);

function secretsOf(env: Env): Config["secret"] {
  return (name) => {
    if (isAbsolute(name)) return readKeyFile(name);
    return ownSecrets.has(name) ? undefined : env[name];
  };
}

/** The roles with a public port. */
function needsConsole(role: Role): boolean {
  return role === "all" || role === "gateway";
}

/** Follows the conventions of terminals (https://no-color.org). */
export function hasColours(read: EnvReader): boolean {
  return read.text("NO_COLOR") === undefined && read.text("TERM") !== "dumb";
}

function publicUrl(read: EnvReader): string | undefined {
  const value = read.text("GENMESH_PUBLIC_URL");
  if (value === undefined) return undefined;
  const accepts =
    "must be an absolute http or https URL without query, e.g. https://api.example.com";
  const url = URL.canParse(value)
    ? new URL(value)
    : badVariable("GENMESH_PUBLIC_URL", accepts, value);
  if (!/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    badVariable("GENMESH_PUBLIC_URL", accepts, value);
  }
  return url.href.replace(/\/+$/, "");
}

function trustProxy(read: EnvReader): string[] {
  return read.list("GENMESH_TRUST_PROXY").map((entry) => {
    const [address, bits, ...rest] = entry.split("/");
    const size = isIP(address ?? "") === 4 ? 32 : 128;
    const bitsOk = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= size);
    if (!isIP(address ?? "") || !bitsOk || rest.length > 0) {
      badVariable(
        "GENMESH_TRUST_PROXY",
        "must be addresses or networks, separated by commas",
        entry,
      );
    }
    return entry;
  });
}

/** Each in the form in which a browser sends `Origin`, because they are compared as text: lower case, no default port, no path. */
function corsOrigins(read: EnvReader): string[] {
  const origins = read.list("GENMESH_CORS_ORIGINS");
  if (origins.length === 1 && origins[0] === "*") return origins;
  for (const origin of origins) {
    const url = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@*\s]+$/.test(origin) && URL.canParse(origin);
    const isAsSaid = url && (!/^https?:/.test(origin) || new URL(origin).origin === origin);
    if (isAsSaid) continue;
    badVariable(
      "GENMESH_CORS_ORIGINS",
      "must be * alone, or origins separated by commas, as browsers say them: https://app.example.com",
      origin,
    );
  }
  return origins;
}

/** Most sockets that an operator can set. The public port's other connections stay free for requests. */
const mostSockets = 8_192;
/** Most responses that one socket can have under way: OpenAI's number. */
const mostInFlight = 16;

function webSockets(read: EnvReader): Config["webSockets"] {
  const bounds = {
    most: read.integer("GENMESH_WS_CONNECTIONS", 4_096, 1, mostSockets),
    inFlight: read.integer("GENMESH_WS_IN_FLIGHT", 1, 1, mostInFlight),
  };
  return read.choice("GENMESH_WEBSOCKETS", ["on", "off"], "on") === "on" && bounds;
}

/** The demo account's opening balance. In a mesh, its runner or installer makes that account. */
function bootstrapConfig(read: EnvReader): Config["bootstrap"] {
  return {
    apiKey: bootstrapKey(read),
    usdMicros: read.bigint("GENMESH_BOOTSTRAP_USD_MICROS", 25_000_000n),
    credits: read.bigint("GENMESH_BOOTSTRAP_CREDITS", 10_000n),
  };
}

function bootstrapKey(read: EnvReader): string | undefined {
  const value = read.text("GENMESH_BOOTSTRAP_API_KEY");
  if (value !== undefined && !/^[A-Za-z0-9_-]{20,200}$/.test(value)) {
    badVariable(
      "GENMESH_BOOTSTRAP_API_KEY",
      "must be 20 to 200 characters of A-Z, a-z, 0-9, _ and -",
    );
  }
  return value;
}

/** A single process makes its own tokens. Several processes must get them from outside. */
function tokensConfig(read: EnvReader, role: Role): Config["tokens"] {
  const mesh = meshTokens(read);
  if (role !== "all" && mesh.length === 0) {
    badVariable(
      "GENMESH_MESH_TOKEN",
      `must be set for role ${role}: the same in all of the mesh, ${tokenAccepts}`,
    );
  }
  return { mesh, admin: token(read, "GENMESH_ADMIN_TOKEN") };
}

function meshTokens(read: EnvReader): string[] {
  const tokens = read.list("GENMESH_MESH_TOKEN");
  const isSet = read.text("GENMESH_MESH_TOKEN") !== undefined;
  if (tokens.some((one) => !tokenPattern.test(one)) || (isSet && tokens.length === 0)) {
    badVariable(
      "GENMESH_MESH_TOKEN",
      `must be one or more tokens, separated by commas, each of ${tokenAccepts}`,
    );
  }
  return tokens;
}

const tokenPattern = /^[\x21-\x2b\x2d-\x7e]{16,256}$/;
const tokenAccepts = "16 to 256 visible ASCII characters";

function token(read: EnvReader, name: string): string | undefined {
  const value = read.text(name);
  if (value !== undefined && !tokenPattern.test(value))
    badVariable(name, `must be ${tokenAccepts}`);
  return value;
}
