import { openApiDocument } from '@millrace/contract/documents';
import type { Database } from '@millrace/db';
import { UsageError } from '@millrace/kit/errors';
import { DocumentSchemas, type Check, type OpenApiDocument } from '@millrace/kit/http';
import type { Outbound } from '@millrace/kit/outbound';
import type { World } from '@millrace/kit/world';
import { signingKeyOf } from '@millrace/kit/webhooks';
import type { Sessions } from '../sessions/port.js';
import { QueueClient } from './queue-client.js';
import { QueueTasks } from './queue-tasks.js';
import { TaskStore } from './task-store.js';

export type { QueueTasks } from './queue-tasks.js';
export type { Delivery } from './received-task.js';

export interface QueueCallbackParts {
  world: World;
  database: Database;
  sessions: Sessions;
  outbound: Outbound;
  settings: {
    url: string;
    token?: string | undefined;
    callback_secret?: string | undefined;
  };
}

/** Opens the handler that runs tasks of the queue as agent sessions. */
export async function openQueueTasks(parts: QueueCallbackParts): Promise<QueueTasks> {
  const { world, database, sessions, outbound, settings } = parts;
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
  });
}

let known: Check | undefined;

/** Created with the first task, because most daemons never receive one. */
function spawnCheck(): Check {
  const document = openApiDocument('daemon') as unknown as OpenApiDocument;
  return (known ??= new DocumentSchemas(document).named('SpawnRequest'));
}
