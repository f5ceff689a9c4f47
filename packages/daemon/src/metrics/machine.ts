import { cpus, freemem, loadavg, platform, totalmem } from 'node:os';
import type { DaemonSchema } from '@millrace/contract/daemon';

type SystemMetrics = DaemonSchema<'SystemMetrics'>;

/** CPU time of all cores since the machine started: what was used, and what there was. */
export interface CpuTimes {
  busyMs: number;
  totalMs: number;
}

export function cpuTimes(): CpuTimes {
  let [busyMs, totalMs] = [0, 0];
  for (const { times } of cpus()) {
    const { user, nice, sys, idle, irq } = times;
    busyMs += user + nice + sys + irq;
    totalMs += user + nice + sys + irq + idle;
  }
  return { busyMs, totalMs };
}

/** How busy all cores were from one reading to another; `null` when no time has passed. */
export function cpuPercent(before: CpuTimes, after: CpuTimes): number | null {
  const totalMs = after.totalMs - before.totalMs;
  if (totalMs <= 0) return null;
  const share = (after.busyMs - before.busyMs) / totalMs;
  return hundredths(Math.min(1, Math.max(0, share)) * 100);
}

export function memoryAndLoad(): Omit<SystemMetrics, 'cpu_pct'> {
  const total = totalmem();
  return {
    // What the system could give to a program at once is not in use, whatever it caches there.
    mem_used: Math.max(0, total - freemem()),
    mem_total: total,
    load: platform() === 'win32' ? null : hundredths(loadavg()[0]!),
  };
}

/** More digits would be noise. */
export function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
