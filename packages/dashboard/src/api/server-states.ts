import type { DaemonSchema } from '@millrace/contract/daemon';

export type ServerName = 'daemon' | 'queue' | 'database';

export interface Server {
  /** `unknown` until something is known, and while the daemon cannot tell. */
  state: 'unknown' | 'live' | 'no_answer' | 'down';
  /** Whole seconds since the last answer; null when there was none. */
  ageS: number | null;
  detail: string | null;
}

export type Servers = Readonly<Record<ServerName, Server>>;

export interface Observed {
  /** When the page began to poll. */
  since: number;
  /** The last answer of the daemon; without a body when it was an error. */
  answer: { at: number; body: DaemonSchema<'ServerStates'> | undefined } | undefined;
  /** The last poll failed at once. */
  isUnreachable: boolean;
}

/** With a poll every 750 ms, longer silence means that the daemon is stuck. */
const silenceMs = 2_000;

const unknown: Server = { state: 'unknown', ageS: null, detail: null };
export const unknownServers: Servers = { daemon: unknown, queue: unknown, database: unknown };

/** Judges the servers by what the page has observed. */
export function judge({ since, answer, isUnreachable }: Observed, now: number): Servers {
  const daemon = judgeDaemon({ since, answer, isUnreachable }, now);
  const behind = (name: 'queue' | 'database'): Server => {
    const known = answer?.body?.[name];
    if (!known) return unknown;
    const elapsed = known.answered_ms_ago;
    const ageS = elapsed === null ? null : seconds(elapsed + now - answer.at);
    if (daemon.state !== 'live') return { ...unknown, ageS };
    const state = known.state === 'checking' ? 'unknown' : known.state;
    return { state, ageS: state === 'live' ? 0 : ageS, detail: known.detail };
  };
  return { daemon, queue: behind('queue'), database: behind('database') };
}

function judgeDaemon({ since, answer, isUnreachable }: Observed, now: number): Server {
  const ageS = answer ? seconds(now - answer.at) : null;
  if (isUnreachable) return { state: 'down', ageS, detail: 'Start it with: ctl up' };
  const silentMs = now - Math.max(since, answer?.at ?? 0);
  if (silentMs >= silenceMs) return { state: 'no_answer', ageS, detail: null };
  return answer ? { state: 'live', ageS: 0, detail: null } : unknown;
}

const seconds = (ms: number) => Math.max(0, Math.round(ms / 1000));

export const serverTitles: Readonly<Record<ServerName, string>> = {
  daemon: 'Daemon',
  queue: 'Queue',
  database: 'Database',
};

/** `live`, `no answer, data 9 s old`, `not running`. */
export function stateText({ state, ageS }: Server): string {
  const age = ageS === null ? '' : `, data ${ageText(ageS)} old`;
  if (state === 'live') return 'live';
  if (state === 'unknown') return `unknown${age}`;
  return state === 'down' ? `not running${age}` : `no answer${age}`;
}

function ageText(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}

/** The server to name first: one that was there and is not, the daemon before the others. */
export function firstTrouble(servers: Servers): ServerName | undefined {
  const names = ['daemon', 'queue', 'database'] as const;
  return names.find((name) => {
    const { state, ageS } = servers[name];
    // A server that never ran here is not missed: the daemon is useful alone.
    return state === 'no_answer' || (state === 'down' && (name === 'daemon' || ageS !== null));
  });
}
