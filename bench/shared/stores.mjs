/** Opens a store of the queue as its server does; `setting` is `embedded` or a URL. */
export async function openStore(setting, dataDirectory) {
  const { openStore: open } = await import('../../packages/queue/dist/index.js');
  const { systemClock: clock } = await import('../../packages/kit/dist/base/clock-and-random.js');
  const { systemRandom: random } = await import('../../packages/kit/dist/base/clock-and-random.js');
  const { silentLog: log } = await import('../../packages/kit/dist/base/log.js');
  return open(setting, { clock, random, log, dataDirectory });
}

/** The part of a queue's config that a store reads. */
export const queueConfig = { callback: { protocol: 'pull' }, circuit_breaker: { enabled: false } };
