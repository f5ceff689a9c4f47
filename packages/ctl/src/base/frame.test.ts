import { expect, test } from 'vitest';
import type { Outlet } from './terminal.js';
import { Frame } from './frame.js';
import { plain } from '../render/paint.js';

function outlet(part: Partial<Outlet> & { rows?: number }): Outlet & { text: string } {
  const shown = {
    text: '',
    write: (text: string) => void (shown.text += text),
    writeRaw: (text: string | Uint8Array) => void (shown.text += text.toString()),
    paint: plain,
    colour: false,
    columns: 20,
    isScreen: true,
    stream: { write: () => true, ...(part.rows !== undefined && { rows: part.rows }) },
    capture: () => Promise.reject(new Error('not used')),
    drained: async () => {},
    ...part,
  };
  return shown;
}

test('each frame is drawn over the one before, long lines counted as the rows they take', () => {
  const out = outlet({});
  const frame = new Frame(out);
  frame.draw(`one\n${'x'.repeat(41)}\n`);
  expect(out.text).toBe(`one\n${'x'.repeat(41)}\n`);
  frame.draw('two\n');
  expect(out.text).toContain('\u001B[4A\u001B[Jtwo\n');
  frame.draw('three\n');
  expect(out.text).toContain('\u001B[1A\u001B[Jthree\n');
});

test('where nobody looks, frames come one after the other', () => {
  const out = outlet({ isScreen: false, columns: Infinity });
  const frame = new Frame(out);
  frame.draw('one\n');
  frame.draw('two\n');
  expect(out.text).toBe('one\ntwo\n');
  expect(frame.rows).toBe(Infinity);
});

test('there is room for as many rows as the window has, and for one at least', () => {
  expect(new Frame(outlet({ rows: 40 })).rows).toBe(37);
  expect(new Frame(outlet({ rows: 2 })).rows).toBe(1);
  expect(new Frame(outlet({})).rows).toBe(21);
});
