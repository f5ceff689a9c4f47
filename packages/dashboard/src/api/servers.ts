import type { DaemonSchema } from '@millrace/contract/daemon';
import { Store } from './store.js';
import { authorizedFetch } from './client.js';
import {
  judge,
  unknownServers,
  type Observed,
  type Server,
  type ServerName,
  type Servers,
} from './server-states.js';
import { tokenStore } from './token.js';

/** Monotonic, because silence is measured and nothing else. */
const now = (): number => performance.now();

const pollMs = 750;
const timeoutMs = 2_000;
/** States are judged more often than polled, because silence is a state too. */
const judgeMs = 500;

let observed: Observed = { since: now(), answer: undefined, isUnreachable: false };
const servers = new Store<Servers>(unknownServers);

function update(change: Partial<Observed> = {}): void {
  observed = { ...observed, ...change };
  const next = judge(observed, now());
  if (JSON.stringify(next) !== JSON.stringify(servers.value)) servers.set(next);
}

/** Liveness of daemon, queue server and database. */
export const useServers = (): Servers => servers.use();

/** True while the server of this page, or the daemon before it, is away: actions would fail. */
export function useIsAway(): boolean {
  const states = useServers();
  const [, first = ''] = /^#\/([\w-]+)/.exec(location.hash) ?? [];
  const isAway = ({ state }: Server) => state === 'down' || state === 'no_answer';
  return isAway(states.daemon) || isAway(states[serverOfPage[first] ?? 'daemon']);
}

const serverOfPage: Readonly<Record<string, ServerName>> = {
  queues: 'queue',
  tasks: 'queue',
  flows: 'queue',
  'dead-letters': 'queue',
  database: 'database',
};

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
