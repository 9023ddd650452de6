// Finds any screen or thing by a few letters. `go-to.tsx` loads it when it is first opened.

import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { call } from "./api.ts";
import { Dialog } from "./kit/dialog.tsx";
import { modelKinds } from "./model-kinds.ts";
import { groups, isOperator } from "./navigation.ts";
import { may, session } from "./session.ts";
import { chooseTheme, type Theme } from "./theme-choice.ts";
import type { List, Model } from "./types.ts";

/** A place or an action that the reader may choose. */
interface Choice {
  title: string;
  /** The kind of choice, in a word or two. */
  kind: string;
  /** The address of a place, or the action. */
  to: string | (() => void);
}

/** The models, which are asked for once a page. */
let models: Promise<readonly Choice[]> | undefined;
// Another key may sign in to this page, and has others.
session.subscribe((value) => {
  if (!value) models = undefined;
});

/** Any screen, model, request, job or file, by a few letters of its name or by its id. Ctrl and K open it. */
export function Palette({ onClose }: { onClose(): void }) {
  const { route } = useLocation();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [known, setKnown] = useState<readonly Choice[]>([]);
  useEffect(() => {
    let isOpen = true;
    models ??= choicesOfModels();
    models.then((choices) => isOpen && setKnown(choices));
    return () => {
      isOpen = false;
    };
  }, []);
  const found = choicesFor(text, known).slice(0, mostShown);
  const chosen = Math.min(at, found.length - 1);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    if (typeof choice.to === "string") route(choice.to);
    else choice.to();
  };
  return (
    <Dialog title="Go to" wide onClose={onClose}>
      <div class="stack palette">
        <input
          // biome-ignore lint/a11y/noAutofocus: the reader opened it to type.
          autoFocus
          role="combobox"
          aria-label="A screen, a model, or an id"
          aria-expanded="true"
          aria-controls="palette"
          aria-activedescendant={found[chosen] && `palette-${chosen}`}
          placeholder="A screen, a model, or an id"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            if (event.isComposing) return;
            const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
            const step = steps[event.key];
            if (event.key === "Enter") choose(found[chosen]);
            else if (step === undefined) return;
            else setAt((chosen + step + found.length) % Math.max(1, found.length));
            event.preventDefault();
          }}
        />
        <Found {...{ found, chosen }} onChoose={choose} />
        {found.length === 0 && <p class="muted">Nothing has this name.</p>}
      </div>
    </Dialog>
  );
}

function Found({
  found,
  chosen,
  onChoose,
}: {
  found: readonly Choice[];
  chosen: number;
  onChoose(choice: Choice): void;
}) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected='true']")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div ref={list} id="palette" role="listbox" aria-label="Found" tabIndex={-1}>
      {found.map((choice, place) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field above takes the keys.
        <div
          key={`${choice.kind} ${choice.title}`}
          id={`palette-${place}`}
          role="option"
          tabIndex={-1}
          aria-selected={place === chosen}
          onClick={() => onChoose(choice)}
        >
          <span>{choice.title}</span>
          <span class="fine muted">{choice.kind}</span>
        </div>
      ))}
    </div>
  );
}

/** Choices that fit into a window without much scrolling. */
const mostShown = 12;

function choicesFor(text: string, known: readonly Choice[]): Choice[] {
  const words = text.trim().toLowerCase().split(/\s+/);
  const fits = ({ title, kind }: Choice) =>
    words.every((word) => `${title} ${kind}`.toLowerCase().includes(word));
  return [...choicesOfId(text.trim()), ...[...places(), ...known, ...themes()].filter(fits)];
}

/** Screens by the beginning of an id. */
const ofRequests = (place: string) =>
  Object.fromEntries(["req", "resp", "chatcmpl", "msg", "speech"].map((one) => [one, place]));
const placesOfKeys: Readonly<Record<string, string>> = {
  job: "jobs?id=",
  file: "files?id=",
  ...ofRequests("requests?id="),
};
const placesOfOperators: Readonly<Record<string, string>> = {
  job: "operator/jobs?id=",
  acct: "operator/accounts/",
  key: "operator/keys?query=",
  ...ofRequests("operator/requests?id="),
};

/** The screen that shows the thing with this id. */
function choicesOfId(id: string): Choice[] {
  const [, kind = ""] = /^([a-z]+)[_-]\S{4,}$/.exec(id) ?? [];
  const place = (isOperator() ? placesOfOperators : placesOfKeys)[kind];
  if (!place) return [];
  return [{ title: id, kind: "Open by id", to: `/console/${place}${encodeURIComponent(id)}` }];
}

function places(): Choice[] {
  return groups().flatMap(({ title: kind, places: all }) =>
    all.map(({ title, path }) => ({ title, kind, to: path })),
  );
}

async function choicesOfModels(): Promise<readonly Choice[]> {
  if (isOperator() || !may("models")) return [];
  const answer = await call<List<Model>>("/models").catch(() => undefined);
  if (!answer) models = undefined;
  return (answer?.data ?? []).map(({ id, name, kind }) => ({
    title: name || id,
    kind: `Try ${modelKinds.find(({ value }) => value === kind)?.label ?? kind}: ${id}`,
    to: `/console/playground?kind=${kind}&model=${encodeURIComponent(id)}`,
  }));
}

function themes(): Choice[] {
  const names: [Theme, string][] = [
    ["light", "Light theme"],
    ["dark", "Dark theme"],
    ["system", "Theme of the system"],
  ];
  return names.map(([theme, title]) => ({ title, kind: "Theme", to: () => chooseTheme(theme) }));
}
