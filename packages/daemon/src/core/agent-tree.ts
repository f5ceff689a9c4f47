import { timingSafeEqual } from 'node:crypto';
import { agentToken, isEnded, type Session } from './session.js';

/*
 * Agents that start agents. The token of an agent names its session, and is derived from a secret
 * that only the daemon and that agent have.
 */

/** The session that a token is for, if it is valid for it. */
export function agentOf(
  token: string,
  secretOf: (id: string) => string | undefined,
): string | undefined {
  const [, id] = /^mra_([0-9A-Z]{26})_[0-9a-f]{64}$/.exec(token) ?? [];
  const secret = id === undefined ? undefined : secretOf(id);
  if (id === undefined || secret === undefined) return undefined;
  const wanted = agentToken(id, secret);
  return timingSafeEqual(Buffer.from(token), Buffer.from(wanted)) ? id : undefined;
}

type Node = Pick<Session, 'id' | 'parent_id'>;

/** The session and those above it, itself first. */
export function lineageOf<Each extends Node>(sessions: readonly Each[], id: string): Each[] {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  const lineage: Each[] = [];
  for (let at = byId.get(id); at && !lineage.includes(at); at = byId.get(at.parent_id ?? '')) {
    lineage.push(at);
  }
  return lineage;
}

/** The sessions that a session has started, directly or not. */
export function descendantsOf<Each extends Node>(sessions: readonly Each[], id: string): Each[] {
  return sessions.filter(
    (session) =>
      session.id !== id && lineageOf(sessions, session.id).some((each) => each.id === id),
  );
}

export interface TreeLimits {
  maxDepth: number;
  maxChildren: number;
  /** Children that are being started, and are no sessions yet. */
  starting?: number;
}

/** Why an agent cannot start another one; undefined when it can. */
export function treeObstacle(
  sessions: readonly Session[],
  parent: string,
  { maxDepth, maxChildren, starting = 0 }: TreeLimits,
): string | undefined {
  const depth = lineageOf(sessions, parent).length + 1;
  if (depth > maxDepth) {
    return `agents can be at most ${maxDepth} deep (agents.max_depth); this one would be at depth ${depth}`;
  }
  const children = sessions.filter((each) => each.parent_id === parent && !isEnded(each));
  const running = children.length + starting;
  if (running >= maxChildren) {
    return `it has ${running} running children, the most that are allowed (agents.max_children); wait for one, or stop one`;
  }
  return undefined;
}
