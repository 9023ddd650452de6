// Parses URLs that were written elsewhere, without blocking the event loop by long ones.

/**
 * Characters of a URL that a caller or an upstream wrote. Signed object-store URLs reach about 2,000, and servers refuse above 8
 * KiB. A longer text is not even parsed: 64 MiB block the event loop for up to two seconds.
 */
export const maxUrlCharacters = 8_192;

/** Parses a URL that a caller or an upstream wrote. Null for a text that is no URL, or is too long. */
export function parseUrl(text: string, base?: string): URL | null {
  return text.length <= maxUrlCharacters ? URL.parse(text, base) : null;
}
