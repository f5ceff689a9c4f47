import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Database as Api } from '@millrace/contract/db';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from '@millrace/contract/grpc';
import { messageOf } from '@millrace/kit/errors';
import { type ServerCall, type SingleRequestMethod, errorStatus } from '@millrace/wire/grpc';

/** Unauthenticated callers can use these methods, so messages must be small. */
const open = { takes: 'one', maxMessageBytes: 16 * 1024 } as const;

/**
 * Implements `grpc.health.v1.Health`: SERVING until shutdown begins. The database service is also
 * NOT_SERVING while a follower has no first copy.
 */
export class Health {
  readonly #services: ReadonlySet<string> = new Set(['', Api.typeName]);
  readonly #watchers = new Set<{ send(): void; end(): void }>();
  #serving = true;
  #hasData = true;

  get isServing(): boolean {
    return this.#serving;
  }

  /** Whether the database has data to serve. */
  set hasData(hasData: boolean) {
    if (hasData === this.#hasData) return;
    this.#hasData = hasData;
    for (const watcher of this.#watchers) watcher.send();
  }

  /** Notifies watchers that the server no longer accepts calls. */
  stopServing(): void {
    if (!this.#serving) return;
    this.#serving = false;
    for (const watcher of this.#watchers) watcher.send();
  }

  /** Ends health watches, which would otherwise keep the server running. */
  close(): void {
    for (const watcher of this.#watchers) watcher.end();
    this.#watchers.clear();
  }

  get methods(): Record<'Check' | 'Watch' | 'List', SingleRequestMethod> {
    return {
      Check: { ...open, start: (call, request) => this.#check(call, request) },
      Watch: {
        ...open,
        isExemptFromReadRate: true,
        start: (call, request) => this.#watch(call, request),
      },
      List: { ...open, start: (call) => this.#list(call) },
    };
  }

  #check(call: ServerCall, request: Buffer): void {
    const service = serviceOf(call, request);
    if (service === undefined) return;
    if (this.#services.has(service)) call.respond(this.#message(service));
    else call.end(errorStatus('NOT_FOUND', `There is no service "${service}".`));
  }

  #list(call: ServerCall): void {
    const statuses = Object.fromEntries(
      [...this.#services].map((service) => [service, { status: this.#statusOf(service) }]),
    );
    call.respond(
      toBinary(HealthListResponseSchema, create(HealthListResponseSchema, { statuses })),
    );
  }

  #watch(call: ServerCall, request: Buffer): void {
    const service = serviceOf(call, request);
    if (service === undefined) return;
    const watcher = {
      send: () => call.send(this.#message(service)),
      end: () => call.end(),
    };
    this.#watchers.add(watcher);
    call.work = { abort: () => this.#watchers.delete(watcher) };
    watcher.send();
  }

  #message(service: string): Uint8Array {
    const respond = create(HealthCheckResponseSchema, { status: this.#statusOf(service) });
    return toBinary(HealthCheckResponseSchema, respond);
  }

  #statusOf(service: string): ServingStatus {
    if (!this.#services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    const isServing = this.#serving && (this.#hasData || service !== Api.typeName);
    return isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }
}

/** Undefined when the request is invalid; the call has then been ended. */
function serviceOf(call: ServerCall, request: Buffer): string | undefined {
  try {
    return fromBinary(HealthCheckRequestSchema, request).service;
  } catch (error) {
    const text = `The message is not a valid HealthCheckRequest: ${messageOf(error)}.`;
    call.end(errorStatus('INVALID_ARGUMENT', text));
    return undefined;
  }
}
