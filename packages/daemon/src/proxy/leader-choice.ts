import type { Clock } from '@millrace/kit/clock';

/** The role that a node of a database cluster reports. */
export interface NodeRole {
  role: string;
  epoch: number;
}

export interface LeaderChoiceParts {
  urls: readonly [URL, ...URL[]];
  /** Rejects when the node does not answer. */
  roleOf: (url: URL, signal: AbortSignal) => Promise<NodeRole>;
  clock: Clock;
}

/** How long a known leader is used without another check. */
const validMs = 1_000;
const roleTimeoutMs = 2_000;

/** Finds the leader among several nodes; a single address is used without a check. */
export class LeaderChoice {
  #chosen: { url: URL; at: number } | undefined;
  #choosing: Promise<URL> | undefined;

  constructor(private readonly parts: LeaderChoiceParts) {}

  async url(): Promise<URL> {
    const { urls, clock } = this.parts;
    if (urls.length === 1) return urls[0];
    if (this.#chosen && clock.monotonic() - this.#chosen.at < validMs) return this.#chosen.url;
    this.#choosing ??= this.#choose().finally(() => (this.#choosing = undefined));
    return this.#choosing;
  }

  /** The chosen node did not answer. */
  forget(): void {
    this.#chosen = undefined;
  }

  /** The leader of the newest epoch, else a node that answers, else the first. */
  async #choose(): Promise<URL> {
    const { urls, clock } = this.parts;
    const answers = await Promise.all(urls.map((url) => this.#query(url)));
    const present = answers.filter((answer) => answer !== undefined);
    const leaders = present
      .filter(({ role }) => role === 'leader')
      .toSorted((a, b) => b.epoch - a.epoch);
    const url = (leaders[0] ?? present[0])?.url ?? urls[0];
    this.#chosen = leaders[0] && { url, at: clock.monotonic() };
    return url;
  }

  async #query(url: URL): Promise<(NodeRole & { url: URL }) | undefined> {
    const { roleOf, clock } = this.parts;
    const timeout = new AbortController();
    const timer = clock.after(roleTimeoutMs, () => timeout.abort());
    try {
      return { url, ...(await roleOf(url, timeout.signal)) };
    } catch {
      // The request that is sent to it then reports the error.
      return undefined;
    } finally {
      timer.cancel();
    }
  }
}
