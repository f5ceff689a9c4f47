import type { QueueSchema } from '@millrace/contract/queue';
import { Refusal } from '@millrace/kit/errors';
import { agentsQueue } from '../agent/submitting.js';
import type { QueueApi } from '../queue/api.js';
import { daemonTokenSecret, signingSecret } from './own-files.js';

type ConfigInput = QueueSchema<'QueueConfigInput'>;
type Config = QueueSchema<'QueueConfig'>;

export interface AgentsCallback {
  readonly url: string;
  /** Whether the daemon requires its token. */
  readonly needsToken: boolean;
}

/**
 * Creates the queue whose tasks become agents, or updates the address of the daemon in it. Keeps
 * other changes of its owner, and a queue with another callback.
 */
export async function setUpAgentsQueue(
  api: QueueApi,
  callback: AgentsCallback,
): Promise<'created' | 'updated' | 'unchanged' | 'foreign'> {
  const before = await readConfig(api);
  if (!before) {
    await api.call('putQueueConfig', { queue: agentsQueue, body: freshConfig(callback) });
    return 'created';
  }
  if (!isOurs(before)) return 'foreign';
  const wanted = { ...before.callback, ...ownFields(callback) };
  if (JSON.stringify(wanted) === JSON.stringify(before.callback)) return 'unchanged';
  const { name: _n, paused: _p, version, created_at: _c, updated_at: _u, ...unchanged } = before;
  await api.call('putQueueConfig', {
    queue: agentsQueue,
    body: { ...unchanged, callback: wanted },
    headers: { 'if-match': `"${version}"` },
  });
  return 'updated';
}

async function readConfig(api: QueueApi): Promise<Config | undefined> {
  try {
    return (await api.call('getQueueConfig', { queue: agentsQueue })).body;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'QUEUE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** Updates our own address, but not one that the owner chose. */
function isOurs({ callback: { url, signing } }: Config): boolean {
  return (
    url !== undefined &&
    new URL(url).pathname === '/api/v1/queue/callback' &&
    (signing?.secret_refs.includes(signingSecret) ?? false)
  );
}

function ownFields({ url, needsToken }: AgentsCallback): ConfigInput['callback'] {
  return {
    url,
    auth: needsToken ? { type: 'bearer', secret_ref: daemonTokenSecret } : { type: 'none' },
    signing: { scheme: 'standard_webhooks', secret_refs: [signingSecret] },
  };
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** An agent runs for minutes and costs money: few in flight, few attempts, long backoff. */
function freshConfig(callback: AgentsCallback): ConfigInput {
  return {
    description: 'Work for coding agents: each task becomes a session of the daemon.',
    callback: { ...ownFields(callback), timeout_ms: minuteMs, async_timeout_ms: 60 * minuteMs },
    retry: { max_attempts: 3, initial_backoff_ms: 30_000, max_backoff_ms: 30 * minuteMs },
    limits: { max_in_flight: 4 },
    ordering: { mode: 'group' },
    retention: { succeeded_ms: 7 * dayMs },
  };
}
