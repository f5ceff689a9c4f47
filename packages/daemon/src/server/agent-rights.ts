import type { DaemonSchema } from '@millrace/contract/daemon';
import { beyondRights, type Caller, type ServedOperations } from '../core/api.js';
import { descendantsOf } from '../core/agent-tree.js';
import { sessionsMeant } from '../core/session.js';
import type { DaemonContext } from '../operations/context.js';

/** What an agent may call with its own token; which sessions and questions is checked by each. */
export const agentOperations: ReadonlySet<string> = new Set<keyof ServedOperations>([
  'listBackends',
  'listSessions',
  'spawnSession',
  'postMcp',
  'getSession',
  'getSessionOutput',
  'getSessionSummary',
  'sendToSession',
  'stopSession',
  'waitForSession',
  'createQuestion',
  'getQuestion',
  'waitForQuestion',
  'listPlans',
  'createPlan',
  'getPlan',
  'cancelPlan',
  'pickSession',
  'claimPlanTask',
  'completePlanTask',
  'listReadyTasks',
]);

/** Refuses a session that the calling agent has not started, directly or not. */
export async function checkChild(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  agent: string,
  words: string,
): Promise<void> {
  const all = await sessions.list();
  const below = new Set(descendantsOf(all, agent));
  // As the call itself will understand the words: a child may have the name of another's id.
  const meant = sessionsMeant(all, words);
  if (meant.length === 0 || !meant.every((session) => below.has(session))) throw beyondRights();
}

/** Refuses what is not of the calling agent. */
export function checkOwn({ agent }: Caller, owner: string): void {
  if (agent !== undefined && agent !== owner) throw beyondRights();
}

/** The sessions that the caller may see. */
export function visibleSessions<Each extends DaemonSchema<'Session'>>(
  { agent }: Caller,
  sessions: readonly Each[],
): readonly Each[] {
  return agent === undefined ? sessions : descendantsOf(sessions, agent);
}
