import { ApiError } from './api-error.js';

export interface ClientOptions {
  /** Where the server is, such as http://127.0.0.1:8081. */
  url: string;
  /** The bearer token, or how to get it for each request. */
  token?: string | (() => string | undefined) | undefined;
  /** Replaces the platform's own. */
  fetch?: Fetch;
}

/** The part of `fetch` that a client needs. */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    body?: string;
    signal?: AbortSignal;
    redirect?: 'manual';
  },
) => Promise<FetchResponse>;

export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

interface Route {
  readonly method: string;
  readonly path: string;
}

/** The shape in which openapi-typescript describes an operation. */
interface Described {
  parameters: object;
  responses: object;
}

type PathOf<Operation extends Described> = Operation['parameters'] extends {
  path: infer Path extends object;
}
  ? { path: Path }
  : { path?: undefined };

type QueryOf<Operation extends Described> = Operation['parameters'] extends {
  query?: infer Query;
}
  ? { query?: Query | undefined }
  : { query?: undefined };

type BodyOf<Operation> = Operation extends {
  requestBody: { content: { 'application/json': infer Body } };
}
  ? { body: Body }
  : Operation extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? { body?: Body | undefined }
    : { body?: undefined };

/** What an operation takes. */
export type OperationRequest<Operation extends Described> = PathOf<Operation> &
  QueryOf<Operation> &
  BodyOf<Operation> & { headers?: Readonly<Record<string, string>>; signal?: AbortSignal };

type SuccessStatus = 200 | 201 | 202 | 207;

/** The body of an operation's success. */
export type OperationResult<Operation extends Described> = {
  [Status in keyof Operation['responses'] & SuccessStatus]: Operation['responses'][Status] extends {
    content: { 'application/json': infer Body };
  }
    ? Body
    : undefined;
}[keyof Operation['responses'] & SuccessStatus];

type Arguments<Request> = object extends Request ? [request?: Request] : [request: Request];

export interface ApiResponse<Body> {
  readonly status: number;
  readonly headers: FetchResponse['headers'];
  readonly body: Body;
}

/** The operations of one server, by operationId. Anything but a success throws an ApiError. */
export interface ApiClient<Operations> {
  readonly url: string;
  /** The body of a success. */
  call<Id extends keyof Operations>(
    operation: Id,
    ...request: Arguments<OperationRequest<Operations[Id] & Described>>
  ): Promise<OperationResult<Operations[Id] & Described>>;
  /** The same with status and headers. */
  send<Id extends keyof Operations>(
    operation: Id,
    ...request: Arguments<OperationRequest<Operations[Id] & Described>>
  ): Promise<ApiResponse<OperationResult<Operations[Id] & Described>>>;
}

interface AnyRequest {
  path?: Readonly<Record<string, unknown>> | undefined;
  query?: Readonly<Record<string, unknown>> | undefined;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

export function createClient<Operations>(
  routes: Readonly<Record<keyof Operations, Route>>,
  { url, token, fetch = globalThis.fetch }: ClientOptions,
): ApiClient<Operations> {
  const base = url.replace(/\/+$/, '');
  const send = async (operation: keyof Operations, request: AnyRequest = {}) => {
    const { method, path } = routes[operation];
    const bearer = typeof token === 'function' ? token() : token;
    const response = await fetch(`${base}${targetOf(path, request)}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(request.body !== undefined && { 'content-type': 'application/json' }),
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...request.headers,
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      ...(request.signal && { signal: request.signal }),
      // The servers never redirect; another address must not get the token or the body.
      redirect: 'manual',
    });
    const { status, headers } = response;
    const body = jsonOf(await response.text());
    const isSuccess = status >= 200 && status < 300 && (body !== undefined || status === 204);
    if (!isSuccess) throw new ApiError(status, body, retryAfterMs(headers));
    return { status, headers, body };
  };
  return {
    url: base,
    call: async (operation: keyof Operations, request?: AnyRequest) =>
      (await send(operation, request)).body,
    send,
    // The server holds itself to the contract, and its tests hold it to that.
  } as ApiClient<Operations>;
}

function targetOf(template: string, { path = {}, query = {} }: AnyRequest): string {
  const target = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    // Without it the path would be that of another operation.
    if (path[name] === '') throw new TypeError(`The ${name} must not be empty.`);
    return encodeURIComponent(String(path[name]));
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (each !== undefined) search.append(name, String(each));
    }
  }
  const text = search.toString();
  return text === '' ? target : `${target}?${text}`;
}

/** Undefined for text that is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function retryAfterMs(headers: FetchResponse['headers']): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}
