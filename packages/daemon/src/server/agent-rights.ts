import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail, type Caller, type ServedOperations } from '../core/api.js';
import { descendantsOf } from '../core/agent-tree.js';
import { sessionsMeant } from '../core/session.js';
import type { DaemonContext } from '../operations/context.js';

type Rights = Pick<DaemonContext, 'sessions' | 'questions'>;

/** What a call is about, as far as rights depend on it. */
export interface AgentCall {
  params?: Readonly<Record<string, string>>;
  body?: unknown;
}

/** About one session, which must be one that the agent has started. */
const aboutChild = new Set<string>([
  'getSession',
  'getSessionOutput',
  'getSessionSummary',
  'getSessionDiff',
  'sendToSession',
  'stopSession',
  'waitForSession',
]);
const aboutOwnQuestion = new Set<string>(['getQuestion', 'waitForQuestion']);
const harmless = new Set<string>(['listBackends', 'listSessions', 'spawnSession', 'postMcp']);

/**
 * Refuses what an agent may not do with its own token: it is limited to the agents that it has
 * started, directly or not, and to questions of its own. Calls of others pass.
 */
export async function checkAgentRights(
  context: Rights,
  { agent }: Caller,
  operation: keyof ServedOperations,
  { params = {}, body }: AgentCall,
): Promise<void> {
  if (agent === undefined || harmless.has(operation)) return;
  if (operation === 'askQuestion') {
    const { session_id: id = agent } = body as DaemonSchema<'AskRequest'>;
    if (id === agent) return;
  }
  if (aboutOwnQuestion.has(operation)) {
    if (context.questions.get(params['id']!).session_id === agent) return;
  }
  if (aboutChild.has(operation)) {
    const all = await context.sessions.list();
    const below = new Set(descendantsOf(all, agent));
    // As the call itself will understand the words: a child may have the name of another's id.
    const meant = sessionsMeant(all, params['id']!);
    if (meant.length > 0 && meant.every((session) => below.has(session))) return;
  }
  throw fail(
    'FORBIDDEN',
    'The token of an agent is limited to the agents that it has started and to questions of its ' +
      'own. The setting agents.token_rights: full lifts that.',
  );
}

/** The sessions that the caller may see. */
export function visibleSessions<Each extends DaemonSchema<'Session'>>(
  { agent }: Caller,
  sessions: readonly Each[],
): readonly Each[] {
  return agent === undefined ? sessions : descendantsOf(sessions, agent);
}
