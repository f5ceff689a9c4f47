/**
 * ULIDs: 48 bits of milliseconds and 80 random bits, as 26 Crockford base32 characters that sort by
 * time.
 */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const pattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i;
const timeLength = 10;
const randomLength = 16;

/** True for 26 Crockford characters, in either case, that fit 128 bits. */
export function isUlid(text: string): boolean {
  return pattern.test(text);
}

/** The canonical form of a valid ULID; check it with `isUlid` first. */
export function normalizeUlid(text: string): string {
  return text.toUpperCase();
}

/** The timestamp of a ULID in milliseconds. */
export function ulidTime(ulid: string): number {
  let time = 0;
  for (let i = 0; i < timeLength; i++) time = time * 32 + alphabet.indexOf(ulid[i]!);
  return time;
}

// All values of the last two characters, which change with every id.
const pairs = Array.from(
  { length: 1024 },
  (_, value) => alphabet[value >>> 5]! + alphabet[value & 31]!,
);
const codes = Uint8Array.from(alphabet, (letter) => letter.charCodeAt(0));

/**
 * Generates strictly increasing ULIDs, even within one millisecond and when the clock is set back:
 * the random part is incremented then, and an overflow carries into the time.
 */
export function monotonicUlids(fillRandom: (bytes: Uint8Array) => void): (now: number) => string {
  const bytes = new Uint8Array(randomLength);
  // The 5-bit digits of the last id, without the last two, which are `low`.
  const digits = new Uint8Array(timeLength + randomLength - 2);
  let lastTime = -1;
  let low = 0;
  let head = '';

  const seed = (time: number) => {
    writeTime(digits, time);
    lastTime = time;
    fillRandom(bytes);
    for (let i = 0; i < randomLength - 2; i++) digits[timeLength + i] = bytes[i]! & 31;
    low = ((bytes[randomLength - 2]! & 31) << 5) | (bytes[randomLength - 1]! & 31);
    head = textOf(digits);
  };
  const carry = () => {
    let at = digits.length - 1;
    while (at >= timeLength && digits[at] === 31) digits[at--] = 0;
    if (at < timeLength) return seed(lastTime + 1);
    digits[at]!++;
    low = 0;
    head = textOf(digits);
  };

  return (now) => {
    if (now > lastTime) seed(now);
    else if (!(now >= 0)) throw unfitTime(now);
    else if (low < 1023) low++;
    else carry();
    // Joining two parts is several times faster than joining 26 characters.
    return head + pairs[low]!;
  };
}

function textOf(digits: Uint8Array): string {
  return String.fromCharCode(...digits.map((digit) => codes[digit]!));
}

function writeTime(digits: Uint8Array, time: number): void {
  if (!Number.isInteger(time) || time < 0 || time >= 2 ** 48) throw unfitTime(time);
  for (let i = timeLength - 1, left = time; i >= 0; i--) {
    digits[i] = left % 32;
    left = Math.floor(left / 32);
  }
}

function unfitTime(time: number): RangeError {
  return new RangeError(`A ULID holds times from 0 to 2^48-1 ms, not ${time}`);
}
