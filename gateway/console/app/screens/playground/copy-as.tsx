import { useMemo, useState } from "preact/hooks";
import { Code } from "../../kit/copy.tsx";
import { Segments } from "../../kit/form.tsx";
import { toast } from "../../kit/toast.tsx";
import { codeOf, type Language, type Snippet } from "./snippets.ts";

const languages: { value: Language; label: string }[] = [
  { value: "curl", label: "curl" },
  { value: "python", label: "Python" },
  { value: "typescript", label: "TypeScript" },
];

/** APIs in which the same request can be sent, by their paths. */
const apis: Partial<Record<Snippet["path"], string>> = {
  "/responses": "Responses",
  "/chat/completions": "Chat Completions",
  "/messages": "Messages",
};

/** The request of the form as code, and a link that opens the form with its settings. `others`: the same request in other APIs. */
export function CopyAs({
  snippet,
  others = [],
  link,
}: {
  snippet: Snippet;
  others?: readonly Snippet[];
  link: string;
}) {
  const [language, setLanguage] = useState<Language>("curl");
  const [path, setPath] = useState("");
  const shown = others.find((other) => other.path === path) ?? snippet;
  const code = useMemo(() => codeOf(language, shown), [language, shown]);
  return (
    <section class="section" aria-label="This request elsewhere">
      <div class="section-head">
        <h2>This request as code</h2>
        <div class="row">
          {others.length > 0 && (
            <Segments
              label="API"
              value={shown.path}
              onValue={setPath}
              choices={[snippet, ...others].map((one) => ({
                ...{ value: one.path, label: apis[one.path] ?? one.path },
              }))}
            />
          )}
          <Segments
            label="Language"
            value={language}
            onValue={(value) => setLanguage(value as Language)}
            choices={languages}
          />
          <button
            type="button"
            class="small"
            onClick={async () => {
              await navigator.clipboard.writeText(location.origin + link);
              toast("The link is copied. It opens these settings for anyone who may sign in.");
            }}
          >
            Copy link to these settings
          </button>
        </div>
      </div>
      <Code label={`The request in ${language}`} text={code} />
    </section>
  );
}
