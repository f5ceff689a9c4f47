import { afterEach, describe, expect, test, vi } from 'vitest';

const payloads = ['', 'plain', 'Grüße, 世界 🌍', { list: [1, null, true] }, 'x'.repeat(100_000)];

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

describe.each(['Node', 'other runtimes'])('payload: in %s', (runtime) => {
  const load = () => {
    if (runtime !== 'Node') vi.stubGlobal('Buffer', undefined);
    return import('./payload.js');
  };

  test('is base64 of its JSON, and comes back as it was', async () => {
    const expected = payloads.map((payload) =>
      Buffer.from(JSON.stringify(payload)).toString('base64'),
    );
    const { decodePayload, encodeBase64, encodeJson, payloadBytes, payloadContentType } =
      await load();
    const texts = payloads.map((payload) => encodeBase64(encodeJson(payload)));
    expect(texts).toEqual(expected);
    const decoded = texts.map((text) => decodePayload(payloadBytes(text), payloadContentType));
    expect(decoded).toEqual(payloads);
  });

  test('is bytes with memory of their own', async () => {
    const { decodePayload, payloadBytes } = await load();
    const bytes = decodePayload(payloadBytes('AP+A'), 'image/png') as Uint8Array;
    expect(bytes).toEqual(new Uint8Array([0, 255, 128]));
    expect(bytes.buffer.byteLength).toBe(3);
  });
});
