import { expect, test } from 'vitest';
import { jsonLines } from './json-lines.js';

test('jsonLines: chunk boundaries do not matter', async () => {
  const bytes = new TextEncoder().encode('{"a":"é"}\n{"b":2}\n\n{"c":');
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const lines: unknown[] = [];
  for await (const line of jsonLines(stream)) lines.push(line);
  expect(lines).toEqual([{ a: 'é' }, { b: 2 }]);
});
