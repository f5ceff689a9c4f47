import type { DaemonOperations } from '@millrace/contract/daemon';

/**
 * Operations of the contract that this daemon does not serve yet: their paths are 404 like any
 * other that is not there. Take an operation out of this list when its handler is in place; the
 * contract test holds every other one against the running daemon.
 */
export const notYet = [
  'getMetrics',
  'getMetricsHistory',
  'listBranches',
  'spawnSession',
  'listSessions',
  'getSession',
  'deleteSession',
  'getSessionOutput',
  'sendToSession',
  'stopSession',
  'restartSession',
  'setForceCompact',
  'listPipelines',
  'createPipeline',
  'getPipeline',
  'startPipeline',
  'cancelPipeline',
  'streamEvents',
  'receiveQueueTask',
  'listInbox',
  'markNoteRead',
  'getDashboard',
  'getDashboardAsset',
] as const satisfies readonly (keyof DaemonOperations)[];

/** What the daemon serves: everything but the above, and but what it sends itself. */
export type ServedOperations = Omit<DaemonOperations, (typeof notYet)[number] | 'notify'>;

type Paths = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The contract's document without the operations that are not served. */
export function servedDocument<D extends { paths: Paths }>(document: D): D {
  const absent = new Set<string>(notYet);
  const paths = Object.entries(document.paths).flatMap(([path, item]) => {
    const members = Object.entries(item).filter(([, member]) => !absent.has(idOf(member)));
    const hasOperation = members.some(([, member]) => idOf(member) !== '');
    return hasOperation ? [[path, Object.fromEntries(members)] as const] : [];
  });
  return { ...document, paths: Object.fromEntries(paths) };
}

function idOf(member: unknown): string {
  if (typeof member !== 'object' || member === null || !('operationId' in member)) return '';
  return String(member.operationId);
}
