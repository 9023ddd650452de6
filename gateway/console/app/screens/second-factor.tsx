// Sets up a second factor: the code to scan, the field for a code, the recovery codes.

import { encode } from "uqr";
import { CopyButton } from "../kit/copy.tsx";
import { TextField } from "../kit/form.tsx";

/** The secret in an otpauth URI, for an authenticator without a camera. */
export const secretOf = (uri: string) => new URL(uri).searchParams.get("secret") ?? "";

/** Shows a new second factor to be scanned by an authenticator, and asks for a code of it, so that no one is locked out by a bad scan. */
export function NewAuthenticator({
  uri,
  code,
  onCode,
}: {
  uri: string;
  code: string;
  onCode(code: string): void;
}) {
  return (
    <>
      <p>
        Scan this with an authenticator app, for example of your phone or your password manager. Or
        enter its secret there by hand.
      </p>
      <QrCode text={uri} />
      <div class="secret">
        <code class="id">{secretOf(uri)}</code>
        <CopyButton text={secretOf(uri)} />
      </div>
      <CodeField label="Code of the new authenticator" code={code} onCode={onCode} />
    </>
  );
}

/** Asks for six digits of an authenticator. */
export function CodeField({
  label,
  code,
  onCode,
}: {
  label: string;
  code: string;
  onCode(code: string): void;
}) {
  return (
    <TextField
      label={label}
      hint="Six digits, which change every 30 seconds. Each works once."
      name="code"
      autocomplete="one-time-code"
      required
      maxLength={24}
      value={code}
      onValue={onCode}
    />
  );
}

/** Recovery codes, which are shown this once. */
export function RecoveryCodes({ codes }: { codes: readonly string[] }) {
  const text = codes.join("\n");
  return (
    <>
      <p>
        Keep these recovery codes where you find them without your authenticator. Each one takes the
        place of a code once. They are shown this once.
      </p>
      <div class="secret">
        <code class="id recovery-codes">{text}</code>
        <CopyButton text={text} />
      </div>
    </>
  );
}

/** A QR code, black on white in both themes, because cameras expect that. */
function QrCode({ text }: { text: string }) {
  const { size, data } = encode(text, { ecc: "M", border: 2 });
  const dark = data.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
  );
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label="QR code">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join("")} fill="#000" shape-rendering="crispEdges" />
    </svg>
  );
}
