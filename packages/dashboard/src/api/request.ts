import { ApiError } from '@millrace/client';
import { authorizedFetch } from './client.js';

interface RequestOptions {
  body?: object;
  headers?: Readonly<Record<string, string>>;
  /** Reads the error of the server; by default a problem document. */
  errorOf?: (status: number, body: unknown) => Error;
}

/** Calls a server behind the daemon with JSON. Throws an ApiError on anything but a success. */
export async function requestJson<T>(
  method: string,
  url: string,
  { body, headers = {}, errorOf = problem }: RequestOptions = {},
): Promise<T> {
  const response = await authorizedFetch(url, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const result: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw errorOf(response.status, result);
  return result as T;
}

const problem = (status: number, body: unknown) => new ApiError(status, body);
