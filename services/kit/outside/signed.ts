// Signs the messages that webhooks and notices to operators send, so that their receivers can check the sender.

/**
 * The headers of Standard Webhooks for a message, with a signature by each secret ("whsec_" and base64). `now` is ms since the epoch.
 */
export async function signedHeaders(
  { id, body }: { id: string; body: string },
  secrets: readonly string[],
  now: number,
): Promise<Record<string, string>> {
  // Loaded at the first message, because most processes never send one.
  const { Webhook } = await import("standardwebhooks");
  const at = new Date(now);
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now / 1_000)),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(" "),
  };
}
