import createClient, { type Client } from 'openapi-fetch';

export interface ClientOptions {
  /** Where the server is, such as http://127.0.0.1:8081. */
  url: string;
  /** The bearer token, or how to get it for each request. */
  token?: string | (() => string | undefined) | undefined;
  /** Instead of the platform's own. */
  fetch?: (request: Request) => Promise<Response>;
}

/** The operations of a document by method and path: `client.GET('/api/v1/backends')`. */
export function requestsTo<Paths extends object>(options: ClientOptions): Client<Paths> {
  const { url, token, fetch } = options;
  const client = createClient<Paths>({ baseUrl: url, ...(fetch && { fetch }) });
  client.use({
    onRequest({ request }) {
      const secret = typeof token === 'function' ? token() : token;
      if (secret !== undefined) request.headers.set('authorization', `Bearer ${secret}`);
      return request;
    },
  });
  return client;
}
