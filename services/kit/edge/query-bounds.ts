// Refuses a URL whose query is too expensive to parse, before any router sees it. The public port and the gRPC port both check
// it.

/** Parameters of a query. A report names all keys of an account and 100 models, each in a parameter of its own, and a few others. */
export const maxQueryParameters = 1_200;

/**
 * Different names among the parameters. No route reads more than a dozen, and browsers and proxies add a few. New names make a query
 * expensive: JavaScript keeps a table for each object with many names, and a table of all names.
 */
export const maxQueryNames = 64;

/**
 * The place where the query begins, of a URL whose query exceeds these bounds. -1 for other URLs. Routers parse a query before anything
 * else, even before the key. So this check runs before the router, and reads no further than the bounds.
 */
export function overlongQueryAt(url: string): number {
  // Each name but the last takes two characters at least.
  if (url.length <= 2 * maxQueryNames) return -1;
  const at = url.search(/[?#]/);
  if (at < 0) return -1;
  const names = new Set<string>();
  let parameters = 0;
  for (let from = at + 1; from < url.length; ) {
    const ampersand = url.indexOf("&", from);
    const end = ampersand < 0 ? url.length : ampersand;
    const parameter = url.slice(from, end);
    names.add(parameter.split("=", 1)[0] ?? "");
    parameters++;
    if (parameters > maxQueryParameters || names.size > maxQueryNames) return at;
    from = end + 1;
  }
  return -1;
}
