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

type Node = Pick<Session, 'id' | 'parent_id' | 'ancestors'>;

/** The ids of those above a session, its parent first, also of those that were deleted. */
export function ancestorsOf(
  sessions: readonly Node[],
  { parent_id: parentId, ancestors }: Node,
): string[] {
  if (ancestors || parentId === null) return ancestors ?? [];
  // Sessions of earlier versions have only their parent.
  const parent = sessions.find(({ id }) => id === parentId);
  return [parentId, ...(parent ? ancestorsOf(sessions, parent) : [])];
}

/** The session and those above it, itself first. */
export function lineageOf<Each extends Node>(sessions: readonly Each[], id: string): Each[] {
  const self = sessions.find((each) => each.id === id);
  if (!self) return [];
  const above = ancestorsOf(sessions, self);
  return [self, ...above.flatMap((each) => sessions.filter((session) => session.id === each))];
}

/** The sessions that a session has started, directly or not. */
export function descendantsOf<Each extends Node>(sessions: readonly Each[], id: string): Each[] {
  return sessions.filter((session) => ancestorsOf(sessions, session).includes(id));
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
  const self = sessions.find(({ id }) => id === parent);
  const depth = self ? ancestorsOf(sessions, self).length + 2 : 1;
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
