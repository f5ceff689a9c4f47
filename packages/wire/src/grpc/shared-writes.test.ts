import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  callFrames,
  emptySettings,
  frame,
  framesOf,
  frameTypes,
  preface,
} from './frames.test-support.js';
import {
  framed,
  openSession,
  rawCall,
  startTransport,
  type TestTransport,
} from './transport.test-support.js';

let server: TestTransport;

beforeEach(async () => {
  server = await startTransport();
});
afterEach(() => server.close());

/** Lets the peer's windows be as large as they can. */
function widest(): Buffer {
  const window = Buffer.alloc(6);
  window.writeUInt16BE(4, 0);
  window.writeUInt32BE(2 ** 31 - 1, 2);
  const more = Buffer.alloc(4);
  more.writeUInt32BE(2 ** 31 - 65_536, 0);
  return Buffer.concat([frame(frameTypes.settings, 0, 0, window), frame(8, 0, 0, more)]);
}

test('queued responses of one client are not overwritten by those of others', async () => {
  const slow = await server.dial();
  slow.pause();
  const count = 40_000;
  slow.write(
    Buffer.concat([
      preface,
      emptySettings,
      widest(),
      callFrames(1, '/t.T/Count', framed(Buffer.from(`${count} 200`))),
    ]),
  );
  const session = openSession(server.url);
  for (let n = 0; n < 300; n++) {
    const text = `other ${n} `.repeat(300);
    const { body } = await rawCall(session, '/t.T/Echo', framed(Buffer.from(text)));
    expect(body.subarray(5).toString()).toBe(text);
  }
  session.close();

  const chunks: Buffer[] = [];
  let bytes = 0;
  slow.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
  });
  slow.resume();
  await expect.poll(() => bytes).toBeGreaterThan(count * 205);
  const data = framesOf(Buffer.concat(chunks)).filter(({ type }) => type === frameTypes.data);
  const body = Buffer.concat(data.map(({ payload }) => payload));
  const expected = Array.from({ length: count }, (_, n) =>
    framed(Buffer.from(String(n).padEnd(200))),
  );
  expect(body.equals(Buffer.concat(expected))).toBe(true);
  slow.destroy();
});
