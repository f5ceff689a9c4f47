import type { DaemonSchema } from '@millrace/contract/daemon';
import { useSyncExternalStore } from 'react';
import { now } from '../parts/clock.js';
import { authorizedFetch } from './client.js';
import { judge, unknownServers, type Observed, type Servers } from './server-states.js';
import { tokenStore } from './token.js';

const pollMs = 750;
const timeoutMs = 2_000;
/** States are judged more often than polled, because silence is a state too. */
const judgeMs = 500;

let observed: Observed = { since: now(), answer: undefined, isUnreachable: false };
let servers: Servers = unknownServers;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function update(change: Partial<Observed> = {}): void {
  observed = { ...observed, ...change };
  const next = judge(observed, now());
  if (JSON.stringify(next) === JSON.stringify(servers)) return;
  servers = next;
  for (const listener of listeners) listener();
}

/** Liveness of daemon, queue server and database. */
export function useServers(): Servers {
  return useSyncExternalStore(subscribe, () => servers);
}

/** Polls the servers while the page is visible. */
export function followServers(): () => void {
  const stop = new AbortController();
  let judgedAt = now();
  const judging = setInterval(() => {
    // After a pause of the page itself, silence says nothing about the servers.
    const wasPaused = now() - judgedAt > 3 * judgeMs;
    judgedAt = now();
    update(wasPaused ? { since: judgedAt } : {});
  }, judgeMs);
  let poll: ReturnType<typeof setTimeout> | undefined;
  const run = async () => {
    clearTimeout(poll);
    if (!document.hidden && !tokenStore.isLoginRequired()) await check(stop.signal);
    if (!stop.signal.aborted) poll = setTimeout(() => void run(), pollMs);
  };
  // A hidden page polls nothing, so what it knew says nothing when it is shown again.
  const onVisible = () => {
    if (!document.hidden) update({ since: now() });
  };
  document.addEventListener('visibilitychange', onVisible);
  void run();
  return () => {
    stop.abort();
    clearInterval(judging);
    clearTimeout(poll);
    document.removeEventListener('visibilitychange', onVisible);
  };
}

async function check(stop: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]);
  try {
    const response = await authorizedFetch('/api/v1/servers', { signal, priority: 'high' });
    const body = response.ok
      ? ((await response.json()) as DaemonSchema<'ServerStates'>)
      : undefined;
    update({ answer: { at: now(), body }, isUnreachable: false });
  } catch {
    // Without an answer in time the daemon is silent, not unreachable.
    if (!signal.aborted) update({ isUnreachable: true });
  }
}
