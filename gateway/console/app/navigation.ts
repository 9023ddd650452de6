// Lists the screens that the reader may open. The shell and the palette show them.

import { may, seesJobs, session } from "./session.ts";

export interface Place {
  path: string;
  title: string;
  icon: string;
}

interface Group {
  title: string;
  places: (Place & { isOpen(): boolean })[];
}

const always = () => true;
const makes = () => ["text", "images", "videos", "music", "speech"].some(may);

/** The screens of a key. Its scopes decide which of them are shown. The API decides what the key may do. */
const keyGroups: Group[] = [
  {
    title: "Build",
    places: [
      { path: "/console/", title: "Overview", icon: "overview", isOpen: always },
      { path: "/console/playground", title: "Playground", icon: "playground", isOpen: makes },
      {
        path: "/console/models",
        title: "Models",
        icon: "models",
        isOpen: () => may("models"),
      },
    ],
  },
  {
    title: "Activity",
    places: [
      { path: "/console/usage", title: "Usage", icon: "usage", isOpen: always },
      { path: "/console/requests", title: "Requests", icon: "requests", isOpen: always },
      { path: "/console/jobs", title: "Jobs", icon: "jobs", isOpen: seesJobs },
      { path: "/console/files", title: "Files", icon: "files", isOpen: () => may("files") },
    ],
  },
  {
    title: "Account",
    places: [
      { path: "/console/keys", title: "Keys", icon: "keys", isOpen: () => may("keys") },
      { path: "/console/billing", title: "Billing", icon: "billing", isOpen: () => may("billing") },
      {
        path: "/console/webhooks",
        title: "Webhooks",
        icon: "webhooks",
        isOpen: () => seesJobs() || may("webhooks"),
      },
    ],
  },
];

const operatorGroups: Group[] = [
  {
    title: "Accounts",
    places: [
      { path: "/console/operator/accounts", title: "Accounts", icon: "accounts", isOpen: always },
      { path: "/console/operator/keys", title: "Keys", icon: "keys", isOpen: always },
      { path: "/console/operator/requests", title: "Requests", icon: "requests", isOpen: always },
      { path: "/console/operator/jobs", title: "Jobs", icon: "jobs", isOpen: always },
    ],
  },
  {
    title: "Money",
    places: [
      { path: "/console/operator/holds", title: "Holds", icon: "billing", isOpen: always },
      { path: "/console/operator/margin", title: "Margin", icon: "usage", isOpen: always },
      { path: "/console/operator/ledger", title: "Ledger audit", icon: "requests", isOpen: always },
    ],
  },
  {
    title: "Service",
    places: [
      { path: "/console/operator/notices", title: "Notices", icon: "notices", isOpen: always },
      { path: "/console/operator/catalog", title: "Catalog", icon: "models", isOpen: always },
      { path: "/console/operator/upstreams", title: "Upstreams", icon: "health", isOpen: always },
      { path: "/console/operator/audit", title: "Audit log", icon: "requests", isOpen: always },
      { path: "/console/operator/operators", title: "Operators", icon: "accounts", isOpen: always },
      {
        path: "/console/operator/own",
        title: "My sign-in",
        icon: "keys",
        isOpen: () => typeof session.value?.operatorName === "string",
      },
    ],
  },
];

export const isOperator = () => session.value?.role === "operator";

export function groups(): { title: string; places: Place[] }[] {
  return (isOperator() ? operatorGroups : keyGroups)
    .map(({ title, places }) => ({ title, places: places.filter((place) => place.isOpen()) }))
    .filter(({ places }) => places.length > 0);
}
