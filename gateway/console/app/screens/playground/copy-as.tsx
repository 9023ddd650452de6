import { useState } from "preact/hooks";
import { Code } from "../../kit/copy.tsx";
import { Segments } from "../../kit/form.tsx";
import { toast } from "../../kit/toast.tsx";
import { codeOf, type Language, type Snippet } from "./snippets.ts";

const languages: { value: Language; label: string }[] = [
  { value: "curl", label: "curl" },
  { value: "python", label: "Python" },
  { value: "typescript", label: "TypeScript" },
];

/** The request of the form as code, and a link that opens the form with its settings. */
export function CopyAs({ snippet, link }: { snippet: Snippet; link: string }) {
  const [language, setLanguage] = useState<Language>("curl");
  return (
    <section class="section" aria-label="This request elsewhere">
      <div class="section-head">
        <h2>This request as code</h2>
        <div class="row">
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
              toast("The link is copied. It opens these settings for whoever may sign in.");
            }}
          >
            Copy link to these settings
          </button>
        </div>
      </div>
      <Code label={`The request in ${language}`} text={codeOf(language, snippet)} />
    </section>
  );
}
