import type { Document } from "./media-world.ts";
import type { World } from "./world.ts";

/** The operators' token in such a world: `GENMESH_ADMIN_TOKEN`. */
export const adminToken = "the-operator-of-these-tests-and-no-other";

export interface Answer {
  status: number;
  json: Document;
  code: string | undefined;
}

/** Sends requests like the console's own page. */
export interface OperatorSession {
  readonly origin: string;
  /** The cookie of the last sign-in. A test may set it. */
  cookie: string;
  /** The path is below `/console/api`. With `secret` the request has the token again. */
  ask(
    method: string,
    path: string,
    body?: object,
    options?: { secret?: string; as?: string },
  ): Promise<Answer>;
  /** The path is below `/console/api/admin`. */
  get(path: string): Promise<Answer>;
  post(path: string, body: object, options?: { secret?: string }): Promise<Answer>;
  patch(path: string, body: object, options?: { secret?: string }): Promise<Answer>;
  /** Signs the operator in. */
  signIn(): Promise<void>;
}

export function operatorSession(world: World): OperatorSession {
  const origin = new URL(world.baseUrl).origin;
  const session: OperatorSession = {
    origin,
    cookie: "",
    async ask(method, path, body, { secret = adminToken, as = session.cookie } = {}) {
      const response = await fetch(`${origin}/console/api${path}`, {
        method,
        headers: {
          origin,
          "sec-fetch-site": "same-origin",
          ...(as === "" ? {} : { cookie: as }),
          ...(secret === "" ? {} : { "x-console-secret": secret }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = text === "" ? undefined : JSON.parse(text);
      const set = response.headers.get("set-cookie")?.split(";")[0];
      if (path === "/session" && set !== undefined) session.cookie = set;
      return { status: response.status, json, code: json?.error?.code };
    },
    get: (path) => session.ask("GET", `/admin${path}`),
    post: (path, body, options) => session.ask("POST", `/admin${path}`, body, options),
    patch: (path, body, options) => session.ask("PATCH", `/admin${path}`, body, options),
    async signIn() {
      const { status } = await session.ask("POST", "/session", { secret: adminToken });
      if (status !== 201) throw new Error(`the operator's sign-in was answered ${status}`);
    },
  };
  return session;
}
