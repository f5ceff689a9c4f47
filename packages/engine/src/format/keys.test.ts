import fc from 'fast-check';
import { expect, test } from 'vitest';
import { copyIdText, idBytes, idLength, readId } from './keys.js';

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The 26 characters of 128 bits, digit by digit. */
function slowText(bytes: Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  let text = '';
  for (let i = 0; i < 26; i++, rest >>= 5n) text = alphabet[Number(rest & 31n)]! + text;
  return text;
}

test('ids: bytes and text are the same number, at any offset', () => {
  const ids = fc.uint8Array({ minLength: idLength, maxLength: idLength });
  fc.assert(
    fc.property(ids, fc.nat({ max: 9 }), (id, offset) => {
      const source = Buffer.alloc(offset + idLength + 3, 0xff);
      source.set(id, offset);
      const text = readId(source, offset);
      expect(text).toBe(slowText(id));
      expect(idBytes(text)).toEqual(Buffer.from(id));
      const target = Buffer.alloc(offset + 28, '.');
      copyIdText(source, offset, target, offset + 1);
      expect(target.toString('latin1')).toBe(`${'.'.repeat(offset + 1)}${text}.`);
    }),
  );
});
