import { readdirSync, readFileSync } from "node:fs";

/** The work of the machine's processors since its start, in ticks of its clock. */
export interface MachineReading {
  /** All ticks, including idle time. */
  all: number;
  /** The ticks of other processes, and of other machines on the same hardware. Those of this process and its children are left out. */
  others: number;
}

/** Below this share the machine is quiet. Servers that a test calls are no load, nor are ticks that are counted late. */
const quietShare = 0.1;
/** The greatest share that is believed. A process that hangs stays late, however busy the machine is. */
const mostShare = 0.95;

/** Reads the ticks. Undefined where the system does not show them. */
export function readMachine(): MachineReading | undefined {
  let line: string;
  try {
    line = readFileSync("/proc/stat", "utf8").split("\n", 1)[0] ?? "";
  } catch {
    return undefined;
  }
  // user nice system idle iowait irq softirq steal. The time of guests is in user already.
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = ticks.reduce((sum, each) => sum + each, 0);
  const [, , , idle = 0, waiting = 0] = ticks;
  return { all, others: all - idle - waiting - ownTicks() };
}

/** The share of the machine, from 0 to 0.95, that other processes had between two readings. 0 where it was quiet, or nothing is known. */
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
  /** Its own ticks, and those of children that have ended. */
  ticks: number;
}

/** The ticks of this process and of all its descendants, including those that have ended. */
export function ownTicks(): number {
  const processes = new Map<number, ProcessTicks>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const found = ticksOf(name);
    if (found) processes.set(Number(name), found);
  }
  const isOwn = (one: number) => {
    // The chain can change while it is read. The test must not loop for ever.
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
    // After the name, which may have any characters: state, parent, ... (see proc(5)).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const times = fields.slice(11, 15).map(Number);
    return { parent: Number(fields[1]), ticks: times.reduce((sum, each) => sum + each, 0) };
  } catch {
    // The process has ended meanwhile.
    return undefined;
  }
}
