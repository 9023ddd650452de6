// Cleans the name that a caller gives a file, before it is stored or shown.

/** Code points of a file's name. A longer one is cut, as the API's contract says. */
export const maxFileNameLength = 255;

/** The characters of a name that are not shown. Joining signs are among them where they join nothing. Others make words and emoji. */
const unshown =
  /[\p{Cc}\p{Zl}\p{Zp}\ufffd]|(?!(?<=[\p{L}\p{M}\p{S}])[\u200c\u200d](?=[\p{L}\p{M}\p{S}]))\p{Cf}/gu;

/**
 * A caller's name for a file, without folders, control characters, direction marks and half characters. Empty where nothing is left.
 */
export function plainFileName(name: string): string {
  const base = name.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  const clean = base.replace(unshown, "").trim();
  const cut = Array.from(clean).slice(0, maxFileNameLength).join("");
  return cut === "." || cut === ".." ? "" : cut;
}
