import { expect, test } from 'vitest';
import { inject } from '../../test/http/inject.js';
import { sampleApp, sampleHandlers, token } from '../../test/http/sample-server.js';
import { CachedJson, cacheJson } from './handlers.js';

test('JSON is serialized once for the same value, and again for another', () => {
  let written = 0;
  const counted = (name: string) => ({ name, toJSON: () => (written++, { name }) });
  const keep = cacheJson<ReturnType<typeof counted>>();
  const [first, second] = [counted('first'), counted('second')];
  expect([keep(first).text, keep(first).text]).toEqual(['{"name":"first"}', '{"name":"first"}']);
  expect(written).toBe(1);
  expect(keep(second).text).toBe('{"name":"second"}');
  expect(keep(first).text).toBe('{"name":"first"}');
  expect(written).toBe(3);
});

test('a response with cached JSON is sent and checked like any other', async () => {
  const differences: string[] = [];
  const cached = {
    good: new CachedJson({ op: 'getTask', who: 'Zoë' }),
    bad: new CachedJson('a text'),
  };
  const app = sampleApp({
    handlers: {
      ...sampleHandlers(),
      getTask: ({ params }) => ({
        status: 200,
        body: cached[params.id as 'good' | 'bad'] as never,
      }),
    },
    onUndocumentedResponse: (difference) => differences.push(difference),
  });
  const answer = await inject(app, { url: '/v1/tasks/good', headers: token });
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.body)));
  expect(answer.json()).toEqual({ op: 'getTask', who: 'Zoë' });
  expect(differences).toEqual([]);
  await inject(app, { url: '/v1/tasks/bad', headers: token });
  expect(differences).toEqual([expect.stringContaining('does not fit its schema')]);
});
