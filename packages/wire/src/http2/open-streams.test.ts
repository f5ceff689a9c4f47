import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenStreams, type Http2Stream } from './stream.js';

const stream = (id: number) => ({ id }) as Http2Stream;

test('open streams behave like a map by ID', () => {
  const steps = fc.array(fc.tuple(fc.boolean(), fc.nat({ max: 5 })), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (taken) => {
      const open = new OpenStreams();
      const model = new Map<number, Http2Stream>();
      for (const [isAdded, id] of taken) {
        const known = model.get(id);
        if (isAdded && !known) {
          const fresh = stream(id);
          open.add(fresh);
          model.set(id, fresh);
        } else if (!isAdded && known) {
          open.delete(known);
          model.delete(id);
        }
        expect(open.size).toBe(model.size);
        for (let each = 0; each <= 5; each++) expect(open.get(each)).toBe(model.get(each));
        expect(new Set(open.all())).toEqual(new Set(model.values()));
      }
      open.clear();
      expect([open.size, open.all()]).toEqual([0, []]);
    }),
  );
});
