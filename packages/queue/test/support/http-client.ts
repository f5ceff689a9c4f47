import { Agent, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';

export interface TestRequest {
  method?: string;
  /** Sent as it is, also when it is no good path. */
  path: string;
  token?: string | undefined;
  headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, anything else as JSON. */
  body?: unknown;
  /** Instead of application/json; null: none. */
  contentType?: string | null;
}

export interface TestResponse<Body = Record<string, unknown>> {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** The body as JSON; undefined when there is none. */
  body: Body;
}

export type SendRequest = <Body = Record<string, unknown>>(
  request: TestRequest,
) => Promise<TestResponse<Body>>;

/** Sends requests with plain node:http, which corrects nothing on the way. */
export function httpClient(baseUrl: string): SendRequest & { close(): void } {
  const { hostname, port } = new URL(baseUrl);
  const agent = new Agent({ keepAlive: true });
  const send = <Body>(request: TestRequest) =>
    new Promise<TestResponse<Body>>((resolve, reject) => {
      const { method = 'GET', path, token, headers = {} } = request;
      const bytes = bytesOf(request.body);
      const type = request.contentType === undefined ? 'application/json' : request.contentType;
      const sent = httpRequest(
        {
          hostname,
          port,
          method,
          path,
          agent,
          headers: {
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
            ...(bytes && { 'content-length': bytes.length }),
            ...(bytes && type !== null && { 'content-type': type }),
            ...headers,
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            const isJson = /json/.test(response.headers['content-type'] ?? '');
            resolve({
              status: response.statusCode!,
              headers: response.headers,
              text,
              body: (isJson && text !== '' ? JSON.parse(text) : undefined) as Body,
            });
          });
        },
      );
      sent.on('error', (error: NodeJS.ErrnoException) => {
        // The server may close an idle connection just as a slow machine uses it again.
        const isClosed = sent.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(error.code ?? '');
        if (isClosed) resolve(send<Body>(request));
        else reject(error);
      });
      sent.end(bytes);
    });
  return Object.assign(send, { close: () => agent.destroy() });
}

function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (typeof body === 'string') return Buffer.from(body);
  return body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
}
