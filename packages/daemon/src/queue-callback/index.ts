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

/** Opens the way by which the queue has agents work on its tasks. */
export async function openQueueTasks(parts: QueueCallbackParts): Promise<QueueTasks> {
  const { world, database, sessions, outbound, settings } = parts;
  const { url, token, callback_secret: secret } = settings;
  const key = secret === undefined ? undefined : signingKeyOf(secret);
  if (secret !== undefined && !key) {
    throw new UsageError(
      'queue.callback_secret must be "whsec_" and base64, as the secret that the queue signs with',
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

/** Made when the first task comes: most daemons never see one. */
function spawnCheck(): Check {
  const document = openApiDocument('daemon') as unknown as OpenApiDocument;
  return (known ??= new DocumentSchemas(document).named('SpawnRequest'));
}
