// Sends a message to the operator by webhook or by mail. `index.ts` says when.

import { untilAborted } from "#kit/base/abort.ts";
import { createGuardedFetcher, OutsideError } from "#kit/outside/index.ts";
import { signedHeaders } from "#kit/outside/signed.ts";
import { attemptMs, maxAnswerBytes, maxAnswerChars } from "./limits.ts";
import type { Written } from "./message.ts";
import type { AttemptEnd, WayName } from "./way.ts";

/** The ways to send notices to an operator. Undefined: that way is off. */
export interface AlertWays {
  webhook: { url: string; secret: string } | undefined;
  mail: MailConfig | undefined;
}

/** A mail server, and the addresses of the mails. */
export interface MailConfig {
  host: string;
  port: number;
  /** True: TLS from the first byte. False: STARTTLS where the server has it. */
  isTls: boolean;
  /** Is a server without STARTTLS refused? */
  needsTls: boolean;
  login: { user: string; pass: string } | undefined;
  from: string;
  to: readonly string[];
}

/** The end of an attempt, with the receiver's own words. Only the operator who asked for a test sees these. */
export interface SendEnd extends AttemptEnd {
  said: string;
}

/** Sends messages by one way. Never rejects, and ends within {@link attemptMs}. */
export type Send = (message: Written, now: number, signal: AbortSignal) => Promise<SendEnd>;

/** The ways that are configured, each with its sender. */
export function createSenders({ webhook, mail }: AlertWays): ReadonlyMap<WayName, Send> {
  const senders = new Map<WayName, Send>();
  if (webhook) senders.set("webhook", webhookSender(webhook));
  if (mail) senders.set("mail", (message, _, signal) => sendMail(message, mail, signal));
  return senders;
}

/** The operator names the address in the environment, so it may be one of the private network. */
function webhookSender({ url, secret }: NonNullable<AlertWays["webhook"]>): Send {
  const fetcher = createGuardedFetcher({ allowPrivate: true });
  return async ({ messageId, body }, now, signal) => {
    const headers = await signedHeaders({ id: messageId, body }, [secret], now);
    try {
      const exchange = { body, headers, timeoutMs: attemptMs, maxAnswerBytes, signal };
      const status = await fetcher.post(url, exchange);
      return endOf(status >= 200 && status < 300, `${status}`);
    } catch (error) {
      return endOf(false, error instanceof OutsideError ? error.kind : "unreachable");
    }
  };
}

async function sendMail(
  { messageId, subject, text }: Written,
  mail: MailConfig,
  leaving: AbortSignal,
): Promise<SendEnd> {
  const { from, to } = mail;
  const { createTransport } = await import("nodemailer");
  const transport = createTransport(transportOf(mail));
  const domain = from.slice(from.lastIndexOf("@") + 1);
  const headers = { from, to: [...to], subject, text, messageId: `<${messageId}@${domain}>` };
  const limit = AbortSignal.any([leaving, AbortSignal.timeout(attemptMs)]);
  try {
    const { response } = await untilAborted(transport.sendMail(headers), limit);
    return endOf(true, /^\d{3}/.exec(response)?.[0] ?? "250", response);
  } catch (error) {
    if (limit.aborted) return endOf(false, "timeout");
    const { code, responseCode, message } = error as Error & {
      code?: string;
      responseCode?: number;
    };
    return endOf(false, `${responseCode ?? code ?? "failed"}`, withoutSecret(message, mail));
  } finally {
    transport.close();
  }
}

function transportOf({ host, port, isTls, needsTls, login }: MailConfig) {
  const stepMs = attemptMs / 2;
  return {
    ...{ host, port, secure: isTls, requireTLS: needsTls },
    ...(login ? { auth: login } : {}),
    ...{ dnsTimeout: stepMs, connectionTimeout: stepMs, greetingTimeout: stepMs },
    socketTimeout: stepMs,
    ...{ disableFileAccess: true, disableUrlAccess: true },
  };
}

/** A server might repeat what it was sent. */
function withoutSecret(said: string, { login }: MailConfig): string {
  if (!login) return said;
  const plain = Buffer.from(login.pass).toString("base64");
  return said.replaceAll(login.pass, "…").replaceAll(plain, "…");
}

function endOf(isDelivered: boolean, answer: string, said = answer): SendEnd {
  return { isDelivered, answer, said: said.slice(0, maxAnswerChars) };
}
