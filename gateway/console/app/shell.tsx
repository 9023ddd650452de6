// The frame around every screen.

import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary } from "preact-iso/lazy";
import { useLocation } from "preact-iso/router";
import { isOutdated, watchBuild } from "./build-check.ts";
import { localZone } from "./format.ts";
import { GoTo, usePalette } from "./go-to.tsx";
import { useAction } from "./hooks.ts";
import { Segments } from "./kit/form.tsx";
import { Icon } from "./kit/icon.tsx";
import { ErrorText, Notice } from "./kit/states.tsx";
import { Toasts } from "./kit/toast.tsx";
import { groups, isOperator } from "./navigation.ts";
import { rightsOf } from "./scopes.ts";
import { Screens } from "./screens.tsx";
import { SecretDialog } from "./secret-dialog.tsx";
import { session } from "./session.ts";
import { signOut } from "./session-calls.ts";
import { Brand } from "./sign-in.tsx";
import { chooseTheme, type Theme, theme } from "./theme-choice.ts";

/** The frame of every screen: the links to the others, the signed-in user, the theme. */
export function Shell() {
  const { url } = useLocation();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isLoading, setLoading] = useState(false);
  const { open, palette } = usePalette();
  // The menu closes when the reader has gone to another screen.
  useEffect(() => setMenuOpen(false), [url]);
  useEffect(watchBuild, []);
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <a class="home" href="/console/">
          <Brand />
        </a>
        <button
          type="button"
          class="menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="side"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name={isMenuOpen ? "close" : "menu"} />
          Menu
        </button>
      </header>
      <aside id="side" aria-label="Console" class={isMenuOpen ? "side is-open" : "side"}>
        <div>
          <a class="home" href="/console/">
            <Brand />
          </a>
          <GoTo onOpen={open} />
          <Navigation />
          <Identity />
        </div>
      </aside>
      <div class={isLoading ? "loading-line is-on" : "loading-line"} />
      <main id="content" tabIndex={-1}>
        {isOutdated.value && <NewBuild />}
        <ErrorBoundary>
          <Screens onLoadStart={() => setLoading(true)} onLoadEnd={() => setLoading(false)} />
        </ErrorBoundary>
      </main>
      {/* Outside the menu, which a narrow window hides with all that is in it. */}
      {palette}
      <SecretDialog />
      <Toasts />
    </div>
  );
}

/** A reload would lose a form that is half written, so the reader chooses when. */
function NewBuild() {
  return (
    <Notice>
      <div class="row spread">
        A new version of the console is available.
        <button type="button" class="small" onClick={() => location.reload()}>
          Load it
        </button>
      </div>
    </Notice>
  );
}

function Navigation() {
  const { path } = useLocation();
  // An operator's console begins with the accounts.
  const here = path === "/console" && isOperator() ? "/console/operator/accounts" : path;
  const isHere = (place: string) =>
    place === "/console/" ? here === "/console" : `${here}/`.startsWith(`${place}/`);
  return (
    <nav aria-label="Screens">
      {groups().map(({ title, places }) => (
        <div class="nav-group" key={title}>
          <h2>{title}</h2>
          <ul>
            {places.map((place) => (
              <li key={place.path}>
                <a href={place.path} aria-current={isHere(place.path) ? "page" : undefined}>
                  <Icon name={place.icon} />
                  {place.title}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function Identity() {
  const action = useAction(signOut);
  const { value } = session;
  if (!value) return null;
  const operator = value.operatorName ?? value.role;
  const who = value.keyId === null ? operator : value.keyName || "Key without a name";
  return (
    <div class="identity">
      <Segments
        label="Theme"
        value={theme.value}
        onValue={(chosen) => chooseTheme(chosen as Theme)}
        choices={[
          { value: "system", label: <ThemeLabel icon="system" text="As the system" /> },
          { value: "light", label: <ThemeLabel icon="sun" text="Light" /> },
          { value: "dark", label: <ThemeLabel icon="moon" text="Dark" /> },
        ]}
      />
      <p class="fine muted">
        Times are in {localZone}
        {localZone === "UTC" ? "." : ", unless they say UTC."}
      </p>
      <p class="who">
        <strong>{who}</strong>
        {value.accountId && <span class="fine">{value.accountId}</span>}
      </p>
      {value.keyId !== null && (
        <p class="fine muted">
          May use {rightsOf(value.scopes)}
          {value.models.length > 0 && `, of the models ${value.models.join(", ")}`}
        </p>
      )}
      <ErrorText error={action.error} />
      <button type="button" class="small" disabled={action.isBusy} onClick={() => action.run()}>
        Sign out
      </button>
    </div>
  );
}

function ThemeLabel({ icon, text }: { icon: string; text: string }) {
  return (
    <span title={text}>
      <Icon name={icon} />
      <span class="unseen">{text}</span>
    </span>
  );
}
