import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';

export interface EtcdOptions {
  /** Base URLs. The next one is used when one fails. */
  endpoints: readonly string[];
  clock: Clock;
  /** Timeout of one request to one endpoint. */
  timeoutMs: number;
  tls?: { ca?: Buffer | undefined; cert?: Buffer | undefined; key?: Buffer | undefined };
  user?: { name: string; password: string } | undefined;
}

export interface KeyValue {
  key: string;
  value: string;
  modRevision: string;
  /** Id of the lease that the key belongs to; "0": none. */
  lease: string;
}

/** A condition of a transaction: the key was last changed at this revision; "0": it is absent. */
export interface Compare {
  key: string;
  modRevision: string;
}

export type Operation =
  { put: string; value: string; lease?: string | undefined } | { delete: string };

/** What a cluster needs from etcd. */
export interface EtcdPort {
  grant(ttlSeconds: number): Promise<{ id: string; ttlMs: number }>;
  /** False: the lease has expired. */
  keepAlive(id: string): Promise<boolean>;
  revoke(id: string): Promise<void>;
  /** All keys that start with `prefix`, as one consistent state. */
  list(prefix: string): Promise<KeyValue[]>;
  /** Carries out all operations if every condition holds; false if not. */
  transact(compares: readonly Compare[], operations: readonly Operation[]): Promise<boolean>;
  close(): void;
}

/** etcd did not answer, or refused the request. */
export class EtcdError extends Error {
  constructor(
    message: string,
    /** The gRPC code that etcd answered with; undefined: no answer. */
    readonly code?: number | undefined,
  ) {
    super(message);
  }
}

const maxAnswerBytes = 4 * 2 ** 20;
const unauthenticated = 16;
/** etcd hashes the password, which may take seconds on a busy machine. */
const minLogInTimeoutMs = 5_000;
const maxShownLength = 200;
const leaseNotFound = 5;

type Json = Readonly<Record<string, unknown>>;

/** The calls that a cluster needs, over the JSON gateway of etcd's v3 API. */
export class Etcd implements EtcdPort {
  readonly #agent: HttpAgent | HttpsAgent;
  #current = 0;
  #token: string | undefined;
  #loggingIn: Promise<void> | undefined;

  constructor(private readonly options: EtcdOptions) {
    const isSecure = options.endpoints.some((url) => url.startsWith('https:'));
    this.#agent = isSecure
      ? new HttpsAgent({ keepAlive: true, ...options.tls })
      : new HttpAgent({ keepAlive: true });
  }

  async grant(ttlSeconds: number): Promise<{ id: string; ttlMs: number }> {
    const answer = await this.#call('/v3/lease/grant', { TTL: ttlSeconds });
    return { id: textOf(answer, 'ID'), ttlMs: Number(textOf(answer, 'TTL')) * 1000 };
  }

  async keepAlive(id: string): Promise<boolean> {
    const answer = await this.#call('/v3/lease/keepalive', { ID: id });
    const result = (answer['result'] ?? {}) as Json;
    return Number(result['TTL'] ?? 0) > 0;
  }

  async revoke(id: string): Promise<void> {
    await this.#call('/v3/lease/revoke', { ID: id }).catch((error: unknown) => {
      if (!(error instanceof EtcdError && error.code === leaseNotFound)) throw error;
    });
  }

  async list(prefix: string): Promise<KeyValue[]> {
    const bytes = Buffer.from(prefix);
    const end = Buffer.from(bytes);
    end[end.length - 1]! += 1;
    const answer = await this.#call('/v3/kv/range', {
      key: bytes.toString('base64'),
      range_end: end.toString('base64'),
    });
    return ((answer['kvs'] ?? []) as Json[]).map((row) => ({
      key: decode(row['key']),
      value: decode(row['value']),
      modRevision: String(row['mod_revision'] ?? '0'),
      lease: String(row['lease'] ?? '0'),
    }));
  }

  async transact(compares: readonly Compare[], operations: readonly Operation[]): Promise<boolean> {
    const answer = await this.#call('/v3/kv/txn', {
      compare: compares.map(({ key, modRevision }) => ({
        key: encode(key),
        target: 'MOD',
        result: 'EQUAL',
        mod_revision: modRevision,
      })),
      success: operations.map(operationOf),
    });
    return answer['succeeded'] === true;
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Tries each endpoint once, beginning with the one that worked last. */
  async #call(path: string, body: Json): Promise<Json> {
    const { endpoints } = this.options;
    let failure: unknown;
    for (let tried = 0; tried < endpoints.length; tried++) {
      const endpoint = endpoints[this.#current % endpoints.length]!;
      try {
        return await this.#authorized(endpoint, path, body);
      } catch (error) {
        failure = error;
        const isRefusal = error instanceof EtcdError && error.code !== undefined;
        if (isRefusal && !isPassing(error.code)) throw error;
        this.#current++;
      }
    }
    throw failure;
  }

  async #authorized(endpoint: string, path: string, body: Json): Promise<Json> {
    const { user } = this.options;
    if (user && this.#token === undefined) await this.#logInOnce(endpoint, user);
    const token = this.#token;
    try {
      return await this.#post(endpoint, path, body);
    } catch (error) {
      if (!user || !isLoggedOut(error)) throw error;
      if (this.#token === token) await this.#logInOnce(endpoint, user);
      return this.#post(endpoint, path, body);
    }
  }

  /** Calls that need a token at the same time share one login. */
  #logInOnce(endpoint: string, user: { name: string; password: string }): Promise<void> {
    this.#loggingIn ??= this.#logIn(endpoint, user).finally(() => (this.#loggingIn = undefined));
    return this.#loggingIn;
  }

  async #logIn(endpoint: string, { name, password }: { name: string; password: string }) {
    this.#token = undefined;
    const timeoutMs = Math.max(this.options.timeoutMs, minLogInTimeoutMs);
    const body = { name, password };
    const answer = await this.#post(endpoint, '/v3/auth/authenticate', body, timeoutMs);
    this.#token = textOf(answer, 'token');
  }

  async #post(
    endpoint: string,
    path: string,
    body: Json,
    timeoutMs = this.options.timeoutMs,
  ): Promise<Json> {
    const { clock } = this.options;
    const late = new AbortController();
    const timer = clock.after(timeoutMs, () =>
      late.abort(new EtcdError(`${endpoint} did not answer within ${timeoutMs} ms`)),
    );
    try {
      const { status, text } = await this.#exchange(`${endpoint}${path}`, body, late.signal);
      const answer = parse(text);
      if (!answer) {
        throw new EtcdError(`${endpoint} answered: ${text.trim().slice(0, maxShownLength)}`);
      }
      if (status === 200) return answer;
      const code = answer['code'];
      const detail = answer['message'] ?? answer['error'] ?? `status ${status}`;
      throw new EtcdError(
        `${endpoint} answered: ${String(detail)}`,
        typeof code === 'number' ? code : 2,
      );
    } catch (error) {
      if (error instanceof EtcdError) throw error;
      if (late.signal.aborted) throw late.signal.reason;
      throw new EtcdError(`${endpoint}: ${messageOf(error)}`);
    } finally {
      timer.cancel();
    }
  }

  #exchange(
    url: string,
    body: Json,
    signal: AbortSignal,
  ): Promise<{ status: number; text: string }> {
    const sent = Buffer.from(JSON.stringify(body));
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        'content-length': sent.length,
        ...(this.#token !== undefined && { authorization: this.#token }),
      };
      const request = send(
        url,
        { method: 'POST', agent: this.#agent, headers, signal },
        (response) => {
          const parts: Buffer[] = [];
          let length = 0;
          response.on('data', (part: Buffer) => {
            length += part.length;
            if (length > maxAnswerBytes) request.destroy(new Error('the answer is too large'));
            else parts.push(part);
          });
          response.on('error', reject);
          response.on('end', () => {
            resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() });
          });
        },
      );
      request.on('error', reject);
      request.end(sent);
    });
  }
}

/** A token ends with its time, with a restart of etcd, and with any change of users and roles. */
function isLoggedOut(error: unknown): boolean {
  if (!(error instanceof EtcdError)) return false;
  return error.code === unauthenticated || error.message.includes('revision of auth store is old');
}

/** Undefined when the text is not JSON: some refusals of etcd and of proxies are plain text. */
function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Codes after which another endpoint may answer: unknown, deadline, unavailable. */
function isPassing(code: number | undefined): boolean {
  return code === 2 || code === 4 || code === 14;
}

function operationOf(operation: Operation): Json {
  if ('delete' in operation) return { request_delete_range: { key: encode(operation.delete) } };
  const { put, value, lease = '0' } = operation;
  return { request_put: { key: encode(put), value: encode(value), lease } };
}

function encode(value: string): string {
  return Buffer.from(value).toString('base64');
}

function decode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : '', 'base64').toString();
}

function textOf(answer: Json, name: string): string {
  const value = answer[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new EtcdError(`etcd answered without ${name}`);
}
