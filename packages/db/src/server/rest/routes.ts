import { dbRoutes } from '@millrace/contract/db';
import {
  Dispatcher,
  PathRouter,
  type Endpoint,
  type Exchange,
  type PathEntry,
  type Steps,
} from '@millrace/kit/http';
import { refuse } from '../../engine/refusal.js';
import { mostRequestBytes } from '../grpc/codec.js';
import { badField } from '../service/values.js';
import { Operation } from './operation.js';

export type Page = (exchange: Exchange) => Promise<void> | void;

/** What serves one method of one path: a method of the contract, or a page. */
export interface RestEndpoint extends Endpoint {
  readonly operation: Operation | undefined;
  readonly page: Page | undefined;
}

/** Every binding of the contract, and the pages beside them. */
export function restDispatcher(
  steps: Steps<RestEndpoint>,
  pages: ReadonlyMap<string, Page>,
): Dispatcher<RestEndpoint> {
  const dispatcher = new Dispatcher(steps, restRouter<PathEntry<RestEndpoint>>());
  for (const route of dbRoutes) {
    const operation = new Operation(route);
    dispatcher.add(route.method, route.path, {
      isPublic: false,
      // A stream has an end only when the caller leaves.
      takesHead: operation.forms === undefined,
      bodyLimitBytes: mostRequestBytes,
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

/** A `:` that stands for itself always begins a verb, and a key that has one is written `%3A`. */
export function restRouter<Leaf>(): PathRouter<Leaf> {
  return new PathRouter<Leaf>({
    isLiteral: true,
    undecodable: (name) => badField(name, 'is not UTF-8 behind its percent signs'),
  });
}

export function noSuchRoute(path: string): Error {
  const last = path.slice(path.lastIndexOf('/') + 1);
  // The likely cause, for keys such as user:1 are common.
  const hint = last.includes(':') ? ' A ":" in a key is sent as %3A.' : '';
  return refuse('NO_SUCH_ROUTE', `Nothing is served at this path; see /docs.${hint}`);
}
