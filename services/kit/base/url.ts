/**
 * Characters of a URL that a caller or an upstream wrote. Signed object-store URLs reach about 2,000, and servers refuse above 8 KiB. A longer text is
 * not even parsed: 64 MiB keep the event loop for up to two seconds.
 */
export const maxUrlCharacters = 8_192;

/** Parses a URL that a caller or an upstream wrote; null for what is none, or is too long. */
export function parseUrl(text: string, base?: string): URL | null {
  return text.length <= maxUrlCharacters ? URL.parse(text, base) : null;
}
