import { count } from "../../format.ts";
import { Notice } from "../../kit/states.tsx";
import { Badge } from "../../kit/values.tsx";
import type { CatalogCheck } from "./types.ts";

/** The findings about a text: its faults, or what it would change. */
export function Checked({ check }: { check: CatalogCheck }) {
  if (!check.ok) {
    return (
      <div class="stack after" role="status">
        <Notice tone="warn">
          <strong>It would be refused. The catalog in force would stay.</strong>
        </Notice>
        <ul class="list">
          {check.faults.map((fault) => (
            <li key={fault.path + fault.message}>
              <code>{fault.path || "the file"}</code>
              <p>{fault.message}</p>
            </li>
          ))}
        </ul>
      </div>
    );
  }
  return (
    <div class="stack after" role="status">
      <Notice tone="good">
        <strong>It is well-formed: {count(check.models)} models.</strong>
        <p>
          {check.changes.length === 0
            ? "It offers the same as what is in force."
            : `It changes ${check.changes.length} of them.`}
          {check.isShortened && " More fields differ than are shown."}
        </p>
      </Notice>
      {check.changes.length > 0 && (
        <ul class="list">
          {check.changes.map((change) => (
            <li key={change.model}>
              <p class="row">
                <code>{change.model}</code>
                <Badge tone={tones[change.change]}>{change.change}</Badge>
              </p>
              {change.fields.map((field) => (
                <p class="sub diff" key={field.path}>
                  <code>{field.path}</code> <del>{shown(field.before)}</del>{" "}
                  <ins>{shown(field.after)}</ins>
                </p>
              ))}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const tones = { added: "good", removed: "bad", changed: "warn" } as const;
const shown = (value: unknown) => (value === null ? "nothing" : JSON.stringify(value));
