import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import lazy from "preact-iso/lazy";
import { checkBuild, isOutdated } from "./build-check.ts";
import { Page } from "./kit/page.tsx";

type Load = () => Promise<ComponentType>;

/** A screen whose code is loaded when the reader goes there. Where that fails, the screen says so and offers another try. */
export function screen(load: Load) {
  return lazy((): Promise<ComponentType> => load().catch(() => () => <NotLoaded load={load} />));
}

/** In place of a screen whose code could not be fetched: the service was away, or it has a newer build without that code. */
function NotLoaded({ load }: { load: Load }) {
  const [loaded, setLoaded] = useState<{ Screen?: ComponentType }>({});
  const [isBusy, setBusy] = useState(false);
  const retry = async () => {
    setBusy(true);
    try {
      setLoaded({ Screen: await load() });
    } catch {
      await checkBuild();
      setBusy(false);
    }
  };
  // The reader may come here again when the service is back.
  useEffect(() => void retry(), []);
  const { Screen } = loaded;
  if (Screen) return <Screen />;
  const reload = () => location.reload();
  return (
    <Page title="This screen could not be loaded">
      <div class="error" role="alert">
        {isOutdated.value ? (
          <>
            <p>The service has a newer version of the console. Reload the page to use it.</p>
            <button type="button" class="primary" onClick={reload}>
              Reload the page
            </button>
          </>
        ) : (
          <>
            <p>The service could not be reached. Check your connection, then try again.</p>
            <div class="row">
              <button type="button" class="primary" disabled={isBusy} onClick={retry}>
                Try again
              </button>
              <button type="button" onClick={reload}>
                Reload the page
              </button>
            </div>
          </>
        )}
      </div>
    </Page>
  );
}
