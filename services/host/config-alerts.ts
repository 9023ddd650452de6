// Reads the environment's variables for notices to the operator: the webhook, and the mail server.

import { isOutsideUrl, isWebPort } from "#kit/outside/url.ts";
import type { AlertWays, MailConfig } from "../notices/index.ts";
import { badVariable, type EnvReader } from "./env.ts";
import { readSecretFile } from "./read-secret-file.ts";

const names = {
  url: "GENMESH_ALERT_WEBHOOK_URL",
  secret: "GENMESH_ALERT_WEBHOOK_SECRET",
  secretFile: "GENMESH_ALERT_WEBHOOK_SECRET_FILE",
  smtp: "GENMESH_ALERT_SMTP_URL",
  from: "GENMESH_ALERT_MAIL_FROM",
  to: "GENMESH_ALERT_MAIL_TO",
} as const;

/** Most addresses that get a mail. Behind one address may be a list of people. */
const mostReceivers = 20;

/** Reads the ways by which this process sends notices to the operator. */
export function alertsConfig(read: EnvReader): AlertWays {
  return { webhook: webhookConfig(read), mail: mailConfig(read) };
}

function webhookConfig(read: EnvReader): AlertWays["webhook"] {
  const url = read.text(names.url);
  if (url === undefined) {
    for (const name of [names.secret, names.secretFile]) {
      if (read.text(name) !== undefined) badVariable(names.url, `must be set beside ${name}`);
    }
    return undefined;
  }
  // It is not repeated, because it may hold a secret of its receiver.
  if (!isOutsideUrl(url) || !isWebPort(new URL(url))) {
    badVariable(names.url, "must be an http or https URL without user and password");
  }
  const file = read.text(names.secretFile);
  const own = read.text(names.secret);
  if (file !== undefined && own !== undefined) {
    badVariable(names.secretFile, `must not be set beside ${names.secret}`);
  }
  const secret = file === undefined ? own : readSecretFile(names.secretFile, file);
  // 24 to 64 bytes, as Standard Webhooks asks.
  const bytes = /^whsec_([A-Za-z0-9+/]{32,86}={0,2})$/.exec(secret ?? "")?.[1];
  if (secret === undefined || bytes === undefined) {
    const name = file === undefined ? names.secret : names.secretFile;
    return badVariable(name, "must be whsec_ and the base64 of 24 to 64 bytes, beside the URL");
  }
  return { url, secret };
}

function mailConfig(read: EnvReader): MailConfig | undefined {
  const url = read.text(names.smtp);
  if (url === undefined) {
    for (const name of [names.from, names.to]) {
      if (read.text(name) !== undefined) badVariable(names.smtp, `must be set beside ${name}`);
    }
    return undefined;
  }
  const to = read.list(names.to);
  const isSound = to.length > 0 && to.length <= mostReceivers && to.every(isAddress);
  if (!isSound) {
    badVariable(names.to, `must be 1 to ${mostReceivers} mail addresses, separated by commas`);
  }
  const from = read.text(names.from);
  if (from === undefined || !isAddress(from))
    return badVariable(names.from, "must be a mail address");
  return { ...mailServer(url), from, to };
}

const isAddress = (text: string) => /^[^\s@<>",;:()[\]\\]{1,64}@[A-Za-z0-9.-]{1,253}$/.test(text);

/** The server in an `smtp:` or `smtps:` URL. It is never repeated, because it has the password. */
function mailServer(
  text: string,
): Pick<MailConfig, "host" | "port" | "isTls" | "needsTls" | "login"> {
  const accepts = "must be smtp:// or smtps://, with USER:PASSWORD@ where needed, then HOST:PORT";
  const url = /^smtps?:\/\/[^\s\\]+$/.test(text) ? URL.parse(text) : null;
  const isPlain = url && /^\/?$/.test(url.pathname) && !url.search && !url.hash && url.hostname;
  if (!isPlain || (url.username === "") !== (url.password === "")) badVariable(names.smtp, accepts);
  const isTls = url.protocol === "smtps:";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  let login: MailConfig["login"];
  try {
    const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    login = user === "" ? undefined : { user, pass };
  } catch {
    return badVariable(names.smtp, `${accepts}, each part percent-encoded`);
  }
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
  return {
    host,
    port: url.port === "" ? (isTls ? 465 : 587) : Number(url.port),
    isTls,
    needsTls: !isTls && login !== undefined && !isHere,
    login,
  };
}
