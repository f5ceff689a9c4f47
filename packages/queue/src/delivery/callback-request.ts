import { messageOf } from '@millrace/kit/errors';
import type { OutboundRequest, RequestSignal } from '@millrace/kit/outbound';
import { signatureOf, signingKeyOf } from '@millrace/kit/webhooks';
import { forwardHeaders, type Trace } from '../core/callback-headers.js';
import type { Queue, QueueConfig, SecretLookup } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import type { EndedTask } from '../storage/port/flow-runs.js';

/** The task that a callback carries. */
export type CallbackTask = Pick<
  WholeTask,
  | 'id'
  | 'queue'
  | 'handlerRef'
  | 'payloadContentType'
  | 'headers'
  | 'attempt'
  | 'redriveCount'
  | 'options'
  | 'payload'
>;

export interface CallbackParams {
  /** Null for a probe. */
  leaseToken: string | null;
  trace: Trace;
  config: QueueConfig;
  credentials: Credentials;
  now: number;
  timeoutMs: number;
  signal?: RequestSignal;
  /** Tasks that it depends on; absent if none. */
  dependencies?: readonly EndedTask[] | undefined;
}

/** The request that runs one attempt of a task. */
export function callbackRequest(task: CallbackTask, params: CallbackParams): OutboundRequest {
  const { callback } = params.config;
  if (callback.url === undefined) throw new Error('A pull queue has no callback');
  return {
    url: callback.url,
    method: 'POST',
    headers: callbackHeaders(task, params),
    body: task.payload,
    timeoutMs: params.timeoutMs,
    connectTimeoutMs: callback.connect_timeout_ms,
    signal: params.signal,
  };
}

/** What a callback says about its task, with credentials and signature. */
export function callbackHeaders(
  task: CallbackTask,
  params: CallbackParams,
): Record<string, string> {
  const { credentials, config, now } = params;
  const headers: Record<string, string> = {};
  forwardHeaders(task.headers, headers, credentials.auth?.lowerName);
  if (!params.trace.isContinued) dropTraceState(headers);
  headers['Content-Type'] = task.payloadContentType;
  headers['User-Agent'] = 'millrace-queue';
  headers['traceparent'] = params.trace.traceparent;
  headers['X-Queue-Name'] = task.queue;
  headers['X-Queue-Task-Id'] = task.id;
  headers['X-Queue-Handler-Ref'] = task.handlerRef;
  headers['X-Queue-Attempt'] = String(task.attempt);
  headers['X-Queue-Max-Attempts'] = String(task.options?.maxAttempts ?? config.retry.max_attempts);
  headers['X-Queue-Redrive-Count'] = String(task.redriveCount);
  headers['X-Queue-Deadline'] = new Date(now + params.timeoutMs).toISOString();
  if (params.leaseToken === null) headers['X-Queue-Probe'] = 'true';
  else headers['X-Queue-Lease-Token'] = params.leaseToken;
  if (params.dependencies) headers['X-Queue-Dependencies'] = headerText(params.dependencies);
  if (credentials.auth) headers[credentials.auth.name] = credentials.auth.value;
  if (credentials.signingKeys.length > 0) sign(headers, task, params);
  return headers;
}

const maxDependenciesBytes = 8 * 1024;

/** JSON in ASCII; results are left out if it would be too long for a header. */
function headerText(dependencies: readonly EndedTask[]): string {
  const text = JSON.stringify(
    dependencies.map(({ id, handlerRef, status, result, isResultOmitted }) => ({
      id,
      handler_ref: handlerRef,
      status,
      ...(isResultOmitted
        ? { result_omitted: true }
        : { result: result === null ? null : (JSON.parse(result) as unknown) }),
    })),
  ).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  if (text.length <= maxDependenciesBytes || dependencies.every((each) => each.isResultOmitted)) {
    return text;
  }
  return headerText(dependencies.map((each) => ({ ...each, isResultOmitted: true })));
}

function sign(headers: Record<string, string>, task: CallbackTask, params: CallbackParams) {
  const timestampSeconds = Math.floor(params.now / 1000);
  const signed = { id: task.id, timestampSeconds, body: task.payload };
  headers['webhook-id'] = task.id;
  headers['webhook-timestamp'] = String(timestampSeconds);
  headers['webhook-signature'] = signatureOf(signed, params.credentials.signingKeys);
}

// W3C trace context: tracestate means nothing without its traceparent.
function dropTraceState(headers: Record<string, string>): void {
  for (const name of Object.keys(headers)) {
    if (name.length === 10 && name.toLowerCase() === 'tracestate') delete headers[name];
  }
}

/** What is known of an answer that could not be evaluated. */
interface AnswerFacts {
  httpStatus: number | null;
  remoteIp: string | null;
}

/** A bug of ours in the evaluation of an answer. The handler has run. */
export class AnswerFault extends Error {
  override readonly name = 'AnswerFault';

  constructor(
    readonly facts: AnswerFacts,
    cause: unknown,
  ) {
    super(messageOf(cause), { cause });
  }
}

/** Tells errors of the evaluation of an answer from those of its request. */
export function evaluated<Result>(facts: AnswerFacts, evaluate: () => Result): Result {
  try {
    return evaluate();
  } catch (error) {
    throw new AnswerFault(facts, error);
  }
}

/** How the callbacks of a queue authenticate themselves. */
export interface Credentials {
  auth: { name: string; lowerName: string; value: string } | undefined;
  signingKeys: readonly Uint8Array[];
}

export type CredentialsResult =
  { ok: true; credentials: Credentials } | { ok: false; reason: string };

/** The credentials of a queue, or why the queue is held. */
export function credentialsFor(
  { name, config }: Queue,
  checks: { isAllowed: (url: string) => boolean; findSecret: SecretLookup },
): CredentialsResult {
  const { url } = config.callback;
  if (url === undefined) return { ok: true, credentials: { auth: undefined, signingKeys: [] } };
  if (!checks.isAllowed(url)) {
    return { ok: false, reason: 'its callback URL is not on the allowlist' };
  }
  return credentialsOf(name, config.callback, checks.findSecret);
}

/** Looks up the secrets that a callback names. */
export function credentialsOf(
  queue: string,
  callback: QueueConfig['callback'],
  findSecret: SecretLookup,
): CredentialsResult {
  const signingKeys: Uint8Array[] = [];
  for (const ref of callback.signing?.secret_refs ?? []) {
    const secret = findSecret(ref, queue);
    if (secret === undefined) return missing(ref);
    const key = signingKeyOf(secret);
    if (!key) return { ok: false, reason: `the secret ${ref} is not "whsec_" and base64` };
    signingKeys.push(key);
  }
  const { auth } = callback;
  if (auth.type === 'none') return { ok: true, credentials: { auth: undefined, signingKeys } };
  const secret = findSecret(auth.secret_ref, queue);
  if (secret === undefined) return missing(auth.secret_ref);
  const name = auth.type === 'header' ? auth.name : 'Authorization';
  const header = { name, lowerName: name.toLowerCase(), value: valueOf(auth.type, secret) };
  return { ok: true, credentials: { auth: header, signingKeys } };
}

function valueOf(type: 'bearer' | 'basic' | 'header', secret: string): string {
  if (type === 'bearer') return `Bearer ${secret}`;
  return type === 'basic' ? `Basic ${Buffer.from(secret).toString('base64')}` : secret;
}

function missing(ref: string): CredentialsResult {
  return { ok: false, reason: `the secret ${ref} does not exist or is not open to this queue` };
}
