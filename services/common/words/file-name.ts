/** Code points of a file's name; what is longer is cut (the protocol's). */
export const maxFileNameLength = 255;

/** What of a name is not shown; of the signs that join what stands beside them, those that join nothing. Others make words and emoji. */
const unshown =
  /[\p{Cc}\p{Zl}\p{Zp}\ufffd]|(?!(?<=[\p{L}\p{M}\p{S}])[\u200c\u200d](?=[\p{L}\p{M}\p{S}]))\p{Cf}/gu;

/**
 * The name that a caller gave a file, without folders, control characters, direction marks and halves of characters; empty where nothing
 * is left.
 */
export function plainFileName(name: string): string {
  const base = name.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  const clean = base.replace(unshown, "").trim();
  const cut = Array.from(clean).slice(0, maxFileNameLength).join("");
  return cut === "." || cut === ".." ? "" : cut;
}
