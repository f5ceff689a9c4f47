import { openApiDocument } from '@millrace/contract/documents';
import type { Database } from '@millrace/engine';
import { UsageError } from '@millrace/kit/errors';
import { schemasOf, type Check } from '@millrace/kit/http';
import type { Outbound } from '@millrace/kit/outbound';
import type { World } from '@millrace/kit/world';
import { signingKeyOf } from '@millrace/kit/webhooks';
import { httpTransport } from '@millrace/worker';
import type { DaemonSettings } from '../core/settings.js';
import type { Session, Sessions } from '../sessions/port.js';
import { machineLabels, TaskStore } from './received-task.js';
import { Puller, workerName } from './puller.js';
import { QueueClient } from './queue-client.js';
import { QueueTasks } from './queue-tasks.js';

export type { QueueTasks } from './queue-tasks.js';
export type { Delivery } from './received-task.js';

export interface QueueCallbackParts {
  world: World;
  database: Database;
  sessions: Sessions;
  outbound: Outbound;
  dataDir: string;
  settings: DaemonSettings['queue'];
  /** Cost of a session so far; null when it is unknown. */
  exactUsdOf: (session: Session) => Promise<number | null>;
}

/** Opens the handler that runs tasks of the queue as agent sessions. */
export async function openQueueTasks(parts: QueueCallbackParts): Promise<QueueTasks> {
  const { world, database, sessions, outbound, dataDir, settings } = parts;
  const { url, token, callback_secret: secret } = settings;
  const key = secret === undefined ? undefined : signingKeyOf(secret);
  if (secret !== undefined && !key) {
    throw new UsageError(
      'queue.callback_secret must be "whsec_" followed by base64: the signing secret of the queue',
    );
  }
  return QueueTasks.open({
    world,
    store: new TaskStore(database),
    sessions,
    client: new QueueClient({ outbound, url, token }),
    key,
    spawnCheck,
    exactUsdOf: parts.exactUsdOf,
    ...(settings.mode === 'pull' && {
      leaseMs: settings.lease,
      progressOf: (session) => progressText(session, workerName(dataDir)),
    }),
  });
}

/** Starts to claim tasks where `queue.mode` is `pull`; the sessions must be adopted before. */
export function startPuller(
  parts: Omit<QueueCallbackParts, 'database' | 'sessions' | 'exactUsdOf'>,
  tasks: QueueTasks,
): Puller | undefined {
  const { world, outbound, settings, dataDir } = parts;
  const { url, token, mode, labels } = settings;
  if (mode !== 'pull') return undefined;
  const puller = new Puller({
    world,
    tasks,
    transport: httpTransport({ url, token }),
    client: new QueueClient({ outbound, url, token }),
    queue: settings.name,
    worker: workerName(dataDir),
    labels: machineLabels(labels),
    maxAgents: settings.max_agents,
    leaseMs: settings.lease,
  });
  puller.start();
  return puller;
}

/** `working: docs (claude, session 01K9ZQ... on big-1a2b3c)` */
function progressText({ status, name, backend, id }: Session, machine: string): string {
  return `${status}: ${name} (${backend}, session ${id} on ${machine})`;
}

/** Read with the first task, because most daemons never receive one. */
function spawnCheck(): Check {
  return schemasOf(openApiDocument('daemon')).named('SpawnRequest');
}
