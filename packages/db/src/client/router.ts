import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
  type DescMethodServerStreaming,
} from '@bufbuild/protobuf';
import { Database } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { CallRefusal, isPassing } from './failures.js';
import type { Attempt, Transport } from './transport.js';
import { parseAddress, type ServerAddress } from './address.js';

interface InsertRequest {
  collection?: string;
  id?: string;
  txId?: string;
}

const attempted = new WeakSet<object>();

/**
 * Gives an insert its id before it is sent, because a new leader does not know the request ids of
 * the old one. Returns whether the same request was sent before.
 */
function insertOnce(
  method: { name: string },
  request: object,
  { clock, random }: { clock: Clock; random: Random },
): boolean {
  if (method.name !== 'Insert' && method.name !== 'InsertWithKey') return false;
  if (attempted.has(request)) return true;
  const insert = request as InsertRequest;
  // A record with an id that the caller chose may be of somebody else.
  if (insert.id !== undefined && insert.id !== '') return false;
  insert.id = random.ulid(clock.now());
  attempted.add(request);
  return false;
}

/**
 * The answer to a repeated insert that failed because its record exists: the first attempt was
 * successful. Undefined when there is no record with the id of this request.
 */
async function repeatedInsert<Input extends DescMessage, Output extends DescMessage>(
  transport: Transport,
  method: DescMethodUnary<Input, Output>,
  request: MessageInitShape<Input>,
  error: unknown,
  attempt: Attempt,
): Promise<MessageShape<Output> | undefined> {
  if (!(error instanceof CallRefusal) || error.grpcCode !== 'ALREADY_EXISTS') return undefined;
  const { collection = '', id = '', txId = '' } = request as InsertRequest;
  if (txId !== '') return undefined;
  const { encoding } = request as { encoding?: number };
  try {
    const find = { collection, id, ...(encoding !== undefined && { encoding }) };
    const { record } = await transport.unary(Database.method.findById, find, attempt);
    return Object.assign(create(method.output), { record });
  } catch (failure) {
    if (failure instanceof CallRefusal && failure.grpcCode === 'NOT_FOUND') return undefined;
    throw failure;
  }
}

/** Which node a read goes to. */
export type Preference = 'leader' | 'follower';

export interface RoutedAttempt extends Attempt {
  prefer?: Preference | undefined;
}

/** Calls to one server, or to the right one of several. */
export interface Channel {
  unary<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: MessageInitShape<Input>,
    attempt: RoutedAttempt,
  ): Promise<MessageShape<Output>>;
  stream<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: MessageInitShape<Input>,
    attempt: RoutedAttempt,
  ): AsyncGenerator<MessageShape<Output>, void, void>;
  close(): void;
}

interface RouterOptions {
  addresses: readonly ServerAddress[];
  open: (address: ServerAddress) => Transport;
  clock: Clock;
  random: Random;
  prefer: Preference;
}

interface OpenStream {
  target: string;
  abort(reason: Error): void;
}

/** Refusals of nodes that do not lead. */
const notLeading: ReadonlySet<string> = new Set(['READ_ONLY_REPLICA', 'FENCED', 'NOT_LEADER']);
const reads: ReadonlySet<string> = new Set([
  'FindById',
  'FindByKey',
  'Find',
  'Aggregate',
  'Distinct',
  'Watch',
  'Backup',
]);
/** How long a call or a stream is silent before the leader is looked up. */
const slowMs = 3_000;
const probeTimeoutMs = 1_500;

/**
 * Sends the calls of a client to the nodes of a cluster: writes to the leader, reads to where the
 * caller prefers. Learns the leader from refusals and from the status of any node. A call that
 * went to the wrong node fails with UNAVAILABLE, after which the session repeats it.
 */
export class Router implements Channel {
  readonly #transports = new Map<string, Transport>();
  readonly #streams = new Set<OpenStream>();
  /** Addresses in the order in which they are tried. */
  readonly #urls: string[];
  #leader: string;
  #nextFollower = 0;
  #discovery: Promise<void> | undefined;
  #isClosed = false;

  constructor(private readonly options: RouterOptions) {
    this.#urls = options.addresses.map(({ url }) => url);
    for (const address of options.addresses) this.#transportOf(address.url, address);
    this.#leader = this.#urls[0]!;
    this.#nextFollower = Math.floor(options.random.next() * this.#urls.length);
  }

  async unary<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: MessageInitShape<Input>,
    attempt: RoutedAttempt,
  ): Promise<MessageShape<Output>> {
    const target = this.#pick(method.name, request, attempt.prefer);
    const transport = this.#transportOf(target);
    const isRepeated = insertOnce(method, request, this.options);
    const guard = this.#guard(target, attempt.signal);
    try {
      return await transport.unary(method, request, { ...attempt, signal: guard.signal });
    } catch (error) {
      attempt.signal?.throwIfAborted();
      const answer = isRepeated
        ? await repeatedInsert(transport, method, request, error, attempt)
        : undefined;
      if (answer) return answer;
      throw await this.#redirected(target, error);
    } finally {
      guard.end();
    }
  }

  async *stream<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: MessageInitShape<Input>,
    attempt: RoutedAttempt,
  ): AsyncGenerator<MessageShape<Output>, void, void> {
    const target = this.#pick(method.name, request, attempt.prefer);
    const guard = this.#guard(target, attempt.signal);
    try {
      yield* this.#transportOf(target).stream(method, request, {
        ...attempt,
        signal: guard.signal,
      });
    } catch (error) {
      attempt.signal?.throwIfAborted();
      throw await this.#redirected(target, error);
    } finally {
      guard.end();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const transport of this.#transports.values()) transport.close();
  }

  #pick(method: string, request: object, prefer = this.options.prefer): string {
    const isInTransaction = 'txId' in request && request.txId !== '' && request.txId !== undefined;
    if (prefer !== 'follower' || !reads.has(method) || isInTransaction) return this.#leader;
    const followers = this.#urls.filter((url) => url !== this.#leader);
    return followers[this.#nextFollower++ % followers.length] ?? this.#leader;
  }

  /**
   * Ends a call or stream to a node that no longer leads. A node that is silent is not known to be
   * gone, so the leader is looked up meanwhile.
   */
  #guard(target: string, outer: AbortSignal | undefined) {
    const stop = new AbortController();
    const onAbort = () => stop.abort(outer?.reason);
    if (outer?.aborted) onAbort();
    outer?.addEventListener('abort', onAbort, { once: true });
    const stream: OpenStream = { target, abort: (reason) => stop.abort(reason) };
    const isToLeader = target === this.#leader;
    if (isToLeader) this.#streams.add(stream);
    const { clock } = this.options;
    const checkLeader = () => {
      timer = clock.after(slowMs, checkLeader);
      void this.#discover();
    };
    let timer = isToLeader ? clock.after(slowMs, checkLeader) : undefined;
    return {
      signal: stop.signal,
      end: () => {
        timer?.cancel();
        this.#streams.delete(stream);
        outer?.removeEventListener('abort', onAbort);
      },
    };
  }

  /** The error to report after the failure of a call to `target`. */
  async #redirected(target: string, error: unknown): Promise<unknown> {
    if (!(error instanceof CallRefusal)) return error;
    if (notLeading.has(error.code)) {
      const metadata = error.extra.members?.['metadata'] as { leader?: string } | undefined;
      const leader = metadata?.leader ?? '';
      const isHelpful = leader !== '' && leader !== target && this.#isAsSecure(leader);
      if (isHelpful) this.#follow(leader);
      else await this.#discover(target);
      return elsewhere(`${target} does not lead: ${error.detail}`, error);
    }
    if (!isPassing(error)) return error;
    if (!error.isAnswer || error.code === 'SHUTTING_DOWN') await this.#discover(target);
    return error;
  }

  /**
   * Whether a leader that a node names is reached as the caller asked: with TLS and the same CA, or
   * without both. Anything else would send the API key where the caller did not want it.
   */
  #isAsSecure(leader: string): boolean {
    try {
      const { isSecure, place } = parseAddress(leader);
      const { isSecure: wanted } = this.options.addresses[0]!;
      return isSecure === wanted && !('path' in place);
    } catch {
      // The node advertises an address that this client cannot use, so the given ones remain.
      return false;
    }
  }

  /** Asks all nodes who leads. `failed` is a node that is known not to. */
  async #discover(failed?: string): Promise<void> {
    this.#discovery ??= this.#probeAll().finally(() => (this.#discovery = undefined));
    await this.#discovery;
    if (failed === undefined || this.#leader !== failed) return;
    const next = this.#urls[(this.#urls.indexOf(failed) + 1) % this.#urls.length]!;
    this.#follow(next);
  }

  async #probeAll(): Promise<void> {
    if (this.#isClosed) return;
    const deadline = this.options.clock.now() + probeTimeoutMs;
    const probe = async (url: string) => {
      const { replicationStatus } = Database.method;
      const status = await this.#transportOf(url).unary(replicationStatus, {}, { deadline });
      return { url, status };
    };
    const answers = await Promise.allSettled(this.#urls.map(probe));
    let best: { url: string; epoch: bigint } | undefined;
    for (const answer of answers) {
      if (answer.status === 'rejected') continue;
      const { url, status } = answer.value;
      const leads = status.state === 'leading';
      if (leads && status.epoch > (best?.epoch ?? -1n)) best = { url, epoch: status.epoch };
    }
    if (best) this.#follow(best.url);
  }

  #follow(leader: string): void {
    if (leader === this.#leader) return;
    this.#transportOf(leader);
    this.#leader = leader;
    for (const stream of this.#streams) {
      if (stream.target !== leader) stream.abort(elsewhere(`${leader} leads now`));
    }
  }

  #transportOf(url: string, address?: ServerAddress): Transport {
    const known = this.#transports.get(url);
    if (known) return known;
    const made = this.options.open(address ?? parseAddress(url));
    this.#transports.set(url, made);
    if (!this.#urls.includes(url)) this.#urls.push(url);
    return made;
  }
}

/** A failure after which the session repeats the call. */
function elsewhere(detail: string, cause?: unknown): CallRefusal {
  return new CallRefusal('UNAVAILABLE', detail, { cause }, 'UNAVAILABLE', false);
}
