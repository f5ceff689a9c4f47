import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { queueOperations, type QueueOperationId } from '@millrace/contract/queue';
import { hashSecret } from '@millrace/kit/tokens';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type EndingOperationId,
  goodCalls,
  newGrounds,
  type Grounds,
} from './support/good-calls.js';
import { makeQueue, plainConfig, startTestServer, tokens, type Who } from './support/server.js';
import { operations } from './support/wire-check.js';

const server = await startTestServer({ onEnd: afterAll });
const ids = Object.keys(goodCalls) as EndingOperationId[];
const guarded = ids.filter((id) => queueOperations[id].authenticated);
const open = ids.filter((id) => !queueOperations[id].authenticated);

const operatorRoles = ['submitter', 'worker', 'operator'];

/** What each caller may be on the queues that the calls are about: `mail...`. */
const rolesOf: Record<Who, readonly string[]> = {
  root: [...operatorRoles, 'admin'],
  admin: [...operatorRoles, 'admin'],
  operator: operatorRoles,
  submitter: ['submitter'],
  worker: ['worker'],
  stranger: [],
  nobody: [],
  expired: [],
};

/** These may also be called by a worker. */
const handlerCalls: readonly QueueOperationId[] = [
  'completeTask',
  'failTask',
  'extendTask',
  'recordSteps',
];

describe.each(guarded)('%s', (id) => {
  const { minRole, extensions } = operations.get(id)!;
  const needed = handlerCalls.includes(id) ? [minRole!, 'worker'] : [minRole!];

  /** For those who are refused, and so leave it as it is. */
  let untouched: Promise<Grounds> | undefined;

  test.each(Object.entries(rolesOf) as [Who, string[]][])('called by %s', async (who, held) => {
    const isAllowed = needed.some((role) => held.includes(role));
    const grounds = await (isAllowed ? newGrounds(server) : (untouched ??= newGrounds(server)));
    const { status, body, text } = await server.as(who, goodCalls[id](grounds));
    if (who === 'expired') {
      expect([status, body['code']]).toEqual([401, 'UNAUTHENTICATED']);
    } else if (isAllowed) {
      expect(status, text).toBeLessThan(300);
    } else if (
      extensions['x-grant-scope'] === 'any' &&
      who === 'stranger' &&
      !id.endsWith('Flow')
    ) {
      // Admin of queues, but of others: what comes is cut to those.
      expect(status).toBe(200);
      expect(text).not.toContain(grounds.queue);
    } else if (id === 'getFlow' && who === 'stranger') {
      // A flow of which the caller may see nothing is not there.
      expect([status, body['code']]).toEqual([404, 'TASK_NOT_FOUND']);
    } else if (['task', 'job'].includes(String(extensions['x-grant-scope'])) && held.length === 0) {
      // Whether the id exists is not shown.
      const code = extensions['x-grant-scope'] === 'job' ? 'JOB_NOT_FOUND' : 'TASK_NOT_FOUND';
      expect([status, body['code']]).toEqual([404, code]);
    } else {
      expect([status, body['code']]).toEqual([403, 'FORBIDDEN']);
    }
  });
});

test.each(open)('%s needs no token, and a bad one does not matter', async (id) => {
  const request = goodCalls[id]({} as Grounds);
  expect((await server.send(request)).status).toBe(200);
  expect((await server.send({ ...request, token: 'nonsense' })).status).toBe(200);
});

describe('an ungranted queue', () => {
  const onQueues = guarded.filter(
    (id) => operations.get(id)!.extensions['x-grant-scope'] === 'queue',
  );

  test.each(onQueues)('is refused by %s alike, there or not', async (id) => {
    const there = await newGrounds(server);
    const nowhere: Grounds = {
      ...there,
      queue: 'mail.no',
      emptyQueue: 'mail.no',
      newQueue: 'mail.no',
      pullQueue: 'mail.no',
    };
    for (const grounds of [there, nowhere]) {
      const { status, body } = await server.as('stranger', goodCalls[id](grounds));
      expect([status, body['code']]).toEqual([403, 'FORBIDDEN']);
    }
  });
});

test('submit: an id of a queue without a grant does not show where it is in use', async () => {
  const { queue } = await newGrounds(server);
  await makeQueue(server, 'other.ids');
  const body = { id: '01JD3Z8Q4M7X2N5V9RTBKWCH6F', handler_ref: 'a' };
  const submit = (who: Who, to: string) =>
    server.as(who, { method: 'POST', path: `/v1/queues/${to}/tasks`, body });
  expect((await submit('root', queue)).status).toBe(202);
  const known = await submit('root', 'other.ids');
  const foreign = await submit('stranger', 'other.ids');
  for (const answer of [known, foreign]) {
    expect([answer.status, answer.body['code']]).toEqual([409, 'ID_CONFLICT']);
  }
  expect(known.body['detail']).toContain('in use in another queue');
  expect(foreign.body['detail']).toContain('cannot be used in this queue');
});

test('a star in a grant crosses dots, and a name without one is exact', async () => {
  await makeQueue(server, 'mail.a.b.c');
  await makeQueue(server, 'mai');
  expect((await server.as('submitter', { path: '/v1/queues/mail.a.b.c/stats' })).status).toBe(200);
  expect((await server.as('submitter', { path: '/v1/queues/mai/stats' })).status).toBe(403);
});

describe('the tokens file', () => {
  const entry = (token: string) => ({
    id: 'new',
    principal: 'new',
    token_sha256: hashSecret(token),
    grants: [{ queue: '*', role: 'admin' }],
  });
  const stats = (token: string, send = server.send) => send({ token, path: '/v1/admin/queues' });

  test('is read again when it changes, and a bad one keeps the old tokens', async () => {
    const own = await startTestServer();
    const file = join(own.directory, 'tokens.yaml');
    const put = async (text: string) => {
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
    };
    expect((await stats(tokens.root, own.send)).status).toBe(200);
    await put(JSON.stringify({ tokens: [entry('token-of-another')] }));
    await expect.poll(async () => (await stats('token-of-another', own.send)).status).toBe(200);
    expect((await stats(tokens.root, own.send)).status).toBe(401);

    await put('tokens: [{id: bad}]');
    await expect
      .poll(() =>
        own.log.lines
          .filter(({ level }) => level === 'error')
          .map((l) => l.message)
          .join(),
      )
      .toContain('failed to reload tokens');
    expect((await stats('token-of-another', own.send)).status).toBe(200);
    const metrics = await (await fetch(`${own.metricsUrl}/metrics`)).text();
    expect(metrics).toContain('millrace_queue_tokens_file_failures_total 1');
    expect(metrics).toContain('millrace_queue_tokens_file_fresh 0');
  });

  test('is read again on SIGHUP', async () => {
    const own = await startTestServer();
    const file = join(own.directory, 'tokens.yaml');
    await writeFile(file, JSON.stringify({ tokens: [entry('token-by-signal')] }));
    process.emit('SIGHUP');
    expect((await stats('token-by-signal', own.send)).status).toBe(200);
  });

  test('may hold a token in clear, with a warning', async () => {
    const own = await startTestServer();
    const clear = { ...entry('x'), token_sha256: undefined, token: 'in-clear-for-development' };
    await writeFile(join(own.directory, 'tokens.yaml'), JSON.stringify({ tokens: [clear] }));
    process.emit('SIGHUP');
    expect((await stats('in-clear-for-development', own.send)).status).toBe(200);
    // The test writes its files readable by others, which is another warning.
    const warnings = own.log.lines.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message).join('\n')).toContain(
      'token new is stored in clear text',
    );
    expect(JSON.stringify(own.log.lines)).not.toContain('in-clear-for-development');
  });
});

test('new secrets are used as soon as the file has them', async () => {
  const own = await startTestServer();
  const file = join(own.directory, 'secrets.yaml');
  const request = {
    method: 'PUT',
    path: '/v1/admin/queues/mail/config',
    body: {
      callback: { ...plainConfig.callback, auth: { type: 'bearer', secret_ref: 'fresh' } },
    },
  };
  expect((await own.as('root', request)).body['code']).toBe('INVALID_CONFIG');
  const secret = { name: 'fresh', value: 'abc', queues: ['mail'] };
  await writeFile(file, JSON.stringify({ secrets: [secret] }));
  process.emit('SIGHUP');
  const { status, text } = await own.as('root', request);
  expect(status, text).toBe(200);
  await writeFile(file, 'secrets: nonsense');
  process.emit('SIGHUP');
  expect((await own.as('root', request)).status).toBe(200);
  expect(own.log.lines.some(({ level }) => level === 'error')).toBe(true);
  expect(JSON.stringify(own.log.lines)).not.toContain('abc');
});

beforeAll(() => makeQueue(server, 'other.queue'));
