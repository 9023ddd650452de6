// Runs before the page is painted, so that a reader who chose a theme never sees the other one flash up.
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;

export {};
