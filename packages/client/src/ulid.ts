const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** A new ULID: 48 bits of time, 80 of chance. On the platform's own clock, for it is for pages. */
export function newUlid(now: number = Date.now()): string {
  let time = '';
  for (let left = now, place = 0; place < 10; place++, left = Math.floor(left / 32)) {
    time = alphabet[left % 32] + time;
  }
  let chance = '';
  for (const byte of randomBytes()) chance += alphabet[byte % 32];
  return time + chance;
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
