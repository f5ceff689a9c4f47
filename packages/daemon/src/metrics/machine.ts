import { cpus, freemem, loadavg, platform, totalmem } from 'node:os';
import type { DaemonSchema } from '@millrace/contract/daemon';

type SystemMetrics = DaemonSchema<'SystemMetrics'>;

/** CPU time of all cores since boot: used and total. */
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

/** CPU use of all cores between two readings; `null` when no time has passed. */
export function cpuPercent(before: CpuTimes, after: CpuTimes): number | null {
  const totalMs = after.totalMs - before.totalMs;
  if (totalMs <= 0) return null;
  const share = (after.busyMs - before.busyMs) / totalMs;
  return hundredths(Math.min(1, Math.max(0, share)) * 100);
}

export function memoryAndLoad(): Omit<SystemMetrics, 'cpu_pct'> {
  const total = totalmem();
  return {
    // Available memory, such as caches, does not count as used.
    mem_used: Math.max(0, total - freemem()),
    mem_total: total,
    load: platform() === 'win32' ? null : hundredths(loadavg()[0]!),
  };
}

/** Rounds away digits that are noise. */
export function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
