const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Of the last id; the next one is greater, so that tasks keep their order within a millisecond. */
let lastTime = 0;
let lastChance = '';

/** A new ULID: 48 bits of time, 80 of chance. On the platform's own clock, for it is for pages. */
export function newUlid(now: number = Date.now()): string {
  let time = '';
  for (let left = now, place = 0; place < 10; place++, left = Math.floor(left / 32)) {
    time = alphabet[left % 32] + time;
  }
  let chance = '';
  if (now === lastTime) chance = successor(lastChance);
  else for (const byte of randomBytes()) chance += alphabet[byte % 32];
  lastTime = now;
  lastChance = chance;
  return time + chance;
}

/** The next greater one; the first one after the last. */
function successor(chance: string): string {
  const head = chance.replace(/Z+$/, '');
  const next = alphabet[alphabet.indexOf(head.at(-1) ?? 'Z') + 1] ?? '';
  return (head.slice(0, -1) + next).padEnd(chance.length, '0');
}

const bytesPerId = 16;
/** Filled for many ids at once, because each call costs as much as a whole id. */
const pool = new Uint8Array(64 * bytesPerId);
let used = pool.length;

function randomBytes(): Uint8Array {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  used += bytesPerId;
  return pool.subarray(used - bytesPerId, used);
}
