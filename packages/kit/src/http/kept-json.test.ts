import { expect, test } from 'vitest';
import { inject } from '../../test/http/inject.js';
import { sampleApp, sampleHandlers, token } from '../../test/http/sample-server.js';
import { KeptJson, keepJson } from './kept-json.js';

test('JSON is written once for a value that keeps coming, and anew for another', () => {
  let written = 0;
  const counted = (name: string) => ({ name, toJSON: () => (written++, { name }) });
  const keep = keepJson<ReturnType<typeof counted>>();
  const [first, second] = [counted('first'), counted('second')];
  expect([keep(first).text, keep(first).text]).toEqual(['{"name":"first"}', '{"name":"first"}']);
  expect(written).toBe(1);
  expect(keep(second).text).toBe('{"name":"second"}');
  expect(keep(first).text).toBe('{"name":"first"}');
  expect(written).toBe(3);
});

test('an answer with kept JSON is sent and checked as any other', async () => {
  const differences: string[] = [];
  const kept = { good: new KeptJson({ op: 'getTask', who: 'Zoë' }), bad: new KeptJson('a text') };
  const app = sampleApp({
    handlers: {
      ...sampleHandlers(),
      getTask: ({ params }) => ({ status: 200, body: kept[params.id as 'good' | 'bad'] as never }),
    },
    onUndocumentedAnswer: (difference) => differences.push(difference),
  });
  const answer = await inject(app, { url: '/v1/tasks/good', headers: token });
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.body)));
  expect(answer.json()).toEqual({ op: 'getTask', who: 'Zoë' });
  expect(differences).toEqual([]);
  await inject(app, { url: '/v1/tasks/bad', headers: token });
  expect(differences).toEqual([expect.stringContaining('does not fit its schema')]);
});
