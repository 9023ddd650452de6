// Adds up the wallets of an audit, and prints the sums. `ledger.ts` has the command that runs the audit.

import { unitName } from "#common/documents/answer-values.ts";
import { type AuditedWallet, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type Output, printTable, sumCell, walletName } from "./output.ts";

/** The parts for which an audit's figures are shown one by one, beside the totals. */
export const parts = ["account", "key"] as const;
export type Part = (typeof parts)[number];

/** Sums of charges, by the entries and by the rollup that usage is read from. They are whole numbers of the unit. */
interface Charged {
  requests: bigint;
  spent: bigint;
  rollupRequests: bigint;
  rollupSpent: bigint;
}

/** Sums over wallets of one unit, by the names of `account balance`. */
interface Total extends Charged {
  unit: Unit;
  granted: bigint;
  available: bigint;
  reserved: bigint;
  spendable: bigint;
  monthSpent: bigint;
}

/** Adds up the figures of wallets in an audit. */
export interface AuditTotals {
  add(wallet: AuditedWallet): void;
  /** Of all wallets by unit, and of each account or key where the option asks for it. Empty where an older server sends no figures. */
  json(): object;
  /** The same figures as a table. */
  print(output: Output): void;
}

/** Begins with zero wallets. `by` names the parts that are shown one by one. */
export function auditTotals(by: Part | undefined): AuditTotals {
  const units = new Map<Unit, Total>();
  const accounts: (Total & { accountId: string })[] = [];
  const keys: (Charged & { accountId: string; keyId: string; unit: Unit })[] = [];
  return {
    add({ accountId, wallet, keys: own }) {
      if (!wallet) return;
      const { unit, granted, available, reserved, spendable, monthSpent } = wallet;
      const charged = own.reduce(plus, nothing);
      // An account is charged for all of its entries. A key is charged only for its requests.
      const { spent } = wallet;
      const total = {
        ...{ unit, granted, available, reserved, spendable, monthSpent },
        ...{ ...charged, spent },
      };
      const all = units.get(unit);
      units.set(unit, all ? both(all, total) : total);
      if (by === "account") accounts.push({ accountId, ...total });
      if (by === "key") {
        for (const key of own)
          keys.push({ accountId, keyId: key.keyId, unit, ...plus(nothing, key) });
      }
    },
    json: () => ({
      ...(units.size > 0 ? { totals: ordered(units).map(named) } : {}),
      ...(by === "account" ? { accounts: accounts.map(named) } : {}),
      ...(by === "key" ? { keys: keys.map(named) } : {}),
    }),
    print(output) {
      if (units.size === 0) return;
      if (by === "key") {
        const rows = keys.map((key) => [
          ...[key.accountId, key.keyId, walletName(key.unit)],
          ...chargedCells(key.unit, key),
        ]);
        const head = ["account", "key", "wallet", ...chargedHead];
        printTable(output, head, rows, "No key was charged.");
        output.out("\n");
      }
      const of = (name: string, total: Total) => [
        ...[name, walletName(total.unit)],
        ...[total.available, total.reserved, total.monthSpent].map((sum) =>
          sumCell(total.unit, sum),
        ),
        ...chargedCells(total.unit, total),
      ];
      const head = ["account", "wallet", "available", "reserved", "month spent", ...chargedHead];
      const rows = accounts.map((one) => of(one.accountId, one));
      rows.push(...ordered(units).map((total) => of("all", total)));
      printTable(output, head, rows, "");
    },
  };
}

const nothing: Charged = { requests: 0n, spent: 0n, rollupRequests: 0n, rollupSpent: 0n };
const chargedHead = ["requests", "spent", "in usage", "spent in usage"];

function chargedCells(unit: Unit, charged: Charged): string[] {
  const { requests, spent, rollupRequests, rollupSpent } = charged;
  return [
    ...[`${requests}`, sumCell(unit, spent)],
    ...[`${rollupRequests}`, sumCell(unit, rollupSpent)],
  ];
}

/** For programs, with the unit's name. */
function named<T extends { unit: Unit }>(total: T) {
  return { ...total, unit: unitName(total.unit) };
}

function plus(a: Charged, b: Charged): Charged {
  return {
    requests: a.requests + b.requests,
    spent: a.spent + b.spent,
    rollupRequests: a.rollupRequests + b.rollupRequests,
    rollupSpent: a.rollupSpent + b.rollupSpent,
  };
}

function both(a: Total, b: Total): Total {
  return {
    unit: a.unit,
    granted: a.granted + b.granted,
    available: a.available + b.available,
    reserved: a.reserved + b.reserved,
    spendable: a.spendable + b.spendable,
    monthSpent: a.monthSpent + b.monthSpent,
    ...plus(a, b),
  };
}

function ordered(units: ReadonlyMap<Unit, Total>): Total[] {
  return [Unit.USD_MICROS, Unit.CREDITS].flatMap((unit) => units.get(unit) ?? []);
}
