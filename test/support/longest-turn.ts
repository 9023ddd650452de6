/** CPU time of this thread so far, in ms. It has no time of other processes. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The longest time for which `work` blocked the event loop, in ms of CPU time. */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = cpuMs();
  let isOver = false;
  const tick = () => {
    longest = Math.max(longest, cpuMs() - last);
    last = cpuMs();
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  isOver = true;
  return Math.max(longest, cpuMs() - last);
}
