import { RecordCounter } from './frames.js';
import { expect, test } from 'vitest';
import { useScratch } from '../../../test/scratch.test-support.js';
import { fillWithVariety } from './backup.test-support.js';

const scratch = useScratch();

test.each(['snapshot', 'ndjson'] as const)(
  'record counter: counts the records of a %s as the trailer does',
  async (format) => {
    const db = await scratch.open();
    await fillWithVariety(db, 500);
    const counter = new RecordCounter(format);
    const steps: number[] = [];
    let trailer: { records: number } | undefined;
    for await (const part of db.backup({ format })) {
      if (part.kind === 'trailer') ({ trailer } = part);
      if (part.kind !== 'data') continue;
      // As a network cuts it.
      const middle = Math.floor(part.bytes.length / 2);
      for (const piece of [part.bytes.subarray(0, middle), part.bytes.subarray(middle)]) {
        counter.push(piece);
        steps.push(counter.records);
      }
    }
    expect(counter.records).toBe(trailer?.records);
    expect(steps[0]).toBeLessThan(counter.records);
  },
);
