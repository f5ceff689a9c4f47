import { ApiError, createDaemonClient } from '@millrace/client';
import { tokenStore } from './token.js';

/**
 * `fetch` with the token. A 401 makes the shell show the login page. Throws an ApiError with
 * status 0 when the daemon cannot be reached.
 */
export async function authorizedFetch(url: string, init: RequestInit = {}): Promise<Response> {
  const token = tokenStore.current();
  const headers = new Headers(init.headers);
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable(error);
  }
  if (response.status === 401) tokenStore.requireLogin(token);
  return response;
}

/** The daemon's operations by operationId. */
export const daemon = createDaemonClient({ url: location.origin, fetch: authorizedFetch });

function unreachable(cause: unknown): ApiError {
  const error = new ApiError(0, {
    code: 'UNREACHABLE',
    detail: 'Cannot reach the daemon. Start it with: ctl up',
  });
  error.cause = cause;
  return error;
}
