import { lookup } from 'node:dns/promises';
import type { Clock } from '../base/clock.js';

/** The addresses of a host name in the order in which to try them; rejects when there are none. */
export type Resolver = (host: string) => Promise<readonly string[]>;

/** The system resolver: hosts file, search domains, DNS. */
export const systemResolver: Resolver = async (host) => {
  const answers = await lookup(host, { all: true, verbatim: true });
  return answers.map((answer) => answer.address);
};

// Long enough to serve a burst, short enough that one stuck lookup does not hold a host for good.
const sharedForMs = 5_000;

/**
 * Shares one lookup between concurrent requests for a name. The system resolver has four threads,
 * which a burst of new connections would block. Results are not cached.
 */
export function sharedLookups(resolver: Resolver, clock: Clock): Resolver {
  const running = new Map<string, { startedAt: number; answer: Promise<readonly string[]> }>();
  return (host) => {
    const startedAt = clock.monotonic();
    const current = running.get(host);
    if (current !== undefined && startedAt - current.startedAt < sharedForMs) return current.answer;
    const answer = resolver(host).finally(() => {
      if (running.get(host)?.answer === answer) running.delete(host);
    });
    running.set(host, { startedAt, answer });
    return answer;
  };
}
