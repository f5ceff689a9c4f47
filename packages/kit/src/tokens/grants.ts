import { globMatches } from './glob.js';

export interface Grant<Role extends string> {
  /** A name, or a glob such as `payments.*`. */
  queue: string;
  role: Role;
}

/**
 * Levels in ascending order; each role contains all roles of the levels before it. Roles that share
 * a level do not contain each other.
 */
export type RoleLevels<Role extends string> = readonly (Role | readonly Role[])[];

/** What a holder may do where. */
export class Grants<Role extends string> {
  readonly #ranks: ReadonlyMap<Role, number>;
  readonly #grants: readonly { glob: string; role: Role; rank: number }[];

  constructor(levels: RoleLevels<Role>, grants: readonly Grant<Role>[]) {
    const ranks = new Map<Role, number>();
    for (const [rank, level] of levels.entries()) {
      for (const role of typeof level === 'string' ? [level] : level) ranks.set(role, rank);
    }
    this.#ranks = ranks;
    this.#grants = grants.map(({ queue, role }) => ({
      glob: queue,
      role,
      rank: this.#rankOf(role),
    }));
  }

  /** True when some grant on this name has the role or one that contains it. */
  allows(name: string, role: Role): boolean {
    const needed = this.#rankOf(role);
    return this.#grants.some(
      (grant) => (grant.role === role || grant.rank > needed) && globMatches(grant.glob, name),
    );
  }

  /** True when there is any name at all on which the role is held. */
  allowsSomewhere(role: Role): boolean {
    const needed = this.#rankOf(role);
    return this.#grants.some((grant) => grant.role === role || grant.rank > needed);
  }

  #rankOf(role: Role): number {
    const rank = this.#ranks.get(role);
    if (rank !== undefined) return rank;
    throw new Error(`${role} is not a role; roles are ${[...this.#ranks.keys()].join(', ')}`);
  }
}
