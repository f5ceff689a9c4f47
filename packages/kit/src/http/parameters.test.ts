import { describe, expect, test } from 'vitest';
import { inject } from '../../test/http/inject.js';
import { sampleApp, token } from '../../test/http/sample-server.js';

const app = sampleApp();
const filling = sampleApp({ fillDefaults: true });

async function list(query: string, on = app) {
  const answer = await inject(on, { url: `/v1/queues/mail/dlq?${query}`, headers: token });
  return answer.json();
}

const read = async (query: string, on = app) => (await list(query, on))['query'];

describe('query values', () => {
  test.each<[string, object]>([
    ['', {}],
    ['limit=7', { limit: 7 }],
    ['limit=9999', { limit: 500 }],
    ['limit=99999999999999999999', { limit: 500 }],
    ['newest_first=true', { newest_first: true }],
    ['newest_first=false', { newest_first: false }],
    ['ratio=-1.5e3', { ratio: -1500 }],
    ['from=2030-01-31T09:30:00%2B02:00', { from: '2030-01-31T09:30:00+02:00' }],
    ['status=DEAD', { status: ['DEAD'] }],
    ['status=DEAD&status=PENDING', { status: ['DEAD', 'PENDING'] }],
    ['attempts=1,2,3', { attempts: [1, 2, 3] }],
  ])('%s is read', async (query, expected) => {
    expect(await read(query)).toEqual(expected);
  });

  test.each([
    ['limit=0', 'The query parameter "limit" must be at least 1.'],
    ['limit=', 'The query parameter "limit" must be a whole number, not "".'],
    ['limit=07', 'The query parameter "limit" must be a whole number, not "07".'],
    ['limit=1.0', 'The query parameter "limit" must be a whole number, not "1.0".'],
    ['limit=%207', 'The query parameter "limit" must be a whole number, not " 7".'],
    ['limit=0x10', 'The query parameter "limit" must be a whole number, not "0x10".'],
    ['limit=5&limit=6', 'The query parameter "limit" must be a whole number, not a list.'],
    ['newest_first=1', 'The query parameter "newest_first" must be true or false, not "1".'],
    ['newest_first=TRUE', 'The query parameter "newest_first" must be true or false, not "TRUE".'],
    ['ratio=Infinity', 'The query parameter "ratio" must be a number, not "Infinity".'],
    ['status=dead', '"status/0" must be one of DEAD, PENDING; did you mean "DEAD"?'],
    ['attempts=1,,2', 'The query parameter "attempts/1" must be a whole number, not "".'],
    ['from=yesterday', 'must be an RFC 3339 timestamp such as 2030-01-31T09:30:00Z.'],
    ['limitt=5', 'The query parameter "limitt" is not a known query parameter; did you mean'],
    ['__proto__=5', 'The query parameter "__proto__" is not a known query parameter;'],
  ])('%s is refused', async (query, detail) => {
    const problem = await list(query);
    expect(problem).toMatchObject({ status: 422, code: 'INVALID_QUERY' });
    expect(problem['detail']).toContain(detail);
  });

  test('every fault is listed', async () => {
    const problem = await list('limit=x&from=y&z=1');
    expect(problem['errors']).toEqual([
      { pointer: '/z', message: expect.stringContaining('is not a known query parameter') },
      { pointer: '/limit', message: 'must be a whole number, not "x"' },
      { pointer: '/from', message: expect.stringContaining('RFC 3339') },
    ]);
  });

  test('defaults are filled in when asked', async () => {
    expect(await read('', filling)).toEqual({ limit: 50 });
    expect(await read('limit=3', filling)).toEqual({ limit: 3 });
  });
});

test('an operation says whether it minds an unknown query parameter', async () => {
  const get = (url: string, method: 'GET' | 'POST') => inject(app, { method, url, headers: token });
  expect((await get('/v1/tasks/1?x=1', 'GET')).json()).toMatchObject({
    code: 'INVALID_QUERY',
    errors: [{ pointer: '/x', message: 'is not a known query parameter; none is expected here' }],
  });
  expect((await get('/v1/admin/queues/mail:pause?x=1', 'POST')).statusCode).toBe(204);
});

test('a path parameter that can name nothing has its own code', async () => {
  const task = await inject(app, { url: '/v1/tasks/not-an-id', headers: token });
  expect(task.json()).toMatchObject({ status: 404, code: 'TASK_NOT_FOUND' });
});

test('a header parameter is checked under its documented name', async () => {
  const complete = (value: string) =>
    inject(app, {
      method: 'POST',
      url: '/v1/tasks/1:complete',
      headers: { ...token, 'x-lease-token': value },
    });
  expect((await complete('l'.repeat(17))).json()).toMatchObject({
    code: 'INVALID_TASK',
    detail: 'The header "X-Lease-Token" must have at most 16 characters.',
  });
  expect((await complete('l')).statusCode).toBe(200);
});
