/**
 * CPU milliseconds that this process takes while `work` runs: unlike the time on the clock, they
 * are nearly the same on a busy machine.
 */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}
