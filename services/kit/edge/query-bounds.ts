/** Parameters of a query: a report names all keys of an account and 100 models, each one by itself, and a few others. */
export const maxQueryParameters = 1_200;

/**
 * Different names among them: no route reads more than a dozen, and browsers and proxies add a few. New names are what makes a
 * query costly: JavaScript keeps a table for each object that has many, and each name in a table of its own.
 */
export const maxQueryNames = 64;

/**
 * Where the query begins of a URL that has more than that; -1 where it has not. Routers parse a query before anything else, the
 * key included, so this is to be asked before them; it looks no further than the bounds.
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
