// The entry of the page: loads the session, then shows the sign-in, the set-up or the shell.

import { render } from "preact";
import { ErrorBoundary } from "preact-iso/lazy";
import { LocationProvider } from "preact-iso/router";
import { screen } from "./screen.tsx";
import { session } from "./session.ts";
import { loadSession } from "./session-calls.ts";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";

const SetUp = screen(() => import("./screens/set-up.tsx").then((m) => m.SetUp));
/** The page of an operator's link. It needs no session. */
const isSetUp = location.pathname === "/console/set-up";

function App() {
  if (isSetUp) {
    return (
      <ErrorBoundary>
        <SetUp />
      </ErrorBoundary>
    );
  }
  if (session.value === undefined) return null;
  return (
    <LocationProvider scope="/console/">{session.value ? <Shell /> : <SignIn />}</LocationProvider>
  );
}

const place = document.getElementById("app");
if (place) {
  render(<App />, place);
  if (!isSetUp) loadSession();
}
