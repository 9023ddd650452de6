import { render } from "preact";
import { LocationProvider } from "preact-iso/router";
import { session } from "./session.ts";
import { loadSession } from "./session-calls.ts";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";

function App() {
  if (session.value === undefined) return null;
  return (
    <LocationProvider scope="/console/">{session.value ? <Shell /> : <SignIn />}</LocationProvider>
  );
}

const place = document.getElementById("app");
if (place) {
  render(<App />, place);
  loadSession();
}
