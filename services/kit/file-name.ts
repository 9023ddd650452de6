/** Code points of a file's name; what is longer is cut (the protocol's). */
export const maxFileNameLength = 255;

/**
 * The name that a caller gave a file, without folders, control characters, direction marks and halves of characters; empty where nothing
 * is left.
 */
export function plainFileName(name: string): string {
  const base = name.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  const clean = base.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/gu, "").trim();
  const cut = Array.from(clean).slice(0, maxFileNameLength).join("");
  return cut === "." || cut === ".." ? "" : cut;
}
