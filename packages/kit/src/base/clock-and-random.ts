/**
 * Time as a dependency. Everything that reads the time or waits for it takes a `Clock`, so that
 * a simulation can run days in seconds and a test never sleeps.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. May jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds from an arbitrary start that never go backwards: for durations. */
  monotonic(): number;
  /** Calls `run` once after `delayMs`. The timer never keeps the process alive by itself. */
  after(delayMs: number, run: () => void): Timer;
  /** Resolves after `delayMs`, or rejects with the signal's reason when it is aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

export interface Timer {
  cancel(): void;
}

// setTimeout treats a longer delay as 1 ms, which would turn "in 30 days" into "now".
const maxTimeoutMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delayMs, run) => startTimer(delayMs, run),
  sleep: (delayMs, signal) => sleepOn(systemClock, delayMs, signal),
};

/** `sleep` for any clock that has `after`. */
export function sleepOn(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function startTimer(delayMs: number, run: () => void): Timer {
  let handle: NodeJS.Timeout;
  const arm = (leftMs: number) => {
    const stepMs = Math.min(leftMs, maxTimeoutMs);
    handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs);
    handle.unref();
  };
  if (Number.isNaN(delayMs)) throw new RangeError('A timer needs a delay, not NaN');
  // Node cuts fractions off, which would fire early.
  arm(Math.max(0, Math.ceil(delayMs)));
  return { cancel: () => clearTimeout(handle) };
}

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

/** Randomness as a dependency: from the system in a server, from a seed in a simulation. */
export interface Random {
  /** A number from 0 up to, not including, 1. */
  next(): number;
  /** An integer from `low` to `high`, inclusive. */
  integer(low: number, high: number): number;
  /** Random bytes. */
  bytes(length: number): Uint8Array;
  /** A ULID for time `now`, greater than every earlier one. */
  ulid(now: number): string;
}

// One system call serves many small requests.
const pool = new Uint8Array(16_384);
let poolUsed = pool.length;

/** Loaded on first use: loading it takes longer than all else that a status line does. */
function fillRandomly(target: Uint8Array): void {
  process.getBuiltinModule('node:crypto').randomFillSync(target);
}

function fillFromPool(target: Uint8Array): void {
  if (target.length > pool.length / 4) {
    fillRandomly(target);
    return;
  }
  if (poolUsed + target.length > pool.length) {
    fillRandomly(pool);
    poolUsed = 0;
  }
  target.set(pool.subarray(poolUsed, poolUsed + target.length));
  // The bytes may become secrets, so they are erased from the pool.
  pool.fill(0, poolUsed, poolUsed + target.length);
  poolUsed += target.length;
}

/** Cryptographically strong. */
export const systemRandom: Random = fromBytes(fillFromPool);

/**
 * The same seed gives the same sequence on every machine. xoshiro128**, seeded by splitmix32:
 * good statistics, no secrecy.
 */
export function seededRandom(seed: number): Random {
  let mix = seed >>> 0;
  const splitmix = () => {
    mix = (mix + 0x9e3779b9) >>> 0;
    let z = mix;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
  let [a, b, c, d] = [splitmix(), splitmix(), splitmix(), splitmix()];
  const word = () => {
    const scrambled = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotateLeft(d, 11);
    return scrambled;
  };
  return fromBytes((target) => {
    for (let i = 0; i < target.length; i += 4) {
      const bits = word();
      for (let j = 0; j < 4 && i + j < target.length; j++) target[i + j] = bits >>> (8 * j);
    }
  });
}

function fromBytes(fill: (target: Uint8Array) => void): Random {
  const eight = new Uint8Array(8);
  const view = new DataView(eight.buffer);
  const next = () => {
    fill(eight);
    // 53 bits, the most a double holds exactly.
    return (view.getUint32(0) * 2 ** 21 + (view.getUint32(4) >>> 11)) / 2 ** 53;
  };
  return {
    next,
    integer: (low, high) => low + Math.floor(next() * (high - low + 1)),
    bytes: (length) => {
      const bytes = new Uint8Array(length);
      fill(bytes);
      return bytes;
    },
    ulid: monotonicUlids(fill),
  };
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
