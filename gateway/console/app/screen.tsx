// Loads the code of a screen when the reader goes there, and tries again where that fails.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import lazy from "preact-iso/lazy";
import { checkBuild, isOutdated } from "./build-check.ts";
import { useAction, useReloading } from "./hooks.ts";
import { Page } from "./kit/page.tsx";

type Load = () => Promise<ComponentType>;

/**
 * A screen whose code is loaded when the reader goes there. Where that fails, the screen says so and is tried again. Each try asks twice:
 * where two gateways take turns, and one of them has the code, one of the two requests finds it.
 */
export function screen(loadOnce: Load) {
  const load = () => loadOnce().catch(loadOnce);
  return lazy((): Promise<ComponentType> => load().catch(() => () => <NotLoaded load={load} />));
}

/**
 * In place of a screen whose code could not be fetched: the service was away, or has another build without that code. While gateways are
 * replaced, one of them may still have it, so it is tried again by itself, too.
 */
function NotLoaded({ load }: { load: Load }) {
  const [loaded, setLoaded] = useState<{ Screen?: ComponentType }>({});
  const retry = async () => {
    try {
      setLoaded({ Screen: await load() });
    } catch {
      await checkBuild();
    }
  };
  const { Screen } = loaded;
  const pressed = useAction(retry);
  useReloading(!Screen, retry);
  // The reader may come here again when the service is back.
  useEffect(() => void retry(), []);
  if (Screen) return <Screen />;
  return (
    <Page title="This screen could not be loaded">
      <div class="error" role="alert">
        <p>
          {isOutdated.value
            ? "The service has a newer version of the console. Reload the page to use it: forms of the playground and conversations stay."
            : "The service could not be reached. It is tried again by itself. Check your connection."}
        </p>
        <div class="row">
          <button
            type="button"
            class={isOutdated.value ? undefined : "primary"}
            disabled={pressed.isBusy}
            onClick={() => pressed.run()}
          >
            Try again
          </button>
          <button
            type="button"
            class={isOutdated.value ? "primary" : undefined}
            onClick={() => location.reload()}
          >
            Reload the page
          </button>
        </div>
      </div>
    </Page>
  );
}
