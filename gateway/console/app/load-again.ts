// While gateways are replaced, one with another build may be asked for a file of this page, and has none of that name.

/** Ms before the page is loaded again. */
const againMs = 2_000;
/** Times that it is loaded again by itself, one after the other. Within these two minutes a gateway is replaced. */
const mostTimes = 60;
/** In the tab's own store: how often it was. */
const counter = "loaded-again";

let hasFailed = false;

/** Scripts and the style sheet. The page needs all of them. */
function isNeeded(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches("script[src], link[rel=stylesheet]");
}

function showWords(isLast: boolean): void {
  const place = document.createElement("div");
  place.setAttribute("role", "alert");
  place.style.padding = "1rem";
  const words = document.createElement("p");
  words.textContent = `The console could not be loaded: the service is away, or changes to another version just now. ${
    isLast ? "Try again later." : "It is tried again by itself."
  }`;
  const button = document.createElement("button");
  button.textContent = "Try again now";
  button.addEventListener("click", () => location.reload());
  place.append(words, button);
  document.body.prepend(place);
}

function fail(): void {
  if (hasFailed) return;
  hasFailed = true;
  const times = Number(sessionStorage.getItem(counter)) + 1;
  const isLast = times > mostTimes;
  sessionStorage.setItem(counter, String(times));
  if (document.body) showWords(isLast);
  else addEventListener("DOMContentLoaded", () => showWords(isLast));
  if (!isLast) setTimeout(() => location.reload(), againMs);
}

// An element's own events do not bubble.
addEventListener("error", ({ target }) => isNeeded(target) && fail(), true);
addEventListener("load", () => !hasFailed && sessionStorage.removeItem(counter));

export {};
