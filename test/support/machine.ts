import { readdirSync, readFileSync } from "node:fs";

/** What the machine's processors have done since it started, in ticks of its clock. */
export interface MachineReading {
  /** All that there was, idle time too. */
  all: number;
  /** What went to processes other than this one and those that it started, and to other machines on the same hardware. */
  others: number;
}

/** Below this share the machine is quiet: servers that a test talks to, and ticks that fall to one side, are no load. */
const quietShare = 0.1;
/** No machine is taken to be with others more than this: what hangs stays late, however busy it is. */
const mostShare = 0.95;

/** Reads it; undefined where a system does not tell. */
export function readMachine(): MachineReading | undefined {
  let line: string;
  try {
    line = readFileSync("/proc/stat", "utf8").split("\n", 1)[0] ?? "";
  } catch {
    return undefined;
  }
  // user nice system idle iowait irq softirq steal; guests are in user already.
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = ticks.reduce((sum, each) => sum + each, 0);
  const [, , , idle = 0, waiting = 0] = ticks;
  return { all, others: all - idle - waiting - ownTicks() };
}

/** The share of the machine, from 0 to 0.95, that others had between two readings; 0 where it was quiet, or nothing is known. */
export function othersShare(
  before: MachineReading | undefined,
  after: MachineReading | undefined,
): number {
  if (!before || !after || after.all <= before.all) return 0;
  const share = (after.others - before.others) / (after.all - before.all);
  return share < quietShare ? 0 : Math.min(mostShare, share);
}

interface ProcessTicks {
  parent: number;
  /** Its own, and those of children that have ended. */
  ticks: number;
}

/** The time of this process and of all that descend from it, those that have ended too. */
export function ownTicks(): number {
  const processes = new Map<number, ProcessTicks>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const found = ticksOf(name);
    if (found) processes.set(Number(name), found);
  }
  const isOwn = (one: number) => {
    // A chain that changes while it is read must not keep the test.
    let at = one;
    for (let steps = 0; steps < processes.size && at > 1; steps++) {
      if (at === process.pid) return true;
      at = processes.get(at)?.parent ?? 0;
    }
    return false;
  };
  let sum = 0;
  for (const [one, { ticks }] of processes) if (isOwn(one)) sum += ticks;
  return sum;
}

function ticksOf(pid: string): ProcessTicks | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Behind the name, which may hold anything: state, parent, ...; see proc(5).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const times = fields.slice(11, 15).map(Number);
    return { parent: Number(fields[1]), ticks: times.reduce((sum, each) => sum + each, 0) };
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}
