import { PathRouter } from '@millrace/kit/http';

/** Access that a call needs: read, write, or write unless it is a dry run. */
export type Needs = 'reading' | 'writing' | 'writing unless dry_run';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type Rule = readonly [method: Method, template: string, needs: Needs];

/**
 * Calls that the daemon forwards: what the dashboard needs, and nothing that grants or revokes
 * access. Other paths return 404.
 */
export class Allowlist {
  readonly #router = new PathRouter<Map<string, Needs>>();

  constructor(rules: readonly Rule[]) {
    const byTemplate = new Map<string, Map<string, Needs>>();
    for (const [method, template, needs] of rules) {
      let methods = byTemplate.get(template);
      if (!methods) {
        byTemplate.set(template, (methods = new Map()));
        this.#router.add(template, methods);
      }
      methods.set(method, needs);
    }
  }

  /** The access that the call needs; undefined when it is not forwarded. `path` is raw. */
  find(method: string, path: string): Needs | undefined {
    const match = this.#router.find(path);
    if (!match) return undefined;
    // Reject dot segments, which an upstream could normalize to another path.
    const names = Object.values(match.params);
    if (names.some((name) => name === '.' || name === '..')) return undefined;
    return match.leaf.get(method);
  }
}

export const queueAllowlist = new Allowlist([
  ['GET', '/readyz', 'reading'],
  ['GET', '/openapi.yaml', 'reading'],
  ['GET', '/v1/admin/queues', 'reading'],
  ['GET', '/v1/admin/queues/{queue}/config', 'reading'],
  ['GET', '/v1/queues/{queue}/stats', 'reading'],
  ['GET', '/v1/queues/{queue}/metrics', 'reading'],
  ['GET', '/v1/queues/{queue}/tasks', 'reading'],
  ['GET', '/v1/queues/{queue}/tasks:count', 'reading'],
  ['GET', '/v1/queues/{queue}/workers', 'reading'],
  ['GET', '/v1/queues/{queue}/jobs', 'reading'],
  ['GET', '/v1/queues/{queue}/schedules', 'reading'],
  ['GET', '/v1/queues/{queue}/schedules/{name}', 'reading'],
  ['GET', '/v1/queues/{queue}/dlq', 'reading'],
  ['GET', '/v1/queues/{queue}/dlq:groups', 'reading'],
  ['GET', '/v1/tasks/{id}', 'reading'],
  ['GET', '/v1/tasks/{id}/run', 'reading'],
  ['GET', '/v1/tasks/{id}/tree', 'reading'],
  ['GET', '/v1/flows/{id}', 'reading'],
  ['GET', '/v1/jobs/{id}', 'reading'],
  ['POST', '/v1/queues/{queue}/tasks', 'writing'],
  ['POST', '/v1/queues/{queue}/tasks:cancel', 'writing unless dry_run'],
  ['POST', '/v1/queues/{queue}/dlq:redrive', 'writing unless dry_run'],
  ['POST', '/v1/queues/{queue}/dlq:purge', 'writing unless dry_run'],
  ['POST', '/v1/queues/{queue}/schedules/{name}:run-now', 'writing'],
  ['POST', '/v1/queues/{queue}/schedules/{name}:pause', 'writing'],
  ['POST', '/v1/queues/{queue}/schedules/{name}:resume', 'writing'],
  ['POST', '/v1/tasks/{id}:cancel', 'writing'],
  ['POST', '/v1/tasks/{id}:run-now', 'writing'],
  ['POST', '/v1/tasks/{id}/signals', 'writing'],
  ['POST', '/v1/jobs/{id}:cancel', 'writing'],
  ['POST', '/v1/admin/queues/{queue}:pause', 'writing'],
  ['POST', '/v1/admin/queues/{queue}:resume', 'writing'],
  ['POST', '/v1/admin/queues/{queue}:test', 'writing'],
  ['PUT', '/v1/admin/queues/{queue}/config', 'writing'],
  ['PUT', '/v1/queues/{queue}/schedules/{name}', 'writing'],
  ['PATCH', '/v1/tasks/{id}', 'writing'],
  ['DELETE', '/v1/queues/{queue}/schedules/{name}', 'writing'],
]);

export const databaseAllowlist = new Allowlist([
  ['GET', '/openapi.yaml', 'reading'],
  ['GET', '/v1/admin/replication', 'reading'],
  ['GET', '/v1/admin/schemas/{collection}', 'reading'],
  ['GET', '/v1/admin/index-advice', 'reading'],
  ['POST', '/v1/admin/collections/{collection}/indexes', 'writing'],
  ['DELETE', '/v1/admin/collections/{collection}/indexes/{index}', 'writing'],
  ['GET', '/v1/{collection}/records/{id}', 'reading'],
  ['GET', '/v1/{collection}/keys/{key}', 'reading'],
  ['POST', '/v1/{collection}/records', 'writing'],
  ['POST', '/v1/{collection}/keys', 'writing'],
  ['POST', '/v1/{collection}/records:find', 'reading'],
  ['POST', '/v1/{collection}/records:aggregate', 'reading'],
  ['POST', '/v1/{collection}/records:watch', 'reading'],
  ['POST', '/v1/{collection}/records/{id}:updateIfRev', 'writing'],
  ['DELETE', '/v1/{collection}/records/{id}', 'writing'],
]);
