import { dbMethods, type DbMethod } from '@millrace/contract/db';
import type { Request } from '../service/call.js';
import { wholeDatabase, type Principal } from '../access/principal.js';

const anywhere: ReadonlySet<DbMethod> = new Set(['BeginTx', 'CommitTx', 'RollbackTx']);

/** Refuses SCOPE unless the principal is allowed to make this call. */
export function checkScope<Rpc extends DbMethod>(
  principal: Principal,
  rpc: Rpc,
  request: Request<Rpc>,
): void {
  const { access } = dbMethods[rpc];
  // A replication peer reads the whole database.
  if ('peer' in request && request.peer) principal.check(wholeDatabase, 'admin');
  // Each operation of a transaction is checked separately.
  if (anywhere.has(rpc)) principal.checkSomewhere(access);
  else if (!('collection' in request)) principal.check(wholeDatabase, access);
  else if (request.collection === '' && rpc === 'Watch') principal.check(wholeDatabase, 'admin');
  else principal.check(String(request.collection), access);
}
