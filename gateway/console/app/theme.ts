// Runs before the page is painted, so that the other theme does not flash up.
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;

export {};
