import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonApi } from '../daemon/api.js';
import { chosen } from './choosing.js';

type Session = DaemonSchema<'Session'>;

export async function readSessions(api: DaemonApi): Promise<Session[]> {
  return (await api.call('listSessions')).sessions;
}

/** Finds an agent by id, name or id prefix. */
export async function findSession(api: DaemonApi, words: string): Promise<Session> {
  const wording = { kind: 'agent', code: 'SESSION_NOT_FOUND', list: 'ctl agent list' };
  return chosen(await readSessions(api), words, wording, (session) => !hasEnded(session));
}

export function hasEnded({ status }: Pick<Session, 'status'>): boolean {
  return status === 'done' || status === 'errored' || status === 'orphaned';
}
