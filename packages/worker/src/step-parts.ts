import type { QueueSchema } from '@millrace/contract/queue';
import { StepFailed } from './errors.js';
import type { Backoff, TaskInfo } from './tasks.js';

/** Children of one step, and awaited tasks of one suspension. */
export const maxChildren = 1_000;

/** What a branch of a handler waits for. */
export interface Wait {
  until?: number;
  signal?: string;
  tasks?: readonly string[];
}

/** One wait of all open branches: the first event wakes the task. */
export function suspensionOf(waits: readonly Wait[]): QueueSchema<'Suspension'> {
  const times = waits.flatMap(({ until }) => until ?? []);
  const signals = [...new Set(waits.flatMap(({ signal }) => signal ?? []))];
  const tasks = [...new Set(waits.flatMap((wait) => wait.tasks ?? []))].slice(0, maxChildren);
  return {
    ...(times.length > 0 && { until: new Date(Math.min(...times)).toISOString() }),
    ...(signals.length > 0 && { signals }),
    ...(tasks.length > 0 && { tasks }),
    ...(waits.length === 1 && tasks.length > 1 && { mode: 'all' as const }),
  };
}

export function outcomeOf({ result, error }: QueueSchema<'Step'>): unknown {
  if (error) throw new StepFailed(error.message, error.type);
  return result ?? undefined;
}

export function isEnded(status: string): boolean {
  return status === 'SUCCEEDED' || status === 'DEAD';
}

export function backoffMs(
  { kind, ms, maxMs = Infinity, jitter = 0 }: Backoff,
  attempt: number,
): number {
  const whole = Math.min(maxMs, kind === 'fixed' ? ms : ms * 2 ** (attempt - 1));
  return whole * (1 - jitter * Math.random());
}

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The same ULID in every run, so that a child is submitted once; another one after a redrive. */
export async function childId({ id, redriveCount }: TaskInfo, name: string): Promise<string> {
  const text = new TextEncoder().encode(`${id} ${redriveCount} ${name}`);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  const random = Array.from({ length: 16 }, (_, i) => digits[hash[i]! % 32]);
  return id.slice(0, 10) + random.join('');
}
