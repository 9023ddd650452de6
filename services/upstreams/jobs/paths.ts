// Makes the URL of a step of a declaration. A value from an answer may not lead it away from the upstream's own origins.

import { parseUrl } from "#kit/base/url.ts";
import type { Step } from "./declaration.ts";

/** A path cannot be made of what an upstream answered, or it would lead elsewhere. */
export class PathError extends Error {
  override readonly name = "PathError";
}

/** The values that a path may name. */
export type PathValues = Readonly<Record<string, string>>;

const methodsOf = { get: "GET", post: "POST", put: "PUT", delete: "DELETE" } as const;

/** The path of a step of any method. "": the step has none. */
export function pathOf({ get, post, put, delete: remove }: Step): string {
  return get ?? post ?? put ?? remove ?? "";
}

/** The method and the path of a step. A declaration is checked to have exactly one. */
export function routeOf(step: Step): { method: "GET" | "POST" | "PUT" | "DELETE"; path: string } {
  for (const name of ["get", "post", "put", "delete"] as const) {
    const path = step[name];
    if (path !== undefined) return { method: methodsOf[name], path };
  }
  throw new PathError("the upstream's declaration has no path");
}

const named = /\$\{([A-Za-z]+)(:path)?\}/g;
/** A path that is one value: a URL that an answer gave. */
const wholly = /^\$\{([A-Za-z]+)\}$/;

/** The names in a path. */
export function namesIn(path: string): string[] {
  return [...path.matchAll(named)].map(([, name = ""]) => name);
}

/** The name whose value is the whole URL. Undefined where the path is below the base URL. */
export function urlName(path: string): string | undefined {
  return wholly.exec(path)?.[1];
}

/**
 * A path with its values, percent-encoded. `${id:path}` keeps slashes. Throws a {@link PathError}.
 */
export function fillPath(path: string, values: PathValues): string {
  const filled = path.replace(named, (_, name: string, isPath?: string) => {
    const value = values[name];
    if (value === undefined) throw new PathError("the upstream's answer names no task");
    return isPath === undefined
      ? encodeURIComponent(value)
      : value.split("/").map(partOf).join("/");
  });
  const [before = ""] = filled.split("?");
  if (before.split("/").some(isDots))
    throw new PathError("the upstream's answer names no usable task");
  return filled;
}

function partOf(part: string): string {
  if (part === "" || isDots(part))
    throw new PathError("the upstream's answer names no usable task");
  return encodeURIComponent(part);
}

function isDots(part: string): boolean {
  return part === "." || part === "..";
}

/** Is the URL in the origin of the base URL, or in one of `origins`? `https://*.example.com` is every host below that name. */
export function isOwnOrigin(url: URL, baseUrl: string, origins: readonly string[]): boolean {
  if (url.username !== "" || url.password !== "") return false;
  if (url.origin === new URL(baseUrl).origin) return true;
  return origins.some((origin) => {
    if (!origin.startsWith("https://*.")) return new URL(origin).origin === url.origin;
    const { hostname, port } = new URL(origin.replace("*.", ""));
    return url.protocol === "https:" && url.port === port && url.hostname.endsWith(`.${hostname}`);
  });
}

/** The absolute URL of a step. Throws a {@link PathError}. */
export function urlOfStep(
  path: string,
  values: PathValues,
  { baseUrl, origins }: { baseUrl: string; origins: readonly string[] },
): string {
  const name = urlName(path);
  if (name === undefined) return `${baseUrl}${fillPath(path, values)}`;
  const url = parseUrl(values[name] ?? "");
  if (!url || !isOwnOrigin(url, baseUrl, origins)) {
    throw new PathError("the upstream names a place that the catalog does not");
  }
  return url.href;
}
