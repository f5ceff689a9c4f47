import { dbRoutes } from '@millrace/contract/db';
import {
  Dispatcher,
  PathRouter,
  type Endpoint,
  type Exchange,
  type PathEntry,
  type Steps,
} from '@millrace/kit/http';
import { refuse } from '@millrace/engine/value/documents';
import { requestLimit } from '../grpc/codec.js';
import { badField } from '../service/records.js';
import { hasBulkLines } from './bulk-lines.js';
import { Operation } from './operation.js';

export type Page = (exchange: Exchange) => Promise<void> | void;

/** Handler of one method and path: an operation of the contract or a page. */
export interface RestEndpoint extends Endpoint {
  readonly operation: Operation | undefined;
  readonly page: Page | undefined;
}

/** Routes for all HTTP bindings of the contract and the pages. */
export function restDispatcher(
  steps: Steps<RestEndpoint>,
  pages: ReadonlyMap<string, Page>,
): Dispatcher<RestEndpoint> {
  const dispatcher = new Dispatcher(steps, restRouter<PathEntry<RestEndpoint>>());
  for (const route of dbRoutes) {
    const operation = new Operation(route);
    dispatcher.add(route.method, route.path, {
      isPublic: false,
      // A stream may never end, so HEAD is not supported for it.
      takesHead: operation.forms === undefined,
      bodyLimitBytes: requestLimit(route.rpc),
      streamsBody: route.rpc === 'BulkWrite' ? hasBulkLines : undefined,
      operation,
      page: undefined,
    });
  }
  for (const [path, page] of pages) {
    const endpoint = { isPublic: true, bodyLimitBytes: undefined, operation: undefined, page };
    dispatcher.add('GET', path, endpoint);
  }
  return dispatcher;
}

/** A literal `:` starts a custom verb; a `:` in a key must be written `%3A`. */
export function restRouter<Leaf>(): PathRouter<Leaf> {
  return new PathRouter<Leaf>({
    isLiteral: true,
    undecodable: (name) => badField(name, 'is not UTF-8 after percent-decoding'),
  });
}

export function noSuchRoute(path: string): Error {
  const last = path.slice(path.lastIndexOf('/') + 1);
  // The likely cause, because keys such as user:1 are common.
  const hint = last.includes(':') ? ' Send a ":" in a key as %3A.' : '';
  return refuse('NO_SUCH_ROUTE', `Nothing is served at this path; see /docs.${hint}`);
}
