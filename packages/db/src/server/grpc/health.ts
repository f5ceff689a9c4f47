import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Database as Api } from '@millrace/contract/db';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from '@millrace/contract/grpc';
import { messageOf } from '@millrace/kit/errors';
import { type ServerCall, type SingleMethod, failed } from '@millrace/wire/grpc';

/** Anyone may call these, so they take small messages only. */
const open = { takes: 'one', maxMessageBytes: 16 * 1024 } as const;

/**
 * What `grpc.health.v1.Health` says: serving until the shutdown begins. The database by its own
 * name is not serving either while a follower has no first copy of it.
 */
export class Health {
  readonly #services: ReadonlySet<string> = new Set(['', Api.typeName]);
  readonly #watchers = new Set<{ send(): void; end(): void }>();
  #serving = true;
  #hasData = true;

  get isServing(): boolean {
    return this.#serving;
  }

  /** Whether there is a database to serve. */
  set hasData(hasData: boolean) {
    if (hasData === this.#hasData) return;
    this.#hasData = hasData;
    for (const watcher of this.#watchers) watcher.send();
  }

  /** Tells everyone who watches that no more calls are taken. */
  stopServing(): void {
    if (!this.#serving) return;
    this.#serving = false;
    for (const watcher of this.#watchers) watcher.send();
  }

  /** Ends the streams of those who watch, which would keep the server from ending. */
  close(): void {
    for (const watcher of this.#watchers) watcher.end();
    this.#watchers.clear();
  }

  get methods(): Record<'Check' | 'Watch' | 'List', SingleMethod> {
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
    if (this.#services.has(service)) call.answer(this.#message(service));
    else call.end(failed('NOT_FOUND', `There is no service "${service}" here.`));
  }

  #list(call: ServerCall): void {
    const statuses = Object.fromEntries(
      [...this.#services].map((service) => [service, { status: this.#statusOf(service) }]),
    );
    call.answer(toBinary(HealthListResponseSchema, create(HealthListResponseSchema, { statuses })));
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
    const answer = create(HealthCheckResponseSchema, { status: this.#statusOf(service) });
    return toBinary(HealthCheckResponseSchema, answer);
  }

  #statusOf(service: string): ServingStatus {
    if (!this.#services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    const isServing = this.#serving && (this.#hasData || service !== Api.typeName);
    return isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }
}

/** Undefined when the request cannot be read, and the caller has been told. */
function serviceOf(call: ServerCall, request: Buffer): string | undefined {
  try {
    return fromBinary(HealthCheckRequestSchema, request).service;
  } catch (error) {
    const text = `The message is not a HealthCheckRequest: ${messageOf(error)}.`;
    call.end(failed('INVALID_ARGUMENT', text));
    return undefined;
  }
}
