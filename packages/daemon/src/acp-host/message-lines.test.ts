import { expect, test } from 'vitest';
import { messageLines, type HostEvent } from './host-events.js';

async function passed(chunks: readonly Buffer[], limit?: number) {
  const events: HostEvent[] = [];
  const lines = messageLines((event) => events.push(event), limit);
  let text = '';
  lines.on('data', (data: Buffer) => (text += data.toString()));
  for (const chunk of chunks) lines.write(chunk);
  await new Promise<void>((resolve) => lines.end(resolve));
  return { text, events };
}

test('message lines: messages pass, banners are logged, blank lines are dropped', async () => {
  const bytes = Buffer.from('Wärm up\n{"a":"ü"}\n \n\t{"b":1}\r\nbye\n{"unfinished"');
  const byByte = [...bytes].map((byte) => Buffer.of(byte));
  for (const chunks of [[bytes], byByte]) {
    const { text, events } = await passed(chunks);
    expect(text).toBe('{"a":"ü"}\n\t{"b":1}\r\n');
    expect(events).toEqual([
      { type: 'log', text: 'Wärm up' },
      { type: 'log', text: 'bye' },
    ]);
  }
});

test('message lines: a line without end is dropped at the limit, and the next one passes', async () => {
  const chunks = Array.from({ length: 100 }, () => Buffer.from('{'.repeat(10)));
  const { text, events } = await passed([...chunks, Buffer.from('\n{"next":1}\n')], 64);
  expect(text).toBe('{"next":1}\n');
  expect(events).toEqual([{ type: 'error', text: 'a message above 64 bytes was dropped' }]);
});
