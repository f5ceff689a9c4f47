import type { DbAccess } from '@millrace/contract/db';
import { Grants, type Grant } from '@millrace/kit/tokens';
import { refuse } from '@millrace/engine/value/refusal';

const accesses: readonly DbAccess[] = ['read', 'write', 'admin'];

/** All collections together; only a scope on `*` grants access to it. */
export const wholeDatabase = '*';

/** An authenticated caller and its access to collections. */
export class Principal {
  readonly #grants: Grants<DbAccess>;

  constructor(
    /** Identifies the caller in logs; owns its transactions. */
    readonly id: string,
    scopes: readonly { collections: string; access: DbAccess }[],
  ) {
    const grants = scopes.map(({ collections, access }): Grant<DbAccess> => ({
      queue: collections,
      role: access,
    }));
    this.#grants = new Grants(accesses, grants);
  }

  /** Refuses SCOPE unless the caller has this access to the collection. */
  check(collection: string, access: DbAccess): void {
    if (this.#grants.allows(collection, access)) return;
    const where = collection === wholeDatabase ? 'the whole database' : `"${collection}"`;
    throw noScope(this.id, access, where);
  }

  /** Refuses SCOPE unless the caller has this access to at least one collection. */
  checkSomewhere(access: DbAccess): void {
    if (!this.#grants.allowsSomewhere(access)) throw noScope(this.id, access, 'any collection');
  }
}

/** A caller on the Unix socket, or any caller of a server with `auth: none`. */
export const local = new Principal('local', [{ collections: '*', access: 'admin' }]);

function noScope(id: string, access: DbAccess, where: string): Error {
  return refuse('SCOPE', `The API key "${id}" does not give ${access} access to ${where}.`, {
    access,
  });
}
