import type { Outbound, OutboundOutcome } from '@millrace/kit/outbound';
import { expect, test } from 'vitest';
import { probeLocal, defaultLocalUrl } from './detection.js';

const refused: OutboundOutcome = {
  ok: false,
  errorType: 'CONNECTION_REFUSED',
  message: 'refused',
  durationMs: 0,
};

function answered(body: unknown, status = 200): OutboundOutcome {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return {
    ok: true,
    status,
    headers: {},
    body: Buffer.from(text),
    truncated: false,
    remoteIp: '127.0.0.1',
    durationMs: 0,
  };
}

/** A network in which these URLs answer and nothing else does. */
function network(answers: Record<string, OutboundOutcome>): Outbound & { requested: string[] } {
  const requested: string[] = [];
  return {
    requested,
    request: async ({ url }) => {
      requested.push(url);
      return answers[url] ?? refused;
    },
    close: async () => undefined,
  };
}

const tags = { models: [{ name: 'llama3:8b', model: 'llama3:8b' }, { name: 'qwen' }] };
const list = { object: 'list', data: [{ id: 'phi' }] };

test('Ollama is known by its tags', async () => {
  const outbound = network({ [`${defaultLocalUrl}/api/tags`]: answered(tags) });
  expect(await probeLocal(outbound, defaultLocalUrl)).toEqual({
    url: defaultLocalUrl,
    protocol: 'ollama',
    models: ['llama3:8b', 'qwen'],
  });
});

test('what others serve at their own ports is found behind the usual address', async () => {
  for (const url of ['http://127.0.0.1:1234', 'http://127.0.0.1:8080']) {
    const outbound = network({ [`${url}/v1/models`]: answered(list) });
    expect(await probeLocal(outbound, defaultLocalUrl)).toEqual({
      url,
      protocol: 'openai',
      models: ['phi'],
    });
  }
});

test('of several the usual one is taken', async () => {
  const outbound = network({
    'http://127.0.0.1:1234/v1/models': answered(list),
    [`${defaultLocalUrl}/v1/models`]: answered({ data: [] }),
  });
  expect(await probeLocal(outbound, defaultLocalUrl)).toMatchObject({ url: defaultLocalUrl });
});

test('an address that somebody set is the only one looked at', async () => {
  const outbound = network({ 'http://127.0.0.1:1234/v1/models': answered(list) });
  expect(await probeLocal(outbound, 'http://models.lan:9/')).toBe(undefined);
  expect(outbound.requested).toEqual([
    'http://models.lan:9/api/tags',
    'http://models.lan:9/v1/models',
  ]);
});

test.each([
  ['a web page', answered('<html></html>')],
  ['another API', answered({ status: 'ok' })],
  ['a list of something else', answered({ models: ['a'], data: [{ name: 'b' }] })],
  ['an error', answered(tags, 500)],
  ['a redirect', answered('', 302)],
  ['half an answer', { ...answered(tags), truncated: true } as OutboundOutcome],
])('%s is no model', async (_, answer) => {
  const outbound = network({ 'http://x:1/api/tags': answer, 'http://x:1/v1/models': answer });
  expect(await probeLocal(outbound, 'http://x:1')).toBe(undefined);
});
