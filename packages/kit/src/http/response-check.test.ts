import { describe, expect, test } from 'vitest';
import { inject } from '../../test/http/inject.js';
import { sampleApp, sampleHandlers, token } from '../../test/http/sample-server.js';
import type { SampleOptions } from '../../test/http/sample-server.js';
import { Refusal } from '../base/errors.js';

type Sample = ReturnType<typeof sampleHandlers>;

/** What is reported when `getTask` and others answer in ways the document does not know. */
async function reported(handlers: Partial<Record<keyof Sample, unknown>>, url: string) {
  const differences: string[] = [];
  const app = sampleApp({
    handlers: { ...sampleHandlers(), ...handlers } as NonNullable<SampleOptions['handlers']>,
    onUndocumentedResponse: (difference) => differences.push(difference),
  });
  await inject(app, { url, headers: token });
  return differences;
}

const getTask = (answer: unknown) => reported({ getTask: () => answer }, '/v1/tasks/1');

describe('an undocumented response is reported', () => {
  test('by its status', async () => {
    expect(await getTask({ status: 201, body: {} })).toEqual([
      'getTask responds with 201, which is not documented',
    ]);
  });

  test('by its schema, as it is sent', async () => {
    expect(await getTask({ status: 200, body: [] })).toEqual([
      'The 200 response of getTask does not fit its schema:  must be an object, not a list',
    ]);
    expect(await getTask({ status: 200, body: { at: new Date(0), gone: undefined } })).toEqual([]);
  });

  test('by its media type or the lack of a body', async () => {
    expect(await getTask({ status: 200, contentType: 'text/html', content: 'x' })).toEqual([
      'The 200 response of getTask is text/html, which is not documented',
    ]);
    expect(await getTask({ status: 200 })).toEqual(['The 200 response of getTask has no body']);
  });

  test('by its code', async () => {
    const throwing = (code: string) => () => {
      throw new Refusal(code, 'No.');
    };
    expect(await reported({ getTask: throwing('BUSY') }, '/v1/tasks/1')).toEqual([
      'getTask responds with BUSY, which is not in its x-codes',
      'getTask responds with 503, which is not documented',
    ]);
    expect(await reported({ getTask: throwing('TASK_NOT_FOUND') }, '/v1/tasks/1')).toEqual([]);
  });
});
