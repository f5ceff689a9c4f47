import { freeName, isLive } from '../core/session-names.js';
import type { Session } from './port.js';

/** Keeps names unique among live sessions, also while several are being spawned. */
export class NameReservations {
  readonly #reserved = new Set<string>();

  constructor(private readonly sessions: () => readonly Session[]) {}

  /** Runs with the wanted name or a free variant of it, which stays reserved meanwhile. */
  async reserve<Result>(wanted: string, run: (name: string) => Promise<Result>): Promise<Result> {
    const live = this.sessions().filter(isLive);
    const name = freeName(wanted, new Set([...live.map((each) => each.name), ...this.#reserved]));
    this.#reserved.add(name);
    try {
      return await run(name);
    } finally {
      this.#reserved.delete(name);
    }
  }
}
