import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";

/** An answer of the console. */
export interface ConsoleAnswer {
  status: number;
  headers: Record<string, string>;
  cookies: string[];
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test reads of it, it checks.
  json: any;
}

/** A request whose headers are all sent unchanged, because most decisions depend on browsers' headers. */
export interface ConsoleRequest {
  method?: string;
  headers?: Record<string, string>;
  cookie?: string | undefined;
  /** JSON, unless it is a text or bytes. */
  body?: unknown;
}

/**
 * Sends a request to a gateway, by its port on this machine, or by its origin elsewhere. For the latter it looks like a tunnel of this
 * machine, because plain HTTP allows sessions only on the loopback. Each request has a connection of its own.
 */
export function askConsole(
  at: number | URL,
  path: string,
  { method = "GET", headers = {}, cookie, body }: ConsoleRequest = {},
): Promise<ConsoleAnswer> {
  const isPlain = typeof body === "string" || body instanceof Uint8Array || body === undefined;
  const bytes = isPlain ? body : JSON.stringify(body);
  const isTls = typeof at !== "number" && at.protocol === "https:";
  const target =
    typeof at === "number"
      ? { host: "127.0.0.1", port: at }
      : { host: at.hostname, port: at.port || (isTls ? 443 : 80) };
  return new Promise((resolve, reject) => {
    const request = (isTls ? httpsRequest : httpRequest)(
      {
        ...target,
        path,
        method,
        agent: false,
        headers: {
          ...(typeof at === "number" || isTls ? {} : { host: `localhost:${target.port}` }),
          ...(bytes === undefined ? {} : { "content-type": "application/json" }),
          ...(cookie === undefined ? {} : { cookie }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const answer = Buffer.concat(chunks).toString();
          const isJson = /json/.test(response.headers["content-type"] ?? "");
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers as Record<string, string>,
            cookies: response.headers["set-cookie"] ?? [],
            text: answer,
            json: isJson && answer !== "" ? JSON.parse(answer) : undefined,
          });
        });
      },
    );
    request.on("error", reject);
    request.end(bytes);
  });
}

/** Chromium's header for requests of the console's own page. */
export const ownPage = { "sec-fetch-site": "same-origin" };

/** Signs in. Answers the cookie in the form in which it is sent back. */
export async function signIn(
  at: number | URL,
  secret: string,
  given: ConsoleRequest = {},
): Promise<string> {
  const answer = await askConsole(at, "/console/api/session", {
    method: "POST",
    body: { secret },
    ...given,
    headers: { ...ownPage, ...given.headers },
  });
  if (answer.status !== 201) throw new Error(`${answer.status}: ${answer.text}`);
  return answer.cookies[0]?.split(";", 1)[0] ?? "";
}
