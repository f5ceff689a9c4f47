import type { DaemonPaths } from '@millrace/contract/daemon';
import createClient from 'openapi-fetch';
import { problemOf, unreachable } from './problem.js';
import { tokenStore } from './token.js';

/** `fetch` with the token, telling the shell when a server wants one. Throws an ApiProblem only
 * when no answer came. */
export async function authorizedFetch(request: Request): Promise<Response> {
  const token = tokenStore.current();
  if (token !== undefined) request.headers.set('authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw unreachable(error);
  }
  if (response.status === 401) tokenStore.want(token);
  return response;
}

/** The daemon's operations by method and path; prefer `call` around it. */
export const daemon = createClient<DaemonPaths>({
  baseUrl: location.origin,
  fetch: authorizedFetch,
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a success; anything else is thrown as an ApiProblem. */
export async function call<T>(answer: Promise<Answer<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await answer;
  if (!response.ok) throw problemOf(response.status, error);
  return data as NonNullable<T>;
}
