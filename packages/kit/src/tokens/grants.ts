import { globMatches } from './glob.js';

export interface Grant<Role extends string> {
  /** A name, or a glob such as `payments.*`. */
  queue: string;
  role: Role;
}

/** What a holder may do where. Each role contains those before it in the list of roles. */
export class Grants<Role extends string> {
  readonly #roles: readonly Role[];
  readonly #grants: readonly { glob: string; rank: number }[];

  constructor(roles: readonly Role[], grants: readonly Grant<Role>[]) {
    this.#roles = roles;
    this.#grants = grants.map(({ queue, role }) => ({ glob: queue, rank: this.#rankOf(role) }));
  }

  /** True when some grant on this name has the role or one that contains it. */
  allows(name: string, role: Role): boolean {
    const needed = this.#rankOf(role);
    return this.#grants.some(({ glob, rank }) => rank >= needed && globMatches(glob, name));
  }

  /** True when there is any name at all on which the role is held. */
  allowsSomewhere(role: Role): boolean {
    const needed = this.#rankOf(role);
    return this.#grants.some(({ rank }) => rank >= needed);
  }

  #rankOf(role: Role): number {
    const rank = this.#roles.indexOf(role);
    if (rank === -1) throw new Error(`${role} is not a role; roles are ${this.#roles.join(', ')}`);
    return rank;
  }
}
