// Chooses the screen of an address, for keys and for operators.

import { Route, Router } from "preact-iso/router";
import { Page } from "./kit/page.tsx";
import { Empty } from "./kit/states.tsx";
import { isOperator } from "./navigation.ts";
import { screen } from "./screen.tsx";

// Each screen is loaded when the reader goes there.
const Overview = screen(() => import("./screens/overview.tsx").then((m) => m.Overview));
const Keys = screen(() => import("./screens/keys.tsx").then((m) => m.Keys));
const Usage = screen(() => import("./screens/usage.tsx").then((m) => m.Usage));
const Requests = screen(() => import("./screens/requests.tsx").then((m) => m.Requests));
const Billing = screen(() => import("./screens/billing.tsx").then((m) => m.Billing));
const Webhooks = screen(() => import("./screens/webhooks.tsx").then((m) => m.Webhooks));
const Models = screen(() => import("./screens/models.tsx").then((m) => m.Models));
const Playground = screen(() => import("./screens/playground.tsx").then((m) => m.Playground));
const Jobs = screen(() => import("./screens/jobs.tsx").then((m) => m.Jobs));
const Files = screen(() => import("./screens/files.tsx").then((m) => m.Files));
const Accounts = screen(() => import("./screens/operator/accounts.tsx").then((m) => m.Accounts));
const OneAccount = screen(() => import("./screens/operator/account.tsx").then((m) => m.OneAccount));
const OperatorKeys = screen(() =>
  import("./screens/operator/keys.tsx").then((m) => m.OperatorKeys),
);
const OperatorJobs = screen(() =>
  import("./screens/operator/jobs.tsx").then((m) => m.OperatorJobs),
);
const OperatorRequests = screen(() =>
  import("./screens/operator/requests.tsx").then((m) => m.OperatorRequests),
);
const Holds = screen(() => import("./screens/operator/holds.tsx").then((m) => m.Holds));
const Ledger = screen(() => import("./screens/operator/ledger.tsx").then((m) => m.Ledger));
const Margin = screen(() => import("./screens/operator/margin.tsx").then((m) => m.Margin));
const OperatorCatalog = screen(() =>
  import("./screens/operator/catalog.tsx").then((m) => m.OperatorCatalog),
);
const Notices = screen(() => import("./screens/operator/notices.tsx").then((m) => m.Notices));
const Upstreams = screen(() => import("./screens/operator/upstreams.tsx").then((m) => m.Upstreams));
const AuditLog = screen(() => import("./screens/operator/audit.tsx").then((m) => m.AuditLog));
const Operators = screen(() => import("./screens/operator/operators.tsx").then((m) => m.Operators));
const OwnOperator = screen(() =>
  import("./screens/operator/own-operator.tsx").then((m) => m.OwnOperator),
);

interface ScreensProps {
  onLoadStart(): void;
  onLoadEnd(): void;
}

/** An operator has no key, and a key has no operator's rights. So each has separate screens. */
export function Screens(props: ScreensProps) {
  return isOperator() ? <OperatorScreens {...props} /> : <KeyScreens {...props} />;
}

function KeyScreens(props: ScreensProps) {
  return (
    <Router {...props}>
      <Route path="/console" component={Overview} />
      <Route path="/console/models" component={Models} />
      <Route path="/console/playground" component={Playground} />
      <Route path="/console/jobs" component={Jobs} />
      <Route path="/console/files" component={Files} />
      <Route path="/console/usage" component={Usage} />
      <Route path="/console/requests" component={Requests} />
      <Route path="/console/keys" component={Keys} />
      <Route path="/console/billing" component={Billing} />
      <Route path="/console/webhooks" component={Webhooks} />
      <Route default component={NotHere} />
    </Router>
  );
}

function OperatorScreens(props: ScreensProps) {
  return (
    <Router {...props}>
      <Route path="/console" component={Accounts} />
      <Route path="/console/operator/accounts" component={Accounts} />
      <Route path="/console/operator/accounts/:id" component={OneAccount} />
      <Route path="/console/operator/keys" component={OperatorKeys} />
      <Route path="/console/operator/requests" component={OperatorRequests} />
      <Route path="/console/operator/jobs" component={OperatorJobs} />
      <Route path="/console/operator/holds" component={Holds} />
      <Route path="/console/operator/ledger" component={Ledger} />
      <Route path="/console/operator/margin" component={Margin} />
      <Route path="/console/operator/notices" component={Notices} />
      <Route path="/console/operator/catalog" component={OperatorCatalog} />
      <Route path="/console/operator/upstreams" component={Upstreams} />
      <Route path="/console/operator/audit" component={AuditLog} />
      <Route path="/console/operator/operators" component={Operators} />
      <Route path="/console/operator/own" component={OwnOperator} />
      <Route default component={NotHere} />
    </Router>
  );
}

function NotHere() {
  return (
    <Page title="Not found">
      <Empty title="There is no such page.">
        <p>
          The navigation has everything that you may see; <a href="/console/">the overview</a> is a
          good place to begin again.
        </p>
      </Empty>
    </Page>
  );
}
