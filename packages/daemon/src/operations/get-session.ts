import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import { sessionsMeant } from '../core/session.js';
import type { DaemonContext } from './context.js';

const maxCandidates = 10;

/** One session by its id, its name or a prefix of its id. */
export async function getSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  words: string,
): Promise<DaemonSchema<'Session'>> {
  const exact = await sessions.find(words);
  if (exact) return exact;
  const [session, ...others] = sessionsMeant(await sessions.list(), words);
  if (!session) {
    throw fail(
      'SESSION_NOT_FOUND',
      `Session "${words.slice(0, 64)}" does not exist. GET /api/v1/sessions lists all sessions.`,
    );
  }
  if (others.length === 0) return session;
  const candidates = [session, ...others]
    .slice(0, maxCandidates)
    .map(({ id, name }) => ({ id, name }));
  const shown = candidates.map(({ id, name }) => `${id} (${name})`).join(', ');
  throw fail(
    'SESSION_AMBIGUOUS',
    `"${words.slice(0, 64)}" matches ${others.length + 1} sessions: ${shown}. Use an id.`,
    { members: { candidates } },
  );
}
