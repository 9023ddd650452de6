import { useState } from "preact/hooks";
import { useApi } from "../hooks.ts";
import { ErrorText, Waiting } from "../kit/states.tsx";
import { Fact, When } from "../kit/values.tsx";

/** A file's own words about its origin. */
interface FileOrigin {
  /** `none`: it has no manifest. */
  manifest: "none" | "unreadable" | "read";
  generator: string | null;
  signer: string | null;
  issuer: string | null;
  madeByAi: boolean;
  madeAt: string | null;
}

/** A file's own words about its origin, read when they are opened. `path`: the file's below `/v1`. */
export function Origin({ path }: { path: string }) {
  const [isOpen, setOpen] = useState(false);
  const { data, error } = useApi<FileOrigin>(isOpen ? `${path}/origin` : null);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Content credentials</summary>
      <ErrorText error={error} />
      {isOpen && !data && !error && <Waiting lines={2} />}
      {data && <Words of={data} />}
    </details>
  );
}

function Words({
  of: { manifest, madeByAi, generator, signer, issuer, madeAt },
}: {
  of: FileOrigin;
}) {
  if (manifest === "none") return <p class="fine">The file has no content credentials.</p>;
  if (manifest === "unreadable") return <p class="fine">It has a manifest that cannot be read.</p>;
  return (
    <>
      <dl class="facts">
        <Fact name="Made by AI">{madeByAi ? "yes" : "it does not say so"}</Fact>
        <Fact name="Made with">{generator ?? "not said"}</Fact>
        <Fact name="Made">
          <When at={madeAt} style="second" never="not said" />
        </Fact>
        <Fact name="Signed by">
          {signer ?? "not said"}
          {issuer && `, vouched for by ${issuer}`}
        </Fact>
      </dl>
      <p class="fine muted">These are the file’s own words. Its signature is not checked here.</p>
    </>
  );
}
