const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** A new ULID: 48 bits of time, 80 of chance. On the platform's own clock, for it is for pages. */
export function newUlid(now: number = Date.now()): string {
  let time = '';
  for (let left = now, place = 0; place < 10; place++, left = Math.floor(left / 32)) {
    time = alphabet[left % 32] + time;
  }
  const chance = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte % 32);
  return time + chance.map((digit) => alphabet[digit]).join('');
}
