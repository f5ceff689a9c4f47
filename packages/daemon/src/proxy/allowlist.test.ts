import { describe, expect, test } from 'vitest';
import { databaseAllowlist, queueAllowlist } from './allowlist.js';

describe('the queue server', () => {
  test.each([
    ['GET', '/v1/admin/queues', 'reading'],
    ['GET', '/v1/queues/mail.out/dlq:groups', 'reading'],
    ['POST', '/v1/queues/mail/dlq:redrive', 'writing unless dry_run'],
    ['POST', '/v1/queues/mail/tasks', 'writing'],
    ['POST', '/v1/admin/queues/mail:pause', 'writing'],
    ['PUT', '/v1/admin/queues/mail/config', 'writing'],
    ['GET', '/v1/queues/mail/tasks:count', 'reading'],
    ['POST', '/v1/queues/mail/tasks:cancel', 'writing unless dry_run'],
    ['POST', '/v1/queues/mail/schedules/nightly:run-now', 'writing'],
    ['DELETE', '/v1/queues/mail/schedules/nightly', 'writing'],
    ['PATCH', '/v1/tasks/01K9ZT6A8B0C2D4E6F8G1H3J5K', 'writing'],
  ])('%s %s is passed on', (method, path, needs) => {
    expect(queueAllowlist.find(method, path)).toBe(needs);
  });

  test.each([
    ['DELETE', '/v1/admin/queues/mail'],
    ['POST', '/v1/queues/mail/tasks:claim'],
    ['PUT', '/v1/admin/secrets/hook'],
    ['GET', '/v1/admin/audit'],
    ['POST', '/v1/tasks/01K9ZT6A8B0C2D4E6F8G1H3J5K:complete'],
    ['POST', '/v1/queues/mail/tasks:batch'],
    ['POST', '/v1/admin/queues'],
    ['GET', '/metrics'],
    ['GET', '/v1/admin/queues/'],
    ['GET', '//v1/admin/queues'],
    ['GET', '/v1/queues/../stats'],
    ['GET', '/v1/queues/%2e%2E/stats'],
    ['GET', '/v1/queues/mail/stats/../../../admin/audit'],
    ['GET', ''],
  ])('%s %s is not', (method, path) => {
    expect(queueAllowlist.find(method, path)).toBeUndefined();
  });
});

describe('the database', () => {
  test.each([
    ['GET', '/v1/admin/replication', 'reading'],
    ['GET', '/openapi.yaml', 'reading'],
    ['GET', '/v1/admin/schemas/people', 'reading'],
    ['GET', '/v1/admin/index-advice', 'reading'],
    ['POST', '/v1/admin/collections/people/indexes', 'writing'],
    ['DELETE', '/v1/admin/collections/people/indexes/city%2Cage', 'writing'],
    ['POST', '/v1/people/records:find', 'reading'],
    ['POST', '/v1/people/records:watch', 'reading'],
    ['GET', '/v1/people/keys/a%2Fb%3Ac', 'reading'],
    ['POST', '/v1/people/records/1:updateIfRev', 'writing'],
    ['DELETE', '/v1/people/records/1', 'writing'],
  ])('%s %s is passed on', (method, path, needs) => {
    expect(databaseAllowlist.find(method, path)).toBe(needs);
  });

  test.each([
    ['POST', '/v1/admin:promote'],
    ['DELETE', '/v1/admin/collections/people'],
    ['DELETE', '/v1/admin/collections/people/indexes'],
    ['DELETE', '/v1/admin/collections/people/indexes/..'],
    ['PUT', '/v1/admin/schemas/people'],
    ['GET', '/v1/admin/schemas'],
    ['POST', '/v1/admin:backup'],
    ['POST', '/v1/admin:compact'],
    ['POST', '/v1/records:watch'],
    ['POST', '/v1/tx:begin'],
    ['PUT', '/v1/people/records/1'],
    ['DELETE', '/v1/people/keys/1'],
    ['POST', '/v1/people/keys/a%3Aupsert'],
  ])('%s %s is not', (method, path) => {
    expect(databaseAllowlist.find(method, path)).toBeUndefined();
  });
});
